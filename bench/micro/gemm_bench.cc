// One-core rates of a layer's three products: kernels/gemm.h (bias and ReLU in the forward one; bf16 with its rounding)
// next to plain dnnl_sgemm in the same process, and of the forward product as scoring runs it (batch-invariant, packed
// once) next to oneDNN's. Run with OPENBLAS_CORETYPE unset and compare within one run; MILLRACE_MAX_CPU_ISA=AVX2 and
// SSE41 show other processors.
#include <benchmark/benchmark.h>
#include <dnnl.h>

#include <vector>

#include "kernels/gemm.h"
#include "kernels/packed_weights.h"

namespace millrace {
namespace {

enum Direction { kForward, kGradX, kGradW };

struct Layer {
  explicit Layer(const benchmark::State& state, int64_t row_count = 512)
      : rows(row_count),
        inner(state.range(0)),
        width(state.range(1)),
        x(Size(rows * inner), 0.5F),
        w(Size(inner * width), 0.25F),
        bias(Size(width), 0.1F),
        out(Size(rows * width), 0.1F),
        x_grad(Size(rows * inner)),
        w_grad(Size(inner * width)) {}
  static size_t Size(int64_t n) { return static_cast<size_t>(n); }
  void Count(benchmark::State& state) const {
    const auto flops = 2.0 * static_cast<double>(rows * inner * width) * static_cast<double>(state.iterations());
    state.counters["GFLOP/s"] = benchmark::Counter(flops / 1e9, benchmark::Counter::kIsRate);
  }

  int64_t rows, inner, width;
  std::vector<float> x, w, bias, out, x_grad, w_grad;
};

GemmSpec SpecOf(Direction direction, bool bf16) {
  if (direction == kForward) return {.bias = true, .relu = true, .bf16 = bf16};
  return {.transpose_a = direction == kGradW, .transpose_b = direction == kGradX, .bf16 = bf16};
}

void OursBench(benchmark::State& state, Direction direction, bool bf16) {
  if (bf16 && !CpuHasBf16()) {
    state.SkipWithError("this processor has no bfloat16 products");
    return;
  }
  Layer l(state);
  Gemm gemm(SpecOf(direction, bf16));
  for (auto _ : state) {
    Status status;
    if (direction == kForward) {
      status = gemm.Run(l.rows, l.width, l.inner, l.x.data(), l.w.data(), l.bias.data(), l.out.data());
    } else if (direction == kGradX) {
      status = gemm.Run(l.rows, l.inner, l.width, l.out.data(), l.w.data(), nullptr, l.x_grad.data());
    } else {
      status = gemm.Run(l.inner, l.width, l.rows, l.x.data(), l.out.data(), nullptr, l.w_grad.data());
    }
    if (!status.ok()) state.SkipWithError(status.message().c_str());
  }
  l.Count(state);
}

void ScoreBench(benchmark::State& state, bool batch_invariant) {
  Layer l(state, state.range(2));
  PackedWeights weights;
  Gemm gemm({.bias = true, .relu = true, .batch_invariant = batch_invariant, .weights = &weights});
  for (auto _ : state) {
    const Status status = gemm.Run(l.rows, l.width, l.inner, l.x.data(), l.w.data(), l.bias.data(), l.out.data());
    if (!status.ok()) state.SkipWithError(status.message().c_str());
  }
  l.Count(state);
}

void SgemmBench(benchmark::State& state, Direction direction) {
  Layer l(state);
  {
    Gemm one_thread{GemmSpec{}};  // tells OpenMP to use one thread here
    if (!one_thread.Run(1, 1, 1, l.x.data(), l.w.data(), nullptr, l.out.data()).ok()) state.SkipWithError("oneDNN");
  }
  for (auto _ : state) {
    if (direction == kForward) {
      dnnl_sgemm('N', 'N', l.rows, l.width, l.inner, 1, l.x.data(), l.inner, l.w.data(), l.width, 0, l.out.data(),
                 l.width);
    } else if (direction == kGradX) {
      dnnl_sgemm('N', 'T', l.rows, l.inner, l.width, 1, l.out.data(), l.width, l.w.data(), l.width, 0, l.x_grad.data(),
                 l.inner);
    } else {
      dnnl_sgemm('T', 'N', l.inner, l.width, l.rows, 1, l.x.data(), l.inner, l.out.data(), l.width, 0, l.w_grad.data(),
                 l.width);
    }
  }
  l.Count(state);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({429, 400})->Args({400, 400})->Args({1024, 512})->Args({400, 2})->MinTime(0.2);
}

void ScoredShapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t rows : {1, 7, 64, 512}) {
    bench->Args({429, 400, rows})
        ->Args({400, 400, rows})
        ->Args({1024, 512, rows})
        ->Args({637, 128, rows})
        ->MinTime(0.1);
  }
}

BENCHMARK_CAPTURE(ScoreBench, onednn, false)->Apply(ScoredShapes);
BENCHMARK_CAPTURE(ScoreBench, batch_invariant, true)->Apply(ScoredShapes);
BENCHMARK_CAPTURE(SgemmBench, forward, kForward)->Apply(Shapes);
BENCHMARK_CAPTURE(OursBench, forward_fp32, kForward, false)->Apply(Shapes);
BENCHMARK_CAPTURE(OursBench, forward_bf16, kForward, true)->Apply(Shapes);
BENCHMARK_CAPTURE(SgemmBench, grad_x, kGradX)->Apply(Shapes);
BENCHMARK_CAPTURE(OursBench, grad_x_fp32, kGradX, false)->Apply(Shapes);
BENCHMARK_CAPTURE(OursBench, grad_x_bf16, kGradX, true)->Apply(Shapes);
BENCHMARK_CAPTURE(SgemmBench, grad_w, kGradW)->Apply(Shapes);
BENCHMARK_CAPTURE(OursBench, grad_w_fp32, kGradW, false)->Apply(Shapes);
BENCHMARK_CAPTURE(OursBench, grad_w_bf16, kGradW, true)->Apply(Shapes);

}  // namespace
}  // namespace millrace
