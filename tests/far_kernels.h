#pragma once

#include "far_device.h"
#include "program/op_registry.h"

namespace millrace {

/// Gives every operator that runs no block a kernel for FarDevice: it copies inputs to the host, has the CPU's kernel
/// do the work there, and copies outputs back by the frame's stream.
void AddFarKernels(OpRegistry& registry);

}  // namespace millrace
