#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/edit_distance.h"
#include "core/status.h"

namespace millrace {

/// Named choices of one kind for a job, such as worker classes, datasets or metrics, each with a one-line description.
///
/// A value that is filled at startup and passed on. Add is not thread-safe; everything else is, if no thread adds.
/// Results of Find and Get are valid until the next Add.
template <class T>
class Registry {
 public:
  struct Entry {
    std::string name;
    std::string doc;  ///< one line
    T value;
  };

  /// `kind` in messages: "dataset of the class".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Fails with kAlreadyExists if the name is taken.
  Status Add(std::string name, std::string doc, T value) {
    if (Find(name) != nullptr) return AlreadyExists("a " + kind_ + " \"" + name + "\" is registered already");
    entries_.push_back({std::move(name), std::move(doc), std::move(value)});
    return Status::Ok();
  }

  /// Adds every entry of `others`, or none: fails with kAlreadyExists if a name is taken.
  Status Adopt(Registry others) {
    Registry all = *this;
    for (Entry& other : others.entries_) {
      MR_TRY(all.Add(std::move(other.name), std::move(other.doc), std::move(other.value)));
    }
    *this = std::move(all);
    return Status::Ok();
  }

  /// Null if there is no such name.
  const T* Find(std::string_view name) const {
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
    return entry == entries_.end() ? nullptr : &entry->value;
  }

  /// Fails with kInvalidConfig for an unknown name, listing the closest and all names.
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
  /// In order of registration.
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
