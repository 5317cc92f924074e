#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/status.h"
#include "runtime/device.h"

namespace millrace {

/// A named holder of one value of any type: a Tensor, SelectedRows, a table, a reader.
///
/// The first GetMutable<T>() creates the value, on the variable's device if the type supports it; it lives as long as
/// the variable. Access as another type throws std::invalid_argument.
class Variable {
 public:
  explicit Variable(const Device& device = Cpu()) : device_(&device) {}
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  bool empty() const { return holder_ == nullptr; }
  template <class T>
  bool Is() const {
    return holder_ != nullptr && holder_->type() == typeid(T);
  }
  template <class T>
  const T& Get() const {
    CheckIs(typeid(T));
    return static_cast<const Holder<T>&>(*holder_).value;
  }
  template <class T>
  T* GetMutable() {
    if (holder_ == nullptr) holder_ = Make<T>();
    CheckIs(typeid(T));
    return &static_cast<Holder<T>&>(*holder_).value;
  }
  /// Replaces the value; for values without an empty state, and values already on the right device.
  template <class T>
  void Set(T value) {
    holder_ = std::make_unique<Holder<T>>(std::move(value));
  }

 private:
  struct HolderBase {
    virtual ~HolderBase() = default;
    virtual const std::type_info& type() const = 0;
  };
  template <class T>
  struct Holder : HolderBase {
    Holder() = default;
    explicit Holder(T v) : value(std::move(v)) {}
    const std::type_info& type() const override { return typeid(T); }
    T value;
  };
  template <class T>
  std::unique_ptr<HolderBase> Make() const {
    if constexpr (std::is_constructible_v<T, const Device&>) {
      return std::make_unique<Holder<T>>(T(*device_));
    } else {
      return std::make_unique<Holder<T>>();
    }
  }
  void CheckIs(const std::type_info& wanted) const;

  const Device* device_;
  std::unique_ptr<HolderBase> holder_;
};

/// Variables by name, with a parent whose names are also visible.
///
/// The root scope contains everything that outlives a batch (parameters, optimizer states, tables); each worker's frame
/// has a child scope for the rest. Names are resolved when a frame is created, never during a batch. Var() is not
/// thread-safe; Find() is, unless a thread adds variables. Pointers stay valid as long as the scope. New variables are
/// on the scope's device.
class Scope {
 public:
  /// On the device of `parent`, or on another one.
  explicit Scope(Scope* parent) : Scope(parent, parent->device()) {}
  Scope(Scope* parent, const Device& device) : parent_(parent), device_(&device) {}
  explicit Scope(const Device& device = Cpu()) : device_(&device) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// The variable of this name in this scope; created if missing.
  Variable* Var(std::string_view name);
  /// The variable of this name here or in a parent; null if there is none.
  Variable* Find(std::string_view name) const;
  /// Whether this scope, not a parent, has the name.
  bool Owns(std::string_view name) const { return vars_.find(name) != vars_.end(); }
  /// Names in this scope, sorted.
  std::vector<std::string> Names() const;
  const Device& device() const { return *device_; }

 private:
  Scope* parent_ = nullptr;
  const Device* device_;
  std::map<std::string, std::unique_ptr<Variable>, std::less<>> vars_;
};

}  // namespace millrace
