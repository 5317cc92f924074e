#include "device_worker/gradient_sums.h"

#include <cstring>

#include "runtime/tensor.h"

namespace millrace {
namespace {

/// The floats of a dense gradient, or of a sparse one's rows.
Tensor* Values(Variable* variable) {
  return variable->Is<SelectedRows>() ? &variable->GetMutable<SelectedRows>()->values : variable->GetMutable<Tensor>();
}

void Copy(const Tensor& from, Tensor* to) {
  if (from.empty()) return;
  void* data = to->ResizeRaw(from.dtype(), from.dims());
  const size_t bytes = BytesOf(from);
  if (bytes > 0) std::memcpy(data, from.raw_data(), bytes);
}

template <class T>
void AddValues(const Tensor& from, Tensor* to) {
  const T* source = from.data<T>();
  T* target = to->mutable_data<T>();
  const int64_t count = from.numel();
  for (int64_t i = 0; i < count; ++i) target[i] += source[i];
}

void AddDense(const Tensor& from, Tensor* to) {
  from.dtype() == DType::kFloat64 ? AddValues<double>(from, to) : AddValues<float>(from, to);
}

/// Rows in several micro-batches are repeated, as within a batch; updates add them.
Status Append(const SelectedRows& from, SelectedRows* to) {
  const auto before = static_cast<int64_t>(to->rows.size());
  const auto added = static_cast<int64_t>(from.rows.size());
  if (added == 0) return Status::Ok();
  MR_TRY(to->AppendRows(from));
  const int64_t width = from.values.numel() / added;
  std::vector<float> kept;
  if (before > 0) kept.assign(to->values.data<float>(), to->values.data<float>() + before * width);
  float* values = to->values.Resize<float>({before + added, width});
  if (before > 0) std::memcpy(values, kept.data(), kept.size() * sizeof(float));
  std::memcpy(values + before * width, from.values.data<float>(), static_cast<size_t>(added * width) * sizeof(float));
  return Status::Ok();
}

void Start(const SelectedRows& from, SelectedRows* to) {
  to->TakeRows(from);
  Copy(from.values, &to->values);
}

}  // namespace

Result<std::unique_ptr<GradientSums>> GradientSums::Create(const PipelineProgram& program,
                                                           const std::vector<const Frame*>& frames, Scope& root) {
  std::unique_ptr<GradientSums> sums(new GradientSums(root));
  for (const std::vector<std::string>& names : program.gradients) {
    std::vector<Sum>& of_section = sums->sums_.emplace_back();
    for (const std::string& name : names) {
      Sum& sum = of_section.emplace_back();
      sum.sum = sums->scope_.Var(name);
      for (const Frame* frame : frames) sum.of.push_back(frame->Find(name));
      if (sum.of[0] == nullptr) return Internal("no operator of the pipeline writes \"" + name + "\"");
      if (sum.of[0]->Is<SelectedRows>()) {
        sum.sum->GetMutable<SelectedRows>();
      } else {
        sum.sum->GetMutable<Tensor>();
      }
    }
  }
  return sums;
}

Status GradientSums::Add(int section, size_t frame, bool anew) {
  for (Sum& sum : sums_[static_cast<size_t>(section)]) {
    const Variable& from = *sum.of[frame];
    if (from.Is<SelectedRows>()) {
      auto* const rows = sum.sum->GetMutable<SelectedRows>();
      if (anew) {
        Start(from.Get<SelectedRows>(), rows);
      } else {
        MR_TRY(Append(from.Get<SelectedRows>(), rows));
      }
    } else {
      const Tensor& tensor = from.Get<Tensor>();
      anew ? Copy(tensor, sum.sum->GetMutable<Tensor>()) : AddDense(tensor, sum.sum->GetMutable<Tensor>());
    }
  }
  return Status::Ok();
}

void GradientSums::Divide(int section, int micro_batches) {
  if (micro_batches == 1) return;
  const float factor = 1.0f / static_cast<float>(micro_batches);
  for (Sum& sum : sums_[static_cast<size_t>(section)]) {
    Tensor* values = Values(sum.sum);
    if (values->empty()) continue;
    const int64_t count = values->numel();
    if (values->dtype() == DType::kFloat64) {
      double* data = values->mutable_data<double>();
      for (int64_t i = 0; i < count; ++i) data[i] /= micro_batches;
      continue;
    }
    float* data = values->mutable_data<float>();
    for (int64_t i = 0; i < count; ++i) data[i] *= factor;
  }
}

}  // namespace millrace
