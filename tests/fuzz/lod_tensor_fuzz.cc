// Paddle's variable files. Whatever the bytes are: a tensor that takes no more memory than they fill and that reads
// back as it is written, or kBadData with the file's name and a byte.
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/demand.h"
#include "runtime/lod_tensor_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Tensor tensor;
  const Result<size_t> taken = ReadLoDTensor(bytes, "w", &tensor);
  if (!taken.ok()) {
    Demand(taken.status().code() == StatusCode::kBadData, "another failure", taken.status().message());
    Demand(taken.status().message().starts_with("w: byte "), "an error without its place", taken.status().message());
    Demand(tensor.empty(), "a refused tensor took memory");
    return 0;
  }
  Demand(*taken <= size, "more bytes taken than there are");
  Demand(static_cast<uint64_t>(tensor.numel()) * SizeOf(tensor.dtype()) <= size, "more values than bytes");
  std::string written;
  AppendLoDTensor(tensor, &written);
  Tensor back;
  const Result<size_t> again = ReadLoDTensor(written, "w", &back);
  Demand(again.ok() && *again == written.size() && back.dims() == tensor.dims(), "written, it does not read");
  std::string rewritten;
  AppendLoDTensor(back, &rewritten);
  Demand(rewritten == written, "the second writing differs");
  return 0;
}
