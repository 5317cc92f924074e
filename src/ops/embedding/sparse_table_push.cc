#include <google/protobuf/text_format.h>

#include "model.pb.h"
#include "ops/row_merger.h"
#include "runtime/op_kernel.h"
#include "table/table_factory.h"

namespace millrace {
namespace {

Result<SparseTable*> BoundTable(const KernelContext& context) {
  MR_ASSIGN(const std::vector<Variable*> variables, context.InputVariables("Table"));
  if (variables.empty() || variables[0] == nullptr || !variables[0]->Is<std::unique_ptr<SparseTable>>()) {
    return InvalidConfig("sparse_table_push: input Table: \"" + context.InputName("Table") + "\" is not a table");
  }
  return variables[0]->Get<std::unique_ptr<SparseTable>>().get();
}

class SparseTablePushKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<SparseTablePushKernel>();
    MR_ASSIGN(kernel->table_, BoundTable(context));
    MR_ASSIGN(const std::vector<Variable*> grads, context.InputVariables("Grad"));
    if (grads.empty() || grads[0] == nullptr) return InvalidConfig("sparse_table_push: input Grad is not bound");
    kernel->grad_ = grads[0]->GetMutable<SelectedRows>();
    kernel->grad_name_ = context.InputName("Grad");
    MR_ASSIGN(kernel->learning_rate_, context.OptionalInput("LearningRate"));
    MR_TRY(kernel->CheckRate());
    const FrameOptions& options = context.options();
    kernel->locks_ = options.update_mode == UpdateMode::kRowLock ? options.row_locks : nullptr;
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }

  Status Run(const RunContext& context) override {
    if (learning_rate_ != nullptr && learning_rate_->numel() != 1) {
      return BadData("LearningRate " + learning_rate_->dims().ToString() + " must be one value");
    }
    const int64_t dim = table_->shape().dim;
    if (!grad_->rows.empty() && grad_->values.numel() != static_cast<int64_t>(grad_->rows.size()) * dim) {
      return BadData("a sparse gradient " + grad_->values.dims().ToString() + " does not fit a table of " +
                     std::to_string(dim) + " values a row");
    }
    const SelectedRows& grad = merger_.Merge(*grad_);
    PushContext push{.locks = locks_, .examples = context.rows};
    if (learning_rate_ != nullptr) push.lr = learning_rate_->data<float>()[0];
    if (table_->shape().counts && context.rows < 1) return UnknownExamples();
    const std::span<const float> values(grad.values.data<float>(), static_cast<size_t>(grad.values.numel()));
    if (Status gave = table_->CheckOwns(grad.table_rows); !gave.ok())
      return std::move(gave).Context("Grad \"" + grad_name_ + "\"");
    if (grad.has_table_rows()) return table_->Push(grad.table_rows, values, push);
    MR_TRY(table_->Pull(grad.rows, PullMode::kInsert, &pulled_));
    return table_->Push(pulled_, values, push);
  }

 private:
  Status CheckRate() const {
    if (table_->shape().counts == (learning_rate_ == nullptr)) return Status::Ok();
    return InvalidConfig("sparse_table_push: table \"" + table_->shape().name +
                         (learning_rate_ == nullptr
                              ? "\": LearningRate is not bound"
                              : "\" has an accessor, whose rules have rates of their own: bind no "
                                "LearningRate"));
  }

  Status UnknownExamples() const {
    return InvalidConfig("table \"" + table_->shape().name +
                         "\" has an accessor, and this program reads its data itself, so that nobody says how many "
                         "examples a batch has: train it from a dataset");
  }

  SparseTable* table_ = nullptr;
  const SelectedRows* grad_ = nullptr;
  std::string grad_name_;
  const Tensor* learning_rate_ = nullptr;
  RowLocks* locks_ = nullptr;
  RowMerger merger_;
  RowBatch pulled_;
};

class CreateSparseTableKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<CreateSparseTableKernel>();
    MR_ASSIGN(const std::vector<Variable*> outputs, context.OutputVariables("Out"));
    if (outputs.empty() || outputs[0] == nullptr) return InvalidConfig("create_sparse_table: Out is not bound");
    kernel->out_ = outputs[0];
    kernel->seed_ = context.options().seed;
    kernel->tables_ = context.options().tables == nullptr ? TableFactory::Builtin() : *context.options().tables;
    TableDesc desc;
    if (!google::protobuf::TextFormat::ParseFromString(context.op().String("table"), &desc)) {
      return InvalidConfig("create_sparse_table: \"" + context.OutputName("Out") +
                           "\": attribute table is no TableDesc: " + context.op().String("table"));
    }
    kernel->desc_ = std::move(desc);
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }

  Status Run(const RunContext&) override {
    MR_ASSIGN(std::unique_ptr<SparseTable> table, tables_.Create(desc_, seed_));
    out_->Set(std::move(table));
    return Status::Ok();
  }

 private:
  Variable* out_ = nullptr;
  uint64_t seed_ = 0;
  TableFactory tables_;
  TableDesc desc_;
};

Status InferPush(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta table, context.Input("Table"));
  if (table.kind != VarType::SPARSE_TABLE) return context.Error("input Table must be a SPARSE_TABLE");
  context.SetOutput("TableOut", table);
  return Status::Ok();
}

Status InferCreate(InferShapeContext& context) {
  TableDesc desc;
  if (!google::protobuf::TextFormat::ParseFromString(context.op().String("table"), &desc)) {
    return context.Error("attribute table is no TableDesc: " + context.op().String("table"));
  }
  VarMeta meta;
  meta.kind = VarType::SPARSE_TABLE;
  meta.dims = {-1, desc.dim()};
  context.SetOutput("Out", meta);
  return Status::Ok();
}

}  // namespace

void RegisterSparseTablePush(OpRegistry& registry) {
  registry.Add("sparse_table_push")
      .Doc("Applies a table's own optimizer once to every row of a sparse gradient; equal rows are merged first.")
      .Input("Table", "kind SPARSE_TABLE")
      .Input("Grad", "SelectedRows by key")
      .OptionalInput("LearningRate", "[1]; alpha of ftrl; not of a table with an accessor, which takes none")
      .Output("TableOut", "the same variable as Table")
      .InferShape(InferPush)
      .Optimizer()
      .Kernel<SparseTablePushKernel>();
  registry.Add("create_sparse_table")
      .Doc("Makes an empty growing table; of startup programs.")
      .Output("Out", "kind SPARSE_TABLE")
      .Attr("table", std::string(), "TableDesc in text format")
      .InferShape(InferCreate)
      .Kernel<CreateSparseTableKernel>();
}

}  // namespace millrace
