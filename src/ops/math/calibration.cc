#include "kernels/calibration.h"

#include "ops/float_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferCalibration(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (x.dims.rank() != 2) return context.Error("X " + x.dims.ToString() + " must be [rows, columns]");
  const std::vector<float> points = context.op().Floats("points");
  if (points.size() != context.op().Floats("values").size()) return context.Error("points and values differ in number");
  const auto does_not_rise = [](float a, float b) { return !(a < b); };
  if (std::adjacent_find(points.begin(), points.end(), does_not_rise) != points.end()) {
    return context.Error("points must rise");
  }
  x.dims = Dims({x.dims[0], 1});
  context.SetOutput("Out", x);
  return Status::Ok();
}

class CalibrationKernel : public BoundKernel<CalibrationKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    points_ = context.op().Floats("points");
    values_ = context.op().Floats("values");
    map_ = {context.op().Float("slope"), context.op().Float("intercept"), points_, values_,
            context.op().Float("center")};
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const int64_t rows = x_.tensor().dims()[0];
    const int64_t columns = rows > 0 ? x_.tensor().numel() / rows : 0;
    float* out = out_->Resize<float>({rows, 1});
    if (columns == 0) return Status::Ok();
    for (int64_t row = 0; row < rows; ++row) out[row] = Calibrated(map_, x[row * columns + columns - 1]);
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  std::vector<float> points_;
  std::vector<float> values_;
  CalibrationMap map_;
};

}  // namespace

void RegisterCalibration(OpRegistry& registry) {
  registry.Add("calibration")
      .Doc(
          "Out is what a calibration makes of the last column of X, a probability: sigmoid(slope * (logit - center) "
          "+ intercept), or, with points, the values of these, and lines between them.")
      .Input("X", "[rows, columns], probabilities")
      .Output("Out", "[rows, 1]")
      .Attr("slope", 1.0F, "factor of the logit")
      .Attr("intercept", 0.0F, "added to it")
      .Attr("center", 0.0F, "taken from the logit before that: keeps digits where a steep line is far from 0")
      .Attr("points", std::vector<float>{}, "probabilities, rising")
      .Attr("values", std::vector<float>{}, "what becomes of them")
      .InferShape(InferCalibration)
      .Apart()
      .Kernel<CalibrationKernel>();
}

}  // namespace millrace
