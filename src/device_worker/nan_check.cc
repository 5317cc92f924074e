#include "device_worker/nan_check.h"

#include "batch/row_of_value.h"
#include "core/edit_distance.h"
#include "core/file.h"
#include "core/numbers.h"
#include "core/words.h"
#include "inspect/multi_slot_text.h"
#include "kernels/non_finite.h"
#include "runtime/finite_variables.h"
#include "runtime/tensor.h"

namespace millrace {
namespace {

constexpr size_t kMostRanges = 4;

/// The position of the first non-finite value, or -1.
Result<int64_t> FirstBad(const Tensor& tensor, HostView& host_view) {
  if (tensor.empty()) return int64_t{-1};
  MR_ASSIGN(const Tensor* const shown, host_view.Of(tensor));
  return FirstNonFinite(*shown);
}

Result<int64_t> FirstBad(const Variable& variable, HostView& host_view) {
  if (variable.Is<SelectedRows>()) return FirstBad(variable.Get<SelectedRows>().values, host_view);
  return variable.Is<Tensor>() ? FirstBad(variable.Get<Tensor>(), host_view) : Result<int64_t>(int64_t{-1});
}

/// "part-0:97-102, part-3:5 and 12 lines more"; "32 rows" for unknown lines.
std::string LinesOf(const RunContext& context) {
  const std::span<const RowOrigin> origins =
      context.batch == nullptr ? std::span<const RowOrigin>() : context.batch->origins();
  if (origins.empty() || origins[0].line == 0) return std::to_string(context.rows) + " rows";
  std::string text;
  size_t ranges = 0;
  for (size_t begin = 0; begin < origins.size();) {
    size_t end = begin + 1;
    while (end < origins.size() && origins[end].file == origins[begin].file &&
           origins[end].line == origins[end - 1].line + 1) {
      ++end;
    }
    if (++ranges > kMostRanges) {
      text += " and " + std::to_string(origins.size() - begin) + " lines more";
      break;
    }
    const uint32_t file = origins[begin].file;
    const bool is_named = context.file_names != nullptr && file < context.file_names->size();
    text += (begin == 0 ? "" : ", ") +
            DescribeLines(is_named ? (*context.file_names)[file] : "file " + std::to_string(file), origins[begin].line,
                          origins[end - 1].line);
    begin = end;
  }
  return text + (context.lines_are_piped ? " (lines of pipe_command's output)" : "");
}

/// Describes the first such value in the input.
std::string FirstInput(const TrainedBatch& trained) {
  const SlotBatch& batch = trained.batch;
  for (const SlotSpec& slot : batch.schema().used()) {
    const std::span<const float> values = batch.floats(slot.id);
    const int64_t at = FirstNonFinite(values);
    if (at < 0) continue;
    const auto place = static_cast<size_t>(at);
    return "; slot \"" + slot.name + "\" of " + trained.context.DescribeRow(RowOfValue(batch, slot.id, place)) +
           " holds " + ShortestNumber(values[place]);
  }
  return "";
}

}  // namespace

std::string NonFiniteLosses::first() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

void NonFiniteLosses::Show(std::string text) {
  Say("warning: " + text + "\n");
  const std::lock_guard lock(mutex_);
  first_ = std::move(text);
}

Result<std::unique_ptr<NanCheck>> NanCheck::Create(const Executable& executable, const Frame& frame,
                                                   NanCheckRule rule) {
  std::unique_ptr<NanCheck> check(new NanCheck(executable, std::move(rule)));
  std::string problems;
  for (const std::string& name : check->rule_.names) {
    const Variable* variable = frame.Find(name);
    if (variable == nullptr) {
      std::vector<std::string_view> known;
      for (const auto& [var, meta] : executable.vars()) known.push_back(var);
      const std::string_view nearest = NearestName(name, known);
      problems += (problems.empty() ? "" : "\n") + ("check_nan_var_names: there is no variable \"" + name + "\"") +
                  (nearest.empty() ? "" : "; did you mean \"" + std::string(nearest) + "\"?");
    }
    check->variables_.push_back(variable);
  }
  if (!problems.empty()) return InvalidConfig(problems);
  if (!check->rule_.loss.empty()) check->loss_ = frame.Find(check->rule_.loss);
  // Checked once, because checking compares type names.
  if (check->loss_ != nullptr && check->loss_->Is<Tensor>()) check->loss_tensor_ = &check->loss_->Get<Tensor>();
  return check;
}

Status NanCheck::OnBatch(const TrainedBatch& trained) {
  const auto failure = [&](const std::string& description) {
    return BadData(description + "; look at that input, lower the learning rate, or clip gradients" + Keep(trained));
  };
  for (size_t i = 0; i < variables_.size(); ++i) {
    MR_ASSIGN(const int64_t at, FirstBad(*variables_[i], host_view_));
    if (at >= 0) return failure(Describe(trained, rule_.names[i], *variables_[i], at));
  }
  if (loss_tensor_ == nullptr) return Status::Ok();
  MR_ASSIGN(const int64_t at, FirstBad(*loss_tensor_, host_view_));
  if (at < 0) return Status::Ok();
  if (rule_.passed != nullptr) {
    rule_.passed->Add([&] { return Describe(trained, rule_.loss, *loss_, at) + " (allow_non_finite)"; });
    return Status::Ok();
  }
  return failure("the loss is NaN or infinite: " + Describe(trained, rule_.loss, *loss_, at));
}

std::string NanCheck::Describe(const TrainedBatch& trained, const std::string& name, const Variable& variable,
                               int64_t at) {
  const std::string input = FirstInput(trained);
  found_in_input_ = !input.empty();
  const std::string step = "step " + std::to_string(trained.context.step);
  // A program that reads its own data has no lines here.
  std::string where = trained.context.rows == 0 ? "at " + step : "in the batch of ";
  if (variable.Is<Tensor>()) {
    const Dims& dims = variable.Get<Tensor>().dims();
    if (dims.rank() > 0 && dims[0] == trained.context.rows && dims[0] > 1) {
      const auto row = static_cast<int>(at / (dims.numel() / dims[0]));
      where = "in the row of " + trained.context.DescribeRow(row) + ", in the batch of ";
    }
  }
  if (trained.context.rows > 0) where += LinesOf(trained.context) + " (" + step + ")";
  return "variable \"" + name + "\" holds a NaN or an infinite value " + where + input + FirstOperator(trained.frame);
}

std::string NanCheck::Keep(const TrainedBatch& trained) const {
  if (trained.batch.rows() == 0) return "";  // the program reads its own data
  if (rule_.folder.empty()) return "; with --output_dir the batch would be kept";
  const std::string path = rule_.folder + "/nan_batch_" + std::to_string(trained.context.step) + ".txt";
  if (const Status kept = WriteFileAtomically(path, BatchAsMultiSlot(trained.batch)); !kept.ok()) {
    return "; the batch cannot be kept: " + kept.message();
  }
  if (rule_.is_of_features) {
    return "; the batch is kept as the features made it, lines of the slots in the job's order, in \"" + path + "\"";
  }
  return "; the batch is kept: look at it, or run it again, with --set filelist='[\"" + path +
         "\"]' --set data_desc.pipe_command=cat --set data_desc.batch_size=" + std::to_string(trained.batch.rows());
}

std::string NanCheck::FirstOperator(const Frame& frame) {
  const OpList& ops = executable_->ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const OpDesc::Var& output : ops[i].outputs()) {
      for (const std::string& name : output.arguments()) {
        const Variable* variable = frame.Find(name);
        if (variable == nullptr) continue;
        const Result<int64_t> at = FirstBad(*variable, host_view_);
        if (!at.ok()) return "; which operator gave it cannot be read: " + at.status().message();
        if (*at < 0) continue;
        return "; the first operator with such an output is op[" + std::to_string(i) + "] " + ops[i].type() + " -> \"" +
               name + "\"";
      }
    }
  }
  return "";
}

}  // namespace millrace
