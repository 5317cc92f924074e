#include <algorithm>
#include <map>
#include <set>

#include "config/checker.h"
#include "data_feed.pb.h"
#include "features/feature_spec.h"

namespace millrace {
namespace {

/// A slot that nobody wrote: what stands in multi_slot_desc must be what features make, as in a job that was printed.
void CheckNoOtherSlots(const DataFeedDesc& feed, const std::vector<FeatureSpec>& features, Checker& check) {
  if (feed.multi_slot_desc().slots_size() == 0) return;
  const MultiSlotDesc made = SlotsOfFeatures(features);
  const auto& slots = feed.multi_slot_desc().slots();
  const auto is_same = [](const Slot& a, const Slot& b) { return a.SerializeAsString() == b.SerializeAsString(); };
  if (std::equal(slots.begin(), slots.end(), made.slots().begin(), made.slots().end(), is_same)) return;
  check.Error("data_desc.multi_slot_desc.slots[0]",
              "features make the slots, in their order: leave multi_slot_desc out, or write a feature for each slot");
}

}  // namespace

std::vector<DefinedSlot> CheckFeatures(const DataFeedDesc& feed, Checker& check) {
  std::vector<FeatureMistake> mistakes;
  const std::vector<FeatureSpec> features = ReadFeatures(feed, &mistakes);
  for (const FeatureMistake& mistake : mistakes) check.Error("data_desc." + mistake.path, mistake.message);
  if (feed.name().empty()) {
    check.Error("data_desc.feature[0]",
                "features are made of the columns of a format; which one have the files? name: \"csv\"");
  }
  if (!feed.name().empty() && feed.name() != "csv") {
    const std::string only_csv = " applies to CSV only, and these files are \"" + feed.name() + "\"";
    if (feed.csv().has_delimiter()) check.Error("data_desc.csv.delimiter", "delimiter" + only_csv);
    if (feed.csv().names_size() > 0) check.Error("data_desc.csv.names[0]", "names" + only_csv);
  }
  if (feed.has_libsvm() && !feed.name().empty() && feed.name() != "libsvm") {
    check.Error("data_desc.libsvm",
                "libsvm says how lines of libsvm are read, and these files are \"" + feed.name() + "\"");
  }
  if (feed.has_rows()) {
    check.Error("data_desc.rows", "Millrace writes rows where eval.set.since parts them; say that in their place");
  }
  if (feed.has_feature_states() && mistakes.empty()) {
    std::set<std::string> names;
    for (const FeatureSpec& feature : features) names.insert(feature.name);
    for (int i = 0; i < feed.feature_states().feature_size(); ++i) {
      const std::string& name = feed.feature_states().feature(i).name();
      if (names.contains(name)) continue;
      check.Error("data_desc.feature_states.feature[" + std::to_string(i) + "].name",
                  "there is no feature \"" + name + "\"");
    }
  }
  CheckNoOtherSlots(feed, features, check);
  std::vector<DefinedSlot> defined;
  std::vector<std::vector<std::string>> columns;  // by feature, those of the features that it takes among them
  for (size_t i = 0; i < features.size(); ++i) {
    const FeatureSpec& feature = features[i];
    columns.push_back(feature.columns);
    for (const int other : feature.of) {
      const std::vector<std::string>& more = columns[static_cast<size_t>(other)];
      columns[i].insert(columns[i].end(), more.begin(), more.end());
    }
    if (!feature.desc->is_used()) continue;
    DefinedSlot one;
    one.name = feature.name;
    one.is_float = !feature.makes_ids;
    one.is_dense = feature.is_dense;
    if (feature.is_dense) one.shape = {-1, std::max(1, feature.width())};
    const VocabularyStep& vocabulary = feature.desc->vocabulary();
    const bool is_learnt = feature.desc->has_vocabulary() && vocabulary.words().empty() && vocabulary.file().empty();
    one.is_hashed = feature.desc->has_hash() && !feature.desc->hash().has_buckets();
    one.has_ids_of_data = is_learnt || feature.desc->has_hash();
    if (!vocabulary.words().empty()) one.ids = vocabulary.oov_buckets() + vocabulary.words_size();
    one.path = "data_desc." + feature.path;
    one.columns = columns[i];
    defined.push_back(std::move(one));
  }
  return defined;
}

}  // namespace millrace
