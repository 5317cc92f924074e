#include "ranks/key_lists.h"

#include <algorithm>
#include <utility>

namespace millrace {

/// Outlives the KeyLists where a list does.
struct KeyLists::Store {
  std::mutex mutex;
  uint64_t next = 1;
  std::vector<std::weak_ptr<KeyList>> lists;
  std::vector<std::unique_ptr<KeyList>> free;
  std::vector<std::vector<uint64_t>> forgotten;  ///< by rank that is to be told

  void Release(std::unique_ptr<KeyList> list) {
    const std::lock_guard lock(mutex);
    for (size_t r = 0; r < forgotten.size(); ++r) {
      if (list->is_known_[r]) forgotten[r].push_back(list->number_);
    }
    std::erase_if(lists, [](const std::weak_ptr<KeyList>& other) { return other.expired(); });
    free.push_back(std::move(list));
  }
};

KeyLists::KeyLists(const std::vector<int>& owners, int ranks) : owners_(&owners), store_(std::make_shared<Store>()) {
  store_->forgotten.resize(static_cast<size_t>(ranks));
}

KeyLists::~KeyLists() = default;

std::shared_ptr<KeyList> KeyLists::Find(std::span<const uint64_t> keys) {
  std::vector<std::shared_ptr<KeyList>> others;  // released without the lock, which Release takes
  std::unique_ptr<KeyList> made;
  {
    const std::lock_guard lock(store_->mutex);
    for (const std::weak_ptr<KeyList>& weak : store_->lists) {
      std::shared_ptr<KeyList> list = weak.lock();
      if (list == nullptr) continue;
      if (std::equal(keys.begin(), keys.end(), list->keys_.begin(), list->keys_.end())) return list;
      others.push_back(std::move(list));
    }
    if (!store_->free.empty()) {
      made = std::move(store_->free.back());
      store_->free.pop_back();
    }
  }
  const size_t ranks = store_->forgotten.size();
  if (made == nullptr) made = std::make_unique<KeyList>();
  made->keys_.assign(keys.begin(), keys.end());
  made->is_known_.assign(ranks, false);
  made->parts_.resize(ranks);
  for (KeyList::Part& part : made->parts_) {
    part.keys.clear();
    part.positions.clear();
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    KeyList::Part& part = made->parts_[static_cast<size_t>((*owners_)[VirtualShardOf(keys[i])])];
    part.keys.push_back(keys[i]);
    part.positions.push_back(static_cast<uint32_t>(i));
  }
  std::shared_ptr<KeyList> list(made.release(),
                                [store = store_](KeyList* last) { store->Release(std::unique_ptr<KeyList>(last)); });
  const std::lock_guard lock(store_->mutex);
  list->number_ = store_->next++;
  store_->lists.push_back(list);
  return list;
}

void KeyLists::Put(KeyList& list, int to, WireWriter* out) {
  const auto r = static_cast<size_t>(to);
  {
    const std::lock_guard lock(store_->mutex);
    out->PutAll(std::span<const uint64_t>(store_->forgotten[r]));
    store_->forgotten[r].clear();
  }
  out->Put(list.number_);
  const bool is_known = list.is_known_[r];
  out->Put(is_known);
  if (is_known) return;
  list.is_known_[r] = true;
  out->PutAll(std::span<const uint64_t>(list.parts_[r].keys));
}

PeerKeyLists::List* PeerKeyLists::Take(int from, WireReader* in) {
  std::map<uint64_t, List>& lists = lists_[static_cast<size_t>(from)];
  in->GetAll(&forgotten_);
  for (const uint64_t number : forgotten_) {
    const auto list = lists.find(number);
    if (list == lists.end()) continue;
    for (auto& [table, rows] : list->second.rows) rows.Start(nullptr);
    free_.push_back(std::move(list->second));
    lists.erase(list);
  }
  const auto number = in->Get<uint64_t>();
  const auto is_known = in->Get<bool>();
  if (!in->ok()) return nullptr;
  if (is_known) {
    const auto list = lists.find(number);
    return list == lists.end() ? nullptr : &list->second;
  }
  List list;
  if (!free_.empty()) {
    list = std::move(free_.back());
    free_.pop_back();
  }
  in->GetAll(&list.keys);
  return in->ok() ? &lists.insert_or_assign(number, std::move(list)).first->second : nullptr;
}

void PeerKeyLists::ForgetRows(const SparseTable* table) {
  for (std::map<uint64_t, List>& lists : lists_) {
    for (auto& [number, list] : lists) list.rows.erase(table);
  }
  for (List& list : free_) list.rows.erase(table);
}

}  // namespace millrace
