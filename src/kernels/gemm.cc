#include "kernels/gemm.h"

#include <sys/mman.h>

#include <algorithm>
#include <dnnl.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/huge_buffer.h"
#include "core/no_memory.h"
#include "kernels/small_product.h"

// Of libgomp, which oneDNN brings along; its header needs the compiler's OpenMP mode.
extern "C" void omp_set_num_threads(int);

namespace millrace {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

constexpr size_t kPlans = 8;

/// Plans are made one at a time. oneDNN keeps all of them in a cache of the process, which it guards by means that
/// ThreadSanitizer cannot see.
std::mutex planning;

/// oneDNN asks OpenMP for the number of threads, and OpenMP keeps that number for each thread.
void UseOneThread() {
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
}

/// What oneDNN may take while it makes a primitive and runs it for the first time, when it makes what all share as
/// well.
constexpr size_t kRoomForPlan = size_t{16} << 20;

/// oneDNN writes its machine code to wherever it got memory for it, without a look at whether it did.
bool HasRoomForPlan() {
  void* const room = mmap(nullptr, kRoomForPlan, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  munmap(room, kRoomForPlan);
  return true;
}

/// Makes room for that many bytes; what was there is not kept. Throws NoMemory.
void Grow(size_t bytes, HugeBuffer* buffer) {
  if (buffer->data() != nullptr && bytes <= buffer->bytes()) return;
  try {
    *buffer = HugeBuffer(std::max<size_t>(bytes, 1));
  } catch (const std::bad_alloc&) {
    throw NoMemory(DType::kUint8, Dims{static_cast<int64_t>(bytes)});
  }
}

/// After the product, and not by oneDNN within it: there relu makes a NaN 0. One pass over what the product just wrote.
void ReluInPlace(float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = values[i] < 0 ? 0 : values[i];
}

/// Runs a primitive whose arguments were put in order before.
class Step {
 public:
  Step(const dnnl::primitive& primitive, std::vector<std::pair<int, memory>> arguments)
      : primitive_(primitive), memories_(std::move(arguments)) {
    for (const auto& [index, value] : memories_) arguments_.push_back({index, value.get()});
  }
  /// Lets an argument show `data` from now on.
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

bool CpuHasBf16() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16; }

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
  // In float, repacking B for every batch costs what the packed kernel gains; bfloat16 has to rewrite B anyway.
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

Gemm::Gemm(const GemmSpec& spec) : spec_(spec), engine_(std::make_unique<Engine>()) {
  spec_.bf16 = spec.bf16 && CpuHasBf16();
  engine_->plans.reserve(kPlans);
}

Gemm::~Gemm() = default;

Result<Gemm::Plan*> Gemm::PlanFor(int64_t m, int64_t n, int64_t k) {
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
  if (k == 0) {
    for (int64_t i = 0; i < m * n; ++i) c[i] = spec_.bias ? bias[i % n] : 0.0F;
    if (spec_.relu) ReluInPlace(c, m * n);
    return Status::Ok();
  }
  const SmallProduct small{m, n, k, spec_.transpose_a, spec_.transpose_b};
  if (!spec_.bf16 && small.Fits()) {
    BestSmallProduct()(small, a, b, spec_.bias ? bias : nullptr, c);
    if (spec_.relu) ReluInPlace(c, m * n);
    return Status::Ok();
  }
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
  if (spec_.bias) product.Show(4, bias);
  if (done == dnnl_success) done = product.Run(engine_->stream);
  if (done == dnnl_out_of_memory) {
    return Unavailable("no memory for oneDNN in a product of " + std::to_string(m) + " rows");
  }
  if (done != dnnl_success) return Internal("oneDNN failed in a product of " + std::to_string(m) + " rows");
  if (spec_.relu) ReluInPlace(c, m * n);
  return Status::Ok();
}

}  // namespace millrace
