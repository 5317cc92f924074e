#pragma once

#include "program/op_registry.h"

namespace mini {

void RegisterMiniReader(millrace::OpRegistry& registry);
void RegisterMiniDecoder(millrace::OpRegistry& registry);

}  // namespace mini
