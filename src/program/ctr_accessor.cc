#include "program/ctr_accessor.h"

#include <array>
#include <string_view>

#include "core/edit_distance.h"
#include "core/numbers.h"
#include "model.pb.h"

namespace millrace {
namespace {

constexpr std::string_view kHiding = "SparseAccessor";

/// A rule, and the field that has its settings. table/ctr_rule.cc makes them.
struct CtrRuleName {
  std::string_view name;
  std::string_view settings;
};

constexpr std::array kRuleNames = {
    CtrRuleName{"SparseNaiveSGDRule", "naive"}, CtrRuleName{"SparseAdaGradSGDRule", "adagrad"},
    CtrRuleName{"StdAdaGradSGDRule", "adagrad"}, CtrRuleName{"SparseAdamSGDRule", "adam"},
    CtrRuleName{"SparseSharedAdamSGDRule", "adam"}};

class AccessorCheck {
 public:
  std::vector<AccessorProblem> Run(const TableAccessorParameter& accessor) {
    const std::string& name = accessor.accessor_class();
    if (name != "CtrCommonAccessor" && name != "DownpourCtrAccessor" && name != kHiding) {
      Add("accessor_class", "no accessor \"" + name +
                                "\"; there are CtrCommonAccessor, in older words DownpourCtrAccessor, and "
                                "SparseAccessor, which hides the counts");
    }
    if (accessor.has_fea_dim() && accessor.fea_dim() != accessor.embedx_dim() + 3) {
      Add("fea_dim", "fea_dim is embedx_dim + 3, for show, click and embed before embedx: " +
                         std::to_string(accessor.embedx_dim() + 3) + ", not " + std::to_string(accessor.fea_dim()));
    }
    if (accessor.table_accessor_save_param_size() > 0) {
      Add("table_accessor_save_param",
          "not supported: tables are saved in binary files, without a converter; leave it out");
    }
    const CtrAccessorParameter& ctr = accessor.ctr_accessor_param();
    if (ctr.has_ssd_unseenday_threshold()) {
      Add("ctr_accessor_param.ssd_unseenday_threshold", "not supported yet: rows lie in memory alone; leave it out");
    }
    const char* slots = "not supported: rows do not know their slot; give slots that differ a table of their own";
    if (ctr.load_filter_slots_size() > 0) Add("ctr_accessor_param.load_filter_slots", slots);
    if (ctr.save_filter_slots_size() > 0) Add("ctr_accessor_param.save_filter_slots", slots);
    Rule("embed_sgd_param", accessor.embed_sgd_param());
    Rule("embedx_sgd_param", accessor.embedx_sgd_param());
    return std::move(problems_);
  }

 private:
  void Add(std::string path, std::string what) { problems_.push_back({std::move(path), std::move(what)}); }

  void Rule(const std::string& path, const SparseCommonSGDRuleParameter& rule) {
    const CtrRuleName* known = nullptr;
    std::string all;
    std::vector<std::string_view> names;
    for (const CtrRuleName& each : kRuleNames) {
      if (each.name == rule.name()) known = &each;
      all += (all.empty() ? "" : ", ") + std::string(each.name);
      names.push_back(each.name);
    }
    if (known == nullptr) {
      const std::string nearest = DidYouMean(rule.name(), names);
      return Add(path + ".name",
                 "no rule \"" + rule.name() + "\"" + (nearest.empty() ? "; there are " + all : nearest));
    }
    const auto settings = [&](const std::string& field, bool is_set, const auto& bounds) {
      if (is_set && known->settings != field) {
        Add(path + "." + field, "a " + rule.name() + " does not look at " + field + ", but at " +
                                    std::string(known->settings) + "; leave it out, or name another rule");
      }
      if (bounds.empty() || (bounds.size() == 2 && bounds[0] <= bounds[1])) return;
      std::string text;
      for (const float bound : bounds) text += (text.empty() ? "" : ", ") + ShortestNumber(bound);
      Add(path + "." + field + ".weight_bounds",
          "weight_bounds are two numbers, the least and the largest weight, not [" + text + "]");
    };
    settings("naive", rule.has_naive(), rule.naive().weight_bounds());
    settings("adagrad", rule.has_adagrad(), rule.adagrad().weight_bounds());
    settings("adam", rule.has_adam(), rule.adam().weight_bounds());
  }

  std::vector<AccessorProblem> problems_;
};

}  // namespace

bool HidesCounts(const TableAccessorParameter& accessor) { return accessor.accessor_class() == kHiding; }

std::vector<AccessorProblem> FindAccessorProblems(const TableAccessorParameter& accessor) {
  return AccessorCheck().Run(accessor);
}

}  // namespace millrace
