#include "table/row_optimizer.h"

#include "model.pb.h"

namespace millrace {

Result<std::unique_ptr<RowOptimizer>> MakeRowOptimizer(const OptimizerDesc& desc, int dim) {
  switch (desc.rule_case()) {
    case OptimizerDesc::kSgd: return MakeSgdRows(dim);
    case OptimizerDesc::kAdagrad:
      return MakeAdagradRows(dim, desc.adagrad().epsilon(), desc.adagrad().initial_accumulator());
    case OptimizerDesc::kAdam:
      if (!desc.adam().lazy_mode()) {
        return InvalidConfig(
            "adam { lazy_mode: false } would change every row at each step, which a table that grows cannot do; give "
            "the table a vocabulary or leave lazy_mode true");
      }
      return MakeAdamRows(dim, desc.adam().beta1(), desc.adam().beta2(), desc.adam().epsilon());
    case OptimizerDesc::kFtrl:
      return MakeFtrlRows(dim, desc.ftrl().beta(), desc.ftrl().l1(), desc.ftrl().l2(), desc.ftrl().lr_power());
    case OptimizerDesc::kMomentum:
    case OptimizerDesc::kRmsprop:
    case OptimizerDesc::kDecayedAdagrad:
    case OptimizerDesc::kLarsMomentum:
    case OptimizerDesc::kAdadelta:
    case OptimizerDesc::kAdamax:
    case OptimizerDesc::kLamb:
      return InvalidConfig(desc.GetDescriptor()->FindFieldByNumber(desc.rule_case())->name() +
                           " moves every row at each step, which a table that grows cannot do; give the table a rule "
                           "of its own, or a vocabulary");
    case OptimizerDesc::RULE_NOT_SET: break;
  }
  return InvalidConfig("no optimizer: neither the table nor the model names a rule");
}

}  // namespace millrace
