#include "reader/multi_pass_reader.h"

namespace millrace {

Result<bool> MultiPassReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  for (;;) {
    reader().Expect(expected());
    MR_ASSIGN(const bool more, reader().ReadNext(out, stop));
    if (more) return true;
    if (++pass_ >= pass_num_) return false;
    if (stop.stop_requested()) return Cancelled("stopped between passes");
    MR_TRY(reader().ReInit());
  }
}

Status MultiPassReader::Restart() {
  pass_ = 0;
  return reader().ReInit();
}

}  // namespace millrace
