// Of builds with ThreadSanitizer; racy_unchecked.cc is for all others.
#include "kernels/racy.h"

#define MR_RACY
#include "kernels/row_kernels.inc"

namespace millrace::racy {

const Kernels& Checked() { return kKernels; }

}  // namespace millrace::racy
