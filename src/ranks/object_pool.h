#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace millrace {

/// Objects whose buffers are kept: who lets the last owner of one go gives it back. Objects may outlive this, which
/// then frees what comes back. Any thread.
template <class T>
class ObjectPool {
 public:
  /// One that was given back, as it was left, or a new one.
  std::shared_ptr<T> Take() {
    std::unique_ptr<T> object;
    {
      const std::lock_guard lock(store_->mutex);
      if (!store_->free.empty()) {
        object = std::move(store_->free.back());
        store_->free.pop_back();
      }
    }
    if (object == nullptr) object = std::make_unique<T>();
    return std::shared_ptr<T>(object.release(), [store = store_](T* last) {
      std::unique_ptr<T> given(last);
      const std::lock_guard lock(store->mutex);
      store->free.push_back(std::move(given));
    });
  }

 private:
  struct Store {
    std::mutex mutex;
    std::vector<std::unique_ptr<T>> free;
  };
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
};

}  // namespace millrace
