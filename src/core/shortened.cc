#include "core/shortened.h"

namespace millrace {
namespace {

bool IsWithinCharacter(std::string_view text, size_t at) {
  return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

}  // namespace

std::string Shortened(std::string_view line, size_t most) {
  if (line.size() <= most) return std::string(line);
  size_t end = line.size() - most / 3;
  while (end < line.size() && IsWithinCharacter(line, end)) ++end;
  return std::string(StartOf(line, 2 * most / 3)) + " … (" + std::to_string(line.size()) + " bytes) … " +
         std::string(line.substr(end));
}

std::string_view StartOf(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  // A character has at most four bytes; a longer sequence is not one.
  constexpr size_t kLongestCharacter = 4;
  size_t end = most;
  while (end > 0 && most - end < kLongestCharacter && IsWithinCharacter(text, end)) --end;
  return text.substr(0, end);
}

}  // namespace millrace
