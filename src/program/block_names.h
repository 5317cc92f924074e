#pragma once

#include <memory>

#include "framework.pb.h"

namespace millrace {

/// The program with a name of its own for every variable that a block declares although another block has one of that
/// name already (`NAME@block_3`), as Paddle's branches do with their gradients; what refers to it follows.
///
/// A name means the variable of the nearest block that declares it: the operator's own, the block whose gradients it
/// computes (`forward_block_idx`), then those around it. `conditional_block_grad` is told where its block leaves the
/// gradients of its inputs (input `Inner@GRAD`; "@EMPTY@": nowhere), which Paddle finds by their names.
///
/// Blocks that name parents or forward blocks that are not there keep their names. A program of one block comes back
/// itself.
std::shared_ptr<const ProgramDesc> WithOwnNames(std::shared_ptr<const ProgramDesc> program);

}  // namespace millrace
