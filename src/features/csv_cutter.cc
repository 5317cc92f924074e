#include "features/csv_cutter.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/numbers.h"
#include "features/value_text.h"

namespace millrace {
namespace {

/// Sixteen bytes, compiled to the available vector instructions.
using Bytes = uint8_t __attribute__((vector_size(16)));
using Words = uint64_t __attribute__((vector_size(16)));

Bytes Repeated(char c) { return Bytes{} + static_cast<uint8_t>(c); }

/// The first byte from `at` on equal to `every_byte`'s (all equal), or `end`; 15 bytes after `end` are readable.
const char* FindByte(const char* at, const char* end, Bytes every_byte) {
  for (; at < end; at += sizeof(Bytes)) {
    Bytes block;
    std::memcpy(&block, at, sizeof(block));
    const auto found = reinterpret_cast<Words>(block == every_byte);
    if (found[0] != 0) return std::min(at + std::countr_zero(found[0]) / 8, end);
    if (found[1] != 0) return std::min(at + sizeof(uint64_t) + std::countr_zero(found[1]) / 8, end);
  }
  return end;
}

}  // namespace

bool CsvCutter::MeansMissing(std::string_view text) const {
  return std::find(dialect_.missing.begin(), dialect_.missing.end(), text) != dialect_.missing.end();
}

bool CsvCutter::Cut(std::string_view line, std::span<const int> places, std::span<std::string_view> texts,
                    std::span<size_t> begins) {
  const char* const begin = line.data();
  const char* const end = begin + line.size();
  const Bytes delimiter = Repeated(dialect_.delimiter);
  unquoted_.clear();
  count_ = 0;
  const char* at = begin;
  while (true) {
    const char* first = at;
    while (first < end && *first <= ' ' && IsAround(*first)) ++first;
    std::string_view text;
    const char* stop = nullptr;
    if (first < end && *first == '"') [[unlikely]] {
      stop = TakeQuoted(first, begin, end, &text);
      if (stop == nullptr) return false;
      if (dialect_.trims_quoted) text = WithoutSpaces(text);
    } else {
      stop = FindByte(first, end, delimiter);
      text = std::string_view(first, static_cast<size_t>(stop - first));
      if (!dialect_.keeps_spaces) text = WithoutSpaces(text);
      first = text.data();
    }
    if (count_ < places.size()) {
      if (const int place = places[count_]; place >= 0) {
        if (!dialect_.missing.empty() && MeansMissing(text)) text = text.substr(0, 0);
        texts[static_cast<size_t>(place)] = text;
        begins[static_cast<size_t>(place)] = static_cast<size_t>(first - begin);
      }
    } else if (count_ == places.size()) {
      first_beyond_ = static_cast<size_t>(first - begin);
    }
    ++count_;
    if (stop == end) return true;
    at = stop + 1;
  }
}

const char* CsvCutter::TakeQuoted(const char* at, const char* line, const char* end, std::string_view* text) {
  const char* const opening = at;
  const char* closing = std::find(++at, end, '"');
  if (closing != end && closing + 1 < end && closing[1] == '"') {
    // Strings must not move while the line is processed.
    if (unquoted_.capacity() < static_cast<size_t>(end - line) + kNumberPadding) {
      unquoted_.reserve(2 * static_cast<size_t>(end - line) + kNumberPadding);
    }
  }
  const size_t copied = unquoted_.size();
  bool is_copied = false;
  while (closing != end && closing + 1 < end && closing[1] == '"') {
    unquoted_.append(at, closing + 1);
    is_copied = true;
    at = closing + 2;
    closing = std::find(at, end, '"');
  }
  if (closing == end) {
    error_ = {static_cast<size_t>(opening - line),
              "a closing quote on the line (a value with a line break in it cannot be read)", "the end of the line"};
    return nullptr;
  }
  if (is_copied) {
    unquoted_.append(at, closing);
    *text = std::string_view(unquoted_).substr(copied);
  } else {
    *text = {at, static_cast<size_t>(closing - at)};
  }
  const char* behind = closing + 1;
  while (behind < end && IsAround(*behind)) ++behind;
  if (behind == end || *behind == dialect_.delimiter) return behind;
  error_ = {static_cast<size_t>(behind - line), "a delimiter or the end of the line behind the closing quote",
            std::string(1, *behind)};
  return nullptr;
}

bool CutCsvHeader(std::string_view line, const CsvDialect& dialect, std::vector<std::string>* names,
                  CsvMistake* error) {
  std::string padded(line);
  padded.append(64, '\0');
  line = std::string_view(padded).substr(0, line.size());
  CsvDialect plain = dialect;
  plain.missing.clear();
  plain.trims_quoted = false;
  CsvCutter cut(std::move(plain));
  if (!cut.Cut(line, {}, {}, {})) {
    *error = cut.error();
    return false;
  }
  std::vector<int> places(cut.count());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i);
  std::vector<std::string_view> texts(places.size());
  std::vector<size_t> begins(places.size());
  cut.Cut(line, places, texts, begins);
  names->assign(texts.begin(), texts.end());
  return true;
}

}  // namespace millrace
