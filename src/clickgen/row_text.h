#pragma once

#include <array>
#include <string>
#include <vector>

#include "clickgen/row_sampler.h"

namespace millrace {

/// Appends rows as lines with newline. Immutable, shared by any number of threads.
class RowText {
 public:
  explicit RowText(ClickLogOptions::Format format);

  void Append(const ClickRow& row, std::string* out) const;

 private:
  char* WriteMultiSlot(const ClickRow& row, char* out) const;
  char* WriteRaw(const ClickRow& row, char* out) const;

  ClickLogOptions::Format format_;
  std::vector<std::array<char, 8>> features_;  // " 0.6931" for the count 1
};

/// The `multi_slot_desc { ... }` of data_feed.prototxt for the lines.
std::string SlotsAsPrototxt(const ClickLogOptions& options);

}  // namespace millrace
