#include "kernels/racy.h"

#define MR_RACY
#include "kernels/row_kernels.inc"

namespace millrace::racy {

extern const Kernels kCheckedKernels;
const Kernels kCheckedKernels = kKernels;

}  // namespace millrace::racy
