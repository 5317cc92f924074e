#include "core/racy.h"

#define MR_RACY
#include "core/row_kernels.inc"

namespace millrace::racy {

extern const Kernels kCheckedKernels;
const Kernels kCheckedKernels = kKernels;

}  // namespace millrace::racy
