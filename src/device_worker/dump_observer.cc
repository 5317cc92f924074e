#include "device_worker/dump_observer.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/edit_distance.h"
#include "core/hash.h"
#include "core/numbers.h"
#include "core/words.h"
#include "runtime/tensor.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// Number format: like a C++ stream (six digits), or with a fixed number of decimals.
struct NumberStyle {
  bool fixed = false;
  int decimals = 0;
  char separator = ',';
};

char* WriteValue(double value, const NumberStyle& style, char* out) {
  if (!style.fixed) return WriteSixDigits(value, out);
  if (!(std::abs(value) < std::numeric_limits<float>::epsilon())) return WriteDecimals(value, style.decimals, out);
  *out = '0';
  return out + 1;
}
char* WriteValue(float value, const NumberStyle& style, char* out) {
  return WriteValue(static_cast<double>(value), style, out);
}
template <class T>
char* WriteValue(T value, const NumberStyle&, char* out) {
  if constexpr (std::is_same_v<T, int64_t>) return std::to_chars(out, out + 20, static_cast<uint64_t>(value)).ptr;
  return std::to_chars(out, out + 20, static_cast<int>(value)).ptr;
}

template <class T>
void AddValuesOf(const Tensor& tensor, int64_t begin, int64_t end, const NumberStyle& style, std::string* text) {
  const T* const values = tensor.data<T>();
  char piece[1 + kMostDecimalText];
  piece[0] = style.separator;
  for (int64_t i = begin; i < end; ++i) {
    char* const from = piece + (i > begin ? 0 : 1);
    text->append(from, WriteValue(values[i], style, piece + 1));
  }
}

void AddValues(const Tensor& tensor, int64_t begin, int64_t end, const NumberStyle& style, std::string* text) {
  if (begin == end) return;
  switch (tensor.dtype()) {
    case DType::kFloat32: return AddValuesOf<float>(tensor, begin, end, style, text);
    case DType::kFloat64: return AddValuesOf<double>(tensor, begin, end, style, text);
    case DType::kInt64: return AddValuesOf<int64_t>(tensor, begin, end, style, text);
    case DType::kInt32: return AddValuesOf<int32_t>(tensor, begin, end, style, text);
    case DType::kBool: return AddValuesOf<bool>(tensor, begin, end, style, text);
    default: break;
  }
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) *text += style.separator;
    *text += "unsupported type";
  }
}

const Tensor* TensorOf(const Variable& variable) {
  if (variable.Is<SelectedRows>()) return &variable.Get<SelectedRows>().values;
  return variable.Is<Tensor>() ? &variable.Get<Tensor>() : nullptr;
}

/// Whether axis 0, or the LoD over it, has an entry for each row of the batch.
bool HasRows(const Variable& variable, int rows) {
  if (!variable.Is<Tensor>()) return false;
  const Tensor& tensor = variable.Get<Tensor>();
  if (tensor.empty() || tensor.dims().rank() < 2) return false;
  if (tensor.has_lod()) return tensor.lod().size() == static_cast<size_t>(rows) + 1;
  return tensor.dims()[0] == rows;
}

std::pair<int64_t, int64_t> BoundOf(const Tensor& tensor, int row) {
  const int64_t width = tensor.dims().Product(1, tensor.dims().rank());
  if (!tensor.has_lod()) return {row * width, (row + 1) * width};
  const auto at = static_cast<size_t>(row);
  return {int64_t{tensor.lod()[at]} * width, int64_t{tensor.lod()[at + 1]} * width};
}

}  // namespace

Result<std::unique_ptr<DumpObserver>> DumpObserver::Create(const TrainerDesc& desc, const Executable& executable,
                                                           const Frame& frame, int worker, DumpFiles& files) {
  std::unique_ptr<DumpObserver> observer(new DumpObserver(desc, worker, files));
  std::string problems;
  const auto resolve = [&](const auto& names, const char* option, std::vector<Field>* fields) {
    for (const std::string& name : names) {
      const Variable* variable = frame.Find(name);
      if (variable != nullptr && (variable->empty() || TensorOf(*variable) != nullptr)) {
        fields->push_back({name, variable});
        continue;
      }
      std::vector<std::string_view> known;
      for (const auto& [var, meta] : executable.vars()) known.push_back(var);
      problems += (problems.empty() ? "" : "\n") + std::string(option) +
                  (variable == nullptr
                       ? ": no operator of this run computes \"" + name + "\"" + DidYouMean(name, known)
                       : ": \"" + name + "\" is a table of rows by id, no tensor; a checkpoint or a model holds it");
    }
  };
  resolve(desc.dump_fields(), "dump_fields", &observer->fields_);
  resolve(desc.dump_param(), "dump_param", &observer->parameters_);
  if (!problems.empty()) return InvalidConfig(problems);
  return observer;
}

Status DumpObserver::OnBatch(const TrainedBatch& trained) {
  std::string lines;
  if (!fields_.empty()) MR_TRY(AddRows(trained, &lines));
  if (worker_ == 0 && trained.begins_step) MR_TRY(AddParameters(trained, &lines));
  return lines.empty() ? Status::Ok() : files_->Write(trained.context.step, std::move(lines));
}

void DumpObserver::ChooseRows(const TrainedBatch& trained) {
  const int rows = trained.batch.rows();
  chosen_.assign(static_cast<size_t>(rows), 1);
  if (!desc_->enable_random_dump()) return;
  const auto interval = static_cast<uint64_t>(desc_->dump_interval());
  for (size_t row = 0; row < chosen_.size(); ++row) {
    const uint64_t hash = desc_->random_with_lineid()
                              ? XxHash64(trained.batch.ins_ids()[row])
                              : HashedNumber(Mix64(desc_->seed(), static_cast<uint64_t>(trained.context.step)), row);
    chosen_[row] = hash % interval == 0 ? 1 : 0;
  }
}

Status DumpObserver::AddRows(const TrainedBatch& trained, std::string* lines) {
  ChooseRows(trained);
  const size_t rows = chosen_.size();
  if (texts_.size() < rows) texts_.resize(rows);
  // Paddle's in-memory datasets name every example, possibly with an empty name; its streaming datasets have no names.
  const bool named = !trained.batch.ins_ids().empty() || !trained.batch.contents().empty() ||
                     desc_->dataset().class_name() == "InMemoryDataset";
  for (size_t row = 0; row < rows; ++row) {
    texts_[row].clear();
    if (chosen_[row] == 0 || desc_->is_dump_in_simple_mode() || !named) continue;
    if (!trained.batch.ins_ids().empty()) texts_[row] += trained.batch.ins_ids()[row];
    texts_[row] += '\t';
    if (!trained.batch.contents().empty()) texts_[row] += trained.batch.contents()[row];
  }
  for (Field& field : fields_) MR_TRY(AddField(field, static_cast<int>(rows)));
  for (size_t row = 0; row < rows; ++row) {
    if (chosen_[row] == 0 || texts_[row].empty()) continue;
    *lines += texts_[row];
    *lines += '\n';
  }
  return Status::Ok();
}

Status DumpObserver::AddField(Field& field, int rows) {
  if (!HasRows(*field.variable, rows)) {
    if (!std::exchange(field.told, true) && worker_ == 0) {
      Say("warning: dump_fields: \"" + field.name + "\" has no row for each example and is left out; " +
          "dump_param takes whole tensors\n");
    }
    return Status::Ok();
  }
  MR_ASSIGN(const Tensor* const shown, host_view_.Of(field.variable->Get<Tensor>()));
  const Tensor& tensor = *shown;
  const bool simple = desc_->is_dump_in_simple_mode();
  const NumberStyle style{simple, desc_->dump_num_decimals(), simple ? ' ' : ','};
  for (int row = 0; row < rows; ++row) {
    if (chosen_[static_cast<size_t>(row)] == 0) continue;
    std::string& text = texts_[static_cast<size_t>(row)];
    const auto [begin, end] = BoundOf(tensor, row);
    if (!simple || !text.empty()) text += '\t';
    if (!simple) text += field.name + ":" + std::to_string(end - begin) + ":";
    AddValues(tensor, begin, end, style, &text);
  }
  return Status::Ok();
}

Status DumpObserver::AddParameters(const TrainedBatch& trained, std::string* lines) {
  const bool in_step = desc_->dist().update() == DistDesc::SYNC && desc_->has_dist() && !desc_->infer();
  const int64_t batch = in_step ? trained.context.step : trained.worker_batches - 1;
  for (const Field& parameter : parameters_) {
    if (parameter.variable->empty()) continue;
    MR_ASSIGN(const Tensor* const shown, host_view_.Of(*TensorOf(*parameter.variable)));
    const Tensor& tensor = *shown;
    *lines += "(0," + std::to_string(batch) + "," + parameter.name + ")";
    AddValues(tensor, 0, tensor.empty() ? 0 : tensor.numel(), {}, lines);
    *lines += '\n';
  }
  return Status::Ok();
}

}  // namespace millrace
