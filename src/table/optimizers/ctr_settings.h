#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "model.pb.h"

namespace millrace {

/// Settings of both Adam rules of tables with counts (table/ctr_rule.h).
struct CtrAdamSettings {
  float lr;
  float beta1;
  float beta2;
  float epsilon;

  explicit CtrAdamSettings(const SparseAdamSGDParameter& desc)
      : lr(static_cast<float>(desc.learning_rate())),
        beta1(static_cast<float>(desc.beta1_decay_rate())),
        beta2(static_cast<float>(desc.beta2_decay_rate())),
        epsilon(static_cast<float>(desc.ada_epsilon())) {}
  /// The text of CtrRule::Describe for the rule of this name.
  std::string Describe(std::string_view rule) const {
    std::ostringstream text;
    text << rule << " beta1=" << beta1 << " beta2=" << beta2 << " epsilon=" << epsilon;
    return text.str();
  }
};

/// Settings of both Adagrad rules.
struct CtrAdagradSettings {
  float lr;
  float initial;

  explicit CtrAdagradSettings(const SparseAdagradSGDRuleParameter& desc)
      : lr(static_cast<float>(desc.learning_rate())), initial(static_cast<float>(desc.initial_g2sum())) {}
  std::string Describe(std::string_view rule) const {
    std::ostringstream text;
    text << rule << " initial_g2sum=" << initial;
    return text.str();
  }
};

}  // namespace millrace
