#include "runtime/lod_tensor_codec.h"

#include <cstring>
#include <limits>

#include "framework.pb.h"
#include "program/var_meta.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

/// The byte size of this many values of any type fits 64 bits.
constexpr uint64_t kMostValues = uint64_t{1} << 59;

template <class T>
void AppendValue(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Reads values from the front of a byte string and tracks the position.
class Cursor {
 public:
  Cursor(std::string_view bytes, std::string_view origin) : bytes_(bytes), origin_(origin) {}

  template <class T>
  Status Read(T* value, const char* what) {
    MR_ASSIGN(const std::string_view raw, Take(sizeof(T), what));
    std::memcpy(value, raw.data(), sizeof(T));
    return Status::Ok();
  }
  Result<std::string_view> Take(uint64_t size, const char* what) {
    if (size > bytes_.size() - at_) {
      return Error(std::string("the file ends within ") + what + ": " + std::to_string(size) + " bytes wanted, " +
                   std::to_string(bytes_.size() - at_) + " left");
    }
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  Status Error(const std::string& message) const {
    return BadData(std::string(origin_) + ": byte " + std::to_string(at_) + ": " + message);
  }
  size_t at() const { return at_; }

 private:
  std::string_view bytes_;
  std::string_view origin_;
  size_t at_ = 0;
};

Status ReadVersion(Cursor& cursor, const char* of) {
  uint32_t version = 0;
  MR_TRY(cursor.Read(&version, "a version"));
  if (version == 0) return Status::Ok();
  return cursor.Error(std::string("version of the ") + of + " is 0 in files that this program reads, not " +
                      std::to_string(version));
}

Status ReadOffsets(const Cursor& cursor, uint64_t levels, std::string_view bytes, std::vector<uint32_t>* lod) {
  if (levels > 1) {
    return cursor.Error("a LoD of " + std::to_string(levels) + " levels; one level is supported");
  }
  if (bytes.size() % sizeof(uint64_t) != 0) {
    return cursor.Error("a LoD level of " + std::to_string(bytes.size()) + " bytes, which are no whole offsets");
  }
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t offset = 0;
    std::memcpy(&offset, bytes.data() + at, sizeof(offset));
    if (offset > std::numeric_limits<uint32_t>::max()) {
      return cursor.Error("a LoD offset of " + std::to_string(offset) + "; at most 2^32 - 1 is supported");
    }
    lod->push_back(static_cast<uint32_t>(offset));
  }
  return Status::Ok();
}

}  // namespace

void AppendLoDTensorHead(const Tensor& tensor, std::string* bytes) {
  AppendValue<uint32_t>(0, bytes);
  AppendValue<uint64_t>(tensor.has_lod() ? 1 : 0, bytes);
  if (tensor.has_lod()) AppendValue<uint64_t>(tensor.lod().size() * sizeof(uint64_t), bytes);
  for (const uint32_t offset : tensor.lod()) AppendValue<uint64_t>(offset, bytes);
  AppendValue<uint32_t>(0, bytes);
  VarType::TensorDesc desc;
  desc.set_data_type(ToVarType(tensor.dtype()));
  for (const int64_t size : tensor.dims().sizes()) desc.add_dims(size);
  const std::string message = desc.SerializeAsString();
  AppendValue<int32_t>(static_cast<int32_t>(message.size()), bytes);
  *bytes += message;
}

void AppendLoDTensor(const Tensor& tensor, std::string* bytes) {
  AppendLoDTensorHead(tensor, bytes);
  bytes->append(static_cast<const char*>(tensor.raw_data()), BytesOf(tensor));
}

Result<size_t> ReadLoDTensor(std::string_view bytes, std::string_view origin, Tensor* tensor,
                             std::vector<uint32_t>* lod) {
  Cursor cursor(bytes, origin);
  if (lod != nullptr) lod->clear();
  MR_TRY(ReadVersion(cursor, "variable"));
  uint64_t levels = 0;
  MR_TRY(cursor.Read(&levels, "the number of LoD levels"));
  for (uint64_t level = 0; level < levels; ++level) {
    uint64_t size = 0;
    MR_TRY(cursor.Read(&size, "the size of a LoD level"));
    MR_ASSIGN(const std::string_view offsets, cursor.Take(size, "a LoD level"));
    if (lod != nullptr) MR_TRY(ReadOffsets(cursor, levels, offsets, lod));
  }
  MR_TRY(ReadVersion(cursor, "tensor"));
  int32_t desc_size = 0;
  MR_TRY(cursor.Read(&desc_size, "the size of the tensor's description"));
  if (desc_size < 0) return cursor.Error("the tensor's description has the size " + std::to_string(desc_size));
  MR_ASSIGN(const std::string_view message, cursor.Take(static_cast<uint64_t>(desc_size), "the tensor's description"));
  VarType::TensorDesc desc;
  if (!desc.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return cursor.Error("the tensor's description is not a TensorDesc message");
  }
  if (desc.dims_size() > Dims::kMaxRank) {
    return cursor.Error("a tensor of " + std::to_string(desc.dims_size()) + " axes; at most " +
                        std::to_string(Dims::kMaxRank) + " are supported");
  }
  if (!IsTensorType(desc.data_type())) {
    return cursor.Error("values of type " + VarType::Type_Name(desc.data_type()) + " are not supported");
  }
  const DType type = ToDType(desc.data_type());
  Dims dims;
  // Also check sizes next to a 0: products of axes could overflow later.
  uint64_t filled = 1;
  bool is_empty = false;
  for (const int64_t size : desc.dims()) {
    if (size < 0 || (size > 0 && filled > kMostValues / static_cast<uint64_t>(size))) {
      return cursor.Error("a size of " + std::to_string(size) + " does not fit a file of " +
                          std::to_string(bytes.size()) + " bytes");
    }
    if (size > 0) filled *= static_cast<uint64_t>(size);
    is_empty = is_empty || size == 0;
    dims.push_back(size);
  }
  const uint64_t count = is_empty ? 0 : filled;
  MR_ASSIGN(const std::string_view values, cursor.Take(count * SizeOf(type), "the values"));
  Tensor stored;
  stored.View(type, dims, values.data());
  MR_TRY(CopyFromHost(stored, tensor));
  return cursor.at();
}

}  // namespace millrace
