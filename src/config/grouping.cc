#include "config/grouping.h"

#include <string>

#include "data_feed.pb.h"

namespace millrace {

std::vector<RefusedField> RefusedByGrouping(const DataFeedDesc& feed, const Grouping& grouping) {
  std::vector<RefusedField> refused;
  if (grouping.merge_by_lineid && !feed.parse_ins_id() && !feed.parse_logkey()) {
    refused.push_back(
        {"dataset.merge_by_lineid", "merge_by_lineid needs names: set data_desc.parse_ins_id or parse_logkey"});
  }
  if (grouping.enable_pv_merge && !feed.parse_logkey()) {
    refused.push_back({"dataset.enable_pv_merge", "page views are found by log keys: set data_desc.parse_logkey"});
  }
  if (grouping.joins && !grouping.enable_pv_merge) {
    refused.push_back({"dataset.phases[0]", "JOIN hands out page views: set enable_pv_merge"});
  }
  if (feed.input_type() == 0) return refused;
  const std::string input_type = "data_desc.input_type";
  if (feed.input_type() != 1) {
    refused.push_back({input_type, "input_type is 0 (a line is an example) or 1 (a line is a batch), not " +
                                       std::to_string(feed.input_type())});
    return refused;
  }
  if (feed.batch_size() != 1) {
    refused.push_back(
        {input_type, "a line is a whole batch, so batch_size must be 1, not " + std::to_string(feed.batch_size())});
  }
  if (grouping.merge_by_lineid || grouping.enable_pv_merge) {
    refused.push_back({input_type, "lines that are whole batches are not merged"});
  }
  return refused;
}

}  // namespace millrace
