#pragma once

#include <array>
#include <string>

#include "ops/kernel.h"

namespace millrace {

/// How a window moves over images: strides, paddings, dilations as the attributes of conv2d and pool2d say them.
class WindowRule {
 public:
  /// kInvalidConfig for attributes that make no window. `dilations` of pool2d are 1.
  static Result<WindowRule> Read(const InferShapeContext& context, bool has_dilations);
  /// The same of attributes that Read has accepted.
  static WindowRule Of(const OpView& op, bool has_dilations);

  bool channels_last() const { return channels_last_; }
  /// Axis of the channels, of the height; the width is the next one.
  int channel_axis() const { return channels_last_ ? 3 : 1; }
  int height_axis() const { return channels_last_ ? 1 : 2; }

  /// What one axis (0: height, 1: width) of `size` becomes under a window of `kernel`; -1 stays. Below 1: nothing fits.
  int64_t OutSize(int axis, int64_t size, int64_t kernel) const;
  /// Pixels added before the first one of an axis.
  int64_t PadBefore(int axis, int64_t size, int64_t kernel) const;

  std::array<int64_t, 2> strides{1, 1};
  std::array<int64_t, 2> dilations{1, 1};
  bool ceil_mode = false;

 private:
  enum class Padding : uint8_t { kExplicit, kSame, kValid };
  int64_t PadSum(int axis, int64_t size, int64_t kernel) const;

  std::array<std::array<int64_t, 2>, 2> pads_{};  ///< before and after
  Padding padding_ = Padding::kExplicit;
  bool channels_last_ = false;
};

/// Adds the attributes that WindowRule reads, and those that Paddle writes beside them.
void AddWindowAttrs(OpBuilder& op, bool has_dilations);

}  // namespace millrace
