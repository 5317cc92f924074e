#include "core/wire.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(WireTest, WhatWasPutIsThereInItsOrder) {
  std::string message;
  WireWriter out(&message);
  out.Put(uint8_t{7});
  out.PutText("table");
  out.PutAll(std::span<const uint64_t>(std::vector<uint64_t>{1, ~uint64_t{0}}));
  out.Put(-2.5);
  WireReader in(message);
  EXPECT_EQ(in.Get<uint8_t>(), 7);
  EXPECT_EQ(in.GetText(), "table");
  std::vector<uint64_t> keys;
  in.GetAll(&keys);
  EXPECT_EQ(keys, (std::vector<uint64_t>{1, ~uint64_t{0}}));
  EXPECT_EQ(in.Get<double>(), -2.5);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.rest().empty());
}

TEST(WireTest, AMessageThatIsCutOffAnywhereIsNotOkAndAsksForNoMemory) {
  std::string message;
  WireWriter out(&message);
  out.PutText("table");
  out.PutAll(std::span<const float>(std::vector<float>(100, 1.0f)));
  for (size_t length = 0; length < message.size(); ++length) {
    WireReader in(std::string_view(message).substr(0, length));
    in.GetText();
    std::vector<float> values;
    in.GetAll(&values);
    EXPECT_FALSE(in.ok()) << length;
    EXPECT_TRUE(values.empty()) << length;
  }
  std::string huge;
  WireWriter(&huge).Put(~uint64_t{0});
  WireReader in(huge);
  std::vector<double> values;
  in.GetAll(&values);
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace millrace
