#pragma once

#include "core/status.h"
#include "program/op_registry.h"
#include "serving/onnx_graph.h"

namespace millrace {

/// Whether operators of this type have a translation.
bool HasOnnxForm(std::string_view type);

/// Appends the nodes of one operator, whose type has a translation, to `graph`. kInvalidConfig for a form of it that
/// has none.
Status AppendOnnx(const OpView& op, OnnxGraph& graph);

}  // namespace millrace
