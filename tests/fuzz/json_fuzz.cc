// Lines of any bytes, read as JSON lines by features and by a plain reader of RFC 8259: what one takes, the other does.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "batch/slot_batch.h"
#include "config/feature_slots.h"
#include "core/utf8.h"
#include "data_feed.pb.h"
#include "datafeed/data_feed.h"
#include "fuzz/demand.h"

namespace millrace {
namespace {

/// Whether a text is one JSON object and nothing else; `is_odd` where implementations may differ: deep ones, numbers
/// that no double holds, halves of surrogate pairs.
class PlainJson {
 public:
  explicit PlainJson(std::string_view text) : rest_(text) {}

  bool IsObject() {
    SkipSpaces();
    if (!rest_.starts_with('{') || !Value(0)) return false;
    SkipSpaces();
    return rest_.empty();
  }
  bool is_odd() const { return is_odd_; }

 private:
  void SkipSpaces() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_.front()) != std::string_view::npos) {
      rest_.remove_prefix(1);
    }
  }
  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  bool Value(int depth) {
    constexpr int kDeep = 500;
    if (depth > kDeep) {
      is_odd_ = true;
      return false;
    }
    SkipSpaces();
    if (rest_.empty()) return false;
    switch (rest_.front()) {
      case '{': return Members(depth);
      case '[': return Elements(depth);
      case '"': return Text();
      case 't': return Take("true");
      case 'f': return Take("false");
      case 'n': return Take("null");
      default: return Number();
    }
  }
  bool Members(int depth) {
    rest_.remove_prefix(1);
    SkipSpaces();
    if (Take("}")) return true;
    do {
      SkipSpaces();
      if (!rest_.starts_with('"') || !Text()) return false;
      SkipSpaces();
      if (!Take(":") || !Value(depth + 1)) return false;
      SkipSpaces();
    } while (Take(","));
    return Take("}");
  }
  bool Elements(int depth) {
    rest_.remove_prefix(1);
    SkipSpaces();
    if (Take("]")) return true;
    do {
      if (!Value(depth + 1)) return false;
      SkipSpaces();
    } while (Take(","));
    return Take("]");
  }
  bool Text() {
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_.front() != '"') {
      if (static_cast<unsigned char>(rest_.front()) < ' ') return false;
      if (Take("\\")) {
        if (!Escape()) return false;
        continue;
      }
      const size_t length = Utf8Length(rest_, 0);
      if (length == 0) return false;
      rest_.remove_prefix(length);
    }
    return Take("\"");
  }
  bool Escape() {
    if (rest_.empty()) return false;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    if (rest_.size() < 4) return false;
    for (int i = 0; i < 4; ++i) {
      if (std::string_view("0123456789abcdefABCDEF").find(rest_[static_cast<size_t>(i)]) == std::string_view::npos) {
        return false;
      }
    }
    is_odd_ = is_odd_ || rest_.front() == 'd' || rest_.front() == 'D';
    rest_.remove_prefix(4);
    return true;
  }
  size_t Digits() {
    size_t count = 0;
    while (count < rest_.size() && rest_[count] >= '0' && rest_[count] <= '9') ++count;
    rest_.remove_prefix(count);
    return count;
  }
  bool Number() {
    Take("-");
    const bool has_zero = rest_.starts_with('0');
    const size_t whole = Digits();
    if (whole == 0 || (has_zero && whole > 1)) return false;
    bool is_integer = true;
    if (Take(".")) {
      is_integer = false;
      if (Digits() == 0) return false;
    }
    if (Take("e") || Take("E")) {
      is_integer = false;
      if (!Take("+")) Take("-");
      const size_t digits = Digits();
      if (digits == 0) return false;
      is_odd_ = is_odd_ || digits > 2;
    }
    // Integers of more than 64 bits are refused, and so is what no double holds.
    is_odd_ = is_odd_ || (is_integer ? whole > 18 : whole > 200);
    return true;
  }

  std::string_view rest_;
  bool is_odd_ = false;
};

const DataFeedDesc& Desc() {
  static const DataFeedDesc desc = [] {
    DataFeedDesc made;
    made.set_name("json");
    FeatureDesc& feature = *made.add_feature();
    feature.set_name("a");
    feature.mutable_hash();
    FillFeatureSlots(&made);
    return made;
  }();
  return desc;
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;  // NOLINT(google-build-using-namespace)
  static const SlotSchema schema = SlotSchema::Create(Desc()).value();
  static const std::unique_ptr<DataFeed> feed = DataFeedFactory::Builtin().Create("json", schema, Desc()).value();
  std::string_view lines(reinterpret_cast<const char*>(data), size);
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    std::string line(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    PlainJson plain(line);
    const bool is_object = plain.IsObject();
    const size_t length = line.size();
    line.append(64, '}');
    SlotBatch batch(schema);
    Demand(feed->Attach(&batch).ok(), "a batch", "");
    const LineResult result = feed->ParseLine(std::string_view(line).substr(0, length)).value();
    Demand(feed->Detach().ok(), "a batch that ends", "");
    if (result == LineResult::kBlank || plain.is_odd()) continue;
    const bool is_about_the_column = result == LineResult::kBad && feed->error().message.find("column \"a\"") == 0;
    if (is_about_the_column) continue;  // an object of JSON with nothing to hash there
    Demand((result == LineResult::kRow) == is_object, is_object ? feed->error().message.c_str() : "taken, and no JSON",
           line);
  }
  return 0;
}
