// A loss with three predictions: the "entire space multi-task model" of Ma et al. 2018, which learns how often a shown
// item is clicked and how often a clicked one is bought, from all shows: the second share is learnt through the product
// of both, the share of shows that end in a purchase.

#include "model/lowering.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;

constexpr std::string_view kWhere = "loss";

/// LOG_LOSS of a prediction, example by example.
OpDesc LogLoss(const std::string& prediction, const std::string& label, const std::string& out) {
  return MakeOp("log_loss", {{"Predicted", {prediction}}, {"Labels", {label}}}, {{"Loss", {out}}},
                {{"epsilon", 1e-7F}});
}

/// Reads the logits of a click and of a purchase after it, and the slot that says who bought; the label is the click.
std::optional<ExampleLoss> LowerEsmm(Lowering& lowering, const LossPart& part) {
  if (part.in.size() != 3) {
    lowering.Problem(kWhere,
                     "in: Esmm reads the logits of click and purchase and the slot of purchases, three; these "
                     "are " +
                         std::to_string(part.in.size()));
    return std::nullopt;
  }
  const std::string& bought = part.in[2];
  const std::vector<OpDesc> ops = {
      MakeOp("sigmoid", {{"X", {part.in[0]}}}, {{"Out", {"prediction.ctr"}}}),
      MakeOp("sigmoid", {{"X", {part.in[1]}}}, {{"Out", {"prediction.cvr"}}}),
      MakeOp("elementwise_mul", {{"X", {"prediction.ctr"}}, {"Y", {"prediction.cvr"}}},
             {{"Out", {"prediction.ctcvr"}}}),
      LogLoss("prediction.ctr", part.label, "loss.click"),
      LogLoss("prediction.ctcvr", bought, "loss.purchase"),
      MakeOp("scale", {{"X", {"loss.purchase"}}}, {{"Out", {"loss.weighted"}}},
             {{"scale", part.attrs.Get<float>("purchase_weight")}}),
      MakeOp("elementwise_add", {{"X", {"loss.click"}}, {"Y", {"loss.weighted"}}}, {{"Out", {"loss.each"}}}),
  };
  for (const OpDesc& op : ops) {
    if (!lowering.Append(kWhere, op)) return std::nullopt;
  }
  return ExampleLoss{"loss.each", {"prediction.ctr", "prediction.cvr", "prediction.ctcvr"}};
}

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  return registries.losses.Add(
      "Esmm", "clicks, and purchases over all shows",
      {.lower = LowerEsmm, .attrs = {{"purchase_weight", 1.0F, "what a purchase's loss counts beside a click's"}}});
}
