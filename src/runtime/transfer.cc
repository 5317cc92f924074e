#include "runtime/transfer.h"

namespace millrace {
namespace {

/// Whether a tensor was never set; an empty tensor has a size of 0.
bool HasNoValue(const Tensor& tensor) { return tensor.empty() && tensor.numel() > 0; }

}  // namespace

Status CopyFromHost(const Tensor& from, Tensor* to, Stream* stream) {
  if (HasNoValue(from)) return Status::Ok();
  void* const values = to->ResizeRaw(from.dtype(), from.dims());
  to->set_lod(from.lod());
  if (stream != nullptr) return stream->CopyFromHost(values, from.raw_data(), BytesOf(from));
  return to->device().CopyFromHost(values, from.raw_data(), BytesOf(from));
}

Status CopyToHost(const Tensor& from, Tensor* to) {
  if (HasNoValue(from)) return Status::Ok();
  void* const values = to->ResizeRaw(from.dtype(), from.dims());
  to->set_lod(from.lod());
  return from.device().CopyToHost(values, from.raw_data(), BytesOf(from));
}

Result<const Tensor*> HostView::CopyOf(const Tensor& tensor) {
  if (HasNoValue(tensor)) return &tensor;
  if (copy_.empty()) copy_ = Tensor(tensor.device().host_memory());
  MR_TRY(CopyToHost(tensor, &copy_));
  return &copy_;
}

}  // namespace millrace
