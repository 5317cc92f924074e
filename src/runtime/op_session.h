#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/frame.h"

namespace millrace {

/// Runs a few operators, for tests, over variables that the test fills: inputs live in the root scope, the rest in a
/// frame. One frame serves all runs, so that a test sees what a kernel keeps from one batch to the next. One thread.
class OpSession {
 public:
  /// `inputs` describes the variables that the test fills; those of kind SELECTED_ROWS hold SelectedRows. Errors are
  /// those of Executable::Compile and Frame::Create. `registry` must outlive it.
  static Result<std::unique_ptr<OpSession>> Create(const std::vector<OpDesc>& ops, const VarMetas& inputs,
                                                   const OpRegistry& registry, const FrameOptions& options = {});

  /// Whether there is a variable of that name, and it is a tensor.
  bool has_tensor(const std::string& name) {
    const Variable* variable = frame_->scope().Find(name);
    return variable != nullptr && variable->Is<Tensor>();
  }
  Tensor* tensor(const std::string& name) { return frame_->scope().Find(name)->GetMutable<Tensor>(); }
  SelectedRows* rows(const std::string& name) { return frame_->scope().Find(name)->GetMutable<SelectedRows>(); }
  bool is_rows(const std::string& name) { return frame_->scope().Find(name)->Is<SelectedRows>(); }
  bool is_tensor(const std::string& name) { return frame_->scope().Find(name)->Is<Tensor>(); }
  /// Keeps the offsets alive for the variable.
  void SetLod(const std::string& name, std::vector<uint32_t> lod);
  Status Run(int64_t step = 0);

 private:
  OpSession() = default;
  Scope root_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<Frame> frame_;
  std::map<std::string, std::vector<uint32_t>> lods_;
};

}  // namespace millrace
