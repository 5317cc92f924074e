#include "kernels/racy.h"

#define MR_RACY __attribute__((no_sanitize("thread")))
#include "kernels/row_kernels.inc"

namespace millrace::racy {

extern const Kernels kBaselineKernels;
const Kernels kBaselineKernels = kKernels;

}  // namespace millrace::racy
