#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "framework.pb.h"
#include "program/op_registry.h"

namespace millrace {

/// A run of consecutive operators of a program that belong to one section.
struct SectionPart {
  int section = 0;
  int ops = 0;
};

/// A training program cut into sections that threads of their own run.
struct SectionCut {
  ProgramDesc step;                     ///< forward of sections 0, 1, ..., then backward of ..., 1, 0
  std::vector<SectionPart> step_parts;  ///< twice the sections, in that order
  ProgramDesc update;                   ///< updates of sections ..., 1, 0
  std::vector<SectionPart> update_parts;
  /// By section: gradients that its backward part writes and updates read.
  std::vector<std::vector<std::string>> gradients;
};

/// Cuts block 0 of `program`. `cuts[i]` names the variables that section i hands on; what they need runs in it, unless
/// an earlier section has it; the last section, behind the last cut, takes the rest. Gradients go to the sections of
/// what they are the gradients of, updates to the lowest section that their gradients come from.
///
/// kInvalidConfig, all mistakes at once: unknown variables (with the nearest), sections without operators, updates
/// that read more than gradients and parameters.
Result<SectionCut> CutIntoSections(const ProgramDesc& program, const OpRegistry& registry,
                                   const std::vector<std::vector<std::string>>& cuts);

}  // namespace millrace
