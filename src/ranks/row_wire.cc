#include "ranks/row_wire.h"

namespace millrace {

void PutRows(std::span<const float> rows, const TableShape& shape, WireFloat as, WireWriter* out) {
  const size_t whole = CountColumns(shape);
  if (whole == 0 || as == WireFloat::kFloat32) return out->PutFloats(rows, as);
  const auto dim = static_cast<size_t>(shape.dim);
  out->Put(static_cast<uint64_t>(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) i % dim < whole ? out->Put(rows[i]) : out->Put(ToBFloat16(rows[i]));
}

void GetRows(WireReader* in, const TableShape& shape, WireFloat as, std::vector<float>* rows) {
  if (CountColumns(shape) == 0 || as == WireFloat::kFloat32) return in->GetFloats(as, rows);
  const auto dim = static_cast<size_t>(shape.dim);
  const auto count = in->Get<uint64_t>();
  if (count % dim != 0 || count > in->rest().size() / sizeof(uint16_t)) in->Fail();
  rows->resize(in->ok() ? count : 0);
  for (size_t at = 0; at < rows->size(); at += dim) GetRow(in, shape, as, rows->data() + at);
}

}  // namespace millrace
