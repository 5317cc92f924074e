#include "metrics/group_sample.h"

#include <algorithm>
#include <cstring>

#include "core/hash.h"

namespace millrace {
namespace {

// One group with more rows than a sample may hold stays whole all the same.
constexpr int kMostHalvings = 40;

template <class T>
void AppendNumber(T number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <class T>
bool TakeNumber(std::string_view* bytes, T* number) {
  if (bytes->size() < sizeof(T)) return false;
  std::memcpy(number, bytes->data(), sizeof(T));
  bytes->remove_prefix(sizeof(T));
  return true;
}

}  // namespace

bool GroupSample::Keeps(uint64_t group) const {
  return halvings_ == 0 || HashedNumber(0, group) >> (64 - halvings_) == 0;
}

void GroupSample::HalveGroups() {
  ++halvings_;
  const auto goes = [this](const GroupedRow& row) { return !Keeps(row.group); };
  const auto window = rows_.begin() + static_cast<std::ptrdiff_t>(window_);
  window_ -= static_cast<size_t>(std::count_if(rows_.begin(), window, goes));
  std::erase_if(rows_, goes);
}

void GroupSample::Thin() {
  while (rows_.size() > most_rows_ && halvings_ < kMostHalvings) HalveGroups();
}

void GroupSample::Merge(const GroupSample& other, size_t first) {
  while (halvings_ < other.halvings_) HalveGroups();
  for (size_t i = first; i < other.rows_.size(); ++i) Add(other.rows_[i]);
}

void GroupSample::Clear() {
  rows_.clear();
  halvings_ = 0;
  window_ = 0;
}

void GroupSample::AppendBytes(std::string* bytes) const {
  AppendNumber(static_cast<uint64_t>(rows_.size()), bytes);
  AppendNumber(static_cast<uint64_t>(halvings_), bytes);
  bytes->append(reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(GroupedRow));
}

bool GroupSample::TakeBytes(std::string_view* bytes) {
  uint64_t count = 0;
  uint64_t halvings = 0;
  if (!TakeNumber(bytes, &count) || !TakeNumber(bytes, &halvings)) return false;
  if (halvings > kMostHalvings || count > bytes->size() / sizeof(GroupedRow)) return false;
  halvings_ = static_cast<int>(halvings);
  rows_.resize(count);
  bytes->copy(reinterpret_cast<char*>(rows_.data()), count * sizeof(GroupedRow));
  bytes->remove_prefix(count * sizeof(GroupedRow));
  return true;
}

}  // namespace millrace
