#include "kernels/gemm.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <dnnl.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/no_memory.h"
#include "kernels/packed_weights.h"
#include "kernels/row_product.h"
#include "kernels/simd_dispatch.h"

// From libgomp, a dependency of oneDNN; its header requires the compiler's OpenMP mode.
extern "C" void omp_set_num_threads(int);

namespace millrace {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

constexpr size_t kPlans = 8;

/// Products with at most this many multiplications and packed floats of B are faster than starting oneDNN. B is packed
/// on the stack.
constexpr int64_t kSmallWork = 1 << 15;
constexpr int64_t kSmallFloats = 1 << 12;

/// With fewer rows, using B unpacked is faster than packing it.
constexpr int64_t kRowsToPack = 32;

/// Plans are created one at a time. oneDNN caches them per process, with synchronization that ThreadSanitizer cannot
/// see.
std::mutex planning;

/// Limits oneDNN to the level of our own kernels, unless its environment variable is set. Later calls have no effect.
void CapOneDnn() {
  static const bool done = [] {
    const char* const given = std::getenv("ONEDNN_MAX_CPU_ISA");  // NOLINT(concurrency-mt-unsafe)
    if (given != nullptr) return true;
    switch (DetectSimdLevel()) {
      case SimdLevel::kBaseline: dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41); break;
      case SimdLevel::kAvx2: dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2); break;
      case SimdLevel::kAvx512: break;
    }
    return true;
  }();
  (void)done;
}

/// oneDNN asks OpenMP for the number of threads, which OpenMP stores per thread.
void UseOneThread() {
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
}

/// Memory that oneDNN can need to create a primitive and run it for the first time, including shared data.
constexpr size_t kRoomForPlan = size_t{16} << 20;

/// oneDNN writes machine code without checking its allocation.
bool HasRoomForPlan() {
  void* const room = mmap(nullptr, kRoomForPlan, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  munmap(room, kRoomForPlan);
  return true;
}

/// Reserves `bytes` without keeping the content. Throws NoMemory.
void Grow(size_t bytes, HugeBuffer* buffer) {
  if (buffer->data() != nullptr && bytes <= buffer->bytes()) return;
  try {
    *buffer = HugeBuffer(std::max<size_t>(bytes, 1));
  } catch (const std::bad_alloc&) {
    throw NoMemory(DType::kUint8, Dims{static_cast<int64_t>(bytes)});
  }
}

/// Applied after the product instead of in oneDNN, whose relu turns NaN into 0. One pass over the new result.
void ReluInPlace(float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = values[i] < 0 ? 0 : values[i];
}

/// Runs a primitive with prepared arguments.
class Step {
 public:
  Step(const dnnl::primitive& primitive, std::vector<std::pair<int, memory>> arguments)
      : primitive_(primitive), memories_(std::move(arguments)) {
    for (const auto& [index, value] : memories_) arguments_.push_back({index, value.get()});
  }
  /// Sets the data of an argument.
  void Show(size_t argument, const void* data) {
    dnnl_memory_set_data_handle(arguments_[argument].memory, const_cast<void*>(data));
  }
  dnnl_status_t Run(const dnnl::stream& stream) const {
    return dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(arguments_.size()),
                                  arguments_.data());
  }

 private:
  dnnl::primitive primitive_;
  std::vector<std::pair<int, memory>> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace

bool CpuHasBf16() {
  CapOneDnn();
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16;
}

/// The primitives of one shape. With bfloat16, two reorders round A and B before the product.
struct Gemm::Plan {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  uint64_t used = 0;
  size_t scratch_bytes = 0;
  std::optional<Step> round_a, round_b;
  std::optional<Step> product;  ///< arguments: A, B, C, scratchpad, bias
};

struct Gemm::Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<std::unique_ptr<Plan>> plans;
  uint64_t clock = 0;
  HugeBuffer scratch, rounded_a, rounded_b;

  void MakePlan(const GemmSpec& spec, Plan* plan);
  Step MakeRounding(const memory::desc& from, const memory::desc& to) {
    const dnnl::reorder::primitive_desc desc(engine, from, engine, to);
    return Step(dnnl::reorder(desc),
                {{DNNL_ARG_FROM, memory(from, engine, nullptr)}, {DNNL_ARG_TO, memory(to, engine, nullptr)}});
  }
};

void Gemm::Engine::MakePlan(const GemmSpec& spec, Plan* plan) {
  const Tag tag_a = spec.transpose_a ? Tag::ba : Tag::ab;
  const Tag tag_b = spec.transpose_b ? Tag::ba : Tag::ab;
  const memory::desc a({plan->m, plan->k}, Type::f32, tag_a);
  const memory::desc b({plan->k, plan->n}, Type::f32, tag_b);
  const memory::desc c({plan->m, plan->n}, Type::f32, Tag::ab);
  const memory::desc bias({1, plan->n}, Type::f32, Tag::ab);
  // In float, repacking B for every batch costs what the packed kernel gains; bfloat16 must rewrite B anyway.
  const memory::desc a_in = spec.bf16 ? memory::desc({plan->m, plan->k}, Type::bf16, tag_a) : a;
  const memory::desc b_in = spec.bf16 ? memory::desc({plan->k, plan->n}, Type::bf16, Tag::any) : b;

  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::desc desc =
      spec.bias ? dnnl::matmul::desc(a_in, b_in, bias, c) : dnnl::matmul::desc(a_in, b_in, c);
  const dnnl::matmul::primitive_desc product(desc, attr, engine);
  plan->scratch_bytes = product.scratchpad_desc().get_size();
  std::vector<std::pair<int, memory>> arguments = {
      {DNNL_ARG_SRC, memory(product.src_desc(), engine, nullptr)},
      {DNNL_ARG_WEIGHTS, memory(product.weights_desc(), engine, nullptr)},
      {DNNL_ARG_DST, memory(c, engine, nullptr)},
      {DNNL_ARG_SCRATCHPAD, memory(product.scratchpad_desc(), engine, nullptr)}};
  if (spec.bias) arguments.emplace_back(DNNL_ARG_BIAS, memory(bias, engine, nullptr));
  plan->product.emplace(dnnl::matmul(product), std::move(arguments));
  if (!spec.bf16) return;
  plan->round_a.emplace(MakeRounding(a, product.src_desc()));
  plan->round_b.emplace(MakeRounding(b, product.weights_desc()));
  Grow(product.src_desc().get_size(), &rounded_a);
  Grow(product.weights_desc().get_size(), &rounded_b);
}

Gemm::Gemm(const GemmSpec& spec) : spec_(spec) { spec_.bf16 = spec.bf16 && !spec.batch_invariant && CpuHasBf16(); }

Gemm::~Gemm() = default;

Result<Gemm::Plan*> Gemm::PlanFor(int64_t m, int64_t n, int64_t k) {
  if (engine_ == nullptr) {
    CapOneDnn();
    engine_ = std::make_unique<Engine>();
    engine_->plans.reserve(kPlans);
  }
  std::vector<std::unique_ptr<Plan>>& plans = engine_->plans;
  for (const std::unique_ptr<Plan>& plan : plans) {
    if (plan->m != m || plan->n != n || plan->k != k) continue;
    plan->used = ++engine_->clock;
    return plan.get();
  }
  auto plan = std::make_unique<Plan>();
  plan->m = m;
  plan->n = n;
  plan->k = k;
  plan->used = ++engine_->clock;
  const auto product = [&] {
    return "[" + std::to_string(m) + ", " + std::to_string(k) + "] by [" + std::to_string(k) + ", " +
           std::to_string(n) + "]";
  };
  try {
    const std::lock_guard lock(planning);
    if (!HasRoomForPlan()) return Unavailable("no memory for oneDNN to make its code for a product of " + product());
    engine_->MakePlan(spec_, plan.get());
  } catch (const dnnl::error& error) {
    std::string what = "oneDNN cannot multiply " + product() + ": " + error.what();
    return error.status == dnnl_out_of_memory ? Unavailable(std::move(what)) : Internal(std::move(what));
  }
  Grow(plan->scratch_bytes, &engine_->scratch);
  if (plans.size() < kPlans) {
    plans.push_back(std::move(plan));
    return plans.back().get();
  }
  const auto oldest =
      std::min_element(plans.begin(), plans.end(), [](const auto& x, const auto& y) { return x->used < y->used; });
  *oldest = std::move(plan);
  return oldest->get();
}

Status Gemm::Run(int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* bias, float* c) {
  if (m == 0 || n == 0) return Status::Ok();
  MR_TRY(Multiply(m, n, k, a, b, spec_.bias ? bias : nullptr, c));
  if (spec_.relu) ReluInPlace(c, m * n);
  return Status::Ok();
}

Status Gemm::Multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* bias, float* c) {
  if (k == 0) {
    for (int64_t i = 0; i < m * n; ++i) c[i] = bias == nullptr ? 0.0F : bias[i % n];
    return Status::Ok();
  }
  const RowProduct product{m, n, k, spec_.transpose_a};
  const bool is_known = spec_.batch_invariant && spec_.weights != nullptr;
  if (!spec_.bf16 && !is_known && m * n * k <= kSmallWork && BestRowProduct().packed_floats(k, n) <= kSmallFloats) {
    alignas(64) float room[kSmallFloats];
    BestRowProduct().pack(b, k, n, spec_.transpose_b, room);
    BestRowProduct().run(product, a, room, bias, c);
    return Status::Ok();
  }
  if (!spec_.batch_invariant) return MultiplyByOneDnn(m, n, k, a, b, bias, c);
  MultiplyRows(product, a, b, bias, c);
  return Status::Ok();
}

void Gemm::MultiplyRows(const RowProduct& p, const float* a, const float* b, const float* bias, float* c) {
  const RowProductKernels& kernels = BestRowProduct();
  const bool in_place = spec_.weights == nullptr && !spec_.transpose_b && p.m < kRowsToPack;
  if (!in_place) return kernels.run(p, a, Packed(p, b), bias, c);
  Grow(static_cast<size_t>(kernels.tail_floats(p.k, p.n)) * sizeof(float), &packed_);
  kernels.run_in_place(p, a, b, reinterpret_cast<float*>(packed_.data()), bias, c);
}

const float* Gemm::Packed(const RowProduct& p, const float* b) {
  if (spec_.weights == nullptr) {
    const RowProductKernels& kernels = BestRowProduct();
    Grow(static_cast<size_t>(kernels.packed_floats(p.k, p.n)) * sizeof(float), &packed_);
    auto* const packed = reinterpret_cast<float*>(packed_.data());
    kernels.pack(b, p.k, p.n, spec_.transpose_b, packed);
    return packed;
  }
  const uint64_t generation = spec_.weights->generation();
  if (known_.b != b || known_.k != p.k || known_.n != p.n || known_.generation != generation) {
    known_ = {b, p.k, p.n, generation, spec_.weights->Of(b, p.k, p.n, spec_.transpose_b)};
  }
  return known_.packed;
}

Status Gemm::MultiplyByOneDnn(int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* bias,
                              float* c) {
  UseOneThread();
  MR_ASSIGN(Plan * plan, PlanFor(m, n, k));
  dnnl_status_t done = dnnl_success;
  const void* left = a;
  const void* right = b;
  if (spec_.bf16) {
    const auto round = [&](Step& step, const float* from, const HugeBuffer& to) {
      step.Show(0, from);
      step.Show(1, to.data());
      if (done == dnnl_success) done = step.Run(engine_->stream);
      return to.data();
    };
    left = round(*plan->round_a, a, engine_->rounded_a);
    right = round(*plan->round_b, b, engine_->rounded_b);
  }
  Step& product = *plan->product;
  product.Show(0, left);
  product.Show(1, right);
  product.Show(2, c);
  product.Show(3, engine_->scratch.data());
  if (bias != nullptr) product.Show(4, bias);
  if (done == dnnl_success) done = product.Run(engine_->stream);
  if (done == dnnl_out_of_memory) {
    return Unavailable("no memory for oneDNN in a product of " + std::to_string(m) + " rows");
  }
  if (done != dnnl_success) return Internal("oneDNN failed in a product of " + std::to_string(m) + " rows");
  return Status::Ok();
}

}  // namespace millrace
