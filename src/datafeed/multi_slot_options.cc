#include "datafeed/multi_slot_options.h"

#include "data_feed.pb.h"

namespace millrace {

MultiSlotOptions MultiSlotOptions::FromDesc(const DataFeedDesc& desc) {
  MultiSlotOptions options;
  options.parse_ins_id = desc.parse_ins_id();
  options.parse_content = desc.parse_content();
  options.parse_logkey = desc.parse_logkey();
  options.allow_empty_slots = desc.empty_slot() == DataFeedDesc::ALLOW;
  options.drop_zeros = desc.zeros() == DataFeedDesc::DROP;
  options.ignore_trailing = desc.trailing_values() == DataFeedDesc::IGNORE;
  options.reject_non_finite = desc.non_finite() == DataFeedDesc::REJECT_NON_FINITE;
  return options;
}

}  // namespace millrace
