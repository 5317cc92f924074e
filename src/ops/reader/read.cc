#include <utility>

#include "ops/kernel.h"
#include "ops/reader/reader_variable.h"

namespace millrace {
namespace {

/// What an output variable of `read` is declared as.
struct ReadOutput {
  std::string name;
  Tensor* tensor = nullptr;
  TensorSpec spec;
  bool has_type = false;   ///< false: the program declares nothing, and whatever the reader delivers will do
  bool has_shape = false;  ///< false: any shape of the type
};

/// Takes an item from a reader, and shows its tensors in the output variables until the next one.
class ReadKernel : public BoundKernel<ReadKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(reader_, InputReader(context, "Reader"));
    end_ = context.op().Bool("throw_eof_exp") ? EndOfData::kError : EndOfData::kEmpty;
    MR_ASSIGN(const std::vector<Tensor*> tensors, context.Outputs("Out"));
    const std::vector<std::string> names = OutputArguments(context.op().desc(), "Out");
    for (size_t i = 0; i < tensors.size(); ++i) {
      ReadOutput output;
      output.name = names[i];
      output.tensor = tensors[i];
      if (const VarMeta* declared = context.Declared(names[i]); declared != nullptr) {
        output.spec = {declared->dtype, declared->dims, declared->lod_level};
        output.has_type = true;
        output.has_shape = declared->dims.rank() > 0;
        if (declared->persistable) {
          return InvalidConfig("output \"" + names[i] +
                               "\" is persistable; what is read lasts until the next item, so " +
                               "assign it to keep it");
        }
      }
      outputs_.push_back(std::move(output));
    }
    return Status::Ok();
  }

  Status Run(const RunContext& context) override {
    MR_TRY(reader_->ReadNext(&item_, end_, context.stop));
    if (item_.empty()) {
      ShowNothing();
      return Status::Ok();
    }
    if (item_.size() != outputs_.size()) {
      return InvalidConfig("the reader delivers " + std::to_string(item_.size()) + " tensors, and Out has " +
                           std::to_string(outputs_.size()) + " variables");
    }
    for (size_t i = 0; i < item_.size(); ++i) MR_TRY(Show(item_[i], outputs_[i]));
    return Status::Ok();
  }

 private:
  static Status Show(const LoDTensor& tensor, const ReadOutput& output) {
    if (output.tensor == nullptr) return Status::Ok();
    if (output.has_shape) {
      MR_TRY(CheckTensor(tensor, output.spec).Context("variable \"" + output.name + "\""));
    } else if (output.has_type && tensor.values.dtype() != output.spec.dtype) {
      return BadData("variable \"" + output.name + "\" is " + std::string(DTypeName(output.spec.dtype)) +
                     ", and the reader delivers " + std::string(DTypeName(tensor.values.dtype())));
    }
    output.tensor->ViewOf(tensor.values, tensor.values.dims());
    output.tensor->set_lod(tensor.lod);
    return Status::Ok();
  }

  /// The end, for a program that wants to see it: tensors without rows.
  void ShowNothing() {
    for (const ReadOutput& output : outputs_) {
      if (output.tensor == nullptr) continue;
      Dims dims = output.has_shape ? output.spec.dims : Dims{0};
      for (int axis = 0; axis < dims.rank(); ++axis) {
        if (axis == 0 || dims[axis] < 0) dims.set(axis, 0);
      }
      output.tensor->ResizeRaw(output.spec.dtype, dims);
      if (output.spec.lod_level > 0) output.tensor->set_lod(kNoSequences);
    }
  }

  static constexpr uint32_t kNoSequences[] = {0};

  ReaderHolder* reader_ = nullptr;
  EndOfData end_ = EndOfData::kError;
  std::vector<ReadOutput> outputs_;
  std::vector<LoDTensor> item_;  ///< what the output variables show
};

Status InferHasNext(InferShapeContext& context) {
  VarMeta out;
  out.dtype = DType::kBool;
  out.dims = {1};
  context.SetOutput("Out", out);
  return Status::Ok();
}

class HasNextKernel : public BoundKernel<HasNextKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(reader_, InputReader(context, "Reader"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_ASSIGN(const bool has_next, reader_->HasNext(context.stop));
    *out_->Resize<bool>({1}) = has_next;
    return Status::Ok();
  }

 private:
  ReaderHolder* reader_ = nullptr;
  Tensor* out_ = nullptr;
};

class ResetKernel : public BoundKernel<ResetKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(reader_, InputReader(context, "Reader"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override { return reader_->ReInit(); }

 private:
  ReaderHolder* reader_ = nullptr;
};

}  // namespace

void RegisterRead(OpRegistry& registry) {
  registry.Add("read")
      .Doc("Takes the next item from a reader; Out shows its tensors until the next one is taken.")
      .Input("Reader", "a reader; of readers that are made of others the outermost")
      .Outputs("Out", "one for each tensor of an item, declared as the reader delivers them")
      .Attr("throw_eof_exp", true, "reading past the end is an error; false: Out then has no rows")
      .Attr("infer_out", true, "as Paddle writes it; changes nothing here")
      .InferShape(KeepOutputs)
      .Kernel<ReadKernel>();
  registry.Add("has_next")
      .Doc("Whether a reader has another item, which is read ahead to know.")
      .Input("Reader", "a reader")
      .Output("Out", "bool [1]")
      .InferShape(InferHasNext)
      .Kernel<HasNextKernel>();
  registry.Add("reset")
      .Doc("Starts a reader over: the next item is the first one again.")
      .Input("Reader", "a reader")
      .InferShape(KeepOutputs)
      .Kernel<ResetKernel>();
}

}  // namespace millrace
