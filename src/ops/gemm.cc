#include "ops/gemm.h"

#include <algorithm>
#include <dnnl.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "framework/tensor.h"

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
  bool Run(const dnnl::stream& stream) const {
    return dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(arguments_.size()),
                                  arguments_.data()) == dnnl_success;
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
  Tensor scratch, rounded_a, rounded_b;

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
  if (spec.relu) {
    dnnl::post_ops post;
    post.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    attr.set_post_ops(post);
  }
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
  const auto bytes = [](const memory::desc& d) { return static_cast<int64_t>(d.get_size()); };
  if (rounded_a.numel() < bytes(product.src_desc()) || rounded_a.empty()) {
    rounded_a.Resize<uint8_t>({bytes(product.src_desc())});
  }
  if (rounded_b.numel() < bytes(product.weights_desc()) || rounded_b.empty()) {
    rounded_b.Resize<uint8_t>({bytes(product.weights_desc())});
  }
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
  try {
    const std::lock_guard lock(planning);
    engine_->MakePlan(spec_, plan.get());
  } catch (const dnnl::error& error) {
    std::string what = "oneDNN cannot multiply [" + std::to_string(m) + ", " + std::to_string(k) + "] by [" +
                       std::to_string(k) + ", " + std::to_string(n) + "]: " + error.what();
    return error.status == dnnl_out_of_memory ? Unavailable(std::move(what)) : Internal(std::move(what));
  }
  Tensor& scratch = engine_->scratch;
  if (scratch.empty() || static_cast<size_t>(scratch.numel()) < plan->scratch_bytes) {
    scratch.Resize<uint8_t>({static_cast<int64_t>(plan->scratch_bytes)});
  }
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
    for (int64_t i = 0; i < m * n; ++i) {
      const float value = spec_.bias ? bias[i % n] : 0.0F;
      c[i] = spec_.relu ? std::max(value, 0.0F) : value;
    }
    return Status::Ok();
  }
  UseOneThread();
  MR_ASSIGN(Plan * plan, PlanFor(m, n, k));
  bool done = true;
  const void* left = a;
  const void* right = b;
  if (spec_.bf16) {
    const auto round = [&](Step& step, const float* from, Tensor& to) {
      step.Show(0, from);
      step.Show(1, to.raw_data());
      done = done && step.Run(engine_->stream);
      return to.raw_data();
    };
    left = round(*plan->round_a, a, engine_->rounded_a);
    right = round(*plan->round_b, b, engine_->rounded_b);
  }
  Step& product = *plan->product;
  product.Show(0, left);
  product.Show(1, right);
  product.Show(2, c);
  product.Show(3, engine_->scratch.raw_data());
  if (spec_.bias) product.Show(4, bias);
  done = done && product.Run(engine_->stream);
  if (!done) return Internal("oneDNN failed in a product of " + std::to_string(m) + " rows");
  return Status::Ok();
}

}  // namespace millrace
