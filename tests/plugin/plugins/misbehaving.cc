// An operator that does, in its third batch or where its attribute says, what no operator may.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ops/kernel.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

// Not watched by ThreadSanitizer, which waits for itself for ever when threads that race also crash.
__attribute__((no_sanitize("thread"))) void Segv() {
  const volatile uintptr_t nowhere = 8;
  *reinterpret_cast<volatile int*>(nowhere) = 1;  // NOLINT(performance-no-int-to-ptr)
}

/// Ends the thread or the process, by one of the ways that no caller can catch.
void End(const std::string& how) {
  if (how == "thread throws") std::thread([] { throw std::runtime_error("nobody catches it"); }).join();
  if (how == "thread is left") std::thread([] { pause(); });
  if (how == "segv") Segv();
  if (how == "segv in threads") {
    constexpr int kThreads = 8;
    std::barrier all(kThreads);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&all] {
        all.arrive_and_wait();
        Segv();
      });
    }
  }
  if (how == "abort") std::abort();
  if (how == "raise") raise(SIGFPE);
  if (how == "quick_exit") std::quick_exit(0);
}

class MisbehavingKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<MisbehavingKernel>();
    kernel->how_ = context.op().String("how");
    if (kernel->how_ == "fails when made") return InvalidConfig("there is no device");
    if (kernel->how_ == "asks for an attribute") (void)context.op().Int("unheard_of");
    MR_ASSIGN(kernel->x_, context.Input("X"));
    MR_ASSIGN(kernel->out_, context.Output("Out"));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  ~MisbehavingKernel() override {
    if (how_ == "destructor throws") ThrowInDestructor();
  }
  Status Run(const RunContext&) override {
    const Dims& dims = x_->dims();
    if (how_ == "gives nothing") return Status::Ok();
    if (++batches_ == 3) {
      End(how_);
      if (how_ == "cancels") return Cancelled("why not");
      if (how_ == "fails") return BadData("the third batch is odd");
      if (how_ == "escapes")
        return BadData(
            "\x1b[2Jodd\n  \xC2\x9B"
            "31mred");
      if (how_ == "negative") out_->Resize<float>({-3, dims[1]});
      if (how_.ends_with(" rows")) {
        const Dims other = {std::stoi(how_), dims[1]};
        std::fill_n(out_->Resize<float>(other), other.numel(), 1.0F);
        return Status::Ok();
      }
      if (how_ == "doubles") (void)x_->data<double>();
      if (how_ == "null") {
        out_->View(DType::kFloat32, dims, nullptr);
        return Status::Ok();
      }
    }
    if (how_ == "whole numbers") {
      std::fill_n(out_->Resize<int64_t>(dims), dims.numel(), 1);
      return Status::Ok();
    }
    out_->ViewOf(*x_, dims);
    static constexpr std::array<uint32_t, 4> kLoD = {0, 5000, 2, 9};
    if (how_ == "lod") out_->set_lod(kLoD);
    return Status::Ok();
  }

 private:
  static void ThrowInDestructor() { throw std::runtime_error("from a destructor"); }

  std::string how_;
  int batches_ = 0;
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
};

Status InferMisbehaving(InferShapeContext& context) {
  MR_ASSIGN(VarMeta out, context.Input("X"));
  if (context.op().String("how") == "promises -5") out.dims = {-5, 8};
  if (context.op().String("how") == "whole numbers") out.dims = {};
  context.SetOutput("Out", out);
  return Status::Ok();
}

/// An operator that nobody registers.
std::vector<OpDesc> MisnamedGrad(const GradContext& context) {
  OpDesc grad = context.GradOp({"X"}, {}, {"Out"}, {"X"});
  grad.set_type("no_such_grad");
  return {grad};
}

std::vector<OpDesc> NoGrad(const GradContext&) { return {}; }

OpBuilder AddMisbehaving(OpRegistry& registry, const char* type, const char* doc,
                         std::vector<OpDesc> (*grad)(const GradContext&)) {
  return registry.Add(type)
      .Doc(doc)
      .Input("X", "any shape")
      .Output("Out", "X")
      .Attr("how", std::string(), "what it does")
      .InferShape(InferMisbehaving)
      .Grad(grad)
      .Kernel<MisbehavingKernel>();
}

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  AddMisbehaving(registries.ops, "misbehaving", "Out = X, until it does what it must not.", NoGrad);
  AddMisbehaving(registries.ops, "free_of_rows", "As misbehaving, with rows of its own.", NoGrad).MakesRows();
  AddMisbehaving(registries.ops, "misnamed", "Out = X; its gradient is an operator that there is not.", MisnamedGrad);
  return Status::Ok();
}
