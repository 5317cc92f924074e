#include <string>

#include "core/file.h"
#include "ops/kernel.h"
#include "runtime/lod_tensor_codec.h"

namespace millrace {
namespace {

Status ExpectPath(const InferShapeContext& context) {
  return context.op().String("file_path").empty() ? context.Error("file_path is empty") : Status::Ok();
}

Status InferLoad(InferShapeContext& context) { return ExpectPath(context); }

Status InferSave(InferShapeContext& context) {
  MR_TRY(context.Inputs("X").status());
  return ExpectPath(context);
}

/// Reads variables one after another from a file, as `save` and `save_combine` write them, and Paddle's save_vars.
class LoadKernel : public BoundKernel<LoadKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(outs_, context.Outputs("Out"));
    names_ = OutputArguments(context.op().desc(), "Out");
    for (const std::string& name : names_) declared_.push_back(context.Declared(name));
    path_ = context.op().String("file_path");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const std::string bytes, ReadFile(path_));
    std::string_view rest = bytes;
    for (size_t i = 0; i < outs_.size(); ++i) {
      Tensor* out = outs_[i] != nullptr ? outs_[i] : &unwanted_;
      MR_ASSIGN(const size_t taken, ReadLoDTensor(rest, path_, out));
      rest.remove_prefix(taken);
      MR_TRY(CheckDeclared(i, *out));
    }
    if (rest.empty()) return Status::Ok();
    return BadData(path_ + ": " + std::to_string(rest.size()) + " bytes follow the last variable, \"" + names_.back() +
                   "\"");
  }

 private:
  /// Operators trust what the program says of a variable.
  Status CheckDeclared(size_t i, const Tensor& read) const {
    const VarMeta* declared = declared_[i];
    if (declared == nullptr || (declared->dtype == read.dtype() && MayEqual(declared->dims, read.dims()))) {
      return Status::Ok();
    }
    return BadData(path_ + ": variable \"" + names_[i] + "\" is " + std::string(DTypeName(read.dtype())) + " " +
                   read.dims().ToString() + " there, and " + std::string(DTypeName(declared->dtype)) + " " +
                   declared->dims.ToString() + " in the program");
  }

  std::vector<Tensor*> outs_;
  std::vector<std::string> names_;
  std::vector<const VarMeta*> declared_;
  Tensor unwanted_;  ///< takes what is bound to "@EMPTY@"
  std::string path_;
};

/// Writes variables into one file, put in place when it is whole.
class SaveKernel : public BoundKernel<SaveKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(xs_, context.Inputs("X"));
    names_ = InputArguments(context.op().desc(), "X");
    path_ = context.op().String("file_path");
    overwrite_ = context.op().Bool("overwrite");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (!overwrite_ && ReadFile(path_).ok()) {
      return AlreadyExists("\"" + path_ + "\" exists, and overwrite is false");
    }
    bytes_.clear();
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (xs_[i]->empty()) return BadData("variable \"" + names_[i] + "\" has no value to save");
      AppendLoDTensor(*xs_[i], &bytes_);
    }
    return WriteFileAtomically(path_, bytes_);
  }

 private:
  std::vector<const Tensor*> xs_;
  std::vector<std::string> names_;
  std::string path_;
  std::string bytes_;
  bool overwrite_ = true;
};

OpBuilder AddLoad(OpBuilder op) {
  return op.Attr("file_path", std::string(), "the file")
      .Effect("reads a file")
      .Fixed("load_as_fp16", false, "converts to 16 bits")
      .InferShape(InferLoad)
      .Kernel<LoadKernel>();
}

OpBuilder AddSave(OpBuilder op) {
  return op.Attr("file_path", std::string(), "the file; its folder exists")
      .Effect("writes a file")
      .Attr("overwrite", true, "false: a file that is there is an error")
      .Fixed("save_as_fp16", false, "converts to 16 bits")
      .InferShape(InferSave)
      .Kernel<SaveKernel>();
}

}  // namespace

void RegisterSaveLoad(OpRegistry& registry) {
  AddLoad(registry.Add("load"))
      .Doc("Reads a variable from a file of its own.")
      .Output("Out", "what the file holds")
      .Fixed("seek", int64_t{-1}, "where to begin; -1: at the start")
      .Fixed("shape", std::vector<int64_t>{}, "a part of the variable");
  AddLoad(registry.Add("load_combine"))
      .Doc("Reads variables from one file.")
      .Outputs("Out", "in the order in which they were saved")
      .Fixed("model_from_memory", false, "takes file_path for the bytes themselves");
  AddSave(registry.Add("save")).Doc("Writes a variable into a file of its own.").Input("X", "any tensor");
  AddSave(registry.Add("save_combine"))
      .Doc("Writes variables into one file, one after another.")
      .Inputs("X", "any tensors")
      .OptionalOutput("Y", "not written")
      .Fixed("save_to_memory", false, "writes the bytes into Y");
}

}  // namespace millrace
