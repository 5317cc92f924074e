#include "core/json_writer.h"

#include <cmath>

#include "core/numbers.h"
#include "core/utf8.h"

namespace millrace {
namespace {

template <class Float>
std::string Digits(Float number) {
  return std::isfinite(number) ? ExactNumber(number) : "null";
}

}  // namespace

void AppendQuoted(std::string_view text, std::string* out) {
  *out += '"';
  while (!text.empty()) {
    const char c = text[0];
    const size_t length = Utf8Length(text, 0);
    if (length == 0) {
      *out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      *out += {'\\', c};
    } else if (c == '\n') {
      *out += "\\n";
    } else if (c == '\t') {
      *out += "\\t";
    } else if (text.starts_with("\xEF\xBB\xBF")) {
      *out += "\\ufeff";
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7F || (c == '\xC2' && text[1] < '\xA0')) {
      // U+0000 to U+001F, and U+007F to U+009F, which terminals also obey; the second byte of the latter is their
      // number.
      constexpr char kHex[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(text[length - 1]);
      *out += "\\u00";
      *out += {kHex[byte >> 4], kHex[byte & 15]};
    } else {
      *out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  *out += '"';
}

JsonWriter& JsonWriter::BeginObject() {
  BeforeValue();
  text_ += '{';
  ++depth_;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  --depth_;
  if (needs_comma_) NewLine();
  text_ += '}';
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::BeginList() {
  BeforeValue();
  text_ += '[';
  ++depth_;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndList() {
  --depth_;
  text_ += ']';
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  if (needs_comma_) text_ += ',';
  NewLine();
  AppendQuoted(name, &text_);
  text_ += indent_ ? ": " : ":";
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Text(std::string_view text) {
  BeforeValue();
  AppendQuoted(text, &text_);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Number(double number) { return Raw(Digits(number)); }
JsonWriter& JsonWriter::Number(float number) { return Raw(Digits(number)); }

JsonWriter& JsonWriter::Raw(std::string_view value) {
  BeforeValue();
  text_ += value;
  needs_comma_ = true;
  return *this;
}

void JsonWriter::BeforeValue() {
  if (needs_comma_) text_ += ',';
}

void JsonWriter::NewLine() {
  if (indent_) text_ += "\n" + std::string(static_cast<size_t>(depth_) * 2, ' ');
}

}  // namespace millrace
