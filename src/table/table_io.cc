#include "table/table_io.h"

#include <algorithm>
#include <array>
#include <bit>
#include <istream>
#include <ostream>
#include <span>
#include <utility>

#include "core/crc32c.h"

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little, "tables are written as they lie in memory");

using Magic = std::array<char, 8>;
constexpr Magic kMagic = {'M', 'R', 'T', 'A', 'B', 'L', 'E', '2'};
constexpr Magic kMagicChanges = {'M', 'R', 'T', 'A', 'B', 'L', 'E', '3'};
constexpr Magic kMagicByKey = {'M', 'R', 'T', 'A', 'B', 'L', 'E', '1'};
constexpr uint32_t kMaxNameBytes = 1 << 16;
constexpr uint32_t kMaxRowFloats = 1 << 20;

struct FixedHeader {
  Magic magic;
  uint32_t name_bytes;
  uint32_t optimizer_bytes;
  uint32_t dim;
  uint32_t row_floats;
  uint64_t rows;
  uint64_t pushes;
  // Missing in a file sorted only by key.
  uint32_t virtual_shards;
  uint16_t begin_shard;
  uint16_t end_shard;
  // Only in a file of changes.
  uint64_t since;
};
static_assert(sizeof(FixedHeader) == 56);
constexpr size_t kBytesByKey = 40;
constexpr size_t kBytesOfAll = 48;

size_t BytesOf(const Magic& magic) {
  if (magic == kMagicByKey) return kBytesByKey;
  return magic == kMagicChanges ? sizeof(FixedHeader) : kBytesOfAll;
}

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

Status CheckShards(const FixedHeader& fixed) {
  if (fixed.virtual_shards != kVirtualShards) {
    return Damaged("its keys are spread over " + std::to_string(fixed.virtual_shards) + " virtual shards, not " +
                   std::to_string(kVirtualShards));
  }
  if (fixed.begin_shard < fixed.end_shard && fixed.end_shard <= kVirtualShards) return Status::Ok();
  return Damaged("virtual shards from " + std::to_string(fixed.begin_shard) + " to before " +
                 std::to_string(fixed.end_shard));
}

}  // namespace

Result<TableWriter> TableWriter::Create(std::ostream& out, const TableHeader& header) {
  FixedHeader fixed{};
  fixed.magic = header.since ? kMagicChanges : kMagic;
  fixed.name_bytes = static_cast<uint32_t>(header.name.size());
  fixed.optimizer_bytes = static_cast<uint32_t>(header.optimizer.size());
  fixed.dim = header.dim;
  fixed.row_floats = header.row_floats;
  fixed.rows = header.rows;
  fixed.pushes = header.pushes;
  fixed.virtual_shards = kVirtualShards;
  fixed.begin_shard = static_cast<uint16_t>(header.shards.begin);
  fixed.end_shard = static_cast<uint16_t>(header.shards.end);
  fixed.since = header.since.value_or(0);
  const size_t fixed_bytes = BytesOf(fixed.magic);
  WriteBytes(out, &fixed, fixed_bytes);
  WriteBytes(out, header.name.data(), header.name.size());
  WriteBytes(out, header.optimizer.data(), header.optimizer.size());
  uint32_t crc = Crc32c(0, &fixed, fixed_bytes);
  crc = Crc32c(crc, header.name.data(), header.name.size());
  MR_TRY(WriteCrc(out, Crc32c(crc, header.optimizer.data(), header.optimizer.size())));
  TableWriter writer(out, header.row_floats);
  const uint64_t most = std::min<uint64_t>(header.rows, kTableBlockRows);
  writer.block_.keys.reserve(most);
  writer.block_.values.reserve(most * header.row_floats);
  return writer;
}

Status TableWriter::Add(uint64_t key, const float* row) {
  block_.keys.push_back(key);
  block_.values.insert(block_.values.end(), row, row + row_floats_);
  return block_.keys.size() == kTableBlockRows ? Finish() : Status::Ok();
}

Status TableWriter::Finish() {
  if (block_.keys.empty()) return Status::Ok();
  const size_t key_bytes = block_.keys.size() * sizeof(uint64_t);
  const size_t value_bytes = block_.values.size() * sizeof(float);
  WriteBytes(*out_, block_.keys.data(), key_bytes);
  WriteBytes(*out_, block_.values.data(), value_bytes);
  const uint32_t crc = Crc32c(Crc32c(0, block_.keys.data(), key_bytes), block_.values.data(), value_bytes);
  block_.keys.clear();
  block_.values.clear();
  return WriteCrc(*out_, crc);
}

Result<TableReader> TableReader::Open(std::istream& in) {
  FixedHeader fixed{};
  if (!ReadBytes(in, &fixed, kBytesByKey)) return Damaged("it ends within the header");
  TableHeader header;
  header.by_key = fixed.magic == kMagicByKey;
  if (!header.by_key && fixed.magic != kMagic && fixed.magic != kMagicChanges) {
    return Damaged("it begins with none of MRTABLE1, MRTABLE2 and MRTABLE3");
  }
  const size_t fixed_bytes = BytesOf(fixed.magic);
  if (!ReadBytes(in, &fixed.virtual_shards, fixed_bytes - kBytesByKey)) return Damaged("it ends within the header");
  if (fixed.name_bytes > kMaxNameBytes || fixed.optimizer_bytes > kMaxNameBytes) {
    return Damaged("a name of " + std::to_string(std::max(fixed.name_bytes, fixed.optimizer_bytes)) + " bytes");
  }
  header.name.resize(fixed.name_bytes);
  header.optimizer.resize(fixed.optimizer_bytes);
  if (!ReadBytes(in, header.name.data(), header.name.size()) ||
      !ReadBytes(in, header.optimizer.data(), header.optimizer.size())) {
    return Damaged("it ends within the header");
  }
  uint32_t crc = Crc32c(0, &fixed, fixed_bytes);
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
  if (!header.by_key) {
    MR_TRY(CheckShards(fixed));
    header.shards = {fixed.begin_shard, fixed.end_shard};
  }
  if (fixed.magic == kMagicChanges) header.since = fixed.since;
  return TableReader(in, std::move(header));
}

uint64_t TableReader::RowsToExpect() const {
  const std::istream::pos_type here = in_->tellg();
  in_->seekg(0, std::ios::end);
  const std::istream::pos_type end = in_->tellg();
  in_->seekg(here);
  if (!*in_) {
    in_->clear();  // a stream without positions
    return 0;
  }
  const auto bytes = static_cast<uint64_t>(end - here);
  return std::min(header_.rows - rows_, bytes / (sizeof(uint64_t) + header_.row_floats * sizeof(float)));
}

Result<const TableBlock*> TableReader::Next() {
  if (rows_ == header_.rows) return nullptr;
  MR_TRY(ReadBlock(std::min<uint64_t>(kTableBlockRows, header_.rows - rows_)));
  MR_TRY(CheckOrder());
  rows_ += block_.keys.size();
  last_key_ = block_.keys.back();
  ++blocks_;
  return &block_;
}

Status TableReader::ReadBlock(uint64_t rows) {
  const std::string name = "block " + std::to_string(blocks_);
  block_.keys.resize(rows);
  if (!ReadBytes(*in_, block_.keys.data(), rows * sizeof(uint64_t))) return Damaged("it ends within " + name);
  uint32_t crc = Crc32c(0, block_.keys.data(), rows * sizeof(uint64_t));
  // A block of the widest rows is gigabytes, so allocate only as data arrives.
  const size_t floats = rows * header_.row_floats;
  for (size_t done = 0; done < floats;) {
    const size_t now = std::min<size_t>(floats - done, size_t{1} << 18);
    if (block_.values.size() < done + now) block_.values.resize(done + now);
    const std::span<float> part(block_.values.data() + done, now);
    if (!ReadBytes(*in_, part.data(), part.size_bytes())) return Damaged("it ends within " + name);
    crc = Crc32c(crc, part.data(), part.size_bytes());
    done += now;
  }
  block_.values.resize(floats);
  return CheckCrc(*in_, crc, name);
}

Status TableReader::CheckOrder() const {
  // A virtual shard is the top of the hash: rows ascend by it, then by key.
  const auto rank = [this](uint64_t key) { return std::pair(header_.by_key ? uint32_t{0} : VirtualShardOf(key), key); };
  bool has_before = blocks_ > 0;
  auto before = rank(last_key_);
  for (const uint64_t key : block_.keys) {
    const auto now = rank(key);
    if (has_before && now <= before) return Damaged("keys of block " + std::to_string(blocks_) + " do not ascend");
    if (!header_.by_key && !header_.shards.Has(now.first)) {
      return Damaged("key " + std::to_string(key) + " of block " + std::to_string(blocks_) + " is of virtual shard " +
                     std::to_string(now.first) + ", which the file is not to hold");
    }
    before = now;
    has_before = true;
  }
  return Status::Ok();
}

}  // namespace millrace
