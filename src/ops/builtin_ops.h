#pragma once

namespace millrace {

class OpRegistry;

/// Adds every operator that Millrace brings along; the caller adds its own, then seals the registry.
void RegisterBuiltinOps(OpRegistry& registry);

}  // namespace millrace
