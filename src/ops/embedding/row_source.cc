#include "ops/embedding/row_source.h"

#include <algorithm>

#include "kernels/racy.h"
#include "kernels/row_locks.h"

namespace millrace {

Result<RowSource> RowSource::Bind(const KernelContext& context, size_t i) {
  MR_ASSIGN(const std::vector<Variable*> variables, context.InputVariables("W"));
  const std::vector<std::string> names = InputArguments(context.op().desc(), "W");
  RowSource source;
  source.name_ = i < names.size() ? names[i] : "";
  Variable* variable = i < variables.size() ? variables[i] : nullptr;
  if (variable != nullptr && variable->Is<std::unique_ptr<SparseTable>>()) {
    source.table_ = variable->Get<std::unique_ptr<SparseTable>>().get();
  } else if (variable != nullptr && variable->Is<Tensor>()) {
    source.weights_ = variable->GetMutable<Tensor>();
  }
  const bool is_matrix = source.weights_ != nullptr && source.weights_->dims().rank() == 2 &&
                         source.weights_->dims()[0] > 0 && source.weights_->dtype() == DType::kFloat32;
  if (source.table_ == nullptr && !is_matrix) {
    return InvalidConfig(context.op().type() + ": input W: \"" + source.name_ +
                         "\" is neither a [rows, dim] matrix of float32 nor a table");
  }
  const FrameOptions& options = context.options();
  source.in_program_ = options.is_program;
  source.mode_ = options.read_only ? PullMode::kReadOnly : PullMode::kInsert;
  source.locks_ = options.update_mode == UpdateMode::kRowLock ? options.row_locks : nullptr;
  source.kernels_ = source.locks_ != nullptr ? &racy::Checked() : &racy::Best();
  return source;
}

size_t RowSource::dim() const { return static_cast<size_t>(is_table() ? table_->shape().dim : weights_->dims()[1]); }

Status RowSource::Find(std::span<const uint64_t> keys, RowBatch* out) {
  if (is_table()) return table_->Pull(keys, mode_, out);
  out->ShowMatrix(keys, weights_->mutable_data<float>(), dim());
  return Status::Ok();
}

const float* const* RowSource::Readable(const RowBatch& batch) {
  const std::span<const float* const> rows = batch.weights();
  if (locks_ == nullptr) return rows.data();
  const size_t width = dim();
  copies_.resize(rows.size() * width);
  readable_.resize(rows.size() + 1);
  readable_[rows.size()] = nullptr;
  for (size_t i = 0; i < rows.size(); ++i) {
    float* copy = copies_.data() + i * width;
    const RowGuard guard(*locks_, rows[i]);
    kernels_->copy_row(rows[i], copy, width);
    readable_[i] = copy;
  }
  return readable_.data();
}

Result<IdRule> IdRule::Create(const OpView& op, int64_t salt) {
  IdRule rule;
  const int64_t padding = op.Int("padding_idx");
  rule.has_padding_ = padding >= 0;
  rule.padding_ = static_cast<uint64_t>(padding);
  rule.salt_ = static_cast<uint64_t>(salt);
  const std::string policy = op.String("out_of_range");
  if (policy == "ZERO") {
    rule.out_of_range_ = OutOfRange::kZero;
  } else if (policy == "MODULO") {
    rule.out_of_range_ = OutOfRange::kModulo;
  } else if (policy != "ERROR") {
    return InvalidConfig(op.type() + ": out_of_range is one of ERROR, ZERO, MODULO: \"" + policy + "\"");
  }
  return rule;
}

Status IdRule::CheckKeysOf(const RowSource& source) const {
  if (salt_ == 0 || source.is_table()) return Status::Ok();
  return InvalidConfig("\"" + source.name() +
                       "\" is a matrix, and only in a table a slot has rows of its own: its salt is " +
                       std::to_string(static_cast<int64_t>(salt_)));
}

Status IdOutOfRange(const RunContext& context, const std::string& slot, const Tensor& ids, int64_t position,
                    const RowSource& source) {
  const std::span<const uint32_t> lod = ids.lod();
  int64_t row = position;
  if (!lod.empty()) {
    row = std::upper_bound(lod.begin(), lod.end(), static_cast<uint32_t>(position)) - lod.begin() - 1;
  } else if (ids.dims().rank() > 0 && ids.dims()[0] > 0) {
    row = position / (ids.numel() / ids.dims()[0]);
  }
  const uint64_t id = IdsOf(ids)[static_cast<size_t>(position)];
  if (source.in_program()) {
    return BadData("\"" + slot + "\", " + context.DescribeRow(static_cast<int>(row)) + ": id " +
                   std::to_string(static_cast<int64_t>(id)) + " is outside the table \"" + source.name() + "\" [" +
                   std::to_string(source.vocabulary()) + ", " + std::to_string(source.dim()) +
                   "], whose rows are for the ids 0 to " + std::to_string(source.vocabulary() - 1) +
                   "; Paddle ends on such an id as well: give the embedding more rows where the program is written "
                   "(size=[rows, " +
                   std::to_string(source.dim()) +
                   "]) and export it again, or bring ids into the range in pipe_command");
  }
  return BadData("slot \"" + slot + "\", " + context.DescribeRow(static_cast<int>(row)) +
                 ": the id is outside parameter \"" + source.name() + "\", whose ids are 0.." +
                 std::to_string(source.vocabulary() - 1) +
                 "; enlarge the vocabulary or set out_of_range to ZERO or MODULO: " + std::to_string(id));
}

std::span<const uint64_t> IdsOf(const Tensor& tensor) {
  return {reinterpret_cast<const uint64_t*>(tensor.data<int64_t>()), static_cast<size_t>(tensor.numel())};
}

}  // namespace millrace
