#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "batch/slot_schema.h"
#include "core/status.h"
#include "program/op_registry.h"
#include "trainer_desc.pb.h"

namespace millrace {

/// What the numbers of a checkpoint's ledger and the values of a line mean, a line for each setting: "name: value".
///
/// What is done with lines that do not parse is not among them: a bad line keeps its number in its file, so that a job
/// that one ended can go on with bad_lines { action: SKIP }; in memory the number of rows tells.
std::string InputFingerprint(const TrainerDesc& desc, const SlotSchema& schema);

/// The same of the readers that a program which feeds itself makes: a line for each operator of `startup` that makes
/// one.
std::string ReaderFingerprint(const ProgramDesc& startup, const OpRegistry& registry);

/// How the startup program of a `program` makes what the program keeps, a line for each operator: what a run that goes
/// on does not do again. Readers and `settings` are left out, which it does make anew.
std::string StartupFingerprint(const ProgramDesc& startup, const std::set<std::string>& settings,
                               const OpRegistry& registry);

/// CRC-32C of the operators of a program with their attributes: another one is another training.
uint32_t OperatorsCrc(const ProgramDesc& program, const OpRegistry& registry);

/// The attributes of an operator, defaults too: what its state means.
std::string OperatorFingerprint(const OpView& op);

/// kInvalidConfig with every setting that differs, a line each: what it was and what it is now. `columns_told` is that
/// of the fields that make slots of columns, of which a fingerprint has a checksum alone; empty: it is not known.
Status CompareFingerprints(const std::string& before, const std::string& now, const std::string& columns_told = "");

}  // namespace millrace
