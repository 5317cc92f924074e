#include "program/model_defaults.h"

#include <algorithm>

#include "core/lower_case.h"

namespace millrace {

int DimOf(const TableDesc& table) {
  constexpr int kBeforeEmbedx = 3;  // show, click, embed
  if (!table.has_accessor()) return table.dim();
  return static_cast<int>(table.accessor().embedx_dim()) + kBeforeEmbedx;
}

int SlotWidthOf(const EmbeddingLayer& layer, const TableDesc& table) {
  constexpr int kCounts = 2;
  return DimOf(table) - (table.has_accessor() && !layer.use_cvm() ? kCounts : 0);
}

Initializer InitOf(const TableDesc& table) {
  Initializer init = table.init();
  if (init.kind_case() == Initializer::KIND_NOT_SET) init.set_uniform(0.01f);
  return init;
}

Initializer InitOf(const FcLayer& layer) {
  Initializer init = layer.init();
  if (!layer.has_init()) init.set_xavier(true);
  return init;
}

Initializer BiasInitOf(const FcLayer& layer) {
  Initializer init = layer.bias_init();
  if (!layer.has_bias_init()) init.set_constant(0);
  return init;
}

int ClassesRead(const ModelDesc& model, const LossDesc& loss) {
  const bool is_of_classes = loss.kind() == LossDesc::CROSS_ENTROPY || loss.kind() == LossDesc::SOFTMAX_CROSS_ENTROPY;
  if (!is_of_classes || loss.has_class_name() || loss.in_size() != 1) return 0;
  std::string name = loss.in(0);
  // A layer reads those before it.
  for (auto layer = model.layer().rbegin(); layer != model.layer().rend(); ++layer) {
    if (layer->name() != name) continue;
    if (!layer->fc().units().empty()) return *layer->fc().units().rbegin();
    if (!layer->has_activation()) return 0;
    name = layer->activation().in();
  }
  return 0;
}

std::string NameMistake(const std::string& name) {
  const auto fits = [](char c) { return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.'; };
  if (!name.empty() && std::all_of(name.begin(), name.end(), fits)) return "";
  return "\"" + name + "\" is no name: letters, digits, \"_\", \"-\" and \".\" make one";
}

std::vector<MetricOfLoss> MetricsOf(const ModelDesc& model) {
  std::vector<MetricOfLoss> all;
  std::vector<std::string> bases;
  const auto add = [&](int metric, int loss, std::string name) {
    bases.push_back(name);
    const auto same = std::count(bases.begin(), bases.end(), name);
    all.push_back({metric, loss, same > 1 ? name + "_" + std::to_string(same) : std::move(name)});
  };
  for (int i = 0; i < model.metric_size(); ++i) {
    const MetricDesc& metric = model.metric(i);
    const std::string kind =
        LowerCase(metric.has_class_name() ? metric.class_name() : MetricDesc::Kind_Name(metric.kind()));
    const std::string own = metric.name().empty() ? kind : metric.name();
    if (model.loss_size() < 2) {
      const bool is_there = metric.loss().empty() || (model.loss_size() == 1 && model.loss(0).name() == metric.loss());
      if (is_there) add(i, model.loss_size() - 1, own);
      continue;
    }
    if (metric.loss().empty() && !metric.in().empty()) {
      add(i, -1, own);
      continue;
    }
    for (int loss = 0; loss < model.loss_size(); ++loss) {
      const std::string& of = model.loss(loss).name();
      if (metric.loss().empty() || metric.loss() == of) {
        const bool is_named = !metric.loss().empty() && !metric.name().empty();
        add(i, loss, is_named ? own : of + "/" + own);
      }
    }
  }
  return all;
}

}  // namespace millrace
