// For builds with ThreadSanitizer; others use racy_unchecked.cc.
#include "kernels/racy.h"

#define MR_RACY
#include "kernels/row_kernels.inc"

namespace millrace::racy {

const Kernels& Checked() { return kKernels; }

}  // namespace millrace::racy
