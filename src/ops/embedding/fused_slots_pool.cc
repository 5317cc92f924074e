#include <algorithm>
#include <set>

#include "ops/embedding/row_source.h"
#include "ops/embedding/slot_keys.h"
#include "ops/embedding/slot_rows.h"
#include "ops/embedding/slots_layout.h"

namespace millrace {
namespace {

/// Sequences in a slot's ids; a slot without LoD has one id a row.
size_t Sequences(const Tensor& ids) { return ids.has_lod() ? ids.lod().size() - 1 : static_cast<size_t>(ids.numel()); }

/// Looks all slots up and pools them into their columns.
///
/// Ids of one parameter are numbered first, so that each distinct key is looked up once and the gradient can be merged
/// by number without another search.
class FusedSlotsPoolKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<FusedSlotsPoolKernel>();
    MR_TRY(kernel->Bind(context));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }

  Status Run(const RunContext& context) override {
    const size_t sequences = Sequences(*ids_[0]);
    MR_TRY(CheckRows(sequences));
    rows_->parameters.resize(sources_.size());
    for (size_t m = 0; m < dense_.size(); ++m) {
      dense_widths_[m] = static_cast<size_t>(dense_[m]->numel()) / std::max<size_t>(sequences, 1);
    }
    const size_t width = layout_.Columns(slot_widths_, dense_widths_, &slot_columns_, &dense_columns_);
    float* out = out_->Resize<float>({static_cast<int64_t>(sequences), static_cast<int64_t>(width)});
    for (size_t p = 0; p < sources_.size(); ++p) {
      MR_TRY(FindRows(context, p));
      Pool(p, out, width);
    }
    for (size_t m = 0; m < dense_.size(); ++m) {
      const float* from = dense_[m]->data<float>();
      for (size_t row = 0; row < sequences; ++row, from += dense_widths_[m]) {
        std::copy_n(from, dense_widths_[m], out + row * width + dense_columns_[m]);
      }
    }
    return Status::Ok();
  }

 private:
  Status Bind(const KernelContext& context) {
    MR_ASSIGN(layout_, SlotsLayout::Create(context.op()));
    MR_ASSIGN(ids_, context.Inputs("Ids"));
    ids_names_ = InputArguments(context.op().desc(), "Ids");
    MR_ASSIGN(dense_, context.Inputs("Dense"));
    MR_ASSIGN(out_, context.Output("Out"));
    if (dense_.size() != layout_.dense_at.size()) {
      return InvalidConfig("fused_slots_pool: Dense and dense_at must be as many");
    }
    MR_ASSIGN(const std::vector<Variable*> rows, context.OutputVariables("Rows"));
    rows_ = rows.empty() || rows[0] == nullptr ? &own_rows_ : rows[0]->GetMutable<SlotRows>();
    std::vector<int64_t> salts = context.op().Ints("slot_salts");
    salts.resize(layout_.slots, 0);
    for (const int64_t salt : salts) {
      MR_ASSIGN(const IdRule rule, IdRule::Create(context.op(), salt));
      rules_.push_back(rule);
    }
    slot_widths_.resize(layout_.slots);
    slot_columns_.resize(layout_.slots);
    dense_widths_.resize(dense_.size());
    dense_columns_.resize(dense_.size());
    for (const SlotsLayout::Parameter& parameter : layout_.parameters) {
      MR_ASSIGN(RowSource source, RowSource::Bind(context, parameter.first_slot));
      std::vector<int64_t> own_salts;
      for (const size_t slot : parameter.slots) {
        MR_TRY(rules_[slot].CheckKeysOf(source));
        slot_widths_[slot] = source.dim();
        own_salts.push_back(salts[slot]);
      }
      sources_.push_back(std::move(source));
      keys_.emplace_back(std::move(own_salts));
    }
    return Status::Ok();
  }

  Status CheckRows(size_t sequences) const {
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i]->has_lod() && ids_[i]->lod().back() != ids_[i]->numel()) {
        return BadData("slot \"" + ids_names_[i] + "\" " + ids_[i]->dims().ToString() + " has sequences of " +
                       std::to_string(ids_[i]->lod().back()) + " ids together");
      }
      if (Sequences(*ids_[i]) != sequences) {
        return BadData("slots \"" + ids_names_[0] + "\" and \"" + ids_names_[i] + "\" differ in rows: " +
                       std::to_string(sequences) + " and " + std::to_string(Sequences(*ids_[i])));
      }
    }
    return Status::Ok();
  }

  Status FindRows(const RunContext& context, size_t p) {
    SlotRows::Parameter& found = rows_->parameters[p];
    const std::vector<size_t>& slots = layout_.parameters[p].slots;
    size_t total = 0;
    found.slot_begin.resize(slots.size());
    for (size_t s = 0; s < slots.size(); ++s) {
      found.slot_begin[s] = total;
      total += static_cast<size_t>(ids_[slots[s]]->numel());
    }
    found.index.resize(total);
    found.has_rowless_ids = false;
    keys_[p].Start(total, &unique_, &found.keys);
    for (size_t s = 0; s < slots.size(); ++s) {
      uint32_t* index = found.index.data() + found.slot_begin[s];
      const Tensor& ids = *ids_[slots[s]];
      const int64_t bad = keys_[p].Add(
          rules_[slots[s]], IdsOf(ids), sources_[p].vocabulary(), [&](size_t i, uint32_t key) { index[i] = key; },
          [&](size_t i) {
            index[i] = RowSource::kNoRow;
            found.has_rowless_ids = true;
          });
      if (bad >= 0) return IdOutOfRange(context, ids_names_[slots[s]], ids, bad, sources_[p]);
    }
    keys_[p].End();
    MR_TRY(sources_[p].Find(found.keys, &found.pulled));
    if (found.has_rowless_ids) {
      std::replace(found.index.begin(), found.index.end(), RowSource::kNoRow, static_cast<uint32_t>(found.keys.size()));
    }
    return Status::Ok();
  }

  void Pool(size_t p, float* out, size_t width) {
    const SlotRows::Parameter& found = rows_->parameters[p];
    const float* const* rows = sources_[p].Readable(found.pulled);
    const std::vector<size_t>& slots = layout_.parameters[p].slots;
    for (size_t s = 0; s < slots.size(); ++s) {
      const Tensor& ids = *ids_[slots[s]];
      const std::span<const uint32_t> offsets = offsets_.Of(ids);
      sources_[p].kernels().pool_rows(rows, found.index.data() + found.slot_begin[s], offsets.data(),
                                      offsets.size() - 1, slot_widths_[slots[s]], layout_.pooling,
                                      out + slot_columns_[slots[s]], width);
    }
  }

  SlotsLayout layout_;
  std::vector<const Tensor*> ids_;
  std::vector<std::string> ids_names_;
  std::vector<const Tensor*> dense_;
  Tensor* out_ = nullptr;
  SlotRows* rows_ = nullptr;
  SlotRows own_rows_;
  std::vector<IdRule> rules_;
  std::vector<RowSource> sources_;
  std::vector<size_t> slot_widths_, slot_columns_, dense_widths_, dense_columns_;
  SlotOffsets offsets_;
  std::vector<SlotKeys> keys_;  ///< by parameter
  UniqueKeys unique_;
};

Status InferFusedSlotsPool(InferShapeContext& context) {
  MR_ASSIGN(const SlotsLayout layout, SlotsLayout::Create(context.op()));
  MR_ASSIGN(const std::vector<VarMeta> parameters, context.Inputs("W"));
  int64_t width = 0;
  for (const VarMeta& parameter : parameters) {
    if (parameter.dims.rank() == 0) return context.Error("a parameter of W has no axes");
    width += parameter.dims[-1];
  }
  if (!layout.dense_at.empty()) {
    MR_ASSIGN(const std::vector<VarMeta> dense, context.Inputs("Dense"));
    if (dense.size() != layout.dense_at.size()) return context.Error("Dense and dense_at must be as many");
    for (const VarMeta& meta : dense) width += meta.dims.Product(1, meta.dims.rank());
  }
  VarMeta out;
  out.dims = {-1, width};
  context.SetOutput("Out", out);
  VarMeta rows;
  rows.kind = VarType::RAW;
  context.SetOutput("Rows", rows);
  return Status::Ok();
}

/// One gradient for each distinct parameter.
std::vector<OpDesc> FusedSlotsPoolGradient(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("W")) return {};
  OpDesc grad = context.GradOp({"Ids", "W"}, {"Rows"}, {"Out"}, {"W"});
  std::set<std::string> seen;
  std::vector<std::string> distinct;
  const std::vector<std::string> gradients = OutputArguments(grad, "W@GRAD");
  const std::vector<std::string> parameters = InputArguments(grad, "W");
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (seen.insert(parameters[i]).second) distinct.push_back(gradients[i]);
  }
  SetOutput(grad, "W@GRAD", distinct);
  std::vector<OpDesc> ops;
  ops.push_back(std::move(grad));
  return ops;
}

}  // namespace

void RegisterFusedSlotsPool(OpRegistry& registry) {
  registry.Add("fused_slots_pool")
      .Doc("Looks up and pools every slot, side by side with dense inputs: [batch, sum of widths].")
      .Inputs("Ids", "ids of each slot, with LoD, or one id a row")
      .Inputs("W", "the parameter of each slot: a matrix or a table; the same may stand several times")
      .OptionalInputs("Dense", "[batch, n] tensors that stand between the slots")
      .Output("Out", "[batch, sum of widths]")
      .OptionalOutput("Rows", "the distinct keys and their rows, for the gradient")
      .Attr("pooltype", std::string("SUM"), "SUM, AVERAGE or SQRT; an empty sequence gives zeros")
      .Attr("padding_idx", int64_t{-1}, "the id that counts as zeros; -1: none")
      .Attr("update_padding", true,
            "for the gradient: the row of padding_idx in a matrix is updated, as Paddle does it")
      .Attr("out_of_range", std::string("ERROR"), "ids outside a matrix: ERROR, ZERO or MODULO")
      .Attr("slot_salts", std::vector<int64_t>{}, "one a slot: other than 0, the slot has rows of its own in a table")
      .Attr("dense_at", std::vector<int64_t>{}, "how many slots stand before each dense input")
      .InferShape(InferFusedSlotsPool)
      .Grad(FusedSlotsPoolGradient)
      .Fused()
      .Kernel<FusedSlotsPoolKernel>();
}

}  // namespace millrace
