#pragma once

#include <memory>

#include "datafeed/data_frame.h"

namespace millrace {

/// A frame as Python holds it: millrace._millrace.Frame.
struct PyFrame {
  std::shared_ptr<const DataFrame> frame;
};

}  // namespace millrace
