#pragma once

#include "runtime/op_session.h"

namespace millrace {

/// Every operator there is, sealed.
const OpRegistry& AllOps();

}  // namespace millrace
