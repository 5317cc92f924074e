#pragma once

#include <string>

#include "program/op_registry.h"

namespace millrace {

/// What `trainer --list_ops` prints: the operators of a registry by type, each with what it computes, its inputs,
/// outputs, attributes and defaults. scripts/gen_docs.py makes docs/operators.md of it.
std::string ListOps(const OpRegistry& registry);

}  // namespace millrace
