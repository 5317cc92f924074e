#pragma once

#include <compare>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "framework.pb.h"

namespace millrace {

/// Operators in their order, each shared with the program or the list that it came from: leaving some out, or putting
/// others in the place of some, copies none of the rest.
///
/// Operators do not change, and live as long as a list has them. A value; one thread writes.
class OpList {
 public:
  using Shared = std::shared_ptr<const OpDesc>;

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = OpDesc;
    using difference_type = std::ptrdiff_t;
    using pointer = const OpDesc*;
    using reference = const OpDesc&;

    Iterator() = default;
    explicit Iterator(const Shared* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const Shared* at_ = nullptr;
  };

  OpList() = default;
  /// Copies them.
  OpList(const std::vector<OpDesc>& ops) {  // NOLINT(google-explicit-constructor): a list of operators is one
    ops_.reserve(ops.size());
    for (const OpDesc& op : ops) ops_.push_back(std::make_shared<const OpDesc>(op));
  }
  explicit OpList(std::vector<Shared> ops) : ops_(std::move(ops)) {}

  size_t size() const { return ops_.size(); }
  bool empty() const { return ops_.empty(); }
  const OpDesc& operator[](size_t i) const { return *ops_[i]; }
  Iterator begin() const { return Iterator(ops_.data()); }
  Iterator end() const { return Iterator(ops_.data() + ops_.size()); }
  void Add(Shared op) { ops_.push_back(std::move(op)); }

  const std::vector<Shared>& shared() const& { return ops_; }
  std::vector<Shared> shared() && { return std::move(ops_); }

 private:
  std::vector<Shared> ops_;
};

}  // namespace millrace
