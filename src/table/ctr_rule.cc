#include "table/ctr_rule.h"

#include <array>
#include <limits>

#include "model.pb.h"

namespace millrace {
namespace {

using CtrRuleDesc = SparseCommonSGDRuleParameter;
using CtrBounds = CtrRule::Bounds;

template <class Settings>
CtrBounds BoundsOf(const Settings& settings) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (settings.weight_bounds_size() != 2) return {-kInfinity, kInfinity};
  return {settings.weight_bounds(0), settings.weight_bounds(1)};
}

struct CtrRuleKind {
  std::string_view name;
  std::unique_ptr<CtrRule> (*make)(size_t dim, const CtrRuleDesc& desc);
};

const std::array kCtrRules = {
    CtrRuleKind{"SparseNaiveSGDRule",
                [](size_t dim, const CtrRuleDesc& d) { return MakeNaiveCtrRule(dim, d.naive(), BoundsOf(d.naive())); }},
    CtrRuleKind{
        "SparseAdaGradSGDRule",
        [](size_t dim, const CtrRuleDesc& d) { return MakeAdagradCtrRule(dim, d.adagrad(), BoundsOf(d.adagrad())); }},
    CtrRuleKind{"StdAdaGradSGDRule",
                [](size_t dim, const CtrRuleDesc& d) {
                  return MakeStdAdagradCtrRule(dim, d.adagrad(), BoundsOf(d.adagrad()));
                }},
    CtrRuleKind{"SparseAdamSGDRule",
                [](size_t dim, const CtrRuleDesc& d) { return MakeAdamCtrRule(dim, d.adam(), BoundsOf(d.adam())); }},
    CtrRuleKind{
        "SparseSharedAdamSGDRule",
        [](size_t dim, const CtrRuleDesc& d) { return MakeSharedAdamCtrRule(dim, d.adam(), BoundsOf(d.adam())); }},
};

}  // namespace

Result<std::unique_ptr<CtrRule>> MakeCtrRule(const SparseCommonSGDRuleParameter& desc, size_t dim) {
  for (const CtrRuleKind& rule : kCtrRules) {
    if (rule.name == desc.name()) return rule.make(dim, desc);
  }
  return InvalidConfig("no rule \"" + desc.name() + "\"");
}

}  // namespace millrace
