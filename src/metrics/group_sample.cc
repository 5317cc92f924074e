#include "metrics/group_sample.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <ostream>
#include <tuple>
#include <utility>
#include <vector>

#include "core/hash.h"

namespace millrace {
namespace {

// A single group larger than the sample still stays complete.
constexpr int kMostHalvings = 40;

// Also compares weights, so the order of rows does not depend on how parts were merged.
bool IsBefore(const GroupedRow& a, const GroupedRow& b) {
  return std::tie(a.group, a.prediction, a.weight) < std::tie(b.group, b.prediction, b.weight);
}

template <class T>
void WriteNumber(T number, std::ostream& out) {
  out.write(reinterpret_cast<const char*>(&number), sizeof(number));
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
  for (size_t* mark : {&window_, &sorted_}) {
    *mark -= static_cast<size_t>(std::count_if(rows_.begin(), At(*mark), goes));
  }
  std::erase_if(rows_, goes);
}

void GroupSample::Thin() {
  while (rows_.size() > most_rows_ && halvings_ < kMostHalvings) HalveGroups();
}

void GroupSample::Merge(const GroupSample& other, size_t first) {
  while (halvings_ < other.halvings_) HalveGroups();
  const bool is_copy = rows_.empty() && first == 0;
  const auto begin = other.rows_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto unsorted = other.rows_.begin() + static_cast<std::ptrdiff_t>(std::max(first, other.sorted_));
  for (auto row = begin; row != unsorted; ++row) Add(*row);
  if (is_copy) sorted_ = rows_.size();
  for (auto row = unsorted; row != other.rows_.end(); ++row) Add(*row);
}

void GroupSample::Take(GroupSample& other) {
  if (rows_.empty() && halvings_ <= other.halvings_ && other.rows_.size() <= most_rows_) {
    rows_.swap(other.rows_);
    halvings_ = other.halvings_;
    sorted_ = other.sorted_;
  } else {
    while (halvings_ < other.halvings_) HalveGroups();
    for (; !other.rows_.empty(); other.rows_.pop_front()) Add(other.rows_.front());
  }
  other.Clear();
}

GroupSample GroupSample::TakeEarlierRows() {
  GroupSample taken(most_rows_);
  taken.halvings_ = halvings_;
  taken.sorted_ = std::exchange(sorted_, 0);
  taken.rows_.swap(rows_);
  rows_.assign(taken.At(window_), taken.rows_.end());
  taken.rows_.resize(window_);
  window_ = 0;
  return taken;
}

void GroupSample::Sort() {
  if (sorted_ == 0) {
    std::sort(rows_.begin(), rows_.end(), IsBefore);
  } else if (sorted_ < rows_.size()) {
    std::vector<GroupedRow> fresh(At(sorted_), rows_.end());
    std::sort(fresh.begin(), fresh.end(), IsBefore);
    // Merge from the back, where there is space.
    auto to = rows_.end();
    for (auto old = At(sorted_); !fresh.empty();) {
      if (old != rows_.begin() && IsBefore(fresh.back(), *std::prev(old))) {
        *--to = *--old;
      } else {
        *--to = fresh.back();
        fresh.pop_back();
      }
    }
  }
  sorted_ = window_ = rows_.size();
}

void GroupSample::Clear() {
  rows_.clear();
  sorted_ = 0;
  halvings_ = 0;
  window_ = 0;
}

void GroupSample::Write(std::ostream& out) const {
  WriteNumber(static_cast<uint64_t>(rows_.size()), out);
  WriteNumber(static_cast<uint64_t>(halvings_), out);
  for (const GroupedRow& row : rows_) WriteNumber(row, out);
}

bool GroupSample::TakeBytes(std::string_view* bytes) {
  uint64_t count = 0;
  uint64_t halvings = 0;
  if (!TakeNumber(bytes, &count) || !TakeNumber(bytes, &halvings)) return false;
  if (halvings > kMostHalvings || count > bytes->size() / sizeof(GroupedRow)) return false;
  halvings_ = static_cast<int>(halvings);
  rows_.resize(count);
  return std::all_of(rows_.begin(), rows_.end(), [bytes](GroupedRow& row) { return TakeNumber(bytes, &row); });
}

}  // namespace millrace
