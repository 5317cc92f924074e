#include "core/dims.h"

#include <algorithm>

namespace millrace {

Dims::Dims(std::initializer_list<int64_t> sizes) : Dims(std::span<const int64_t>(sizes.begin(), sizes.size())) {}

Dims::Dims(std::span<const int64_t> sizes) {
  for (const int64_t size : sizes) push_back(size);
}

void Dims::push_back(int64_t size) {
  too_many_ = rank_ == kMaxRank;
  if (!too_many_) sizes_[static_cast<size_t>(rank_++)] = size;
}

int64_t Dims::Product(int begin, int end) const {
  int64_t product = 1;
  for (int axis = begin; axis < end; ++axis) product *= sizes_[static_cast<size_t>(axis)];
  return product;
}

std::string Dims::ToString() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(sizes_[static_cast<size_t>(axis)]);
  }
  return text + (too_many_ ? ", ...]" : "]");
}

bool operator==(const Dims& a, const Dims& b) {
  return a.rank_ == b.rank_ && a.too_many_ == b.too_many_ &&
         std::equal(a.sizes_.begin(), a.sizes_.begin() + a.rank_, b.sizes_.begin());
}

}  // namespace millrace
