#include "job/input_fingerprint.h"

#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/numbers.h"

namespace millrace {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The setting of what makes slots of columns.
constexpr char kColumns[] = "data_desc.feature";

const char* YesNo(bool value) { return value ? "true" : "false"; }

std::string OneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  return line;
}

// One line, whatever a command looks like.
std::string Quoted(const std::string& text) { return "\"" + OneLine(text) + "\""; }

// " name value" of every attribute, defaults too.
std::string AttrsOf(const OpDesc& op, const OpInfo& info) {
  std::string text;
  for (const AttrInfo& attr : info.attrs) text += " " + attr.name + " " + ShowAttr(OpView(op, info).Value(attr.name));
  return text;
}

std::string Described(const SlotSpec& slot) {
  std::string text = slot.type == SlotType::kFloat ? "float" : "uint64";
  text += slot.is_dense ? " dense [" : " sparse";
  for (size_t i = 0; i < slot.shape.size() && slot.is_dense; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(slot.shape[i]);
  }
  return text + (slot.is_dense ? "]" : "") + (slot.is_used ? "" : " not used");
}

uint32_t CrcOf(const std::string& bytes) { return Crc32c(0, bytes.data(), bytes.size()); }

/// Of what makes slots of lines.
uint32_t FeaturesCrc(const DataFeedDesc& feed) {
  DataFeedDesc features;
  *features.mutable_feature() = feed.feature();
  if (feed.has_csv()) *features.mutable_csv() = feed.csv();
  if (feed.has_libsvm()) *features.mutable_libsvm() = feed.libsvm();
  return CrcOf(features.SerializeAsString());
}

std::map<std::string, std::string> Read(const std::string& fingerprint) {
  std::map<std::string, std::string> settings;
  std::istringstream lines(fingerprint);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) settings[line.substr(0, colon)] = line.substr(colon + 2);
  }
  // Earlier versions recorded the rule as it was written, not what it came to.
  const auto zeros = settings.find("data_desc.zeros");
  if (zeros != settings.end() && zeros->second == "AS_CLASS") {
    zeros->second = settings["dataset.class_name"] == "InMemoryDataset" ? "DROP" : "KEEP";
  }
  return settings;
}

}  // namespace

std::string InputFingerprint(const TrainerDesc& desc, const SlotSchema& schema) {
  const DataFeedDesc& feed = desc.data_desc();
  Settings settings = {
      {"dataset.class_name", desc.dataset().class_name()},
      {"dataset.local_shuffle", YesNo(desc.dataset().local_shuffle())},
      {"data_desc.pipe_command", Quoted(feed.pipe_command())},
      {"data_desc.parse_ins_id", YesNo(feed.parse_ins_id())},
      {"data_desc.parse_content", YesNo(feed.parse_content())},
      {"data_desc.empty_slot", DataFeedDesc::EmptySlot_Name(feed.empty_slot())},
      {"data_desc.zeros", DataFeedDesc::Zeros_Name(feed.zeros())},
      {"data_desc.trailing_values", DataFeedDesc::TrailingValues_Name(feed.trailing_values())},
      {"data_desc.non_finite", DataFeedDesc::NonFinite_Name(feed.non_finite())},
      {"data_desc.multi_slot_desc", std::to_string(schema.all().size()) + " slots"},
  };
  // Said when they are set, so that checkpoints from before they were there still fit.
  const DatasetDesc& dataset = desc.dataset();
  if (dataset.merge_by_lineid()) {
    settings.emplace_back("dataset.merge_by_lineid with merge_size", std::to_string(dataset.merge_size()));
  }
  if (dataset.global_shuffle()) {
    settings.emplace_back("dataset.global_shuffle",
                          dataset.shuffle_by_uid() ? "by " + feed.multi_slot_desc().uid_slot() : YesNo(true));
  }
  if (dataset.enable_pv_merge()) settings.emplace_back("dataset.enable_pv_merge", YesNo(true));
  std::string phases;
  for (const int phase : dataset.phases()) {
    phases += (phases.empty() ? "" : " ") + DatasetDesc::Phase_Name(static_cast<DatasetDesc::Phase>(phase));
  }
  if (!phases.empty()) settings.emplace_back("dataset.phases", phases);
  if (dataset.sample_rate() != 1) settings.emplace_back("dataset.sample_rate", FixedNumber(dataset.sample_rate(), 6));
  for (int i = 0; i < desc.eval().set_size(); ++i) {
    const EvalDesc::Set& set = desc.eval().set(i);
    const std::string path = "eval.set[" + std::to_string(i) + "]";
    if (set.has_share()) settings.emplace_back(path + ".share", FixedNumber(set.share(), 6));
    if (!set.has_since()) continue;
    const EvalDesc::Since& since = set.since();
    settings.emplace_back(path + ".since", Quoted(since.at()) + " in column " + Quoted(since.column()) + " as " +
                                               DatePartStep::Format_Name(since.format()) + " with " +
                                               std::to_string(since.utc_offset_minutes()) + " minutes");
  }
  if (feed.input_type() != 0) settings.emplace_back("data_desc.input_type", std::to_string(feed.input_type()));
  if (feed.feature_size() > 0) {
    settings.emplace_back(kColumns, "of checksum " + std::to_string(FeaturesCrc(feed)));
    settings.emplace_back("what features know of the training files",
                          "of checksum " + std::to_string(CrcOf(feed.feature_states().SerializeAsString())));
  }
  size_t place = 0;
  for (const SlotSpec& slot : schema.all()) {
    settings.emplace_back("slot " + std::to_string(++place), Quoted(slot.name) + " " + Described(slot));
  }
  std::string text;
  for (const auto& [name, value] : settings) text += name + ": " + value + "\n";
  return text;
}

std::string ReaderFingerprint(const ProgramDesc& startup, const OpRegistry& registry) {
  std::string text;
  for (const OpDesc& op : startup.blocks(0).ops()) {
    const OpInfo* info = registry.Find(op.type());
    const bool makes_one = op.type() == "open_files" || op.type().starts_with("create_");
    const std::vector<std::string> outputs = OutputArguments(op, "Out");
    if (!makes_one || info == nullptr || outputs.empty()) continue;
    std::string made = op.type();
    for (const std::string& from : InputArguments(op, "UnderlyingReader")) made += "(" + from + ")";
    text += "reader " + outputs[0] + ": " + Quoted(made + AttrsOf(op, *info)) + "\n";
  }
  return text;
}

std::string StartupFingerprint(const ProgramDesc& startup, const std::set<std::string>& settings,
                               const OpRegistry& registry) {
  // Parameters that a folder starts need no startup program.
  if (startup.blocks().empty()) return "";
  std::set<std::string> tensors;
  for (const VarDesc& var : startup.blocks(0).vars()) {
    if (var.type().type() == VarType::LOD_TENSOR && !settings.contains(var.name())) tensors.insert(var.name());
  }
  std::string text;
  for (const OpDesc& op : startup.blocks(0).ops()) {
    const OpInfo* info = registry.Find(op.type());
    const std::vector<std::string> outputs = OutputArguments(op, "Out");
    if (info == nullptr || outputs.empty() || !tensors.contains(outputs[0])) continue;
    text += "program.startup of variable " + outputs[0] + ": " + Quoted(op.type() + AttrsOf(op, *info)) + "\n";
  }
  return text;
}

uint32_t OperatorsCrc(const ProgramDesc& program, const OpRegistry& registry) {
  uint32_t crc = 0;
  const auto add = [&crc](const std::string& text) { crc = Crc32c(crc, text.data(), text.size() + 1); };
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      add(op.type());
      for (const auto* vars : {&op.inputs(), &op.outputs()}) {
        for (const OpDesc::Var& var : *vars) {
          add(var.parameter());
          for (const std::string& name : var.arguments()) add(name);
        }
      }
      if (const OpInfo* info = registry.Find(op.type())) add(OperatorFingerprint(OpView(op, *info)));
    }
  }
  return crc;
}

std::string OperatorFingerprint(const OpView& op) {
  std::string text;
  for (const AttrInfo& attr : op.info().attrs) {
    const AttrValue value = op.Value(attr.name);
    const auto* as_text = std::get_if<std::string>(&value);
    text += attr.name + ": " + (as_text != nullptr ? Quoted(*as_text) : OneLine(ShowAttr(value))) + "\n";
  }
  return text;
}

Status CompareFingerprints(const std::string& before, const std::string& now, const std::string& columns_told) {
  constexpr int kShown = 8;
  const std::map<std::string, std::string> old_settings = Read(before);
  std::string problems;
  int differing = 0;
  for (const auto& [name, value] : Read(now)) {
    const auto old = old_settings.find(name);
    const std::string was = old == old_settings.end() ? "not recorded" : old->second;
    if (was == value || ++differing > kShown) continue;
    problems += problems.empty() ? "" : "\n";
    if (name == kColumns && old != old_settings.end()) {
      problems += columns_told.empty() ? "data_desc.csv or a feature of data_desc is not what it was" : columns_told;
    } else {
      problems += name + " was " + was + " and is now " + value;
    }
  }
  if (differing > kShown) problems += "\nand " + std::to_string(differing - kShown) + " settings more";
  return differing == 0 ? Status::Ok() : InvalidConfig(problems);
}

}  // namespace millrace
