#include <bit>
#include <cstring>

#include "ops/kernel.h"

namespace millrace {
namespace {

// XXH64 as Yann Collet's specification of xxHash describes it; programs rely on these very numbers.

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87ULL;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FULL;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9ULL;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63ULL;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5ULL;

uint64_t XxRound(uint64_t sum, uint64_t lane) { return std::rotl(sum + lane * kPrime2, 31) * kPrime1; }
uint64_t XxMerge(uint64_t hash, uint64_t sum) { return (hash ^ XxRound(0, sum)) * kPrime1 + kPrime4; }

/// Of whole 64-bit words: what an id is.
uint64_t XxHash64(const uint64_t* words, size_t count, uint64_t seed) {
  size_t at = 0;
  uint64_t hash = seed + kPrime5;
  if (count >= 4) {
    uint64_t sums[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; at + 4 <= count; at += 4) {
      for (size_t lane = 0; lane < 4; ++lane) sums[lane] = XxRound(sums[lane], words[at + lane]);
    }
    hash = std::rotl(sums[0], 1) + std::rotl(sums[1], 7) + std::rotl(sums[2], 12) + std::rotl(sums[3], 18);
    for (const uint64_t sum : sums) hash = XxMerge(hash, sum);
  }
  hash += count * sizeof(uint64_t);
  for (; at < count; ++at) hash = std::rotl(hash ^ XxRound(0, words[at]), 27) * kPrime1 + kPrime4;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

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
    const auto width = static_cast<size_t>(x_->dims()[1]);
    const std::span<const uint32_t> lod = x_->lod();
    const auto* words = reinterpret_cast<const uint64_t*>(x_->data<int64_t>());
    int64_t* out = out_->Resize<int64_t>({rows, hashes_, 1});
    out_->set_lod(lod);
    for (int64_t i = 0; i < rows; ++i, words += width) {
      for (int64_t k = 0; k < hashes_; ++k) {
        *out++ = static_cast<int64_t>(XxHash64(words, width, static_cast<uint64_t>(k)) % mod_);
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
