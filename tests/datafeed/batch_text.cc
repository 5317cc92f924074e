#include "datafeed/batch_text.h"

#include <glog/logging.h>

#include <cstdio>
#include <sstream>

namespace millrace::testing {
namespace {

std::string FloatString(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
  return text;
}

}  // namespace

std::string RowText(const SlotBatch& batch, int row) {
  std::string text;
  const auto index = static_cast<size_t>(row);
  if (!batch.ins_ids().empty()) text += "ins_id=" + batch.ins_ids()[index] + " ";
  if (!batch.contents().empty()) text += "content=" + batch.contents()[index] + " ";
  for (const SlotSpec& slot : batch.schema().used()) {
    text += slot.name + "=";
    size_t begin = index * static_cast<size_t>(slot.width);
    size_t end = begin + static_cast<size_t>(slot.width);
    if (!slot.is_dense) {
      begin = batch.offsets(slot.id)[index];
      end = batch.offsets(slot.id)[index + 1];
    }
    for (size_t i = begin; i < end; ++i) {
      if (i > begin) text += ",";
      text += slot.type == SlotType::kUint64 ? std::to_string(batch.ids(slot.id)[i])
                                             : FloatString(batch.floats(slot.id)[i]);
    }
    text += " ";
  }
  text.pop_back();
  return text;
}

DataFeedDesc DescOf(const std::string& slots) {
  DataFeedDesc desc;
  std::istringstream words(slots);
  for (std::string word; words >> word;) {
    Slot* slot = desc.mutable_multi_slot_desc()->add_slots();
    slot->set_is_used(!word.ends_with(":unused"));
    const size_t colon = word.find(':');
    CHECK(colon != std::string::npos) << "a slot is NAME:TYPE, not " << word;
    slot->set_name(word.substr(0, colon));
    std::string type = word.substr(colon + 1);
    if (!slot->is_used()) type.resize(type.find(':'));
    if (const size_t bracket = type.find('['); bracket != std::string::npos) {
      slot->set_is_dense(true);
      slot->add_shape(-1);
      slot->add_shape(std::stoi(type.substr(bracket + 1)));
      type.resize(bracket);
    }
    slot->set_type(type);
  }
  return desc;
}

}  // namespace millrace::testing
