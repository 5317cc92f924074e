#include "table/row_optimizer.h"

#include "model.pb.h"
#include "program/optimizer_rule.h"

namespace millrace {

namespace {

Result<std::unique_ptr<RowOptimizer>> MakeRule(const OptimizerDesc& desc, int dim) {
  switch (desc.rule_case()) {
    case OptimizerDesc::kSgd: return MakeSgdRows(dim);
    case OptimizerDesc::kAdagrad: return MakeAdagradRows(dim, desc.adagrad());
    case OptimizerDesc::kAdam: return MakeAdamRows(dim, desc.adam());
    case OptimizerDesc::kFtrl: return MakeFtrlRows(dim, desc.ftrl());
    case OptimizerDesc::RULE_NOT_SET:
      return InvalidConfig("no optimizer: neither the table nor the model names a rule");
    default: return InvalidConfig(WhyNotForGrowingTable(desc));
  }
}

}  // namespace

Result<std::unique_ptr<RowOptimizer>> MakeRowOptimizer(const OptimizerDesc& desc, int dim) {
  MR_ASSIGN(std::unique_ptr<RowOptimizer> rule, MakeRule(desc, dim));
  const Regularization& penalty = desc.regularization();
  if (penalty.l1() <= 0 && penalty.l2() <= 0) return rule;
  return MakePenalizedRows(std::move(rule), dim, penalty);
}

}  // namespace millrace
