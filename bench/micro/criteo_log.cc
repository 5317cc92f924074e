#include "micro/criteo_log.h"

#include <cmath>
#include <cstdio>

#include "core/rng.h"
#include "data_feed.pb.h"
#include "datafeed/multi_slot_parser.h"

namespace millrace::bench {
namespace {

// Vocabularies of the shared generator's slots, and the greatest number of ids where it is not one.
constexpr uint64_t kVocabulary[] = {1500,  600,  300000, 120000, 300, 24,    12000,  640,  3,
                                    60000, 5600, 260000, 3200,   27,  12000, 160000, 10,   5000,
                                    2000,  4,    200000, 18,     16,  80000, 100,    60000};
constexpr uint64_t kMaxIds[] = {1, 1, 1, 1, 1, 1, 10, 1, 1, 1, 1, 1, 10, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 10, 1, 1};

}  // namespace

CriteoLog MakeCriteoLog(bool wide_ids, size_t lines) {
  CriteoLog log;
  Rng rng(20240601);
  std::vector<size_t> begins;
  char text[32];
  for (size_t i = 0; i < lines; ++i) {
    begins.push_back(log.buffer.size());
    log.buffer += rng.Below(5) == 0 ? "1 1 13" : "1 0 13";
    for (int f = 0; f < 13; ++f) {
      const uint64_t thousandths = std::min<uint64_t>(static_cast<uint64_t>(-std::log(1 - rng.Uniform()) * 1500), 9999);
      std::snprintf(text, sizeof(text), " %llu.%03llu", static_cast<unsigned long long>(thousandths / 1000),
                    static_cast<unsigned long long>(thousandths % 1000));
      log.buffer += text;
    }
    for (size_t slot = 0; slot < 26; ++slot) {
      const uint64_t count = 1 + rng.Below(kMaxIds[slot]);
      log.buffer += " " + std::to_string(count);
      for (uint64_t k = 0; k < count; ++k) {
        // Ranks by a power law, spread over the vocabulary.
        const auto rank = static_cast<uint64_t>(std::pow(static_cast<double>(kVocabulary[slot]), rng.Uniform())) - 1;
        const uint64_t id = Mix64(slot, rank) % kVocabulary[slot];
        log.buffer += " " + std::to_string(wide_ids ? Mix64(slot + 1, id) : id);
      }
    }
    log.buffer += '\n';
  }
  log.size = log.buffer.size();
  log.buffer.append(kLinePadding, '\0');
  for (size_t i = 0; i < lines; ++i) {
    const size_t end = i + 1 < lines ? begins[i + 1] : log.size;
    log.lines.emplace_back(log.buffer.data() + begins[i], end - begins[i] - 1);
  }
  return log;
}

DataFeedDesc CriteoDesc() {
  DataFeedDesc desc;
  const auto add = [&desc](const char* name, const char* type, int width) {
    Slot* slot = desc.mutable_multi_slot_desc()->add_slots();
    slot->set_name(name);
    slot->set_type(type);
    slot->set_is_used(true);
    if (width == 0) return;
    slot->set_is_dense(true);
    slot->add_shape(-1);
    slot->add_shape(width);
  };
  add("label", "uint64", 1);
  add("dense", "float", 13);
  add("C1..C26", "uint64", 0);
  return desc;
}

SlotSchema CriteoSchema() { return SlotSchema::Create(CriteoDesc()).value(); }

}  // namespace millrace::bench
