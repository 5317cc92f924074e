#pragma once

#include "batch/slot_batch.h"
#include "data_feed.pb.h"

namespace millrace {

/// label (dense uint64), dense (2 floats), C1 (sparse ids), W (sparse floats).
inline SlotSchema DemoSchema() {
  DataFeedDesc desc;
  auto add = [&desc](const char* name, const char* type, int width) {
    Slot* slot = desc.mutable_multi_slot_desc()->add_slots();
    slot->set_name(name);
    slot->set_type(type);
    slot->set_is_used(true);
    slot->set_is_dense(width > 0);
    if (width > 0) {
      slot->add_shape(-1);
      slot->add_shape(width);
    }
  };
  add("label", "uint64", 1);
  add("dense", "float", 2);
  add("C1", "uint64", 0);
  add("W", "float", 0);
  return SlotSchema::Create(desc).value();
}

/// Two rows of it: label 0 and 1; C1 [7] and [5, 2^64 - 1]; W [] and [1e-7].
inline void FillDemoBatch(SlotBatch* batch) {
  batch->column(0).ids = {0, 1};
  batch->column(1).floats = {0.5F, -1, 1e20F, 0.1F};
  batch->column(2).ids = {7, 5, 18446744073709551615U};
  batch->column(2).offsets = {0, 1, 3};
  batch->column(3).floats = {1e-7F};
  batch->column(3).offsets = {0, 0, 1};
  batch->set_rows(2);
}

}  // namespace millrace
