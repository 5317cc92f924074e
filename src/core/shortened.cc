#include "core/shortened.h"

namespace millrace {

std::string Shortened(std::string_view line, size_t most) {
  if (line.size() <= most) return std::string(line);
  const auto is_within = [line](size_t at) { return (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80; };
  size_t begin = 2 * most / 3;
  size_t end = line.size() - most / 3;
  while (begin > 0 && is_within(begin)) --begin;
  while (end < line.size() && is_within(end)) ++end;
  return std::string(line.substr(0, begin)) + " … (" + std::to_string(line.size()) + " bytes) … " +
         std::string(line.substr(end));
}

}  // namespace millrace
