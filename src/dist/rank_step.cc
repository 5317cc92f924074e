#include "dist/rank_step.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/caught.h"
#include "dist/part_of.h"
#include "dist/row_wire.h"
#include "program/block_builder.h"

namespace millrace {
namespace {

/// Variables that outlive a batch and that the forward part writes: every rank would have its own.
std::string WrittenByForward(const Executable& step) {
  std::string written;
  std::set<std::string> seen;
  for (const OpDesc& op : step.ops()) {
    for (const OpDesc::Var& output : op.outputs()) {
      for (const std::string& name : output.arguments()) {
        const auto meta = step.vars().find(name);
        if (meta == step.vars().end() || !meta->second.persistable || !seen.insert(name).second) continue;
        written += (written.empty() ? "" : ", ") + ("\"" + name + "\" by operator " + op.type());
      }
    }
  }
  return written;
}

/// The table that a variable is the gradient of, or a part or a form of its gradient; null: of none.
const SparseTable* TableOfGradient(const std::string& name, const Scope& root) {
  const size_t at = name.find("@GRAD");
  const Variable* const variable = at == std::string::npos ? nullptr : root.Find(name.substr(0, at));
  const bool is_table = variable != nullptr && variable->Is<std::unique_ptr<SparseTable>>();
  return is_table ? variable->Get<std::unique_ptr<SparseTable>>().get() : nullptr;
}

/// Operators of updates that come to the same for a part of the rows as for all of them.
bool IsRowByRow(std::string_view type) { return type == "sparse_table_push" || type == "clip" || type == "scale"; }

template <class Values>
void PutPiece(const typename MicroBatchSums<Values>::Piece& piece, WireWriter* out) {
  out->Put(static_cast<int32_t>(piece.first));
  out->Put(static_cast<int32_t>(piece.count));
  out->Put(piece.has_values);
}

template <class Values>
typename MicroBatchSums<Values>::Piece GetPiece(WireReader* in) {
  typename MicroBatchSums<Values>::Piece piece;
  piece.first = in->Get<int32_t>();
  piece.count = in->Get<int32_t>();
  piece.has_values = in->Get<bool>();
  return piece;
}

void Scale(std::vector<float>* values, int64_t micro_batches) {
  if (micro_batches == 1) return;
  const float factor = 1.0f / static_cast<float>(micro_batches);
  for (float& value : *values) value *= factor;
}

/// Scales gradients of rows, and not what counts.
void ScaleRows(const TableShape& shape, float factor, std::vector<float>* rows) {
  const auto dim = static_cast<size_t>(shape.dim);
  for (size_t i = 0; i < rows->size(); ++i) {
    if (i % dim >= CountColumns(shape)) (*rows)[i] *= factor;
  }
}

}  // namespace

Result<std::unique_ptr<RankStep>> RankStep::Create(const PipelineProgram& program, const Frame& frame, Scope& root,
                                                   const FrameOptions& options, RankGroup& ranks, int micro_batches) {
  std::unique_ptr<RankStep> step(new RankStep(program, ranks));
  std::tie(step->first_, step->count_) = ranks.ShareOf(micro_batches);
  if (const std::string written = WrittenByForward(*program.step); !written.empty()) {
    return InvalidConfig("dist.update: SYNC: the forward part keeps from batch to batch: " + written +
                         "; each rank would have values of its own. Leave the operators out, or train without dist");
  }
  step->sums_ = std::make_unique<Scope>(&root);
  MR_TRY(step->FindGradients(frame, root));
  MR_ASSIGN(step->update_, Frame::Create(*program.update, nullptr, *step->sums_, options));
  step->out_.resize(static_cast<size_t>(ranks.size()));
  return step;
}

Status RankStep::FindGradients(const Frame& frame, const Scope& root) {
  for (const OpDesc& op : program_->update->ops()) {
    if (IsRowByRow(op.type())) continue;
    for (const OpDesc::Var& input : op.inputs()) {
      for (const std::string& name : input.arguments()) {
        const SparseTable* const table = TableOfGradient(name, root);
        if (table == nullptr) continue;
        return InvalidConfig("dist.update: SYNC: operator " + op.type() + " reads the whole gradient of table \"" +
                             table->shape().name +
                             "\", of which each rank has a part; clip its values, not its norm, or train without dist");
      }
    }
  }
  for (const std::vector<std::string>& names : program_->gradients) {
    for (const std::string& name : names) {
      Gradient gradient;
      gradient.name = name;
      gradient.from = frame.Find(name);
      if (gradient.from == nullptr) return Internal("no operator writes \"" + name + "\"");
      gradient.sum = sums_->Var(name);
      if (gradient.from->Is<SelectedRows>()) {
        gradient.sum->GetMutable<SelectedRows>();
        gradient.table = TableOfGradient(name, root);
        gradient.kind = gradient.table != nullptr ? Kind::kTableRows : Kind::kMatrixRows;
      } else {
        gradient.sum->GetMutable<Tensor>();
      }
      gradients_.push_back(std::move(gradient));
    }
  }
  return Status::Ok();
}

Status RankStep::Add(int micro_batch, int examples) {
  for (Gradient& gradient : gradients_) {
    if (gradient.kind == Kind::kDense) {
      const Tensor& tensor = gradient.from->Get<Tensor>();
      if (tensor.dtype() != DType::kFloat32) {
        return InvalidConfig("dist.update: SYNC: gradient \"" + gradient.name + "\" is " +
                             std::string(DTypeName(tensor.dtype())) + "; ranks add up float32");
      }
      gradient.dims = tensor.dims();
      const float* data = tensor.data<float>();
      gradient.dense.Append({micro_batch, 1, true, {std::vector<float>(data, data + tensor.numel())}});
      continue;
    }
    const auto& rows = gradient.from->Get<SelectedRows>();
    gradient.height = rows.height;
    if (!rows.rows.empty()) gradient.width = static_cast<uint64_t>(rows.values.numel()) / rows.rows.size();
    const float* values = rows.rows.empty() ? nullptr : rows.values.data<float>();
    RowValues sum = SumEqualKeys(rows.rows, values, gradient.width);
    if (gradient.sums_examples()) ScaleRows(gradient.table->shape(), static_cast<float>(examples), &sum.values);
    gradient.rows.Append({micro_batch, 1, true, std::move(sum)});
  }
  return Status::Ok();
}

void RankStep::AddNothing(int micro_batch) {
  for (Gradient& gradient : gradients_) {
    if (gradient.kind == Kind::kDense) {
      gradient.dense.Append({micro_batch, 1, false, {}});
    } else {
      gradient.rows.Append({micro_batch, 1, false, {}});
    }
  }
}

Result<StepInput> RankStep::Begin(const Status& read, const StepInput& mine) {
  const Status& ready = updated_.ok() ? read : updated_;
  std::array<int64_t, 5> sums = {ready.ok() ? 0 : 1, mine.wants_pause ? 1 : 0, mine.lacks_batches ? 1 : 0,
                                 mine.micro_batches, mine.examples};
  MR_TRY(ranks_->communicator().SumOverRanks(sums));
  if (sums[0] > 0) return ranks_->Agree(ready);
  return StepInput{sums[1] > 0, sums[2] > 0, sums[3], sums[4]};
}

Status RankStep::Finish(const Status& ran, int64_t micro_batches, const RunContext& first) {
  std::vector<WireWriter> out;
  for (std::string& message : out_) {
    message.clear();
    out.emplace_back(&message);
    out.back().Put(ran.ok());
  }
  if (ran.ok()) {
    for (const Gradient& gradient : gradients_) PutPieces(gradient, &out);
  }
  Clear();
  MR_TRY(ranks_->communicator().AllToAll(out_, &in_));
  std::vector<WireReader> in(in_.begin(), in_.end());
  bool all_ran = true;
  for (WireReader& from : in) all_ran = from.Get<bool>() && all_ran;
  if (!all_ran) return ranks_->Agree(ran);

  std::string part;
  for (Gradient& gradient : gradients_) {
    MR_TRY(AddPieces(&gradient, &in));
    PutPart(&gradient, micro_batches, &part);
  }
  std::fill(out_.begin(), out_.end(), part);
  MR_TRY(ranks_->communicator().AllToAll(out_, &in_));
  in = std::vector<WireReader>(in_.begin(), in_.end());
  for (Gradient& gradient : gradients_) MR_TRY(TakeParts(&gradient, &in));
  Clear();
  RunContext context = first;
  context.rows = 1;  // what counts examples has gradients of the sum over them already
  updated_ = Caught("an update", [&] { return update_->RunOps(context, program_->updates(0)); });
  return Status::Ok();
}

void RankStep::PutPieces(const Gradient& gradient, std::vector<WireWriter>* out) const {
  const int ranks = ranks_->size();
  if (gradient.kind == Kind::kDense) {
    for (int r = 0; r < ranks; ++r) {
      WireWriter& to = (*out)[static_cast<size_t>(r)];
      to.PutAll(gradient.dims.sizes());
      to.Put(static_cast<uint32_t>(gradient.dense.pieces().size()));
      for (const auto& piece : gradient.dense.pieces()) {
        PutPiece<DenseValues>(piece, &to);
        const auto [begin, end] = PartOf(piece.values.values.size(), r, ranks);
        to.PutAll(std::span<const float>(piece.values.values.data() + begin, end - begin));
      }
    }
    return;
  }
  for (WireWriter& to : *out) {
    to.Put(gradient.height);
    to.Put(gradient.width);
    to.Put(static_cast<uint32_t>(gradient.rows.pieces().size()));
  }
  std::vector<RowValues> of_rank(static_cast<size_t>(ranks));
  for (const auto& piece : gradient.rows.pieces()) {
    for (RowValues& rows : of_rank) rows = {};
    const size_t width = piece.values.width;
    for (size_t i = 0; i < piece.values.keys.size(); ++i) {
      const uint64_t key = piece.values.keys[i];
      RowValues& rows = of_rank[static_cast<size_t>(ranks_->tables().OwnerOf(VirtualShardOf(key)))];
      rows.keys.push_back(key);
      const float* row = piece.values.values.data() + i * width;
      rows.values.insert(rows.values.end(), row, row + width);
    }
    for (size_t r = 0; r < of_rank.size(); ++r) {
      PutPiece<RowValues>(piece, &(*out)[r]);
      (*out)[r].PutAll(std::span<const uint64_t>(of_rank[r].keys));
      (*out)[r].PutAll(std::span<const float>(of_rank[r].values));
    }
  }
}

Status RankStep::AddPieces(Gradient* gradient, std::vector<WireReader>* in) {
  for (WireReader& from : *in) {
    if (gradient->kind == Kind::kDense) {
      std::vector<int64_t> dims;
      from.GetAll(&dims);
      const auto pieces = from.Get<uint32_t>();
      for (uint32_t i = 0; i < pieces && from.ok(); ++i) {
        auto piece = GetPiece<DenseValues>(&from);
        from.GetAll(&piece.values.values);
        if (piece.has_values) gradient->dims = Dims(dims);
        gradient->dense.Append(std::move(piece));
      }
      continue;
    }
    const auto height = from.Get<int64_t>();
    const auto width = from.Get<uint64_t>();
    if (height > 0) gradient->height = height;
    if (width > 0) gradient->width = width;
    const auto pieces = from.Get<uint32_t>();
    for (uint32_t i = 0; i < pieces && from.ok(); ++i) {
      auto piece = GetPiece<RowValues>(&from);
      from.GetAll(&piece.values.keys);
      from.GetAll(&piece.values.values);
      piece.values.width = static_cast<size_t>(gradient->width);
      gradient->rows.Append(std::move(piece));
    }
  }
  const bool is_whole = std::all_of(in->begin(), in->end(), [](const WireReader& from) { return from.ok(); });
  return is_whole ? Status::Ok() : Internal("a rank sent half of gradient \"" + gradient->name + "\"");
}

void RankStep::PutPart(Gradient* gradient, int64_t micro_batches, std::string* out) {
  WireWriter to(out);
  if (gradient->kind == Kind::kDense) {
    DenseValues* const total = gradient->dense.Total();
    if (total != nullptr) Scale(&total->values, micro_batches);
    to.PutAll(total == nullptr ? std::span<const float>() : std::span<const float>(total->values));
    return;
  }
  RowValues* const total = gradient->rows.Total();
  if (total != nullptr && !gradient->sums_examples()) Scale(&total->values, micro_batches);
  static const RowValues kNone;
  const RowValues& rows = total == nullptr ? kNone : *total;
  if (gradient->kind == Kind::kMatrixRows) {
    to.PutAll(std::span<const uint64_t>(rows.keys));
    to.PutAll(std::span<const float>(rows.values));
    return;
  }
  auto* const sum = gradient->sum->GetMutable<SelectedRows>();
  sum->StartRows(gradient->table);
  sum->height = gradient->height;
  sum->rows = rows.keys;
  sum->merged = true;
  const auto width = static_cast<int64_t>(gradient->table->shape().dim);
  std::copy(rows.values.begin(), rows.values.end(),
            sum->values.Resize<float>({static_cast<int64_t>(rows.keys.size()), width}));
}

Status RankStep::TakeParts(Gradient* gradient, std::vector<WireReader>* in) {
  if (gradient->kind == Kind::kTableRows) return Status::Ok();
  std::vector<float> values;
  bool is_whole = true;
  if (gradient->kind == Kind::kDense) {
    auto* const sum = gradient->sum->GetMutable<Tensor>();
    float* to = sum->Resize<float>(gradient->dims);
    const float* const end = to + sum->numel();
    for (WireReader& from : *in) {
      from.GetAll(&values);
      is_whole = is_whole && from.ok() && values.size() <= static_cast<size_t>(end - to);
      if (is_whole) to = std::copy(values.begin(), values.end(), to);
    }
    is_whole = is_whole && to == end;
  } else {
    std::vector<uint64_t> keys;
    std::vector<uint64_t> all_keys;
    std::vector<float> all_values;
    for (WireReader& from : *in) {
      from.GetAll(&keys);
      from.GetAll(&values);
      is_whole = is_whole && from.ok() && values.size() == keys.size() * gradient->width;
      all_keys.insert(all_keys.end(), keys.begin(), keys.end());
      all_values.insert(all_values.end(), values.begin(), values.end());
    }
    if (!is_whole) all_keys.clear();
    // By key: a clip's sum over all rows has the same order for any number of ranks.
    RowValues rows = SumEqualKeys(all_keys, all_values.data(), static_cast<size_t>(gradient->width));
    auto* const sum = gradient->sum->GetMutable<SelectedRows>();
    sum->StartRows(nullptr);
    sum->height = gradient->height;
    sum->merged = true;
    const Dims dims{static_cast<int64_t>(rows.keys.size()), static_cast<int64_t>(gradient->width)};
    std::copy(rows.values.begin(), rows.values.end(), sum->values.Resize<float>(dims));
    sum->rows = std::move(rows.keys);
  }
  return is_whole ? Status::Ok() : Internal("a rank sent half of the sum of gradient \"" + gradient->name + "\"");
}

void RankStep::Clear() {
  for (Gradient& gradient : gradients_) {
    gradient.dense.Clear();
    gradient.rows.Clear();
  }
}

}  // namespace millrace
