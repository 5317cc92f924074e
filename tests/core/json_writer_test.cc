#include "core/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace millrace {
namespace {

TEST(JsonWriterTest, NestsAndSeparates) {
  JsonWriter json;
  json.BeginObject().Key("a").Number(1).Key("b").BeginList().Number(2.5).Text("x").BeginObject().EndObject().EndList();
  json.Key("c").Bool(true).Key("d").BeginObject().Key("e").Number(-3).EndObject().EndObject();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[2.5,"x",{}],"c":true,"d":{"e":-3}})");
}

TEST(JsonWriterTest, NumbersReadBackAndNonFiniteOnesAreNull) {
  JsonWriter json;
  json.BeginList().Number(0.1).Number(0.1f).Number(std::numeric_limits<double>::quiet_NaN());
  json.Number(-std::numeric_limits<double>::infinity()).Number(uint64_t{18446744073709551615U}).EndList();
  EXPECT_EQ(json.text(), "[0.1,0.1,null,null,18446744073709551615]");
}

TEST(JsonWriterTest, TextIsEscapedAndAlwaysUtf8) {
  JsonWriter json;
  json.BeginList()
      .Text("\"\\\n\x01")
      .Text("M\xc3\xbchlbach")
      .Text(
          "a\xff"
          "b\xed\xa0\x80")
      .EndList();
  EXPECT_EQ(json.text(), "[\"\\\"\\\\\\n\\u0001\",\"M\xc3\xbchlbach\",\"a\\ufffdb\\ufffd\\ufffd\\ufffd\"]");
}

TEST(JsonWriterTest, IndentedObjectsStandOnLines) {
  JsonWriter json(true);
  json.BeginObject().Key("a").BeginObject().EndObject().Key("b").BeginObject().Key("c").Number(1).EndObject();
  json.EndObject();
  EXPECT_EQ(json.text(), "{\n  \"a\": {},\n  \"b\": {\n    \"c\": 1\n  }\n}");
}

}  // namespace
}  // namespace millrace
