#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dims.h"
#include "core/registry.h"
#include "model.pb.h"
#include "program/op_registry.h"

namespace millrace {

class Lowering;

/// What a part of a model says in its `attrs`, with the defaults of its class where it says nothing.
class PartAttrs {
 public:
  using Values = std::map<std::string, AttrValue, std::less<>>;
  explicit PartAttrs(Values values) : values_(std::move(values)) {}

  /// An attribute that the class registered, as the type of its default: Get<float>("gamma"). Throws for others, which
  /// is reported as the class's mistake.
  template <class T>
  const T& Get(const std::string& name) const {
    return std::get<T>(values_.at(name));
  }

 private:
  Values values_;
};

/// A layer that is lowered: its operators are to write a variable of its name.
struct LayerPart {
  const std::string& where;  ///< what mistakes begin with: `layer "h"`
  const LayerDesc& desc;
  const PartAttrs& attrs;
};

/// A kind of layers. `lower` appends operators (Lowering::Append) and parameters (AddParameter); false, with the
/// mistake noted (Problem), when it cannot.
struct LayerKind {
  bool (*lower)(Lowering&, const LayerPart&) = nullptr;
  std::vector<AttrInfo> attrs = {};
};

/// Kinds of layers by name: the field of LayerDesc.kind, or CustomLayer.class_name.
class LayerRegistry : public Registry<LayerKind> {
 public:
  LayerRegistry() : Registry("layer of the class") {}
};

/// A loss that is lowered.
struct LossPart {
  const std::vector<std::string>& in;  ///< variables, [batch, columns] floats
  const std::string& label;            ///< a variable, [batch, 1]
  const PartAttrs& attrs;
  /// What mistakes begin with, and what the variables are called that it makes: `loss` "loss" and `prediction`
  /// "prediction" in a job with one loss, "loss.income" and "prediction.income" in one with several.
  const std::string& where;
  const std::string& loss;
  std::string prediction;

  /// What is to be added to the logit of the prediction, a click's share: examples of one label were left out
  /// (ModelDesc.downsample). Only the kinds of Millrace are asked for it.
  float logit_shift = 0;

  /// For the loss of each example.
  std::string each() const { return loss + ".each"; }
};

/// What a loss gives: the loss of each example, [batch, 1], whose mean is made small, and its predictions.
struct ExampleLoss {
  std::string each;
  /// Variables by their names, one or more, each [batch, 1] or [batch, classes]: a click's probability, or a
  /// regression's value. The first one is the loss's prediction, and metrics may read all.
  std::vector<std::string> predictions;
};

/// A kind of losses. `lower` appends operators; nullopt, with the mistake noted, when it cannot. Variables that it
/// makes are called LossPart::prediction, or begin with that or LossPart::loss and a dot, so that a job may have the
/// kind twice.
struct LossKind {
  enum class Reads : uint8_t {
    kColumn,   ///< one input, [batch, 1]
    kClasses,  ///< one input, [batch, two or more]
    kAny,      ///< one input or more, of any width
  };
  Reads reads = Reads::kAny;
  bool is_of_classes = false;  ///< the label is a class (a slot of ids); otherwise a number, as a float
  std::optional<ExampleLoss> (*lower)(Lowering&, const LossPart&) = nullptr;
  std::vector<AttrInfo> attrs = {};
};

/// Kinds of losses by name: LossDesc.kind, "LOG_LOSS", or LossDesc.class_name.
class LossRegistry : public Registry<LossKind> {
 public:
  LossRegistry() : Registry("loss of the class") {}
};

/// A parameter that is to have its first values.
struct InitializerPart {
  const std::string& name;
  const Dims& dims;
  const Initializer& desc;
  const PartAttrs& attrs;
};

/// A way to start. `make` gives the operator of the startup program that writes the parameter, float32.
struct InitializerKind {
  OpDesc (*make)(const InitializerPart&) = nullptr;
  std::vector<AttrInfo> attrs = {};
};

/// Ways to start by name: the field of Initializer.kind, or CustomInitializer.class_name.
class InitializerRegistry : public Registry<InitializerKind> {
 public:
  InitializerRegistry() : Registry("initializer of the class") {}
};

/// What models are made of, by name.
struct ModelParts {
  LayerRegistry layers;
  LossRegistry losses;
  InitializerRegistry initializers;

  static ModelParts Builtin();
};

}  // namespace millrace
