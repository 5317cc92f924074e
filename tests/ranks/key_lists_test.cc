// Lists of keys that ranks tell each other once.

#include "ranks/key_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace millrace {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsNull;

constexpr int kRanks = 3;

/// Rank r has every third shard from r on.
std::vector<int> Owners() {
  std::vector<int> owners;
  for (uint32_t shard = 0; shard < kVirtualShards; ++shard) owners.push_back(static_cast<int>(shard) % kRanks);
  return owners;
}

class KeyListsTest : public testing::Test {
 protected:
  /// What rank 0 is told of `list`, and makes of it.
  PeerKeyLists::List* Tell(KeyList& list, int from = 1) {
    std::string request;
    WireWriter out(&request);
    const std::lock_guard lock(list.sending());
    lists_->Put(list, 0, &out);
    last_size_ = request.size();
    WireReader in(request);
    PeerKeyLists::List* const known = known_.Take(from, &in);
    EXPECT_EQ(in.rest(), "");
    return known;
  }

  const std::vector<int> owners_ = Owners();
  std::unique_ptr<KeyLists> lists_ = std::make_unique<KeyLists>(owners_, kRanks);
  PeerKeyLists known_{kRanks};
  const std::vector<uint64_t> keys_ = {7, 3, 900, 12, 5, 0, 77, 1ULL << 60};
  size_t last_size_ = 0;
};

TEST_F(KeyListsTest, DealsKeysToTheRanksThatHaveThem) {
  const std::shared_ptr<KeyList> list = lists_->Find(keys_);
  EXPECT_THAT(list->keys(), ElementsAreArray(keys_));
  size_t dealt = 0;
  for (size_t r = 0; r < kRanks; ++r) {
    const KeyList::Part& part = list->of(r);
    ASSERT_EQ(part.keys.size(), part.positions.size());
    for (size_t i = 0; i < part.keys.size(); ++i, ++dealt) {
      EXPECT_EQ(part.keys[i], keys_[part.positions[i]]);
      EXPECT_EQ(owners_[VirtualShardOf(part.keys[i])], static_cast<int>(r));
    }
  }
  EXPECT_EQ(dealt, keys_.size());
}

TEST_F(KeyListsTest, EqualKeysAreOneListAsLongAsSomebodyHasIt) {
  std::shared_ptr<KeyList> list = lists_->Find(keys_);
  EXPECT_EQ(lists_->Find(keys_), list);
  EXPECT_NE(lists_->Find(std::vector<uint64_t>{7, 3}), list);
  std::vector<uint64_t> others(keys_.rbegin(), keys_.rend());
  EXPECT_NE(lists_->Find(others), list) << "the order counts: a push names rows by it";
}

TEST_F(KeyListsTest, ARankIsToldTheKeysOnce) {
  const std::shared_ptr<KeyList> list = lists_->Find(keys_);
  PeerKeyLists::List* const first = Tell(*list);
  ASSERT_NE(first, nullptr);
  EXPECT_THAT(first->keys, ElementsAreArray(list->of(0).keys));
  const size_t with_keys = last_size_;
  EXPECT_EQ(Tell(*list), first);
  EXPECT_EQ(last_size_, with_keys - sizeof(uint64_t) - list->of(0).keys.size() * sizeof(uint64_t));
}

TEST_F(KeyListsTest, AListThatNobodyHasIsForgottenWithTheNextRequest) {
  std::shared_ptr<KeyList> list = lists_->Find(keys_);
  Tell(*list);
  list.reset();
  const std::shared_ptr<KeyList> next = lists_->Find(std::vector<uint64_t>{1, 2, 3, 4, 5, 6});
  ASSERT_NE(Tell(*next), nullptr);
  // The same keys again are a new list, which is to be told.
  list = lists_->Find(keys_);
  PeerKeyLists::List* const again = Tell(*list);
  ASSERT_NE(again, nullptr);
  EXPECT_THAT(again->keys, ElementsAreArray(list->of(0).keys));
}

TEST_F(KeyListsTest, AListOutlivesWhoMadeIt) {
  const std::shared_ptr<KeyList> list = lists_->Find(keys_);
  Tell(*list);
  lists_.reset();
  EXPECT_THAT(list->keys(), ElementsAreArray(keys_));
}

TEST_F(KeyListsTest, ANumberThatWasNeverToldIsNotKnown) {
  const std::shared_ptr<KeyList> list = lists_->Find(keys_);
  Tell(*list, 1);
  EXPECT_THAT(Tell(*list, 2), IsNull()) << "lists are those of one rank";
  for (size_t size = 0; size < 17; ++size) {
    const std::string cut(size, '\0');
    WireReader in(cut);
    EXPECT_THAT(known_.Take(1, &in), IsNull());
  }
}

TEST_F(KeyListsTest, ThreadsShareLists) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (uint64_t i = 0; i < 500; ++i) {
        const std::vector<uint64_t> keys = {i % 5, 100 + i % 3, static_cast<uint64_t>(t % 2)};
        const std::shared_ptr<KeyList> list = lists_->Find(keys);
        EXPECT_THAT(list->keys(), ElementsAreArray(keys));
      }
    });
  }
}

}  // namespace
}  // namespace millrace
