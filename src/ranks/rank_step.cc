#include "ranks/rank_step.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/caught.h"
#include "program/block_builder.h"
#include "ranks/part_of.h"
#include "ranks/row_wire.h"

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

constexpr const char* kGradients = "the gradients of a step";

/// Begins a message with whether its rank has something to say; the failure of one that has not is everyone's.
WireWriter BeginMessage(std::string* message, bool is_sound) {
  message->clear();
  WireWriter writer(message);
  writer.Put(is_sound);
  return writer;
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

Status HalfSum(const std::string& name) { return Internal("a rank sent half of the sum of gradient \"" + name + "\""); }

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
      const FloatView values(std::span(tensor.data<float>(), static_cast<size_t>(tensor.numel())));
      gradient.dense.Append(micro_batch, 1, values);
      continue;
    }
    const auto& rows = gradient.from->Get<SelectedRows>();
    gradient.height = rows.height;
    if (!rows.rows.empty()) gradient.width = static_cast<uint64_t>(rows.values.numel()) / rows.rows.size();
    const float* values = rows.rows.empty() ? nullptr : rows.values.data<float>();
    SumEqualKeys(rows.rows, values, gradient.width, &sum_);
    if (gradient.sums_examples()) ScaleRows(gradient.table->shape(), static_cast<float>(examples), &sum_.values);
    gradient.rows.Append(micro_batch, 1, sum_);
  }
  return Status::Ok();
}

void RankStep::AddNothing(int micro_batch) {
  for (Gradient& gradient : gradients_) {
    if (gradient.kind == Kind::kDense) {
      gradient.dense.AppendNothing(micro_batch, 1);
    } else {
      gradient.rows.AppendNothing(micro_batch, 1);
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

Status RankStep::Exchange(const Status& ran) {
  Status ready = ran;
  if (ready.ok()) {
    ready = Caught(kGradients, [&] {
      std::vector<WireWriter> out;
      for (std::string& message : out_) out.push_back(BeginMessage(&message, true));
      for (Gradient& gradient : gradients_) PutPieces(&gradient, &out);
      return Status::Ok();
    });
  }
  if (!ready.ok()) {
    for (std::string& message : out_) BeginMessage(&message, false);
  }
  MR_TRY(ranks_->communicator().AllToAll(out_, &in_));
  const bool all_ran =
      std::all_of(in_.begin(), in_.end(), [](const auto& from) { return WireReader(from).Get<bool>(); });
  if (all_ran) return Status::Ok();
  Clear();
  return ranks_->Agree(ready);
}

Status RankStep::Finish(const Status& ready, int64_t micro_batches, const RunContext& first) {
  // As in Exchange: who cannot add up says so where the others wait for its part.
  Status added = Caught(kGradients, [&] {
    std::vector<WireReader> in(in_.begin(), in_.end());
    for (WireReader& from : in) from.Get<bool>();  // that it ran
    BeginMessage(&part_, true);
    for (Gradient& gradient : gradients_) {
      MR_TRY(AddPieces(&gradient, &in));
      PutPart(&gradient, micro_batches, &part_);
    }
    return Status::Ok();
  });
  if (!added.ok()) BeginMessage(&part_, false);
  for (size_t r = 0; r < out_.size(); ++r) out_[r] = r == rank() ? std::string_view() : std::string_view(part_);
  MR_TRY(ranks_->communicator().AllToAll(out_, &in_));
  in_[rank()].swap(part_);
  std::vector<WireReader> in(in_.begin(), in_.end());
  bool have_all_added = true;
  for (WireReader& from : in) have_all_added = from.Get<bool>() && have_all_added;
  if (have_all_added) {
    updated_ = Caught(kGradients, [&] {
      for (Gradient& gradient : gradients_) MR_TRY(TakeParts(&gradient, &in));
      return ready;
    });
  }
  in_[rank()].swap(part_);
  Clear();
  if (!have_all_added) return ranks_->Agree(added);
  RunContext context = first;
  context.rows = 1;  // what counts examples has gradients of the sum over them already
  if (updated_.ok()) updated_ = Caught("an update", [&] { return update_->RunOps(context, program_->updates(0)); });
  return Status::Ok();
}

void RankStep::PutPieces(Gradient* gradient, std::vector<WireWriter>* out) {
  if (gradient->kind != Kind::kDense) return PutRowPieces(gradient, out);
  const int ranks = ranks_->size();
  for (int r = 0; r < ranks; ++r) {
    if (r == ranks_->rank()) continue;
    WireWriter& to = (*out)[static_cast<size_t>(r)];
    to.PutAll(gradient->dims.sizes());
    to.Put(static_cast<uint32_t>(gradient->dense.pieces().size()));
    for (const auto& piece : gradient->dense.pieces()) {
      PutPiece<DenseValues>(piece, &to);
      to.PutAll(PartOf(std::span<const float>(piece.values.values), r, ranks));
    }
  }
}

void RankStep::PutRowPieces(Gradient* gradient, std::vector<WireWriter>* out) {
  for (WireWriter& to : *out) {
    to.Put(gradient->height);
    to.Put(gradient->width);
    to.Put(static_cast<uint32_t>(gradient->rows.pieces().size()));
  }
  gradient->own_rows.resize(gradient->rows.pieces().size());
  of_rank_.resize(out->size());
  for (size_t p = 0; p < gradient->rows.pieces().size(); ++p) {
    const auto& piece = gradient->rows.pieces()[p];
    const size_t width = piece.values.width;
    for (RowValues& rows : of_rank_) {
      rows.clear();
      rows.width = width;
    }
    for (size_t i = 0; i < piece.values.keys.size(); ++i) {
      const uint64_t key = piece.values.keys[i];
      RowValues& rows = of_rank_[static_cast<size_t>(ranks_->tables().OwnerOf(VirtualShardOf(key)))];
      rows.keys.push_back(key);
      const float* row = piece.values.values.data() + i * width;
      rows.values.insert(rows.values.end(), row, row + width);
    }
    for (size_t r = 0; r < out->size(); ++r) {
      if (r == rank()) continue;
      PutPiece<RowValues>(piece, &(*out)[r]);
      (*out)[r].PutAll(std::span<const uint64_t>(of_rank_[r].keys));
      (*out)[r].PutAll(std::span<const float>(of_rank_[r].values));
    }
    gradient->own_rows[p].Take(of_rank_[rank()]);
  }
}

Status RankStep::AddPieces(Gradient* gradient, std::vector<WireReader>* in) {
  for (size_t r = 0; r < in->size(); ++r) {
    r == rank() ? AddOwnPieces(gradient) : AddPiecesOf(gradient, &(*in)[r]);
  }
  const bool is_whole = std::all_of(in->begin(), in->end(), [](const WireReader& from) { return from.ok(); });
  return is_whole ? Status::Ok() : Internal("a rank sent half of gradient \"" + gradient->name + "\"");
}

void RankStep::AddOwnPieces(Gradient* gradient) {
  for (const auto& piece : gradient->dense.pieces()) {
    if (!piece.has_values) {
      gradient->all_dense.AppendNothing(piece.first, piece.count);
      continue;
    }
    const FloatView part(PartOf(std::span<const float>(piece.values.values), ranks_->rank(), ranks_->size()));
    gradient->all_dense.Append(piece.first, piece.count, part);
  }
  for (size_t p = 0; p < gradient->rows.pieces().size(); ++p) {
    const auto& piece = gradient->rows.pieces()[p];
    if (piece.has_values) {
      gradient->all_rows.Append(piece.first, piece.count, gradient->own_rows[p]);
    } else {
      gradient->all_rows.AppendNothing(piece.first, piece.count);
    }
  }
}

void RankStep::AddPiecesOf(Gradient* gradient, WireReader* in) {
  if (gradient->kind == Kind::kDense) {
    std::vector<int64_t> dims;
    in->GetAll(&dims);
    const auto pieces = in->Get<uint32_t>();
    for (uint32_t i = 0; i < pieces && in->ok(); ++i) {
      const auto piece = GetPiece<DenseValues>(in);
      const FloatView part(in->GetBytesOfAll<float>());
      if (!in->ok()) return;
      if (!piece.has_values) {
        gradient->all_dense.AppendNothing(piece.first, piece.count);
        continue;
      }
      gradient->dims = Dims(dims);
      gradient->all_dense.Append(piece.first, piece.count, part);
    }
    return;
  }
  const auto height = in->Get<int64_t>();
  const auto width = in->Get<uint64_t>();
  if (height > 0) gradient->height = height;
  if (width > 0) gradient->width = width;
  const auto pieces = in->Get<uint32_t>();
  for (uint32_t i = 0; i < pieces && in->ok(); ++i) {
    const auto piece = GetPiece<RowValues>(in);
    sum_.width = static_cast<size_t>(gradient->width);
    in->GetAll(&sum_.keys);
    in->GetAll(&sum_.values);
    if (!in->ok()) return;
    if (piece.has_values) {
      gradient->all_rows.Append(piece.first, piece.count, sum_);
    } else {
      gradient->all_rows.AppendNothing(piece.first, piece.count);
    }
  }
}

void RankStep::PutPart(Gradient* gradient, int64_t micro_batches, std::string* out) {
  WireWriter to(out);
  if (gradient->kind == Kind::kDense) {
    DenseValues* const total = gradient->all_dense.Total();
    if (total != nullptr) Scale(&total->values, micro_batches);
    to.PutAll(total == nullptr ? std::span<const float>() : std::span<const float>(total->values));
    return;
  }
  RowValues* const total = gradient->all_rows.Total();
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
  switch (gradient->kind) {
    case Kind::kDense: return TakeDenseParts(gradient, in);
    case Kind::kMatrixRows: return TakeMatrixRows(gradient, in);
    case Kind::kTableRows: break;
  }
  return Status::Ok();
}

Status RankStep::TakeDenseParts(Gradient* gradient, std::vector<WireReader>* in) {
  auto* const sum = gradient->sum->GetMutable<Tensor>();
  float* to = sum->Resize<float>(gradient->dims);
  const float* const end = to + sum->numel();
  for (WireReader& from : *in) {
    const FloatView part(from.GetBytesOfAll<float>());
    if (!from.ok() || part.size() > static_cast<size_t>(end - to)) break;
    part.CopyTo(to);
    to += part.size();
  }
  return to == end ? Status::Ok() : HalfSum(gradient->name);
}

Status RankStep::TakeMatrixRows(Gradient* gradient, std::vector<WireReader>* in) {
  std::vector<uint64_t> keys;
  std::vector<float> values;
  std::vector<uint64_t> all_keys;
  std::vector<float> all_values;
  for (WireReader& from : *in) {
    from.GetAll(&keys);
    from.GetAll(&values);
    if (!from.ok() || values.size() != keys.size() * gradient->width) return HalfSum(gradient->name);
    all_keys.insert(all_keys.end(), keys.begin(), keys.end());
    all_values.insert(all_values.end(), values.begin(), values.end());
  }
  // By key: a clip's sum over all rows has the same order for any number of ranks.
  SumEqualKeys(all_keys, all_values.data(), static_cast<size_t>(gradient->width), &sum_);
  auto* const sum = gradient->sum->GetMutable<SelectedRows>();
  sum->StartRows(nullptr);
  sum->height = gradient->height;
  sum->merged = true;
  const Dims dims{static_cast<int64_t>(sum_.keys.size()), static_cast<int64_t>(gradient->width)};
  std::copy(sum_.values.begin(), sum_.values.end(), sum->values.Resize<float>(dims));
  sum->rows = sum_.keys;
  return Status::Ok();
}

void RankStep::Clear() {
  for (Gradient& gradient : gradients_) {
    gradient.dense.Clear();
    gradient.all_dense.Clear();
    gradient.rows.Clear();
    gradient.all_rows.Clear();
  }
}

}  // namespace millrace
