#include <algorithm>

#include "ops/embedding/row_source.h"
#include "ops/embedding/slot_rows.h"
#include "ops/embedding/slots_layout.h"
#include "ops/grad_input.h"

namespace millrace {
namespace {

/// Adds the gradient of each pooled vector to its rows: for each parameter one SelectedRows of distinct rows.
class FusedSlotsPoolGradKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<FusedSlotsPoolGradKernel>();
    MR_TRY(kernel->Bind(context));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }

  Status Run(const RunContext&) override {
    const size_t width = layout_.Columns(slot_widths_, dense_widths_, &slot_columns_, &dense_columns_);
    const size_t rows = offsets_.Of(*ids_[0]).size() - 1;
    MR_ASSIGN(const float* out_grad, out_grad_.Read(static_cast<int64_t>(rows * width)));
    MR_TRY(CheckRows(rows));
    for (size_t p = 0; p < grads_.size(); ++p) {
      if (grads_[p] != nullptr) Merge(p, out_grad, width);
    }
    return Status::Ok();
  }

 private:
  Status Bind(const KernelContext& context) {
    MR_ASSIGN(layout_, SlotsLayout::Create(context.op()));
    MR_ASSIGN(ids_, context.Inputs("Ids"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(const std::vector<Variable*> rows, context.InputVariables("Rows"));
    if (rows.empty() || rows[0] == nullptr) return InvalidConfig("fused_slots_pool_grad: input Rows is not bound");
    rows_ = rows[0]->GetMutable<SlotRows>();
    // Other ids without a row (out_of_range ZERO) would be added to it.
    update_padding_ = context.op().Bool("update_padding") && context.op().Int("padding_idx") >= 0 &&
                      context.op().String("out_of_range") != "ZERO";
    padding_ = static_cast<uint64_t>(context.op().Int("padding_idx"));
    for (const int64_t dense_width : context.op().Ints("dense_widths")) {
      dense_widths_.push_back(static_cast<size_t>(dense_width));
    }
    MR_ASSIGN(const std::vector<Variable*> grads, context.OutputVariables("W@GRAD"));
    if (dense_widths_.size() != layout_.dense_at.size() || grads.size() != layout_.parameters.size()) {
      return InvalidConfig(
          "fused_slots_pool_grad: there must be a dense_width for each dense input and a W@GRAD for each distinct W");
    }
    for (Variable* grad : grads) grads_.push_back(grad == nullptr ? nullptr : grad->GetMutable<SelectedRows>());
    slot_widths_.resize(layout_.slots);
    slot_columns_.resize(layout_.slots);
    dense_columns_.resize(dense_widths_.size());
    for (const SlotsLayout::Parameter& parameter : layout_.parameters) {
      MR_ASSIGN(RowSource source, RowSource::Bind(context, parameter.first_slot));
      for (const size_t slot : parameter.slots) slot_widths_[slot] = source.dim();
      sources_.push_back(std::move(source));
    }
    return Status::Ok();
  }

  /// A program may bind other ids than those that the forward operator looked up.
  Status CheckRows(size_t rows) {
    bool fits = rows_->parameters.size() == layout_.parameters.size();
    for (size_t p = 0; fits && p < layout_.parameters.size(); ++p) {
      const SlotRows::Parameter& found = rows_->parameters[p];
      const std::vector<size_t>& slots = layout_.parameters[p].slots;
      fits = found.slot_begin.size() == slots.size();
      for (size_t s = 0; fits && s < slots.size(); ++s) {
        const Tensor& ids = *ids_[slots[s]];
        fits = offsets_.Of(ids).size() - 1 == rows && offsets_.Of(ids).back() <= static_cast<size_t>(ids.numel()) &&
               found.slot_begin[s] + static_cast<size_t>(ids.numel()) <= found.index.size();
      }
    }
    return fits ? Status::Ok() : InvalidConfig("Ids are not those of the fused_slots_pool that wrote Rows");
  }

  void Merge(size_t p, const float* out_grad, size_t width) {
    const SlotRows::Parameter& found = rows_->parameters[p];
    const std::vector<size_t>& slots = layout_.parameters[p].slots;
    const auto dim = static_cast<int64_t>(sources_[p].dim());
    const auto keys = static_cast<int64_t>(found.keys.size());
    SelectedRows& grad = *grads_[p];
    // Ids without a row add up in one row more, which is then cut off, unless it is the padding row's to have.
    const int64_t sums = keys + (found.has_rowless_ids ? 1 : 0);
    float* values = grad.values.Resize<float>({sums, dim});
    std::fill_n(values, sums * dim, 0.0F);
    for (size_t s = 0; s < slots.size(); ++s) {
      const std::span<const uint32_t> offsets = offsets_.Of(*ids_[slots[s]]);
      racy::Best().spread_rows(out_grad + slot_columns_[slots[s]], width, found.index.data() + found.slot_begin[s],
                               offsets.data(), offsets.size() - 1, static_cast<size_t>(dim), layout_.pooling, values);
    }
    const bool keep_padding = update_padding_ && found.has_rowless_ids && !sources_[p].is_table();
    grad.values.Resize<float>({keep_padding ? sums : keys, dim});
    grad.StartRows(nullptr);
    grad.rows.assign(found.keys.begin(), found.keys.end());
    if (keep_padding) grad.rows.push_back(padding_);
    if (sources_[p].is_table()) grad.table_rows.Take(found.pulled);
    grad.height = sources_[p].vocabulary();
    grad.merged = true;
  }

  SlotsLayout layout_;
  std::vector<const Tensor*> ids_;
  GradInput out_grad_;
  const SlotRows* rows_ = nullptr;
  std::vector<SelectedRows*> grads_;
  std::vector<RowSource> sources_;
  std::vector<size_t> slot_widths_, slot_columns_, dense_widths_, dense_columns_;
  SlotOffsets offsets_;
  bool update_padding_ = false;
  uint64_t padding_ = 0;
};

Status InferFusedSlotsPoolGrad(InferShapeContext& context) {
  MR_ASSIGN(const SlotsLayout layout, SlotsLayout::Create(context.op()));
  MR_ASSIGN(const std::vector<VarMeta> parameters, context.Inputs("W"));
  for (size_t p = 0; p < layout.parameters.size(); ++p) {
    VarMeta grad = parameters[layout.parameters[p].first_slot];
    grad.kind = VarType::SELECTED_ROWS;
    context.SetOutput("W@GRAD", grad, static_cast<int>(p));
  }
  return Status::Ok();
}

}  // namespace

void RegisterFusedSlotsPoolGrad(OpRegistry& registry) {
  registry.Add("fused_slots_pool_grad")
      .Doc("Gradient of fused_slots_pool: a merged SelectedRows for each distinct parameter.")
      .Inputs("Ids", "of the forward operator")
      .Inputs("W", "of the forward operator")
      .Input("Rows", "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Outputs("W@GRAD", "one for each distinct W, in the order of their first slot; each row occurs once")
      .Attr("pooltype", std::string("SUM"), "of the forward operator")
      .Attr("padding_idx", int64_t{-1}, "of the forward operator")
      .Attr("update_padding", true, "of the forward operator")
      .Attr("out_of_range", std::string("ERROR"), "of the forward operator")
      .Attr("dense_at", std::vector<int64_t>{}, "of the forward operator")
      .Attr("dense_widths", std::vector<int64_t>{}, "columns of each dense input")
      .InferShape(InferFusedSlotsPoolGrad)
      .Gradient()
      .Fused()
      .Kernel<FusedSlotsPoolGradKernel>();
}

}  // namespace millrace
