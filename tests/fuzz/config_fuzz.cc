// Configuration text. Whatever the bytes are: no crash, every message has a place inside the text, and protobuf's own
// TextFormat (which stops at the first error) agrees on what is text format and what it means. What we print reads back
// as the same message.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "config/diagnostics.h"
#include "config/field_positions.h"
#include "config/print_config.h"
#include "config/text_parser.h"
#include "config/validate.h"
#include "core/utf8.h"
#include "fuzz/demand.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

class Silent : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string& message) override { first_ += message; }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

bool IsPlainText(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length == 0 || text[i] == '\0') return false;
    i += length;
  }
  return !text.starts_with("\xEF\xBB\xBF");
}

/// Names that we read and TextFormat does not.
bool HasOldNames(std::string_view text) {
  return text.find("batch") != std::string_view::npos || text.find("use") != std::string_view::npos ||
         text.find("dense") != std::string_view::npos;
}

void CheckPlaces(const Diagnostics& diagnostics) {
  for (const auto& entry : diagnostics.entries()) {
    if (entry.where.source < 0 || entry.where.line == 0) continue;
    std::string_view text = diagnostics.text(entry.where.source);
    for (int line = 1; line < entry.where.line; ++line) {
      const size_t end = text.find('\n');
      if (end == std::string_view::npos) Demand(false, "a line beyond the text", diagnostics.Render());
      text.remove_prefix(end + 1);
    }
    const auto column = static_cast<size_t>(entry.where.column);
    const size_t length = text.substr(0, text.find('\n')).size();
    if (column < 1 || column > length + 1) Demand(false, "a column beyond the line", diagnostics.Render());
  }
}

void Run(std::string text) {
  const std::string input = text;
  Diagnostics diagnostics;
  FieldPositions positions;
  TrainerDesc ours;
  const int source = diagnostics.AddSource("fuzz", std::move(text));
  ParseText(source, "", &ours, &diagnostics, &positions);
  const bool accepted = diagnostics.errors() == 0;
  ValidateTrainerDesc(ours, {}, true, nullptr, positions, &diagnostics);
  CheckPlaces(diagnostics);
  const std::string report = diagnostics.Render();
  Demand(IsPlainText(report), "a report that is not plain text", report);
  if (!IsPlainText(input)) return;

  TrainerDesc theirs;
  Silent errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  const bool expected = parser.ParseFromString(input, &theirs);
  if (expected != accepted && !(accepted && HasOldNames(input))) {
    Demand(false, expected ? "TextFormat accepts, we do not" : "we accept, TextFormat does not",
           input + "\n--- ours\n" + report + "\n--- theirs\n" + errors.first());
  }
  if (!accepted || !expected) return;
  if (ours.SerializeAsString() != theirs.SerializeAsString()) {
    Demand(false, "read differently", ours.DebugString() + "--- theirs\n" + theirs.DebugString());
  }

  ExpandSlotRanges(&ours);
  Diagnostics again;
  TrainerDesc back;
  ParseText(again.AddSource("printed", PrintConfig(ours)), "", &back, &again, &positions);
  Demand(again.errors() == 0, "printed, it does not read", again.Render());
  if (back.SerializeAsString() != ours.SerializeAsString()) {
    Demand(false, "printed, it reads differently", PrintConfig(ours) + "---\n" + back.DebugString());
  }
}

}  // namespace
}  // namespace millrace

namespace {

/// A slot range may stand for 65536 slots, which is right and slow: ranges up to 99 will do here.
bool HasLongRange(std::string_view text) {
  for (size_t at = text.find(".."); at != std::string_view::npos; at = text.find("..", at + 1)) {
    const std::string_view digits = text.substr(at + 2, text.find_first_of("\"'", at) - at - 2);
    if (digits.size() > 4) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLargest = 1 << 14;
  std::string text(reinterpret_cast<const char*>(data), size);
  if (size <= kLargest && !HasLongRange(text)) millrace::Run(std::move(text));
  return 0;
}
