#pragma once

#include <string>
#include <string_view>

#include "batch/slot_schema.h"
#include "model/model_compiler.h"
#include "program/op_registry.h"
#include "trainer_desc.pb.h"

namespace millrace {

/// Every builtin operator, sealed.
const OpRegistry& BuiltinOps();

/// configs/NAME.prototxt of this checkout; fails the test when it does not parse.
TrainerDesc ReadJob(const std::string& name);

/// The slots of the configs: label, dense (13 floats), C1..C26.
SlotSchema ClickSlots();

/// A model in text format over ClickSlots().
Result<CompiledModel> CompileText(std::string_view model);

/// The whole file; fails the test when it is not there.
std::string FileText(const std::string& path);

}  // namespace millrace
