#include <charconv>

#include "mini_data_reader.h"
#include "mini_ops.h"
#include "runtime/kernel_state.h"

namespace mini {
namespace {

using millrace::AttrValue;
using millrace::DType;
using millrace::InferShapeContext;
using millrace::KernelContext;
using millrace::OpKernel;
using millrace::Result;
using millrace::RunContext;
using millrace::Status;

constexpr int kParserThreads = 2;

Status InferMiniReader(InferShapeContext& context) {
  const int64_t batch_size = context.op().Int("batch_size");
  if (batch_size < 1) return context.Error("batch_size must be positive, not " + std::to_string(batch_size));
  const int64_t buffer = context.op().Int("shuffle_buffer_size");
  if (buffer < 1) return context.Error("shuffle_buffer_size must be positive, not " + std::to_string(buffer));
  millrace::VarMeta out;
  out.dtype = DType::kFloat64;
  out.dims = {batch_size, 2};
  context.SetOutput("out", out);
  return Status::Ok();
}

/// The state of the operator is the reader: it is made with the kernel, once a frame, and goes on from batch to batch.
/// A checkpoint holds how many it has read; as their order follows from the attributes, reading as many leads there.
class MiniReaderKernel final : public OpKernel, public millrace::KernelState {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    MR_ASSIGN(const MiniReaderOptions options, MiniReaderOptions::Create(context.op(), context.options()));
    MR_ASSIGN(millrace::Tensor* const out, context.Output("out"));
    return std::unique_ptr<OpKernel>(std::make_unique<MiniReaderKernel>(options, out));
  }
  MiniReaderKernel(const MiniReaderOptions& options, millrace::Tensor* out)
      : reader_(options, kParserThreads), out_(out) {}

  Status Run(const RunContext& context) override { return reader_.Read(out_, context.stop); }

  Status SaveState(std::string* bytes) override {
    *bytes += std::to_string(reader_.batches());
    return Status::Ok();
  }
  Status LoadState(std::string_view bytes, const std::stop_token& stop) override {
    uint64_t batches = 0;
    const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), batches);
    if (error != std::errc() || end != bytes.data() + bytes.size()) {
      return millrace::BadData("expected a number of batches, found \"" + std::string(bytes) + "\"");
    }
    return reader_.SkipTo(batches, stop);
  }

 private:
  MiniDataReader reader_;
  millrace::Tensor* out_;
};

}  // namespace

void RegisterMiniReader(millrace::OpRegistry& registry) {
  registry.Add("MiniReader")
      .Doc("Reads batch_size lines of two numbers from part files, one batch after another without end.")
      .Output("out", "[batch_size, 2] of type float64")
      .Required<std::string>("data_dir", "folder of the parts")
      .Attr("data_part_num", int64_t{1}, "how many parts there are")
      .Attr("part_name_prefix", std::string("part-"), "what stands before a part's number")
      .Attr("part_name_suffix_length", int64_t{-1}, "digits of a part's number: 3 for part-007; -1: no zeros before it")
      .Required<int64_t>("batch_size", "rows of out")
      .Attr("random_shuffle", false, "draws lines at random from a buffer")
      .Attr("shuffle_after_epoch", false, "reads the parts in another order in every epoch but the first")
      .Attr("seed", int64_t{-1}, "of both shuffles; -1: the job's")
      .Attr("shuffle_buffer_size", int64_t{1024}, "lines that random_shuffle draws from")
      .InferShape(InferMiniReader)
      .Kernel<MiniReaderKernel>({.types = {{"out", {DType::kFloat64}}}});
}

}  // namespace mini
