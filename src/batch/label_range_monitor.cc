#include "batch/label_range_monitor.h"

#include <glog/logging.h>

#include <algorithm>

#include "core/numbers.h"

namespace millrace {
namespace {

/// `label "y" of part-3:17 is 2`; for unknown lines, with the batch.
std::string InWords(const LabelsOutOfRange& found, std::string_view name) {
  std::string text = "label \"" + std::string(name) + "\" of " + found.place;
  if (found.place.starts_with("row ")) text += ", batch " + std::to_string(found.step + 1) + ",";
  return text + " is " + ShortestNumber(found.value);
}

/// The slot from which the variable is derived.
std::string_view SlotOf(std::string_view variable, const std::vector<std::string>& slots) {
  const auto is_of = [variable](const std::string& slot) {
    return variable == slot ||
           (variable.size() > slot.size() && variable.starts_with(slot) && variable[slot.size()] == '.');
  };
  const auto found = std::find_if(slots.begin(), slots.end(), is_of);
  return found != slots.end() ? *found : slots.front();
}

}  // namespace

Status LabelRangeMonitor::OfLoss(const LabelsOutOfRange& found) {
  if (!refused_.empty()) {
    const std::string text = InWords(found, SlotOf(found.variable, refused_));
    return BadData(text +
                   ", and the loss takes 0, 1 and shares between them; mend the line, or drop such lines in "
                   "pipe_command (a value to be met rather than a click: kind: SQUARED_ERROR" +
                   (found.value == -1
                        ? "; clicks of -1 and 1 are words: vocabulary { words: [\"-1\", \"1\"] oov_buckets: 0 })"
                        : ")"));
  }
  const std::string text = InWords(found, found.variable);
  if (losses_.Add(found.count, text)) {
    LOG(WARNING) << text << ": outside 0 to 1, where the log loss has no lower bound and moves predictions "
                 << "without end; trained on as Paddle does, and counted";
  }
  return Status::Ok();
}

void LabelRangeMonitor::OfMeasure(std::string_view measure, std::string_view meaning, const LabelsOutOfRange& found) {
  const std::string text = std::string(measure) + ": " + InWords(found, found.variable);
  if (measures_.Add(found.count, text)) LOG(WARNING) << text << ": " << meaning;
}

void LabelRangeMonitor::OfWeights(std::string_view loss, bool counts) {
  const std::lock_guard lock(weights_mutex_);
  bool& known = weighed_[std::string(loss)];
  known = known || counts;
}

std::map<std::string, bool> LabelRangeMonitor::Weighed() const {
  const std::lock_guard lock(weights_mutex_);
  return weighed_;
}

bool LabelRangeMonitor::Tally::Add(int64_t count, const std::string& text) {
  const std::lock_guard lock(mutex_);
  const bool is_first = sum_.count == 0;
  if (is_first) sum_.first = text;
  sum_.count += count;
  return is_first;
}

LabelRangeCount LabelRangeMonitor::Tally::Get() const {
  const std::lock_guard lock(mutex_);
  return sum_;
}

}  // namespace millrace
