#pragma once

#include "core/status.h"
#include "program/op_registry.h"
#include "serving/onnx_graph.h"

namespace millrace {

/// Whether operators of this type can be translated.
bool HasOnnxForm(std::string_view type);

/// Appends the nodes of one operator of a translatable type to `graph`. Fails with kInvalidConfig for unsupported
/// attributes.
Status AppendOnnx(const OpView& op, OnnxGraph& graph);

}  // namespace millrace
