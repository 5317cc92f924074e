#include <string_view>

#include "clickgen/click_log.h"
#include "core/numbers.h"

namespace millrace {
namespace {

// Writes one JSON object; numbers have the shortest form that reads back unchanged.
class JsonObject {
 public:
  explicit JsonObject(std::string indent) : indent_(std::move(indent)) {}

  template <class Number>
  void Add(std::string_view name, Number number) {
    AddRaw(name, ExactNumber(number));
  }
  void AddText(std::string_view name, std::string_view text) { AddRaw(name, Quoted(text)); }
  void AddRaw(std::string_view name, const std::string& value) {
    text_ += (text_.empty() ? "" : ",") + std::string("\n") + indent_ + "  \"" + std::string(name) + "\": " + value;
  }
  std::string Finish() const { return "{" + text_ + "\n" + indent_ + "}"; }

  static std::string Quoted(std::string_view text) {
    std::string quoted = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      if (static_cast<unsigned char>(c) < ' ') {
        constexpr char kHex[] = "0123456789abcdef";
        quoted += std::string("\\u00") + kHex[c >> 4] + kHex[c & 15];
      } else {
        quoted += c;
      }
    }
    return quoted + "\"";
  }

 private:
  std::string indent_;
  std::string text_;
};

std::string SplitJson(const ClickLogSplit& split) {
  JsonObject json("  ");
  json.Add("rows", split.rows);
  json.Add("bytes", split.bytes);
  json.Add("clicks", split.clicks);
  json.Add("attainable_auc", split.attainable_auc);
  json.Add("attainable_logloss", split.attainable_log_loss);
  std::string files = "[";
  for (const std::string& file : split.files) files += (files.size() > 1 ? ", " : "") + JsonObject::Quoted(file);
  json.AddRaw("files", files + "]");
  return json.Finish();
}

std::string SlotsJson(const ClickLogOptions& options) {
  std::string slots = "[";
  for (const SlotPlan& slot : PlanSlots(options)) {
    JsonObject json("    ");
    json.AddText("name", slot.name);
    json.Add("vocabulary", slot.vocabulary);
    json.Add("max_length", slot.max_length);
    json.AddRaw("in_fm", slot.in_fm ? "true" : "false");
    slots += (slots.size() > 1 ? ", " : "") + json.Finish();
  }
  return slots + "]";
}

}  // namespace

std::string MetaJson(const ClickLogOptions& options, const std::vector<ClickLogSplit>& splits) {
  JsonObject json("");
  json.Add("seed", options.seed);
  json.AddText("format", options.format == ClickLogOptions::Format::kRaw ? "raw" : "multislot");
  json.AddText("ids", options.ids == ClickLogOptions::Ids::kHash64 ? "hash64" : "local");
  json.AddRaw("gzip", options.gzip ? "true" : "false");
  json.Add("parts", options.parts);
  json.Add("dense", options.dense);
  json.Add("vocabulary", options.vocabulary);
  json.Add("zipf", options.zipf);
  json.Add("missing", options.missing);
  json.Add("click_rate", options.click_rate);
  json.Add("signal", options.signal);
  json.Add("fm_dim", options.fm_dim);
  for (const ClickLogSplit& split : splits) json.AddRaw(split.name, SplitJson(split));
  json.AddRaw("slots", SlotsJson(options));
  return json.Finish() + "\n";
}

}  // namespace millrace
