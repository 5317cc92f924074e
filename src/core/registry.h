#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/edit_distance.h"
#include "core/status.h"

namespace millrace {

/// What a job may use by name, of one kind: worker classes, datasets, metrics, each with a line that says what it is.
///
/// A value that is filled at start and passed on. Add is not thread-safe; everything else is, as long as nobody adds.
/// What Find and Get return is valid until the next Add.
template <class T>
class Registry {
 public:
  struct Entry {
    std::string name;
    std::string doc;  ///< a line
    T value;
  };

  /// `kind` is how messages call one: "dataset of the class".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// kAlreadyExists when the name is taken.
  Status Add(std::string name, std::string doc, T value) {
    if (Find(name) != nullptr) return AlreadyExists("a " + kind_ + " \"" + name + "\" is registered already");
    entries_.push_back({std::move(name), std::move(doc), std::move(value)});
    return Status::Ok();
  }

  /// Takes over every entry of `others`, or, when a name is taken, none: kAlreadyExists.
  Status Adopt(Registry others) {
    Registry all = *this;
    for (Entry& other : others.entries_) {
      MR_TRY(all.Add(std::move(other.name), std::move(other.doc), std::move(other.value)));
    }
    *this = std::move(all);
    return Status::Ok();
  }

  /// Null when there is none of that name.
  const T* Find(std::string_view name) const {
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
    return entry == entries_.end() ? nullptr : &entry->value;
  }

  /// kInvalidConfig for an unknown name: the nearest one, and all that there are.
  Result<const T*> Get(std::string_view name) const {
    if (const T* found = Find(name); found != nullptr) return found;
    std::vector<std::string_view> candidates;
    std::string known;
    for (const Entry& entry : entries_) {
      candidates.push_back(entry.name);
      known += (known.empty() ? "" : ", ") + entry.name;
    }
    return InvalidConfig("no " + kind_ + " \"" + std::string(name) + "\"" + DidYouMean(name, candidates) +
                         "; there are: " + known);
  }

  const std::string& kind() const { return kind_; }
  /// In the order of their registration.
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }

 private:
  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace millrace
