#include "app/list_ops.h"

namespace millrace {
namespace {

void AppendArguments(const char* word, const std::vector<ArgInfo>& args, std::string* text) {
  for (const ArgInfo& arg : args) {
    *text += std::string("    ") + word + " " + arg.name;
    if (arg.optional) *text += " (optional)";
    if (arg.duplicable && !arg.optional) *text += " (several)";
    *text += ": " + arg.doc + "\n";
  }
}

void AppendOp(const OpInfo& op, const OpRegistry& registry, std::string* text) {
  *text += op.type + "\n    " + op.doc + "\n";
  AppendArguments("in", op.inputs, text);
  AppendArguments("out", op.outputs, text);
  for (const AttrInfo& attr : op.attrs) {
    *text += "    attr " + attr.name + (attr.required ? "" : " = " + ShowAttr(attr.default_value));
    if (attr.fixed) *text += " (no other)";
    if (attr.required) *text += " (required)";
    *text += ": " + attr.doc + "\n";
  }
  if (const OpInfo* forward = registry.ForwardOf(op); forward != nullptr)
    *text += "    gradient of " + forward->type + "\n";
  if (op.grad != nullptr) *text += "    has a gradient\n";
  if (op.is_optimizer) *text += "    updates parameters\n";
  if (op.is_fused) *text += "    made by fusion\n";
  if (!op.plugin.empty()) *text += "    from plugin " + op.plugin + "\n";
}

}  // namespace

std::string ListOps(const OpRegistry& registry) {
  std::string text;
  for (const OpInfo* op : registry.all()) AppendOp(*op, registry, &text);
  return text;
}

}  // namespace millrace
