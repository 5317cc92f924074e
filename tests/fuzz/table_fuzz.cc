// Saved tables. Whatever the bytes are: Load ends in Ok or kBadData (kInvalidConfig for another kind of table), and
// what was loaded saves to bytes that load to the same bytes. Checksums are put right first in half of the inputs,
// since no fuzzer guesses them.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>

#include "core/crc32c.h"
#include "fuzz/demand.h"
#include "model.pb.h"
#include "table/hash_table.h"
#include "table/table_io.h"

namespace millrace {
namespace {

template <class T>
T At(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

void PutCrc(std::string& bytes, size_t begin, size_t end) {
  if (end + 4 > bytes.size()) return;
  const uint32_t crc = Crc32c(0, bytes.data() + begin, end - begin);
  std::memcpy(bytes.data() + end, &crc, sizeof crc);
}

void RepairChecksums(std::string& bytes) {
  if (bytes.size() < 48) return;
  const size_t fixed = bytes[7] == '1' ? 40 : bytes[7] == '3' ? 56 : 48;
  const size_t names = size_t{At<uint32_t>(bytes, 8)} + At<uint32_t>(bytes, 12);
  const size_t row_bytes = 8 + size_t{At<uint32_t>(bytes, 20)} * 4;
  uint64_t rows = At<uint64_t>(bytes, 24);
  size_t at = fixed + names;
  PutCrc(bytes, 0, at);
  for (at += 4; rows > 0 && at < bytes.size();) {
    const uint64_t now = std::min<uint64_t>(rows, kTableBlockRows);
    PutCrc(bytes, at, at + now * row_bytes);
    at += now * row_bytes + 4;
    rows -= now;
  }
}

std::unique_ptr<SparseTable> Make(uint8_t kind) {
  TableDesc desc;
  desc.set_name("t");
  desc.set_dim(1 + kind % 3);
  desc.set_initial_rows(0);
  if (kind % 2 == 0) {
    desc.mutable_optimizer()->mutable_sgd();
  } else {
    desc.mutable_optimizer()->mutable_adagrad();
  }
  return std::move(CreateHashTable(desc, 1)).value();
}

std::string Saved(const SparseTable& table) {
  std::ostringstream out;
  Demand(table.Save(kAllShards, TableContent::kAll, out).ok(), "a loaded table does not save");
  return out.str();
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 0x80) == 0) RepairChecksums(bytes);
  const std::unique_ptr<SparseTable> table = Make(data[0] & 0x7F);
  std::istringstream in(bytes);
  const Status status = table->Load(kAllShards, in, LoadMode::kNew);
  if (!status.ok()) {
    Demand(status.code() == StatusCode::kBadData || status.code() == StatusCode::kInvalidConfig, "another failure");
    return 0;
  }
  const std::string saved = Saved(*table);
  const std::unique_ptr<SparseTable> again = Make(data[0] & 0x7F);
  std::istringstream in_again(saved);
  Demand(again->Load(kAllShards, in_again, LoadMode::kNew).ok(), "a saved table does not load");
  Demand(Saved(*again) == saved, "the second save differs");
  std::istringstream behind(bytes);
  Demand(again->Load(kAllShards, behind, LoadMode::kBehind).ok(), "what is there does not load behind itself");
  Demand(Saved(*again) == saved, "rows that were there are others");
  return 0;
}
