#include "datafeed/instant_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is read as it lies in memory");

// Copied regardless of the count: enough for most slots, and avoids a branch on the count.
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

/// The size of a slot. The processor continues with the usual count before this one is loaded; otherwise every slot of
/// the walk would wait for the previous one. Without the barrier the compiler would undo that.
size_t SlotBytes(uint32_t count, uint32_t usual, uint32_t sizes, uint32_t value_bytes) {
  if (count != usual) [[unlikely]] {
    usual = count;
    asm volatile("" : "+r"(usual));
  }
  return sizeof(uint16_t) + size_t{usual} * value_bytes + size_t{sizes} * (sizeof(uint64_t) - value_bytes);
}

/// Copies a dense slot's values of all rows.
template <class T>
void CopyDense(const uint8_t* base, const uint32_t* starts, size_t rows, size_t width, UninitializedVector<T>& values) {
  values.resize(rows * width);
  for (size_t row = 0; row < rows; ++row) {
    const uint8_t* const from = base + starts[row] + sizeof(uint16_t) + sizeof(uint64_t);
    if (width == 1) {
      std::memcpy(values.data() + row, from, sizeof(T));
    } else {
      std::memcpy(values.data() + row * width, from, width * sizeof(T));
    }
  }
}

/// Copies a sparse slot's values of all rows, `total` in all. `kPadded`: kCopied bytes after every value are readable.
template <bool kPadded, class T>
void CopySparse(const uint8_t* base, const uint32_t* starts, size_t rows, size_t total, UninitializedVector<T>& values,
                UninitializedVector<uint32_t>& offsets) {
  values.resize(total + kCopied / sizeof(T));
  offsets.resize(rows + 1);
  T* const out = values.data();
  uint32_t* const ends = offsets.data();
  size_t used = 0;
  ends[0] = 0;
  for (size_t row = 0; row < rows; ++row) {
    const uint8_t* const at = base + starts[row];
    const size_t count = ReadCount(at);
    if (kPadded) std::memcpy(out + used, at + sizeof(uint16_t), kCopied);
    if (!kPadded || count > kCopied / sizeof(T)) std::memcpy(out + used, at + sizeof(uint16_t), count * sizeof(T));
    used += count;
    ends[row + 1] = static_cast<uint32_t>(used);
  }
  values.resize(total);
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
      plan.usual = plan.least;
    } else if (allow_empty) {
      plan.least = 0;
    }
    plan_.push_back(plan);
    names_.push_back(slot.name);
  }
}

Status InstantFormat::FindRows(std::span<const uint8_t> file, size_t begin, int most, uint64_t row, Rows* rows) const {
  rows->count = 0;
  rows->begin = begin;
  rows->most = most;
  rows->starts.resize(plan_.size() * static_cast<size_t>(most));
  rows->values.assign(plan_.size(), 0);
  const uint8_t* const base = file.data() + begin;
  const uint8_t* const end = file.data() + file.size();
  const uint8_t* at = base;
  for (; rows->count < most && at < end; ++rows->count) {
    uint32_t* start = rows->starts.data() + rows->count;
    for (size_t slot = 0; slot < plan_.size(); ++slot) {
      const SlotPlan& plan = plan_[slot];
      const auto left = static_cast<size_t>(end - at);
      const uint32_t count = left < sizeof(uint16_t) ? UINT32_MAX : ReadCount(at);
      const size_t size = SlotBytes(count, plan.usual, plan.sizes, plan.value_bytes);
      if (count < plan.least || count > plan.most || size > left) [[unlikely]] {
        return WrongRow(file, static_cast<size_t>(at - file.data()), row + static_cast<uint64_t>(rows->count), slot);
      }
      *start = static_cast<uint32_t>(at - base);
      start += most;
      rows->values[slot] += count;
      at += size;
    }
    if (at - base > UINT32_MAX) {
      return BadData("row " + std::to_string(row + static_cast<uint64_t>(rows->count)) +
                     ": the rows of a batch are longer than 4 GiB; set a smaller data_desc.batch_size");
    }
  }
  rows->end = static_cast<size_t>(at - file.data());
  return Status::Ok();
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

void InstantFormat::CopyRows(std::span<const uint8_t> file, const Rows& rows, SlotBatch* batch) const {
  const uint8_t* const base = file.data() + rows.begin;
  const auto count = static_cast<size_t>(rows.count);
  const bool is_padded = rows.end + kCopied <= file.size();
  for (size_t slot = 0; slot < plan_.size(); ++slot) {
    const SlotPlan& plan = plan_[slot];
    if (plan.id < 0) continue;
    const uint32_t* const starts = rows.starts.data() + slot * static_cast<size_t>(rows.most);
    SlotColumn& column = batch->column(plan.id);
    const auto copy = [&](auto& values) {
      if (plan.sizes > 0) {
        CopyDense(base, starts, count, plan.least - plan.sizes, values);
      } else if (is_padded) {
        CopySparse<true>(base, starts, count, rows.values[slot], values, column.offsets);
      } else {
        CopySparse<false>(base, starts, count, rows.values[slot], values, column.offsets);
      }
    };
    if (plan.value_bytes == sizeof(uint64_t)) {
      copy(column.ids);
    } else {
      copy(column.floats);
    }
  }
  batch->set_rows(rows.count);
}

Status InstantFormat::Encode(const SlotBatch& batch, const std::vector<std::string>& files, std::string* bytes) const {
  const auto rows = static_cast<uint64_t>(batch.rows());
  for (uint64_t row = 0; row < rows; ++row) {
    for (size_t slot = 0; slot < plan_.size(); ++slot) {
      const SlotPlan& plan = plan_[slot];
      if (plan.id < 0) continue;
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
