#include "core/hash.h"

#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferHash(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kInt64));
  const int64_t hashes = context.op().Int("num_hash");
  const int64_t mod = context.op().Int("mod_by");
  if (hashes < 1 || mod < 1)
    return context.Error("num_hash is " + std::to_string(hashes) + ", mod_by " + std::to_string(mod));
  if (x.dims.rank() != 2) return context.Error("X " + x.dims.ToString() + " must be a matrix");
  x.dims = Dims{x.dims[0], hashes, 1};
  context.SetOutput("Out", x);
  return Status::Ok();
}

class HashKernel : public BoundKernel<HashKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    hashes_ = context.op().Int("num_hash");
    mod_ = static_cast<uint64_t>(context.op().Int("mod_by"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t rows = x_->dims()[0];
    const auto row_bytes = static_cast<size_t>(x_->dims()[1]) * sizeof(int64_t);
    const std::span<const uint32_t> lod = x_->lod();
    const auto* bytes = reinterpret_cast<const char*>(x_->data<int64_t>());
    int64_t* out = out_->Resize<int64_t>({rows, hashes_, 1});
    out_->set_lod(lod);
    for (int64_t i = 0; i < rows; ++i, bytes += row_bytes) {
      for (int64_t k = 0; k < hashes_; ++k) {
        *out++ = static_cast<int64_t>(XxHash64({bytes, row_bytes}, static_cast<uint64_t>(k)) % mod_);
      }
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  int64_t hashes_ = 1;
  uint64_t mod_ = 1;
};

}  // namespace

void RegisterHash(OpRegistry& registry) {
  registry.Add("hash")
      .Doc("XXH64 of each row of ids, with the seeds 0, 1, ..., modulo mod_by.")
      .Input("X", "int64 [rows, ids]; LoD is kept")
      .Output("Out", "int64 [rows, num_hash, 1]")
      .Attr("num_hash", int64_t{1}, "hashes of each row")
      .Attr("mod_by", int64_t{100000}, "hashes are below it")
      .InferShape(InferHash)
      .Kernel<HashKernel>();
}

}  // namespace millrace
