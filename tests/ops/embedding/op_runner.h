#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/racy.h"
#include "model.pb.h"
#include "ops/builtin_ops.h"
#include "runtime/op_kernel.h"
#include "table/sparse_table.h"

namespace millrace {

/// Makes kernels over variables of one scope, as a frame does.
class OpRunner {
 public:
  explicit OpRunner(const FrameOptions& options = {}) : options_(options) { RegisterBuiltinOps(registry_); }

  Scope& scope() { return scope_; }
  Tensor* tensor(const std::string& name) { return scope_.Var(name)->GetMutable<Tensor>(); }
  SelectedRows* rows(const std::string& name) { return scope_.Var(name)->GetMutable<SelectedRows>(); }
  std::vector<float> values(const std::string& name) {
    const Tensor* t = tensor(name);
    return {t->data<float>(), t->data<float>() + t->numel()};
  }
  void SetFloats(const std::string& name, const Dims& dims, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), tensor(name)->Resize<float>(dims));
  }
  /// Binds ids; `ids` and `lod` must outlive the runs. No lod: one id a row.
  void SetIds(const std::string& name, const std::vector<uint64_t>& ids, const std::vector<uint32_t>& lod = {}) {
    tensor(name)->View(DType::kInt64, {static_cast<int64_t>(ids.size()), 1}, ids.data());
    tensor(name)->set_lod(lod);
  }
  SparseTable* MakeTable(const std::string& name, int dim, const std::string& optimizer = "adagrad {}") {
    OpDesc op;
    op.set_type("create_sparse_table");
    SetOutput(op, "Out", {name});
    SetAttr(op, "table",
            "name: \"" + name + "\" dim: " + std::to_string(dim) + " init { uniform: 0.5 } optimizer { " + optimizer +
                " }");
    EXPECT_TRUE(Run(op).ok());
    return scope_.Find(name)->Get<std::unique_ptr<SparseTable>>().get();
  }

  Result<std::unique_ptr<OpKernel>> Make(const OpDesc& op) {
    for (const OpDesc::Var& var : op.outputs()) {
      for (const std::string& name : var.arguments()) scope_.Var(name);
    }
    descs_.push_back(std::make_unique<OpDesc>(op));
    const OpView view(*descs_.back(), *registry_.Find(op.type()));
    KernelContext context(view, scope_, options_);
    return view.info().kernels[0].create(context);
  }
  Status Run(const OpDesc& op) {
    MR_ASSIGN(const std::unique_ptr<OpKernel> kernel, Make(op));
    return kernel->Run(RunContext{});
  }

 private:
  FrameOptions options_;
  OpRegistry registry_;
  Scope scope_;
  std::vector<std::unique_ptr<OpDesc>> descs_;
};

inline OpDesc MakeOp(const std::string& type, const std::vector<std::pair<std::string, std::vector<std::string>>>& in,
                     const std::vector<std::pair<std::string, std::vector<std::string>>>& out) {
  OpDesc op;
  op.set_type(type);
  for (const auto& [parameter, names] : in) SetInput(op, parameter, names);
  for (const auto& [parameter, names] : out) SetOutput(op, parameter, names);
  return op;
}

}  // namespace millrace
