#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/op_kernel.h"

namespace millrace {

/// Runs the kernels of the primitive operators that a composite operator consists of, one after another.
///
/// Temporaries are variables of the frame. One thread at a time.
class CompositeKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context);
  /// kBadData when shapes differ that must be equal; otherwise the first failure of a primitive operator.
  Status Run(const RunContext& context) override;

 private:
  struct EqualShapes {
    std::string names[2];
    const Tensor* tensors[2];
    bool is_made;  ///< a primitive operator writes one of them

    Status Check() const;
  };
  std::vector<EqualShapes> equal_shapes_;
  std::vector<std::unique_ptr<OpKernel>> kernels_;
};

}  // namespace millrace
