#include "ops/registry.h"

#include <glog/logging.h>

#include "ops/builtin_ops.h"

namespace millrace {

const OpRegistry& AllOps() {
  static const OpRegistry registry = [] {
    OpRegistry all;
    RegisterBuiltinOps(all);
    CHECK(all.Seal().ok());
    return all;
  }();
  return registry;
}

}  // namespace millrace
