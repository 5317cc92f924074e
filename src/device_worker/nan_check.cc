#include "device_worker/nan_check.h"

#include <cmath>

#include "core/edit_distance.h"
#include "core/file.h"
#include "framework/tensor.h"
#include "inspect/multi_slot_text.h"

namespace millrace {
namespace {

template <class T>
int64_t FirstBad(const Tensor& tensor) {
  const T* values = tensor.data<T>();
  const int64_t count = tensor.numel();
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return -1;
}

// The position of the first value that is not finite, or -1.
int64_t FirstBad(const Variable& variable) {
  if (variable.Is<SelectedRows>()) {
    const Tensor& values = variable.Get<SelectedRows>().values;
    return values.empty() ? -1 : FirstBad<float>(values);
  }
  if (!variable.Is<Tensor>()) return -1;
  const Tensor& tensor = variable.Get<Tensor>();
  if (tensor.empty()) return -1;
  if (tensor.dtype() == DType::kFloat32) return FirstBad<float>(tensor);
  if (tensor.dtype() == DType::kFloat64) return FirstBad<double>(tensor);
  return -1;
}

}  // namespace

Result<std::unique_ptr<NanCheck>> NanCheck::Create(const Executable& executable, const Frame& frame,
                                                   const std::vector<std::string>& names, std::string folder) {
  std::unique_ptr<NanCheck> check(new NanCheck(executable, std::move(folder)));
  std::string problems;
  for (const std::string& name : names) {
    const Variable* variable = frame.Find(name);
    if (variable == nullptr) {
      std::vector<std::string_view> known;
      for (const auto& [var, meta] : executable.vars()) known.push_back(var);
      const std::string_view nearest = NearestName(name, known);
      problems += (problems.empty() ? "" : "\n") + ("check_nan_var_names: there is no variable \"" + name + "\"") +
                  (nearest.empty() ? "" : "; did you mean \"" + std::string(nearest) + "\"?");
      continue;
    }
    check->names_.push_back(name);
    check->variables_.push_back(variable);
  }
  if (!problems.empty()) return InvalidConfig(problems);
  return check;
}

Status NanCheck::OnBatch(const TrainedBatch& trained) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    const int64_t at = FirstBad(*variables_[i]);
    if (at >= 0) return Report(trained, i, at);
  }
  return Status::Ok();
}

Status NanCheck::Report(const TrainedBatch& trained, size_t which, int64_t at) const {
  int row = 0;
  std::string where = "in the batch that starts at ";
  if (variables_[which]->Is<Tensor>()) {
    const Dims& dims = variables_[which]->Get<Tensor>().dims();
    if (dims.rank() > 0 && dims[0] == trained.context.rows && dims[0] > 1) {
      row = static_cast<int>(at / (dims.numel() / dims[0]));
      where = "in the row of ";
    }
  }
  return BadData("variable \"" + names_[which] + "\" holds a NaN or an infinite value " + where +
                 trained.context.DescribeRow(row) + " (step " + std::to_string(trained.context.step) + ")" +
                 FirstOperator(trained.frame) + "; lower the learning rate, or look at that input" + Keep(trained));
}

std::string NanCheck::Keep(const TrainedBatch& trained) const {
  if (trained.batch.rows() == 0) return "";  // the program reads for itself
  if (folder_.empty()) return "; with --output_dir the batch would be kept";
  const std::string path = folder_ + "/nan_batch_" + std::to_string(trained.context.step) + ".txt";
  if (const Status kept = WriteFileAtomically(path, BatchAsMultiSlot(trained.batch)); !kept.ok()) {
    return "; the batch cannot be kept: " + kept.message();
  }
  return "; the batch is kept: look at it, or run it again, with --set filelist='[\"" + path +
         "\"]' --set data_desc.pipe_command=cat --set data_desc.batch_size=" + std::to_string(trained.batch.rows());
}

std::string NanCheck::FirstOperator(const Frame& frame) const {
  const std::vector<OpDesc>& ops = executable_->ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const OpDesc::Var& output : ops[i].outputs()) {
      for (const std::string& name : output.arguments()) {
        const Variable* variable = frame.Find(name);
        if (variable == nullptr || FirstBad(*variable) < 0) continue;
        return "; the first operator with such an output is op[" + std::to_string(i) + "] " + ops[i].type() + " -> \"" +
               name + "\"";
      }
    }
  }
  return "";
}

}  // namespace millrace
