// Everything sparse of one batch of the shared benchmark: lookup and pooling of 26 slots, merged gradient, Adagrad.
// A GEMM-bound batch of 512 takes about 9.5 ms on one core; the goal is 1 ms for all of this.
#include <benchmark/benchmark.h>
#include <glog/logging.h>

#include <cmath>
#include <memory>

#include "kernels/racy.h"
#include "micro/click_ids.h"
#include "model.pb.h"
#include "ops/builtin_ops.h"
#include "ops/embedding/slot_rows.h"
#include "runtime/op_kernel.h"
#include "table/hash_table.h"

namespace millrace {
namespace {

constexpr int kRows = 512;
constexpr int kDim = 16;
constexpr int kBatches = 64;
constexpr float kRate = 0.05F;

enum class Kind { kMatrices, kTables, kOneTable };

std::string SlotName(size_t slot) { return "C" + std::to_string(slot + 1); }

// The three steps as a program would run them, over one kind of parameter.
class Embedding {
 public:
  explicit Embedding(Kind kind) : kind_(kind), batches_(MakeClickIds(kBatches, kRows)) {
    RegisterBuiltinOps(registry_);
    OpDesc forward;
    forward.set_type("fused_slots_pool");
    std::vector<std::string> ids;
    std::vector<std::string> parameters;
    std::vector<int64_t> salts;
    for (size_t slot = 0; slot < ClickVocabularies().size(); ++slot) {
      ids.push_back(SlotName(slot));
      parameters.push_back(kind == Kind::kOneTable ? "W" : "W" + std::to_string(slot));
      salts.push_back(kind == Kind::kOneTable ? static_cast<int64_t>(slot + 1) * 0x1234567 : 0);
      ids_.push_back(scope_.Var(ids.back())->GetMutable<Tensor>());
      MakeParameter(parameters.back(), ClickVocabularies()[slot]);
    }
    SetInput(forward, "Ids", ids);
    SetInput(forward, "W", parameters);
    SetOutput(forward, "Out", {"out"});
    SetOutput(forward, "Rows", {"rows"});
    SetAttr(forward, "pooltype", std::string("AVERAGE"));
    SetAttr(forward, "slot_salts", salts);
    scope_.Var("out");
    scope_.Var("rows");
    OpDesc backward = forward;
    backward.set_type("fused_slots_pool_grad");
    backward.clear_outputs();
    SetInput(backward, "Rows", {"rows"});
    SetInput(backward, "Out@GRAD", {"out@GRAD"});
    out_grad_ = scope_.Var("out@GRAD")->GetMutable<Tensor>();
    float* grad = out_grad_->Resize<float>({kRows, kDim * static_cast<int64_t>(ids.size())});
    for (int64_t i = 0; i < out_grad_->numel(); ++i) grad[i] = static_cast<float>(i % 17 - 8) * 1e-3F;
    std::vector<std::string> grads;
    for (const std::string& name : distinct_) grads.push_back(GradName(name));
    for (const std::string& name : grads) grads_.push_back(scope_.Var(name)->GetMutable<SelectedRows>());
    SetOutput(backward, "W@GRAD", grads);
    forward_ = MakeKernel(forward);
    backward_ = MakeKernel(backward);
  }

  void Batch() {
    Bind();
    Forward();
    Backward();
    Update();
  }
  void Bind() {
    const ClickIds& batch = batches_[next_++ % kBatches];
    for (size_t slot = 0; slot < ids_.size(); ++slot) {
      ids_[slot]->View(DType::kInt64, {static_cast<int64_t>(batch.ids[slot].size()), 1}, batch.ids[slot].data());
      ids_[slot]->set_lod(batch.offsets[slot]);
    }
  }
  void Forward() { CHECK(forward_->Run(context_).ok()); }
  void Backward() { CHECK(backward_->Run(context_).ok()); }
  void Update() {
    for (size_t p = 0; p < grads_.size(); ++p) {
      const SelectedRows& grad = *grads_[p];
      if (kind_ == Kind::kMatrices) {
        racy::Best().adagrad_matrix_rows({kRate, 1e-6F}, grad.rows.data(), grad.values.data<float>(), grad.rows.size(),
                                         kDim, weights_[p]->mutable_data<float>(), moments_[p]->mutable_data<float>(),
                                         nullptr);
      } else {
        CHECK(tables_[p]
                  ->Push(grad.table_rows, {grad.values.data<float>(), static_cast<size_t>(grad.values.numel())},
                         {kRate, nullptr})
                  .ok());
      }
    }
  }
  size_t distinct_rows() const {
    size_t rows = 0;
    for (const SelectedRows* grad : grads_) rows += grad->rows.size();
    return rows;
  }

 private:
  void MakeParameter(const std::string& name, int64_t vocabulary) {
    if (scope_.Find(name) != nullptr) return;
    distinct_.push_back(name);
    if (kind_ == Kind::kMatrices) {
      weights_.push_back(scope_.Var(name)->GetMutable<Tensor>());
      moments_.push_back(scope_.Var(name + "_moment")->GetMutable<Tensor>());
      for (Tensor* tensor : {weights_.back(), moments_.back()}) {
        std::fill_n(tensor->Resize<float>({vocabulary, kDim}), vocabulary * kDim, 0.01F);
      }
      return;
    }
    TableDesc desc;
    desc.set_name(name);
    desc.set_dim(kDim);
    desc.mutable_optimizer()->mutable_adagrad();
    auto table = CreateHashTable(desc, 1);
    CHECK(table.ok());
    tables_.push_back(table->get());
    // Rows of the whole vocabulary, so that the table is as large as after a long training.
    RowBatch rows;
    std::vector<uint64_t> keys(static_cast<size_t>(kind_ == Kind::kOneTable ? 1300000 : vocabulary));
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    CHECK((*table)->Pull(keys, PullMode::kInsert, &rows).ok());
    scope_.Var(name)->Set(std::move(*table));
  }

  std::unique_ptr<OpKernel> MakeKernel(const OpDesc& op) {
    descs_.push_back(std::make_unique<OpDesc>(op));
    const OpView view(*descs_.back(), *registry_.Find(op.type()));
    KernelContext context(view, scope_, options_);
    auto kernel = view.info().kernels[0].create(context);
    CHECK(kernel.ok()) << kernel.status().ToString();
    return std::move(*kernel);
  }

  Kind kind_;
  std::vector<ClickIds> batches_;
  size_t next_ = 0;
  OpRegistry registry_;
  Scope scope_;
  FrameOptions options_;
  RunContext context_;
  std::vector<std::unique_ptr<OpDesc>> descs_;
  std::vector<std::string> distinct_;
  std::vector<Tensor*> ids_, weights_, moments_;
  std::vector<SparseTable*> tables_;
  std::vector<SelectedRows*> grads_;
  Tensor* out_grad_ = nullptr;
  std::unique_ptr<OpKernel> forward_, backward_;
};

template <Kind kKind>
Embedding& Shared() {
  static Embedding embedding(kKind);
  return embedding;
}

// Evicts what a batch's GEMMs would evict: weights and activations of the 400-400-400 model with their gradients.
void Sweep(std::vector<float>& memory) {
  for (float& v : memory) v += 1.0F;
  benchmark::DoNotOptimize(memory.data());
}

template <Kind kKind>
void BM_Batch(benchmark::State& state) {
  Embedding& embedding = Shared<kKind>();
  std::vector<float> memory((size_t{8} << 20) / sizeof(float));
  for (int i = 0; i < 2 * kBatches; ++i) embedding.Batch();
  for (auto unused : state) {
    state.PauseTiming();
    Sweep(memory);
    state.ResumeTiming();
    embedding.Batch();
  }
  state.counters["distinct_rows"] = static_cast<double>(embedding.distinct_rows());
  state.counters["examples/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kRows, benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Batch<Kind::kMatrices>)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Batch<Kind::kTables>)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Batch<Kind::kOneTable>)->Unit(benchmark::kMicrosecond);

template <Kind kKind, int kStep>
void BM_Step(benchmark::State& state) {
  Embedding& embedding = Shared<kKind>();
  for (int i = 0; i < 2 * kBatches; ++i) embedding.Batch();
  for (auto unused : state) {
    state.PauseTiming();
    embedding.Bind();
    if (kStep > 0) embedding.Forward();
    if (kStep > 1) embedding.Backward();
    state.ResumeTiming();
    if (kStep == 0) embedding.Forward();
    if (kStep == 1) embedding.Backward();
    if (kStep == 2) embedding.Update();
  }
}
BENCHMARK(BM_Step<Kind::kMatrices, 0>)->Name("forward/matrices")->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Step<Kind::kMatrices, 1>)->Name("backward/matrices")->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Step<Kind::kMatrices, 2>)->Name("update/matrices")->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Step<Kind::kTables, 0>)->Name("forward/tables")->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Step<Kind::kTables, 1>)->Name("backward/tables")->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Step<Kind::kTables, 2>)->Name("update/tables")->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Step<Kind::kOneTable, 0>)->Name("forward/one_table")->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Step<Kind::kOneTable, 2>)->Name("update/one_table")->Unit(benchmark::kMicrosecond);

// The plain loop: each id for itself, no merging, no fetching ahead. What the ratios are against.
void BM_PlainLoop(benchmark::State& state) {
  const std::vector<ClickIds> batches = MakeClickIds(kBatches, kRows);
  std::vector<std::vector<float>> weights, moments;
  for (const int64_t vocabulary : ClickVocabularies()) {
    weights.emplace_back(static_cast<size_t>(vocabulary * kDim), 0.01F);
    moments.emplace_back(static_cast<size_t>(vocabulary * kDim), 0.01F);
  }
  const size_t width = kDim * weights.size();
  std::vector<float> out(kRows * width), grad(kRows * width, 1e-3F), memory((size_t{8} << 20) / sizeof(float));
  size_t next = 0;
  for (auto unused : state) {
    state.PauseTiming();
    Sweep(memory);
    state.ResumeTiming();
    const ClickIds& batch = batches[next++ % kBatches];
    std::fill(out.begin(), out.end(), 0.0F);
    for (size_t slot = 0; slot < weights.size(); ++slot) {
      for (size_t row = 0; row < kRows; ++row) {
        float* to = out.data() + row * width + slot * kDim;
        const uint32_t begin = batch.offsets[slot][row], end = batch.offsets[slot][row + 1];
        for (uint32_t i = begin; i < end; ++i) {
          const float* from = weights[slot].data() + batch.ids[slot][i] * kDim;
          for (size_t d = 0; d < kDim; ++d) to[d] += from[d] / static_cast<float>(end - begin);
        }
      }
      for (size_t row = 0; row < kRows; ++row) {
        const float* from = grad.data() + row * width + slot * kDim;
        const uint32_t begin = batch.offsets[slot][row], end = batch.offsets[slot][row + 1];
        for (uint32_t i = begin; i < end; ++i) {
          float* w = weights[slot].data() + batch.ids[slot][i] * kDim;
          float* m = moments[slot].data() + batch.ids[slot][i] * kDim;
          for (size_t d = 0; d < kDim; ++d) {
            const float g = from[d] / static_cast<float>(end - begin);
            m[d] += g * g;
            w[d] -= kRate * g / (std::sqrt(m[d]) + 1e-6F);
          }
        }
      }
    }
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_PlainLoop)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace millrace
