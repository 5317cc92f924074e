#include <algorithm>

#include "kernels/racy.h"
#include "ops/embedding/row_source.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

/// Ids and the parameter that both lookups and their gradients read.
struct LookupInputs {
  const Tensor* ids = nullptr;
  std::string ids_name;
  RowSource source;
  IdRule rule;

  static Result<LookupInputs> Bind(const KernelContext& context) {
    LookupInputs inputs;
    MR_ASSIGN(inputs.ids, context.Input("Ids"));
    inputs.ids_name = context.InputName("Ids");
    MR_ASSIGN(inputs.source, RowSource::Bind(context, 0));
    MR_ASSIGN(inputs.rule, IdRule::Create(context.op(), context.op().Int("slot_salt")));
    MR_TRY(inputs.rule.CheckKeysOf(inputs.source));
    return inputs;
  }
};

/// lookup_table drops the last axis of Ids, which is 1; lookup_table_v2 keeps all.
Dims OutDims(const Dims& ids, int64_t dim, bool v2) {
  Dims out;
  const int axes = v2 ? ids.rank() : std::max(ids.rank() - 1, 0);
  for (int axis = 0; axis < axes; ++axis) out.push_back(ids[axis]);
  out.push_back(dim);
  return out;
}

class LookupTableKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<LookupTableKernel>();
    MR_ASSIGN(kernel->in_, LookupInputs::Bind(context));
    MR_ASSIGN(kernel->out_, context.Output("Out"));
    kernel->v2_ = context.op().type() == "lookup_table_v2";
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }

  Status Run(const RunContext& context) override {
    const std::span<const uint64_t> ids = IdsOf(*in_.ids);
    const size_t dim = in_.source.dim();
    keys_.clear();
    at_.clear();
    float* out = out_->Resize<float>(OutDims(in_.ids->dims(), static_cast<int64_t>(dim), v2_));
    out_->set_lod(in_.ids->lod());
    const int64_t bad = in_.rule.Apply(
        ids, in_.source.vocabulary(),
        [this](size_t i, uint64_t key) {
          keys_.push_back(key);
          at_.push_back(i);
        },
        [out, dim](size_t i) { std::fill_n(out + i * dim, dim, 0.0F); });
    if (bad >= 0) return IdOutOfRange(context, in_.ids_name, *in_.ids, bad, in_.source);
    MR_TRY(in_.source.Find(keys_, &pulled_));
    const float* const* rows = in_.source.Readable(pulled_);
    for (size_t k = 0; k < keys_.size(); ++k) in_.source.kernels().copy_row(rows[k], out + at_[k] * dim, dim);
    return Status::Ok();
  }

 private:
  LookupInputs in_;
  Tensor* out_ = nullptr;
  bool v2_ = false;
  std::vector<uint64_t> keys_;
  std::vector<size_t> at_;
  RowBatch pulled_;
};

/// A row for each id that has one, in the order of the ids; or, with is_sparse false, the whole matrix.
class LookupTableGradKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<LookupTableGradKernel>();
    MR_ASSIGN(kernel->in_, LookupInputs::Bind(context));
    MR_ASSIGN(kernel->out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(const std::vector<Variable*> grads, context.OutputVariables("W@GRAD"));
    if (grads.empty() || grads[0] == nullptr) return InvalidConfig(context.op().type() + ": W@GRAD is not bound");
    if (context.op().Bool("is_sparse") || kernel->in_.source.is_table()) {
      kernel->sparse_ = grads[0]->GetMutable<SelectedRows>();
    } else {
      kernel->dense_ = grads[0]->GetMutable<Tensor>();
    }
    kernel->update_padding_ = !kernel->in_.source.is_table() && context.op().Bool("update_padding");
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }

  Status Run(const RunContext& context) override {
    const auto dim = static_cast<int64_t>(in_.source.dim());
    const int64_t count = in_.ids->numel();
    MR_ASSIGN(const float* from, out_grad_.Read(count * dim));
    const int64_t height = in_.source.vocabulary();
    float* dense = nullptr;
    float* sparse = nullptr;
    if (dense_ != nullptr) {
      dense = dense_->Resize<float>({height, dim});
      std::fill_n(dense, height * dim, 0.0F);
    } else {
      sparse = sparse_->values.Resize<float>({count, dim});
      sparse_->StartRows(in_.source.table());
      sparse_->height = height;
    }
    const int64_t bad = in_.rule.Apply(
        IdsOf(*in_.ids), height,
        [&](size_t i, uint64_t key) {
          const float* row = from + static_cast<int64_t>(i) * dim;
          if (dense != nullptr) {
            float* sum = dense + static_cast<int64_t>(key) * dim;
            for (int64_t d = 0; d < dim; ++d) sum[d] += row[d];
          } else {
            sparse = std::copy_n(row, dim, sparse);
            sparse_->rows.push_back(key);
          }
        },
        [&](size_t i) {
          const uint64_t id = IdsOf(*in_.ids)[i];
          if (sparse == nullptr || !update_padding_ || !in_.rule.IsPadding(id)) return;
          sparse = std::copy_n(from + static_cast<int64_t>(i) * dim, dim, sparse);
          sparse_->rows.push_back(id);
        });
    if (bad >= 0) return IdOutOfRange(context, in_.ids_name, *in_.ids, bad, in_.source);
    if (sparse_ != nullptr) sparse_->values.Resize<float>({static_cast<int64_t>(sparse_->rows.size()), dim});
    return Status::Ok();
  }

 private:
  LookupInputs in_;
  GradInput out_grad_;
  SelectedRows* sparse_ = nullptr;
  Tensor* dense_ = nullptr;
  bool update_padding_ = false;
};

Status InferLookup(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta ids, context.Input("Ids"));
  MR_ASSIGN(const VarMeta w, context.Input("W"));
  const std::string name = InputArguments(context.op().desc(), "Ids")[0];
  if (ids.dtype != DType::kInt64) {
    return context.Error("input Ids (\"" + name + "\") must be int64, but is " + std::string(DTypeName(ids.dtype)));
  }
  if (w.dims.rank() != 2) return context.Error("input W must be [rows, dim]: " + w.dims.ToString());
  const bool v2 = context.op().type() == "lookup_table_v2";
  if (!v2 && (ids.dims.rank() < 1 || ids.dims[-1] != 1)) {
    return context.Error("the last axis of Ids must be 1: " + Shown(name, ids.dims));
  }
  MR_TRY(IdRule::Create(context.op(), 0).status());
  VarMeta out;
  out.dims = OutDims(ids.dims, w.dims[1], v2);
  out.lod_level = ids.lod_level;
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferLookupGrad(InferShapeContext& context) {
  MR_ASSIGN(VarMeta grad, context.Input("W"));
  if (context.op().Bool("is_sparse") || grad.kind == VarType::SPARSE_TABLE) grad.kind = VarType::SELECTED_ROWS;
  context.SetOutput("W@GRAD", grad);
  return Status::Ok();
}

}  // namespace

void RegisterLookupTable(OpRegistry& registry) {
  const std::string server = "of Paddle's parameter server; changes nothing here";
  for (const std::string type : {"lookup_table", "lookup_table_v2"}) {
    registry.Add(type)
        .Apart()
        .Doc(type == "lookup_table" ? "Rows of W by id; Ids [..., 1] give Out [..., dim]."
                                    : "Rows of W by id; Ids [...] give Out [..., dim].")
        .Input("Ids", "int64, taken as 64 bits; LoD is kept")
        .Input("W", "[rows, dim], or a table")
        .Output("Out", "the rows")
        .Attr("is_sparse", false, "the gradient of a matrix is a SelectedRows")
        .Attr("padding_idx", int64_t{-1}, "the id that is looked up as zeros; -1: none")
        .Attr("update_padding", true,
              "the row of padding_idx in a matrix gets its sparse gradient, though nobody sees the row: as Paddle does "
              "it")
        .Attr("out_of_range", std::string("ERROR"), "ids outside a matrix: ERROR, ZERO or MODULO")
        .Attr("slot_salt", int64_t{0}, "other than 0, the slot has rows of its own in a table")
        .Attr("is_distributed", false, server)
        .Attr("remote_prefetch", false, server)
        .Attr("is_test", false, server)
        .Attr("grad_inplace", false, server)
        .Attr("entry", std::string("none"), server)
        .Attr("entry_config", std::string(), server)
        .Attr("table_class", std::string("none"), server)
        .Attr("slot", int64_t{0}, server)
        .Attr("trainer_id", int64_t{0}, server)
        .Attr("table_names", std::vector<std::string>{}, server)
        .Attr("epmap", std::vector<std::string>{}, server)
        .Attr("height_sections", std::vector<int64_t>{}, server)
        .InferShape(InferLookup)
        .Grad({.inputs = {"Ids", "W"}, .to = {"W"}})
        .Kernel<LookupTableKernel>();
    registry.AddGradient(type).InferShape(InferLookupGrad).Kernel<LookupTableGradKernel>();
  }
}

}  // namespace millrace
