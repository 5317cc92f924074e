#include "ops/nn/image_window.h"

#include <algorithm>

namespace millrace {
namespace {

std::string PaddingAlgorithm(const OpView& op) { return op.String("padding_algorithm"); }

/// So that no sum or product of sizes, strides and dilations overflows.
constexpr int64_t kMostPixels = int64_t{1} << 30;

Status CheckPair(const InferShapeContext& context, const char* name, int64_t least) {
  const std::vector<int64_t> values = context.op().Ints(name);
  const auto fits = [least](int64_t value) { return value >= least && value <= kMostPixels; };
  if (values.size() == 2 && std::all_of(values.begin(), values.end(), fits)) return Status::Ok();
  return context.Error(std::string(name) + " must be two numbers from " + std::to_string(least) + " to 2^30" +
                       ", for height and width; it is " + ShowAttr(values));
}

}  // namespace

Result<WindowRule> WindowRule::Read(const InferShapeContext& context, bool has_dilations) {
  const OpView& op = context.op();
  const std::string format = op.String("data_format");
  if (format != "NCHW" && format != "AnyLayout" && format != "NHWC") {
    return context.Error("data_format is \"" + format + "\"; supported are \"NCHW\" and \"NHWC\"");
  }
  const std::string padding = PaddingAlgorithm(op);
  if (padding != "EXPLICIT" && padding != "SAME" && padding != "VALID") {
    return context.Error("padding_algorithm is \"" + padding +
                         "\"; supported are \"EXPLICIT\", \"SAME\" and \"VALID\"");
  }
  MR_TRY(CheckPair(context, "strides", 1));
  if (has_dilations) MR_TRY(CheckPair(context, "dilations", 1));
  const std::vector<int64_t> pads = op.Ints("paddings");
  const auto fits = [](int64_t pad) { return pad >= 0 && pad <= kMostPixels; };
  if ((pads.size() != 2 && pads.size() != 4) || !std::all_of(pads.begin(), pads.end(), fits)) {
    return context.Error(
        "paddings must be two numbers (height, width) or four (top, bottom, left, right) from 0 to 2^30; they are " +
        ShowAttr(pads));
  }
  return Of(op, has_dilations);
}

WindowRule WindowRule::Of(const OpView& op, bool has_dilations) {
  WindowRule rule;
  rule.channels_last_ = op.String("data_format") == "NHWC";
  const std::string padding = PaddingAlgorithm(op);
  rule.padding_ = padding == "SAME" ? Padding::kSame : padding == "VALID" ? Padding::kValid : Padding::kExplicit;
  const std::vector<int64_t> strides = op.Ints("strides");
  std::copy_n(strides.begin(), 2, rule.strides.begin());
  if (has_dilations && rule.padding_ != Padding::kSame) {  // with SAME, Paddle takes dilations of 1
    const std::vector<int64_t> dilations = op.Ints("dilations");
    std::copy_n(dilations.begin(), 2, rule.dilations.begin());
  }
  const std::vector<int64_t> pads = op.Ints("paddings");
  for (size_t axis = 0; axis < 2; ++axis) {
    rule.pads_[axis] = {pads[pads.size() == 2 ? axis : 2 * axis], pads[pads.size() == 2 ? axis : 2 * axis + 1]};
  }
  return rule;
}

int64_t WindowRule::PadSum(int axis, int64_t size, int64_t kernel) const {
  const auto i = static_cast<size_t>(axis);
  if (padding_ == Padding::kValid) return 0;
  if (padding_ == Padding::kExplicit) return pads_[i][0] + pads_[i][1];
  const int64_t outputs = (size + strides[i] - 1) / strides[i];
  return std::max<int64_t>((outputs - 1) * strides[i] + kernel - size, 0);
}

int64_t WindowRule::OutSize(int axis, int64_t size, int64_t kernel) const {
  if (size < 0) return size;
  if (size > kMostPixels || kernel > kMostPixels) return 0;
  const auto i = static_cast<size_t>(axis);
  const int64_t reach = dilations[i] * (kernel - 1) + 1;
  const int64_t room = size + PadSum(axis, size, kernel) - reach;
  if (room < 0) return 0;
  return (room + (ceil_mode ? strides[i] - 1 : 0)) / strides[i] + 1;
}

int64_t WindowRule::PadBefore(int axis, int64_t size, int64_t kernel) const {
  if (padding_ == Padding::kExplicit) return pads_[static_cast<size_t>(axis)][0];
  return PadSum(axis, size, kernel) / 2;
}

void AddWindowAttrs(OpBuilder& op, bool has_dilations) {
  op.Attr("strides", std::vector<int64_t>{1, 1}, "steps of the window")
      .Attr("paddings", std::vector<int64_t>{0, 0},
            "pixels around an image: height, width; or top, bottom, left, right")
      .Attr("padding_algorithm", std::string("EXPLICIT"), "SAME: as many outputs as steps; VALID: no padding")
      .Attr("data_format", std::string("NCHW"), "order of the axes: NCHW or NHWC");
  if (has_dilations) op.Attr("dilations", std::vector<int64_t>{1, 1}, "steps within the window");
}

}  // namespace millrace
