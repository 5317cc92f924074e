#include "datafeed/instant_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is read as it lies in memory");

// Copied at once, whatever the count: enough for most slots, and without a branch on how many there are.
constexpr size_t kCopied = 32;

uint32_t ReadCount(const uint8_t* at) {
  uint16_t count = 0;
  std::memcpy(&count, at, sizeof(count));
  return count;
}

template <class T>
void Put(const T* values, size_t count, std::string* bytes) {
  if (count > 0) bytes->append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

template <class T>
T* CopyValues(const uint8_t* values, size_t count, size_t readable, T* out) {
  if (readable >= kCopied) [[likely]] {
    std::memcpy(out, values, kCopied);
    if (count > kCopied / sizeof(T)) [[unlikely]]
      std::memcpy(out, values, count * sizeof(T));
  } else if (count > 0) {
    std::memcpy(out, values, count * sizeof(T));
  }
  return out + count;
}

}  // namespace

InstantFormat::InstantFormat(const SlotSchema& schema, bool allow_empty) {
  for (const SlotSpec& slot : schema.all()) {
    SlotPlan plan;
    plan.id = slot.is_used ? slot.id : -1;
    plan.value_bytes = slot.type == SlotType::kUint64 ? sizeof(uint64_t) : sizeof(float);
    if (slot.is_dense) {
      plan.sizes = 1;
      plan.least = static_cast<uint32_t>(slot.width) + plan.sizes;
      plan.most = plan.least;
    } else if (allow_empty) {
      plan.least = 0;
    }
    plan_.push_back(plan);
    names_.push_back(slot.name);
  }
}

Result<InstantFormat::Stretch> InstantFormat::FindRows(std::span<const uint8_t> file, size_t begin, int most,
                                                       uint64_t row) const {
  Stretch stretch{0, begin, begin};
  const uint8_t* const end = file.data() + file.size();
  const uint8_t* at = file.data() + begin;
  for (; stretch.rows < most && at < end; ++stretch.rows) {
    for (const SlotPlan& plan : plan_) {
      const auto left = static_cast<size_t>(end - at);
      const uint32_t count = left < sizeof(uint16_t) ? UINT32_MAX : ReadCount(at);
      const size_t size = sizeof(uint16_t) + size_t{count} * plan.value_bytes +
                          size_t{plan.sizes} * (sizeof(uint64_t) - plan.value_bytes);
      if (count < plan.least || count > plan.most || size > left) [[unlikely]] {
        return WrongRow(file, static_cast<size_t>(at - file.data()), row + static_cast<uint64_t>(stretch.rows),
                        static_cast<size_t>(&plan - plan_.data()));
      }
      at += size;
    }
  }
  stretch.end = static_cast<size_t>(at - file.data());
  return stretch;
}

Status InstantFormat::WrongRow(std::span<const uint8_t> file, size_t at, uint64_t row, size_t slot) const {
  const SlotPlan& plan = plan_[slot];
  const std::string where =
      "row " + std::to_string(row) + ", slot \"" + names_[slot] + "\", byte " + std::to_string(at) + ": ";
  const size_t left = file.size() - at;
  if (left < sizeof(uint16_t)) {
    return BadData(where + "expected a count of two bytes, found the end of the file after " + std::to_string(left) +
                   LooksLike(file));
  }
  const uint32_t count = ReadCount(file.data() + at);
  if (plan.sizes > 0 && count != plan.least) {
    return BadData(where + "expected the count " + std::to_string(plan.least) + " (the size of the batch and " +
                   std::to_string(plan.least - plan.sizes) + " values), found " + std::to_string(count) +
                   LooksLike(file));
  }
  if (count < plan.least) {
    return BadData(where +
                   "expected at least one value, found the count 0; write one 0 for a slot without values, or " +
                   "set data_desc { empty_slot: ALLOW }" + LooksLike(file));
  }
  const size_t needed = size_t{count} * plan.value_bytes + size_t{plan.sizes} * (sizeof(uint64_t) - plan.value_bytes);
  return BadData(where + "expected " + std::to_string(count) + " values in " + std::to_string(needed) +
                 " bytes, found the end of the file after " + std::to_string(left - sizeof(uint16_t)) +
                 LooksLike(file));
}

void InstantFormat::Decode(std::span<const uint8_t> file, const Stretch& stretch, ColumnSink& sink) const {
  const uint8_t* const file_end = file.data() + file.size();
  const uint8_t* at = file.data() + stretch.begin;
  for (int row = 0; row < stretch.rows; ++row) {
    sink.BeginRow();
    for (const SlotPlan& plan : plan_) {
      const size_t count = ReadCount(at) - plan.sizes;
      const uint8_t* const values = at + sizeof(uint16_t) + plan.sizes * sizeof(uint64_t);
      if (plan.id >= 0) DecodeSlot(plan, values, count, static_cast<size_t>(file_end - values), sink);
      at = values + count * plan.value_bytes;
    }
    sink.EndRow();
  }
}

void InstantFormat::DecodeSlot(const SlotPlan& plan, const uint8_t* values, size_t count, size_t readable,
                               ColumnSink& sink) const {
  if (plan.value_bytes == sizeof(uint64_t)) {
    uint64_t* const out = sink.BeginIds(plan.id, std::max(count, kCopied / sizeof(uint64_t)));
    sink.EndIds(plan.id, CopyValues(values, count, readable, out));
  } else {
    float* const out = sink.BeginFloats(plan.id, std::max(count, kCopied / sizeof(float)));
    sink.EndFloats(plan.id, CopyValues(values, count, readable, out));
  }
}

Status InstantFormat::Encode(const SlotBatch& batch, const std::vector<std::string>& files, std::string* bytes) const {
  const auto rows = static_cast<uint64_t>(batch.rows());
  for (uint64_t row = 0; row < rows; ++row) {
    for (size_t slot = 0; slot < plan_.size(); ++slot) {
      const SlotPlan& plan = plan_[slot];
      if (plan.id < 0) return Internal("slot \"" + names_[slot] + "\" is not used, so its values are not there");
      const size_t width = plan.least - plan.sizes;
      const size_t begin = plan.sizes > 0 ? row * width : batch.offsets(plan.id)[row];
      const size_t end = plan.sizes > 0 ? begin + width : batch.offsets(plan.id)[row + 1];
      const size_t count = end - begin + plan.sizes;
      if (count > UINT16_MAX) {
        const RowOrigin& origin = batch.origins()[row];
        return BadData(files[origin.file] + ":" + std::to_string(origin.line) + ": slot \"" + names_[slot] + "\" has " +
                       std::to_string(end - begin) + " values; the format holds at most " +
                       std::to_string(UINT16_MAX - plan.sizes) + " a row");
      }
      const auto short_count = static_cast<uint16_t>(count);
      Put(&short_count, 1, bytes);
      if (plan.sizes > 0) Put(&rows, 1, bytes);
      if (plan.value_bytes == sizeof(uint64_t)) {
        Put(batch.ids(plan.id).data() + begin, end - begin, bytes);
      } else {
        Put(batch.floats(plan.id).data() + begin, end - begin, bytes);
      }
    }
  }
  return Status::Ok();
}

std::string LooksLike(std::span<const uint8_t> file) {
  constexpr std::string_view kConvert = "; `inspect convert` writes binary files of a job";
  const std::span<const uint8_t> start = file.first(std::min<size_t>(file.size(), 64));
  const auto starts_with = [&start](std::initializer_list<uint8_t> magic) {
    return start.size() >= magic.size() && std::equal(magic.begin(), magic.end(), start.begin());
  };
  if (starts_with({0x1f, 0x8b}))
    return "; the file looks like gzip, which is not unpacked here" + std::string(kConvert);
  if (starts_with({0x28, 0xb5, 0x2f, 0xfd})) {
    return "; the file looks like zstd, which is not unpacked here" + std::string(kConvert);
  }
  const bool is_text = !start.empty() && std::all_of(start.begin(), start.end(), [](uint8_t byte) {
    return (byte >= 0x20 && byte < 0x7f) || byte == '\n' || byte == '\t' || byte == '\r';
  });
  return is_text ? "; the file looks like text" + std::string(kConvert) : std::string();
}

}  // namespace millrace
