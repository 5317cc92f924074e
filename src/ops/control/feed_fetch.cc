#include "ops/kernel.h"

namespace millrace {
namespace {

/// A frame binds variables to the batch and shows those that are fetched, so there is nothing left to move.
class NoOpKernel : public BoundKernel<NoOpKernel> {
 public:
  Status Bind(KernelContext&) { return Status::Ok(); }
  Status Run(const RunContext&) override { return Status::Ok(); }
};

}  // namespace

void RegisterFeedFetch(OpRegistry& registry) {
  registry.Add("feed")
      .Doc("Says that Out is the col-th input of an inference model; frames bind it to the batch.")
      .Input("X", "Paddle's feed list")
      .Output("Out", "a slot's variable")
      .Attr("col", int64_t{0}, "place in the list")
      .InferShape(KeepOutputs)
      .TakesUnwritten()
      .Kernel<NoOpKernel>();
  registry.Add("fetch")
      .Doc("Says that X is the col-th output of an inference model; frames show it as it is.")
      .Input("X", "any variable")
      .Output("Out", "Paddle's fetch list")
      .Attr("col", int64_t{0}, "place in the list")
      .InferShape(KeepOutputs)
      .TakesUnwritten()
      .Kernel<NoOpKernel>();
}

}  // namespace millrace
