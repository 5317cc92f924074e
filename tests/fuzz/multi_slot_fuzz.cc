// Parses bytes as MultiSlot text in every way that there is; they must agree (datafeed/parser_comparison.h). The first
// byte chooses the slots, the second the options, the rest is text.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "datafeed/batch_text.h"
#include "datafeed/parser_comparison.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using millrace::MultiSlotOptions;
  using millrace::SlotSchema;
  static const std::vector<SlotSchema> schemas = {
      SlotSchema::Create(millrace::testing::DescOf("a:uint64 b:float")).value(),
      SlotSchema::Create(millrace::testing::DescOf("label:uint64[1] d:float[3] a:uint64 b:uint64")).value(),
      SlotSchema::Create(millrace::testing::DescOf("x:uint64:unused a:uint64 y:float:unused f:float d:uint64[2]"))
          .value(),
  };
  if (size < 2) return 0;
  const SlotSchema& schema = schemas[data[0] % schemas.size()];
  MultiSlotOptions options;
  options.parse_ins_id = (data[1] & 1) != 0;
  options.parse_content = (data[1] & 2) != 0;
  options.allow_empty_slots = (data[1] & 4) != 0;
  options.drop_zeros = (data[1] & 8) != 0;
  options.ignore_trailing = (data[1] & 16) != 0;
  options.reject_non_finite = (data[1] & 32) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string difference = millrace::testing::CompareParsers(schema, options, text);
  if (!difference.empty()) {
    std::fprintf(stderr, "the parsers differ: %s\n", difference.c_str());
    std::abort();
  }
  return 0;
}
