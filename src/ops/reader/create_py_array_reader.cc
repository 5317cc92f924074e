#include <memory>
#include <string>
#include <utility>

#include "ops/kernel.h"
#include "ops/reader/reader_variable.h"
#include "reader/py_array_reader.h"

namespace millrace {
namespace {

/// Makes the reader of Out at the first run, over the queue whose holder stands in the scope.
class CreatePyArrayReaderKernel : public BoundKernel<CreatePyArrayReaderKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_, OutputReader(context, "Out"));
    const std::string name = context.op().String("feeder_name");
    const Variable* variable = context.scope().Find(name);
    if (variable == nullptr || !variable->Is<PyArrayFeedQueueHolder>()) {
      return InvalidConfig("attribute \"feeder_name\": the scope has no queue \"" + name +
                           "\"; make its PyArrayFeedQueueHolder there before the startup program runs");
    }
    holder_ = &variable->Get<PyArrayFeedQueueHolder>();
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (out_->made()) return Status::Ok();
    if (holder_->feeder() == nullptr) {
      return InvalidConfig("create_py_array_reader: the holder has no queue yet: call its init_once");
    }
    out_->Hold(std::make_unique<PyArrayReader>(holder_->feeder()), "create_py_array_reader");
    return Status::Ok();
  }

 private:
  ReaderHolder* out_ = nullptr;
  const PyArrayFeedQueueHolder* holder_ = nullptr;
};

}  // namespace

void RegisterCreatePyArrayReader(OpRegistry& registry) {
  registry.Add("create_py_array_reader")
      .Doc("Makes a reader of what Python pushes into a queue. Runs once.")
      .Output("Out", "a reader")
      .Attr("feeder_name", std::string(), "the variable of the scope that holds the queue")
      .Effect("takes what Python pushes")
      .InferShape(KeepOutputs)
      .Kernel<CreatePyArrayReaderKernel>();
}

}  // namespace millrace
