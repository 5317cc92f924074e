#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

/// Appends a JSON string: quoted and escaped, with U+FFFD for each byte that is not UTF-8.
void AppendQuoted(std::string_view text, std::string* out);

/// Writes one JSON value into a string: objects, lists, strings, numbers. Inserts commas and quotes.
///
///     JsonWriter json;
///     json.BeginObject().Key("rows").Number(3).Key("auc").Number(nan).EndObject();      // {"rows":3,"auc":null}
///
/// Numbers have the shortest form that reads back unchanged; non-finite ones become null. Bytes that are not UTF-8
/// become U+FFFD. With `indent`, each member of the outer object is on its own line.
class JsonWriter {
 public:
  explicit JsonWriter(bool indent = false) : indent_(indent) {}

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginList();
  JsonWriter& EndList();
  JsonWriter& Key(std::string_view name);
  JsonWriter& Text(std::string_view text);
  JsonWriter& Number(double number);
  JsonWriter& Number(float number);
  template <std::integral T>
  JsonWriter& Number(T number) {
    return Raw(std::to_string(number));
  }
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }

  const std::string& text() const { return text_; }

 private:
  JsonWriter& Raw(std::string_view value);
  void BeforeValue();
  void NewLine();

  bool indent_;
  int depth_ = 0;
  bool needs_comma_ = false;
  std::string text_;
};

}  // namespace millrace
