#include "serving/onnx_model.h"

#include "core/checksummed_file.h"
#include "core/version.h"
#include "onnx.pb.h"
#include "runtime/tensor.h"
#include "runtime/transfer.h"
#include "serving/onnx_graph.h"
#include "serving/onnx_ops.h"

namespace millrace {
namespace {

constexpr int64_t kIrVersion = 8;
constexpr int64_t kOperatorSet = 18;
constexpr size_t kLargestFile = size_t{1} << 31;

Result<OnnxGraph> Translate(const FeedList& feed, const OpRegistry& registry) {
  MR_ASSIGN(OnnxGraph graph, OnnxGraph::Create(feed));
  std::string problems;
  const auto add = [&](const std::string& problem) { problems += (problems.empty() ? "" : "\n") + problem; };
  for (const OpDesc& op : feed.program.blocks(0).ops()) {
    const OpInfo* info = registry.Find(op.type());
    if (info == nullptr || !HasOnnxForm(op.type())) {
      add("operator " + op.type() + " (" + op.outputs(0).arguments(0) +
          ") has no ONNX form here; export the model to PADDLE instead");
    } else if (const Status status = AppendOnnx(OpView(op, *info), graph); problems.empty() && !status.ok()) {
      add(status.message());
    }
  }
  if (!problems.empty()) return InvalidConfig(problems);
  return graph;
}

Status AddParameter(const std::string& name, const Scope& root, onnx::Graph& graph, size_t* bytes) {
  const Variable* variable = root.Find(name);
  if (variable == nullptr || !variable->Is<Tensor>()) {
    return Internal("parameter \"" + name + "\" holds no tensor to export");
  }
  const auto& tensor = variable->Get<Tensor>();
  if (tensor.dtype() != DType::kFloat32) {
    return InvalidConfig("parameter \"" + name + "\" is " + std::string(DTypeName(tensor.dtype())) +
                         "; only float32 parameters are exported to ONNX");
  }
  const size_t size = static_cast<size_t>(tensor.numel()) * sizeof(float);
  *bytes += size;
  if (*bytes >= kLargestFile) {
    return InvalidConfig("with parameter \"" + name + "\" " + tensor.dims().ToString() +
                         " the model is beyond the 2 GiB of an ONNX file; lower vocabulary or export to PADDLE");
  }
  onnx::Tensor* initializer = graph.add_initializer();
  initializer->set_name(name);
  initializer->set_data_type(onnx::FLOAT);
  for (const int64_t dim : tensor.dims().sizes()) initializer->add_dims(dim);
  HostView host_view;
  MR_ASSIGN(const Tensor* const shown, host_view.Of(tensor));
  initializer->set_raw_data(shown->raw_data(), size);
  return Status::Ok();
}

}  // namespace

Status CheckOnnx(const FeedList& feed, const OpRegistry& registry) { return Translate(feed, registry).status(); }

Status WriteOnnx(const FeedList& feed, const std::vector<std::string>& fetches, const OpRegistry& registry,
                 const Scope& root, const std::string& path, const LongWork& work) {
  MR_ASSIGN(OnnxGraph graph, Translate(feed, registry));
  for (const std::string& name : fetches) graph.AddOutput(name);
  const std::vector<std::string> parameters = graph.parameters();
  onnx::Model model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("millrace");
  model.set_producer_version(MillraceVersion());
  model.add_opset_import()->set_version(kOperatorSet);
  *model.mutable_graph() = std::move(graph).Take();
  size_t bytes = 0;
  for (const std::string& name : parameters) {
    MR_TRY(AddParameter(name, root, *model.mutable_graph(), &bytes));
    MR_TRY(work.Done(0, "writing \"" + path + "\""));
  }
  MR_ASSIGN(const auto file, ChecksummedFile::Create(path, work));
  model.SerializeToOstream(&file->stream());
  return file->Finish().status();
}

}  // namespace millrace
