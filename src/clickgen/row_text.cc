#include "clickgen/row_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace millrace {
namespace {

void AppendNumber(uint64_t number, std::string* out) {
  char digits[24];
  out->append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

}  // namespace

RowText::RowText(ClickLogOptions::Format format) : format_(format) {
  for (int count = 0; count < 10000; ++count) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.4f", std::log1p(count));
    features_.emplace_back(text);
  }
}

void RowText::Append(const ClickRow& row, std::string* out) const {
  if (format_ == ClickLogOptions::Format::kMultiSlot) {
    AppendMultiSlot(row, out);
  } else {
    AppendRaw(row, out);
  }
}

void RowText::AppendMultiSlot(const ClickRow& row, std::string* out) const {
  out->append(row.clicked ? "1 1" : "1 0");
  if (!row.dense.empty()) {
    out->push_back(' ');
    AppendNumber(row.dense.size(), out);
  }
  for (int count : row.dense) {
    out->push_back(' ');
    out->append(features_[static_cast<size_t>(count < 0 ? 0 : count)]);
  }
  uint32_t begin = 0;
  for (uint32_t end : row.ends) {
    if (begin == end) out->append(" 1 0");  // a slot may not be empty; 0 is no id
    if (begin < end) {
      out->push_back(' ');
      AppendNumber(end - begin, out);
    }
    for (; begin < end; ++begin) {
      out->push_back(' ');
      AppendNumber(row.ids[begin], out);
    }
  }
  out->push_back('\n');
}

void RowText::AppendRaw(const ClickRow& row, std::string* out) const {
  out->push_back(row.clicked ? '1' : '0');
  for (int count : row.dense) {
    out->push_back('\t');
    if (count >= 0) AppendNumber(static_cast<uint64_t>(count), out);
  }
  uint32_t begin = 0;
  for (uint32_t end : row.ends) {
    out->push_back('\t');
    for (uint32_t i = begin; i < end; ++i) {
      if (i > begin) out->push_back(',');
      AppendNumber(row.ids[i], out);
    }
    begin = end;
  }
  out->push_back('\n');
}

std::string SlotsAsPrototxt(const ClickLogOptions& options) {
  std::string text =
      "multi_slot_desc {\n  slots { name: \"label\" type: \"uint64\" is_used: true is_dense: true shape: -1 shape: 1 "
      "}\n";
  if (options.dense > 0) {
    text += "  slots { name: \"dense\" type: \"float\" is_used: true is_dense: true shape: -1 shape: " +
            std::to_string(options.dense) + " }\n";
  }
  const std::string last = options.slots > 1 ? "..C" + std::to_string(options.slots) : "";
  return text + "  slots { name: \"C1" + last + "\" type: \"uint64\" is_used: true }\n}\n";
}

}  // namespace millrace
