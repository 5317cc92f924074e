// An operator that makes a reader: create_odd_reader passes on every other item of another reader, beginning with the
// first.

#include <utility>

#include "ops/kernel.h"
#include "ops/reader/reader_variable.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

class OddReader final : public DecoratedReader {
 public:
  explicit OddReader(std::unique_ptr<ReaderBase> reader) : DecoratedReader(std::move(reader)) {}

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    if (std::exchange(has_begun_, true)) {
      std::vector<LoDTensor> passed_over;
      MR_ASSIGN(const bool is_there, reader().ReadNext(&passed_over, stop));
      if (!is_there) return false;
    }
    return reader().ReadNext(out, stop);
  }
  Status Restart() override {
    has_begun_ = false;
    return reader().ReInit();
  }

  bool has_begun_ = false;
};

class OddReaderKernel final : public BoundKernel<OddReaderKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(from_, InputReader(context, "UnderlyingReader"));
    MR_ASSIGN(out_, OutputReader(context, "Out"));
    name_ = context.OutputName("Out");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (out_->made()) return out_->CheckMadeBy("create_odd_reader");
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, from_->Take(name_));
    out_->Hold(std::make_unique<OddReader>(std::move(reader)), "create_odd_reader");
    return Status::Ok();
  }

 private:
  ReaderHolder* from_ = nullptr;
  ReaderHolder* out_ = nullptr;
  std::string name_;
};

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  registries.ops.Add("create_odd_reader")
      .Doc("Makes a reader of the first, third, ... item of another one. Runs once.")
      .Input("UnderlyingReader", "a reader")
      .Output("Out", "a reader")
      .InferShape(KeepOutputs)
      .Kernel<OddReaderKernel>();
  return Status::Ok();
}
