#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/frame.h"

namespace millrace {

/// Every operator there is, sealed.
const OpRegistry& Registry();

/// Runs a few operators over variables that the test fills: inputs live in the root scope, the rest in a frame.
///
/// One frame serves all runs, so that a test sees what a kernel keeps from one batch to the next.
class OpSession {
 public:
  /// `inputs` describes the variables that the test fills; those of kind SELECTED_ROWS hold SelectedRows.
  static Result<std::unique_ptr<OpSession>> Create(const std::vector<OpDesc>& ops, const VarMetas& inputs,
                                                   const OpRegistry& registry, const FrameOptions& options = {});

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
