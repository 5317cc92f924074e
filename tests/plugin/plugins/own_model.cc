// Parts of models of a user's own: a metric that rises, a layer, an initialiser, losses that are right and wrong, and a
// table class.

#include <limits>
#include <memory>
#include <stdexcept>

#include "model/lowering.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

/// Mean prediction of clicks less that of the others: 1 is best.
class Separation final : public Metric {
 public:
  int size() const override { return 4; }
  void Add(const MetricRows& rows, MetricSums& sums) const override {
    for (size_t i = 0; i < rows.predictions.size(); ++i) {
      const size_t at = rows.labels[i] > 0.5F ? 2 : 0;
      sums.Add(at, 1);
      sums.Add(at + 1, rows.predictions[i]);
    }
  }
  double Compute(std::span<const double> sums) const override {
    if (sums[0] <= 0 || sums[2] <= 0) return std::numeric_limits<double>::quiet_NaN();
    return sums[3] / sums[2] - sums[1] / sums[0];
  }
};

/// Out = scale * in * sigmoid(in w + b), [batch, columns].
bool LowerGate(Lowering& lowering, const LayerPart& part) {
  const std::string& name = part.desc.name();
  const CustomLayer& layer = part.desc.custom();
  const std::optional<std::string> in = lowering.JoinedInput(part.where, layer.in(), name + ".in");
  if (!in) return false;
  const int64_t columns = lowering.main().vars().find(*in)->second.dims[1];
  Initializer init = layer.init();
  if (!layer.has_init()) init.set_xavier(true);
  lowering.AddParameter(part.where, name + ".w_0", {columns, columns}, init, true);
  const auto var = [&](const char* of) { return name + "." + of; };
  return lowering.Append(part.where, MakeOp("mul", {{"X", {*in}}, {"Y", {var("w_0")}}}, {{"Out", {var("mul")}}})) &&
         lowering.Append(part.where, MakeOp("sigmoid", {{"X", {var("mul")}}}, {{"Out", {var("gate")}}})) &&
         lowering.Append(part.where,
                         MakeOp("elementwise_mul", {{"X", {*in}}, {"Y", {var("gate")}}}, {{"Out", {var("gated")}}})) &&
         lowering.Append(part.where, MakeOp("scale", {{"X", {var("gated")}}}, {{"Out", {name}}},
                                            {{"scale", part.attrs.Get<float>("scale")}}));
}

/// SIGMOID_CROSS_ENTROPY by another name.
std::optional<ExampleLoss> LowerTwin(Lowering& lowering, const LossPart& part) {
  if (!lowering.Append("loss", MakeOp("sigmoid", {{"X", part.in}}, {{"Out", {"prediction"}}})) ||
      !lowering.Append("loss", MakeOp("sigmoid_cross_entropy_with_logits", {{"X", part.in}, {"Label", {part.label}}},
                                      {{"Out", {"loss.each"}}}))) {
    return std::nullopt;
  }
  return ExampleLoss{"loss.each", {"prediction"}};
}

/// +s, -s, +s, ...
OpDesc MakeAlternating(const InitializerPart& part) {
  const float scale = part.attrs.Get<float>("scale");
  std::vector<float> values;
  for (int64_t i = 0; i < part.dims.numel(); ++i) values.push_back(i % 2 == 0 ? scale : -scale);
  const auto sizes = part.dims.sizes();
  return MakeOp("assign_value", {}, {{"Out", {part.name}}},
                {{"shape", std::vector<int64_t>(sizes.begin(), sizes.end())},
                 {"dtype", static_cast<int64_t>(VarType::FP32)},
                 {"fp32_values", values}});
}

Result<std::unique_ptr<SparseTable>> MakeHalved(const TableDesc& desc, uint64_t seed) {
  TableDesc halved = desc;
  halved.mutable_init()->set_constant(0.5F);
  halved.set_class_name("HashTable");
  return TableFactory::Builtin().Create(halved, seed);
}

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  const std::vector<AttrInfo> scale = {{.name = "scale", .default_value = 1.0F, .doc = "factor of the values"}};
  MR_TRY(registries.metrics.Add("SEPARATION", "how far clicks are predicted above the others",
                                {MetricLabels::kTwo, MetricBetter::kHigher,
                                 [] { return std::unique_ptr<Metric>(std::make_unique<Separation>()); }}));
  MR_TRY(registries.metrics.Add("NoMetric", "is none",
                                {MetricLabels::kAny, MetricBetter::kHigher, [] { return std::unique_ptr<Metric>(); }}));
  MR_TRY(registries.layers.Add("Gate", "lets a share of each value through", {LowerGate, scale}));
  MR_TRY(registries.layers.Add("SilentLayer", "fails", {[](Lowering&, const LayerPart&) { return false; }}));
  MR_TRY(registries.layers.Add("EmptyLayer", "writes nothing", {[](Lowering&, const LayerPart&) { return true; }}));
  MR_TRY(registries.losses.Add("TwinLoss", "sigmoid cross entropy", {LossKind::Reads::kColumn, false, LowerTwin}));
  MR_TRY(registries.losses.Add("UntrueLoss", "names what nothing writes",
                               {.lower = [](Lowering&, const LossPart&) -> std::optional<ExampleLoss> {
                                 return ExampleLoss{"loss.nowhere", {"prediction.nowhere"}};
                               }}));
  MR_TRY(registries.losses.Add("ThrowingLoss", "throws",
                               {.lower = [](Lowering&, const LossPart&) -> std::optional<ExampleLoss> {
                                 throw std::runtime_error("no loss today");
                               }}));
  MR_TRY(registries.initializers.Add("Alternating", "by turns above and below zero", {MakeAlternating, scale}));
  MR_TRY(registries.initializers.Add("Elsewhere", "writes another variable", {[](const InitializerPart& part) {
                                       return MakeOp("fill_constant", {}, {{"Out", {part.name + "x"}}});
                                     }}));
  return registries.tables.Add("HalvedTable", "a HashTable whose rows start at 0.5", MakeHalved);
}
