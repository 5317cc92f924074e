#include "reader/multi_pass_reader.h"

namespace millrace {

Result<bool> MultiPassReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  for (;;) {
    reader().Expect(expected());
    MR_ASSIGN(const bool more, reader().ReadNext(out, stop));
    if (more) return true;
    if (++done_ >= pass_num_) return false;
    if (stop.stop_requested()) return Cancelled("stopped between passes");
    MR_TRY(reader().ReInit());
  }
}

Status MultiPassReader::Restart() {
  done_ = 0;
  // The position after completely read passes: the number of passes started may depend on a reading thread.
  return reader().StartPass(pass() * static_cast<uint64_t>(pass_num_));
}

}  // namespace millrace
