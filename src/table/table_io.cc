#include "table/table_io.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <istream>
#include <ostream>

#include "core/crc32c.h"

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little, "tables are written as they lie in memory");

constexpr std::array<char, 8> kMagic = {'M', 'R', 'T', 'A', 'B', 'L', 'E', '1'};
constexpr uint32_t kMaxNameBytes = 1 << 16;
constexpr uint32_t kMaxRowFloats = 1 << 20;

struct FixedHeader {
  std::array<char, 8> magic;
  uint32_t name_bytes;
  uint32_t optimizer_bytes;
  uint32_t dim;
  uint32_t row_floats;
  uint64_t rows;
  uint64_t pushes;
};
static_assert(sizeof(FixedHeader) == 40);

Status Damaged(const std::string& what) {
  return BadData("saved table: " + what + "; the file is damaged or no table, use another checkpoint");
}

bool ReadBytes(std::istream& in, void* to, size_t bytes) {
  return static_cast<bool>(in.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)));
}

void WriteBytes(std::ostream& out, const void* from, size_t bytes) {
  out.write(static_cast<const char*>(from), static_cast<std::streamsize>(bytes));
}

Status WriteCrc(std::ostream& out, uint32_t crc) {
  WriteBytes(out, &crc, sizeof crc);
  return out ? Status::Ok() : IoError("saved table: the stream refused to write; is the disk full?");
}

Status CheckCrc(std::istream& in, uint32_t crc, const std::string& where) {
  uint32_t stored = 0;
  if (!ReadBytes(in, &stored, sizeof stored)) return Damaged("it ends before the checksum of " + where);
  return stored == crc ? Status::Ok() : Damaged("the checksum of " + where + " is wrong");
}

std::string BlockName(uint64_t index) { return "block " + std::to_string(index); }

}  // namespace

uint64_t TableBlocks(const TableHeader& header) {
  return header.rows / kTableBlockRows + (header.rows % kTableBlockRows != 0 ? 1 : 0);
}

Status WriteTableHeader(std::ostream& out, const TableHeader& header) {
  FixedHeader fixed{};
  fixed.magic = kMagic;
  fixed.name_bytes = static_cast<uint32_t>(header.name.size());
  fixed.optimizer_bytes = static_cast<uint32_t>(header.optimizer.size());
  fixed.dim = header.dim;
  fixed.row_floats = header.row_floats;
  fixed.rows = header.rows;
  fixed.pushes = header.pushes;
  WriteBytes(out, &fixed, sizeof fixed);
  WriteBytes(out, header.name.data(), header.name.size());
  WriteBytes(out, header.optimizer.data(), header.optimizer.size());
  uint32_t crc = Crc32c(0, &fixed, sizeof fixed);
  crc = Crc32c(crc, header.name.data(), header.name.size());
  return WriteCrc(out, Crc32c(crc, header.optimizer.data(), header.optimizer.size()));
}

Status WriteTableBlock(std::ostream& out, const TableBlock& block) {
  const size_t key_bytes = block.keys.size() * sizeof(uint64_t);
  const size_t value_bytes = block.values.size() * sizeof(float);
  WriteBytes(out, block.keys.data(), key_bytes);
  WriteBytes(out, block.values.data(), value_bytes);
  return WriteCrc(out, Crc32c(Crc32c(0, block.keys.data(), key_bytes), block.values.data(), value_bytes));
}

Result<TableHeader> ReadTableHeader(std::istream& in) {
  FixedHeader fixed{};
  if (!ReadBytes(in, &fixed, sizeof fixed)) return Damaged("it ends within the header");
  if (fixed.magic != kMagic) return Damaged("it does not begin with MRTABLE1");
  if (fixed.name_bytes > kMaxNameBytes || fixed.optimizer_bytes > kMaxNameBytes) {
    return Damaged("a name of " + std::to_string(std::max(fixed.name_bytes, fixed.optimizer_bytes)) + " bytes");
  }
  TableHeader header;
  header.name.resize(fixed.name_bytes);
  header.optimizer.resize(fixed.optimizer_bytes);
  if (!ReadBytes(in, header.name.data(), header.name.size()) ||
      !ReadBytes(in, header.optimizer.data(), header.optimizer.size())) {
    return Damaged("it ends within the header");
  }
  uint32_t crc = Crc32c(0, &fixed, sizeof fixed);
  crc = Crc32c(crc, header.name.data(), header.name.size());
  MR_TRY(CheckCrc(in, Crc32c(crc, header.optimizer.data(), header.optimizer.size()), "the header"));
  if (fixed.dim == 0 || fixed.row_floats < fixed.dim || fixed.row_floats > kMaxRowFloats) {
    return Damaged("rows of " + std::to_string(fixed.dim) + " weights in " + std::to_string(fixed.row_floats) +
                   " floats");
  }
  header.dim = fixed.dim;
  header.row_floats = fixed.row_floats;
  header.rows = fixed.rows;
  header.pushes = fixed.pushes;
  return header;
}

Status ReadTableBlock(std::istream& in, const TableHeader& header, uint64_t index, TableBlock* block) {
  const uint64_t rows = std::min<uint64_t>(kTableBlockRows, header.rows - index * kTableBlockRows);
  const bool first = index == 0;
  const uint64_t last_key = first || block->keys.empty() ? 0 : block->keys.back();
  block->keys.resize(rows);
  if (!ReadBytes(in, block->keys.data(), rows * sizeof(uint64_t))) return Damaged("it ends within " + BlockName(index));
  uint32_t crc = Crc32c(0, block->keys.data(), rows * sizeof(uint64_t));
  // A block of the widest rows is gigabytes: take memory only as the bytes arrive.
  const size_t floats = rows * header.row_floats;
  block->values.clear();
  for (size_t done = 0; done < floats;) {
    const size_t now = std::min<size_t>(floats - done, size_t{1} << 18);
    block->values.resize(done + now);
    if (!ReadBytes(in, block->values.data() + done, now * sizeof(float))) {
      return Damaged("it ends within " + BlockName(index));
    }
    crc = Crc32c(crc, block->values.data() + done, now * sizeof(float));
    done += now;
  }
  MR_TRY(CheckCrc(in, crc, BlockName(index)));
  for (size_t i = 0; i < rows; ++i) {
    const bool has_before = i > 0 || !first;
    const uint64_t before = i > 0 ? block->keys[i - 1] : last_key;
    if (has_before && block->keys[i] <= before) return Damaged("keys of " + BlockName(index) + " do not ascend");
  }
  return Status::Ok();
}

}  // namespace millrace
