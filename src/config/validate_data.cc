#include <algorithm>
#include <map>

#include "batch/slot_schema.h"
#include "config/checker.h"
#include "config/feed_names.h"
#include "config/file_list.h"
#include "core/dims.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

constexpr char kSlots[] = "data_desc.multi_slot_desc.slots";

void CheckShape(const Slot& slot, const std::string& path, Checker& check) {
  const std::string shape = path + ".shape";
  if (!slot.is_dense()) {
    // Paddle writes no shape for sparse slots; one that stands there was meant for something.
    if (slot.shape_size() > 0) {
      check.Error(shape + "[0]", "a slot with a shape is dense: add is_dense: true, or leave the shape out");
    }
    return;
  }
  if (slot.shape_size() == 0) {
    return check.Missing(path, "shape", "a dense slot needs a shape, with -1 for the batch: shape: [-1, 1]");
  }
  int batch_dims = 0;
  double values = 1;
  for (int i = 0; i < slot.shape_size(); ++i) {
    const int dim = slot.shape(i);
    if (dim > 0) values *= dim;
    if (dim == -1 && ++batch_dims == 2) {
      check.Error(ElementPath(shape, i),
                  "the shape has two -1; the first stands for the batch, the others must be known");
    }
    if (dim == 0 || dim < -1) {
      check.Error(ElementPath(shape, i),
                  "the sizes of a shape are positive, and -1 stands for the batch; this is " + std::to_string(dim));
    }
  }
  if (batch_dims == 1 && slot.shape(0) != -1) {
    check.Error(shape + "[0]", "the -1 of the batch stands first: shape: [-1, ...]");
  }
  // Rows count values in 32 bits, and a line with as many would be gigabytes long.
  constexpr double kMostValues = 1 << 28;
  if (values > kMostValues) {
    check.Error(shape + "[0]", "the shape asks for " + Checker::Number(values) + " values in every line");
  }
  if (batch_dims == 0) {
    check.Error(shape + "[0]", "the shape has no -1 for the batch; write shape: [-1, ...]");
  }
}

/// The shape of a dense slot, or, where it is wrong, one of one value.
std::vector<int> SoundShape(const Slot& slot) {
  std::vector<int> shape(slot.shape().begin(), slot.shape().end());
  const bool is_sound = !shape.empty() && shape.size() < size_t{Dims::kMaxRank} && shape[0] == -1 &&
                        std::all_of(shape.begin() + 1, shape.end(), [](int size) { return size > 0; });
  return is_sound ? shape : std::vector<int>{-1, 1};
}

std::vector<DefinedSlot> CheckSlots(const MultiSlotDesc& desc, Checker& check) {
  std::vector<DefinedSlot> defined;
  std::map<std::string, std::string> paths;
  bool any_used = false;
  for (int i = 0; i < desc.slots_size(); ++i) {
    const Slot& slot = desc.slots(i);
    const std::string path = ElementPath(kSlots, i);
    any_used = any_used || slot.is_used();
    if (!slot.has_type()) {
      check.Missing(path, "type", "a slot needs a type: \"uint64\" or \"float\"");
    } else if (slot.type() != "uint64" && slot.type() != "uint32" && slot.type() != "float") {
      const bool is_integer = slot.type().find("int") != std::string::npos;
      const bool is_float = slot.type() == "double" || slot.type().find("float") != std::string::npos;
      check.Error(path + ".type", "the type of a slot is \"uint64\" or \"float\", not \"" + slot.type() + "\"" +
                                      (is_integer ? "; did you mean \"uint64\"?"
                                       : is_float ? "; did you mean \"float\"?"
                                                  : ""));
    }
    CheckShape(slot, path, check);
    if (slot.name().empty()) {
      check.Missing(path, slot.has_name() ? "" : "name", "a slot needs a name");
      continue;
    }
    const Result<std::vector<std::string>> names = ExpandSlotRange(slot.name());
    if (!names.ok()) {
      check.Error(path + ".name", names.status().message());
      continue;
    }
    for (const std::string& name : *names) {
      const auto [earlier, is_new] = paths.insert({name, path});
      if (!is_new) {
        check.Error(path + ".name", "slot \"" + name + "\" is there already, on line " +
                                        std::to_string(check.Line(earlier->second + ".name")));
        continue;
      }
      DefinedSlot one;
      one.name = name;
      one.is_float = slot.type() == "float";
      one.is_dense = slot.is_dense();
      one.is_used = slot.is_used();
      if (slot.is_dense()) one.shape = SoundShape(slot);
      one.path = path;
      defined.push_back(std::move(one));
    }
  }
  if (desc.slots_size() > 0 && !any_used) {
    check.Error(kSlots + std::string("[0]"), "no slot has is_used: true, so there is nothing to feed");
  }
  if (desc.has_uid_slot() && !desc.uid_slot().empty()) {
    std::vector<std::string> names;
    for (const DefinedSlot& slot : defined) names.push_back(slot.name);
    CheckKnown(check, "data_desc.multi_slot_desc.uid_slot", "slot", desc.uid_slot(), names);
  }
  return defined;
}

void CheckBadLines(const BadLinePolicy& policy, Checker& check) {
  const std::string path = "data_desc.bad_lines.";
  if (policy.has_quarantine_path() && policy.action() != BadLinePolicy::QUARANTINE) {
    check.Error(path + "quarantine_path", "nothing is written there unless action: QUARANTINE");
  }
  if (policy.action() == BadLinePolicy::FAIL && (policy.has_max_lines() || policy.has_max_fraction())) {
    check.Warning(path + (policy.has_max_lines() ? "max_lines" : "max_fraction"),
                  "action: FAIL stops at the first bad line; a budget is for SKIP and QUARANTINE");
  }
}

void CheckInputCommands(const DataFeedDesc& desc, Checker& check) {
  std::map<std::string, int> schemes;
  for (int i = 0; i < desc.input_commands_size(); ++i) {
    const InputCommand& command = desc.input_commands(i);
    const std::string path = ElementPath("data_desc.input_commands", i);
    if (command.command().empty())
      check.Missing(path, "command", "an input command needs a command: \"hadoop fs -cat\"");
    if (command.scheme().empty()) {
      check.Missing(path, "scheme", "an input command needs a scheme: \"hdfs\" is for files named hdfs:...");
      continue;
    }
    if (!HasScheme(command.scheme() + ":")) {
      check.Error(path + ".scheme",
                  "a scheme is letters, digits, '+', '-' and '.', without a colon; \"" + command.scheme() + "\"");
    }
    const auto [earlier, is_new] = schemes.insert({command.scheme(), i});
    if (!is_new) {
      check.Error(path + ".scheme",
                  "scheme \"" + command.scheme() + "\" has a command already, on line " +
                      std::to_string(check.Line(ElementPath("data_desc.input_commands", earlier->second))));
    }
  }
}

void CheckFeedOfDataset(std::string_view dataset, const std::string& feed, Checker& check) {
  std::string_view wanted;
  bool is_ours = false;
  for (const auto& [owner, name] : kOwnFeeds) {
    if (owner == dataset && name == feed) return;
    if (owner == dataset && wanted.empty()) wanted = name;
    is_ours = is_ours || name == feed;
  }
  is_ours = is_ours || (check.known().formats.contains(feed) && dataset == "FileInstantDataset");
  // Feeds and datasets that were registered by somebody else are theirs to match.
  if (!is_ours || wanted.empty()) return;
  check.Error("data_desc.name", feed + (dataset.starts_with('I') ? " does not feed an " : " does not feed a ") +
                                    std::string(dataset) + "; its feed is " + std::string(wanted));
}

/// Binary rows are taken as they are: what says how text is read was meant for something else.
void CheckBinaryFeed(const DataFeedDesc& feed, Checker& check) {
  const auto refuse = [&check](bool is_set, const std::string& field) {
    if (!is_set) return;
    check.Error("data_desc." + field, field + " says how text is read, and the files of a FileInstantDataset are " +
                                          "binary; give it to the job that `inspect convert` reads");
  };
  refuse(!feed.pipe_command().empty() && feed.pipe_command() != "cat", "pipe_command");
  refuse(feed.has_thread_num(), "thread_num");
  refuse(feed.has_bad_lines(), "bad_lines");
  refuse(feed.parse_ins_id(), "parse_ins_id");
  refuse(feed.parse_content(), "parse_content");
  refuse(feed.parse_logkey(), "parse_logkey");
  refuse(feed.trailing_values() == DataFeedDesc::IGNORE, "trailing_values");
  refuse(feed.non_finite() == DataFeedDesc::REJECT_NON_FINITE, "non_finite");
  refuse(feed.has_pipe_timeout_seconds(), "pipe_timeout_seconds");
  refuse(feed.has_pipe_retries(), "pipe_retries");
  refuse(feed.has_max_line_bytes(), "max_line_bytes");
  for (int i = 0; i < feed.input_commands_size(); ++i) {
    refuse(true, "input_commands[" + std::to_string(i) + "]");
  }
}

}  // namespace

std::vector<DefinedSlot> CheckDataFeed(const TrainerDesc& desc, Checker& check) {
  if (!desc.has_data_desc()) {
    check.Missing("", "data_desc", "data_desc is missing: it says how lines become slots");
    return {};
  }
  const DataFeedDesc& feed = desc.data_desc();
  const std::vector<std::string>& feeds = check.known().data_feeds;
  if (feed.name() == "random" && std::find(feeds.begin(), feeds.end(), "random") == feeds.end()) {
    check.Error("data_desc.name",
                "no dataset makes up rows: they come from files, by whose lines a run counts and resumes; `clickgen` "
                "writes files of random rows, and programs have create_random_data_generator");
  } else if (feed.name() == "multi_slot" && std::find(feeds.begin(), feeds.end(), "multi_slot") == feeds.end()) {
    check.Error("data_desc.name",
                "multi_slot is what programs call MultiSlot text; datasets read it where data_desc names no data feed");
  } else if (feed.has_name() && !feed.name().empty()) {
    CheckKnown(check, "data_desc.name", "data feed", feed.name(), check.known().data_feeds,
               check.known().plugin_advice);
    CheckFeedOfDataset(desc.dataset().class_name(), feed.name(), check);
  }
  if (desc.dataset().class_name() == "FileInstantDataset") CheckBinaryFeed(feed, check);
  if (const auto format = check.known().formats.find(feed.name()); format != check.known().formats.end()) {
    for (const RefusedField& refused : RefusedByFormat(feed, format->second)) {
      check.Error("data_desc." + refused.field, refused.why);
    }
  }
  if (feed.attrs_size() > 0 && ReadsMultiSlot(feed.name())) {
    check.Error("data_desc.attrs[0]",
                "attrs are for the data feed of a plugin (data_desc.name); MultiSlot text has none");
  }
  if (feed.feature_size() > 0 && ReadsMultiSlot(feed.name()) && !feed.name().empty()) {
    check.Error("data_desc.feature[0]",
                "MultiSlot text has no columns with names; features are for the formats that have: name: \"csv\"");
  }
  CheckBadLines(feed.bad_lines(), check);
  CheckInputCommands(feed, check);
  if (feed.feature_size() > 0) return CheckFeatures(feed, check);
  if (feed.has_csv()) {
    check.Error("data_desc.csv",
                "csv says how lines become the columns of features, and there are none: feature { name: \"...\" }");
  }
  if (feed.has_libsvm()) {
    check.Error("data_desc.libsvm",
                "libsvm says how lines become the columns of features, and there are none: feature { name: \"...\" }");
  }
  if (feed.multi_slot_desc().slots_size() == 0) {
    check.Missing("data_desc", "multi_slot_desc",
                  "data_desc names no slots: multi_slot_desc { slots { name: \"label\" type: \"uint64\" ... } ... }");
    return {};
  }
  return CheckSlots(feed.multi_slot_desc(), check);
}

}  // namespace millrace
