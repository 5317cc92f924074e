#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/frame.h"

namespace millrace {

/// Runs a few operators in tests, over variables that the test fills: inputs in the root scope, the rest in a frame.
/// All runs use one frame, so a test sees the state kernels keep between batches. One thread.
class OpSession {
 public:
  /// `inputs` describes the variables that the test fills; those of kind SELECTED_ROWS hold SelectedRows. Fails like
  /// Executable::Compile and Frame::Create. `registry` must outlive it.
  static Result<std::unique_ptr<OpSession>> Create(const std::vector<OpDesc>& ops, const VarMetas& inputs,
                                                   const OpRegistry& registry, const FrameOptions& options = {});

  /// Whether a tensor variable of this name exists.
  bool has_tensor(const std::string& name) {
    const Variable* variable = frame_->scope().Find(name);
    return variable != nullptr && variable->Is<Tensor>();
  }
  Tensor* tensor(const std::string& name) { return frame_->scope().Find(name)->GetMutable<Tensor>(); }
  SelectedRows* rows(const std::string& name) { return frame_->scope().Find(name)->GetMutable<SelectedRows>(); }
  bool is_rows(const std::string& name) { return frame_->scope().Find(name)->Is<SelectedRows>(); }
  bool is_tensor(const std::string& name) { return frame_->scope().Find(name)->Is<Tensor>(); }
  /// Sets the LoD and keeps its offsets alive.
  void SetLod(const std::string& name, std::vector<uint32_t> lod);
  /// Fails like Frame::Run.
  Status Run(int64_t step = 0);

 private:
  OpSession() = default;
  Scope root_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<Frame> frame_;
  std::map<std::string, std::vector<uint32_t>> lods_;
};

}  // namespace millrace
