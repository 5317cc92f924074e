// A plugin whose operator's name would clear the screen of who lists it.

#include "ops/kernel.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

class EscapingKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext&) { return Internal("never made"); }
  Status Run(const RunContext&) override { return Status::Ok(); }
};

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  registries.ops.Add("clip\x1b[2J")
      .Doc("Nothing.")
      .Input("X", "any shape")
      .Output("Out", "X")
      .InferShape(SameAsX)
      .Kernel<EscapingKernel>();
  return Status::Ok();
}
