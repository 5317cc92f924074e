// softmax and the cross_entropy (or cross_entropy2) of what it gives become one softmax_with_cross_entropy, their
// gradients its gradient: the loss comes from the logits, and is exact where a probability underflows.
#include <algorithm>

#include "program/passes/op_graph.h"

namespace millrace {
namespace {

/// The four operators; -1 where there is none.
struct Loss {
  int softmax = -1;
  int entropy = -1;
  int softmax_grad = -1;
  int entropy_grad = -1;
};

bool IsWrittenBefore(const OpGraph& graph, const std::string& name, int op) {
  const std::vector<int> writers = graph.Writers(name);
  return std::all_of(writers.begin(), writers.end(), [op](int writer) { return writer < op; });
}

/// The cross_entropy that reads `probabilities`; -1 when there is none or several.
int FindEntropy(const OpGraph& graph, const std::string& probabilities) {
  const int first = graph.ReaderOfType(probabilities, "cross_entropy");
  const int second = graph.ReaderOfType(probabilities, "cross_entropy2");
  if ((first < 0) == (second < 0)) return -1;
  return std::max(first, second);
}

/// What cross_entropy2 keeps for its gradient is read by nobody else.
bool AreExtrasPrivate(const OpGraph& graph, const Loss& loss) {
  for (const char* extra : {"MatchX", "XShape"}) {
    for (const std::string& name : OutputArguments(graph.op(loss.entropy), extra)) {
      if (!graph.IsPrivate(name, {loss.entropy_grad})) return false;
    }
  }
  return true;
}

/// Finds the gradients, if there are any; false when they are anything but those two.
bool MatchBackward(const OpGraph& graph, Loss& loss) {
  const std::string probabilities = OnlyOutput(graph.op(loss.softmax), "Out");
  loss.softmax_grad = graph.ReaderOfType(probabilities, "softmax_grad");
  if (loss.softmax_grad < 0) return graph.Writers(GradName(probabilities)).empty();
  const std::string between = OnlyInput(graph.op(loss.softmax_grad), "Out@GRAD");
  loss.entropy_grad = graph.OnlyWriter(between);
  if (loss.entropy_grad < 0) return false;
  const OpDesc& entropy_grad = graph.op(loss.entropy_grad);
  return entropy_grad.type() == graph.op(loss.entropy).type() + "_grad" &&
         graph.IsPrivate(between, {loss.softmax_grad}) &&
         OnlyInput(entropy_grad, "Label") == OnlyInput(graph.op(loss.entropy), "Label");
}

bool Match(const OpGraph& graph, Loss& loss) {
  const std::string probabilities = OnlyOutput(graph.op(loss.softmax), "Out");
  if (probabilities.empty() || graph.OnlyWriter(probabilities) != loss.softmax) return false;
  loss.entropy = FindEntropy(graph, probabilities);
  if (loss.entropy < 0) return false;
  const std::string label = OnlyInput(graph.op(loss.entropy), "Label");
  return !label.empty() && IsWrittenBefore(graph, label, loss.softmax) && MatchBackward(graph, loss) &&
         AreExtrasPrivate(graph, loss);
}

void CopyAttrs(const OpGraph& graph, const Loss& loss, OpDesc& op) {
  for (const char* name : {"soft_label", "ignore_index"}) {
    if (const OpDesc::Attr* attr = FindAttr(graph.op(loss.entropy), name); attr != nullptr) *op.add_attrs() = *attr;
  }
  if (const OpDesc::Attr* axis = FindAttr(graph.op(loss.softmax), "axis"); axis != nullptr) *op.add_attrs() = *axis;
}

void Fuse(OpGraph& graph, const Loss& loss) {
  const OpDesc& softmax = graph.op(loss.softmax);
  const OpDesc& entropy = graph.op(loss.entropy);
  OpDesc forward;
  forward.set_type("softmax_with_cross_entropy");
  SetInput(forward, "Logits", InputArguments(softmax, "X"));
  SetInput(forward, "Label", InputArguments(entropy, "Label"));
  SetOutput(forward, "Softmax", OutputArguments(softmax, "Out"));
  SetOutput(forward, "Loss", OutputArguments(entropy, "Y"));
  CopyAttrs(graph, loss, forward);
  if (loss.softmax_grad >= 0) {
    OpDesc backward;
    backward.set_type("softmax_with_cross_entropy_grad");
    SetInput(backward, "Label", InputArguments(entropy, "Label"));
    SetInput(backward, "Softmax", OutputArguments(softmax, "Out"));
    SetInput(backward, "Loss@GRAD", InputArguments(graph.op(loss.entropy_grad), "Y@GRAD"));
    SetOutput(backward, "Logits@GRAD", OutputArguments(graph.op(loss.softmax_grad), "X@GRAD"));
    CopyAttrs(graph, loss, backward);
    graph.Remove(loss.entropy_grad);
    graph.Replace(loss.softmax_grad, std::move(backward));
  }
  graph.Remove(loss.entropy);
  graph.Replace(loss.softmax, std::move(forward));
}

}  // namespace

void FuseSoftmaxLoss(OpGraph& graph) {
  for (int i = 0; i < graph.size(); ++i) {
    if (graph.type(i) != "softmax") continue;
    Loss loss;
    loss.softmax = i;
    if (Match(graph, loss)) Fuse(graph, loss);
  }
}

}  // namespace millrace
