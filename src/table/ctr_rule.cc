#include "table/ctr_rule.h"

#include <array>
#include <limits>

#include "core/edit_distance.h"
#include "model.pb.h"

namespace millrace {
namespace {

/// Which settings a rule has.
enum class Settings { kNaive, kAdagrad, kAdam };

struct Rule {
  std::string_view name;
  Settings settings;
  std::unique_ptr<CtrRule> (*make)(size_t dim, const SparseCommonSGDRuleParameter& desc, CtrRule::Bounds bounds);
};

using Desc = SparseCommonSGDRuleParameter;
using Bounds = CtrRule::Bounds;

const std::array kRules = {
    Rule{"SparseNaiveSGDRule", Settings::kNaive,
         [](size_t dim, const Desc& desc, Bounds b) { return MakeNaiveCtrRule(dim, desc.naive(), b); }},
    Rule{"SparseAdaGradSGDRule", Settings::kAdagrad,
         [](size_t dim, const Desc& desc, Bounds b) { return MakeAdagradCtrRule(dim, desc.adagrad(), b); }},
    Rule{"StdAdaGradSGDRule", Settings::kAdagrad,
         [](size_t dim, const Desc& desc, Bounds b) { return MakeStdAdagradCtrRule(dim, desc.adagrad(), b); }},
    Rule{"SparseAdamSGDRule", Settings::kAdam,
         [](size_t dim, const Desc& desc, Bounds b) { return MakeAdamCtrRule(dim, desc.adam(), b); }},
    Rule{"SparseSharedAdamSGDRule", Settings::kAdam,
         [](size_t dim, const Desc& desc, Bounds b) { return MakeSharedAdamCtrRule(dim, desc.adam(), b); }},
};

const Rule* FindRule(std::string_view name) {
  for (const Rule& rule : kRules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

Status UnknownRule(const std::string& name) {
  std::string all;
  std::vector<std::string_view> names;
  for (const Rule& rule : kRules) {
    all += (all.empty() ? "" : ", ") + std::string(rule.name);
    names.push_back(rule.name);
  }
  return InvalidConfig("name: no rule \"" + name + "\"" + DidYouMean(name, names) + "; there are " + all);
}

Status CheckSettings(const Rule& rule, const Desc& desc) {
  const auto check = [&rule](const char* field, bool is_set, Settings settings) {
    if (!is_set || rule.settings == settings) return Status::Ok();
    return InvalidConfig(std::string(field) + ": not of a " + std::string(rule.name) +
                         ", which would not look at it; leave it out, or give the rule another name");
  };
  MR_TRY(check("naive", desc.has_naive(), Settings::kNaive));
  MR_TRY(check("adagrad", desc.has_adagrad(), Settings::kAdagrad));
  return check("adam", desc.has_adam(), Settings::kAdam);
}

Result<Bounds> BoundsOf(Settings settings, const Desc& desc) {
  const auto& bounds = settings == Settings::kNaive     ? desc.naive().weight_bounds()
                       : settings == Settings::kAdagrad ? desc.adagrad().weight_bounds()
                                                        : desc.adam().weight_bounds();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (bounds.empty()) return Bounds{-kInfinity, kInfinity};
  if (bounds.size() == 2 && bounds[0] <= bounds[1]) return Bounds{bounds[0], bounds[1]};
  std::string text;
  for (const float bound : bounds) text += (text.empty() ? "" : ", ") + std::to_string(bound);
  return InvalidConfig("weight_bounds: two numbers, the least and the largest weight, not [" + text + "]");
}

}  // namespace

Result<std::unique_ptr<CtrRule>> MakeCtrRule(const SparseCommonSGDRuleParameter& desc, size_t dim) {
  const Rule* rule = FindRule(desc.name());
  if (rule == nullptr) return UnknownRule(desc.name());
  MR_TRY(CheckSettings(*rule, desc));
  MR_ASSIGN(const Bounds bounds, BoundsOf(rule->settings, desc));
  return rule->make(dim, desc, bounds);
}

}  // namespace millrace
