#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/lowering.h"

namespace millrace {

/// Columns of a [batch, ...] variable; 0, with the mistake noted, when it has none.
int64_t Columns(Lowering& lowering, const std::string& where, const std::string& var);

/// Slots of ids that an embedding looks up; none, with the mistakes noted, where one does not fit.
std::vector<const SlotSpec*> SlotsOfIds(Lowering& lowering, const std::string& where,
                                        const google::protobuf::RepeatedPtrField<std::string>& slots);

/// The operators of one layer, appended one behind the other. Behind one that cannot be appended nothing is, and
/// is_whole() is false. Variables within the layer are called NAME.part.
class LayerOps {
 public:
  LayerOps(Lowering& lowering, const LayerPart& part) : lowering_(lowering), part_(part) {}

  const std::string& name() const { return part_.desc.name(); }
  std::string Var(std::string_view part) const { return name() + "." + std::string(part); }
  bool is_whole() const { return is_whole_; }

  /// Appends an operator that writes `out` as its output `to`; returns `out`.
  std::string Append(std::string_view type, const Bound& inputs, std::string out, const Attrs& attrs = {},
                     std::string_view to = "Out", const Bound& more = {});
  std::string Reshape(const std::string& x, std::string out, std::vector<int64_t> shape);
  std::string Transpose(const std::string& x, std::string out, std::vector<int64_t> axes);
  /// X times the matrix NAME.`parameter` [columns of the last axis, units], with a bias unless `bias` is empty.
  std::string Product(const std::string& x, const std::string& parameter, const std::string& bias, int64_t units,
                      std::string out);
  std::string Binary(std::string_view type, const std::string& x, const std::string& y, std::string out);
  /// X * factor + bias.
  std::string Scale(const std::string& x, std::string out, float factor, float bias = 0);
  std::string MatMul(const std::string& x, const std::string& y, std::string out, bool transpose_y = false);
  std::string Activate(const std::string& x, std::string out, Activation act);
  /// A parameter NAME.`parameter`; weights start by Xavier, others at `start`.
  std::string Weight(const std::string& parameter, const Dims& dims);
  std::string Constant(const std::string& parameter, const Dims& dims, float start);

  const Dims& DimsOf(const std::string& var) const { return lowering_.main().vars().find(var)->second.dims; }

 private:
  Lowering& lowering_;
  const LayerPart& part_;
  bool is_whole_ = true;
};

/// A layer of [batch, places, columns], and the variable that says which places hold something.
struct SequenceInput {
  std::string var;
  std::string mask;
  int64_t places = 0;
  int64_t columns = 0;
};
/// What `field` of a layer names; nullopt with the mistake noted for what is no sequence.
std::optional<SequenceInput> Sequence(Lowering& lowering, const LayerPart& part, std::string_view field,
                                      const std::string& name);
/// A layer of [batch, slots * dim] as its slots, `least` or more; `dim` 0: that of the embedding layer. nullopt with
/// the mistake noted.
struct SlotVectors {
  std::string var;
  int64_t slots = 0;
  int64_t dim = 0;
};
std::optional<SlotVectors> VectorsOfSlots(Lowering& lowering, const LayerPart& part, const std::string& in, int dim,
                                          int least = 2);

/// Kinds of layers with a file each in model/layers/, as LayerKind::lower. layers.cc has the list.
bool LowerAttention(Lowering& lowering, const LayerPart& part);
bool LowerBatchNorm(Lowering& lowering, const LayerPart& part);
bool LowerBilinear(Lowering& lowering, const LayerPart& part);
bool LowerCin(Lowering& lowering, const LayerPart& part);
bool LowerCrossMatrix(Lowering& lowering, const LayerPart& part);
bool LowerGru(Lowering& lowering, const LayerPart& part);
bool LowerHistory(Lowering& lowering, const LayerPart& part);
bool LowerLayerNorm(Lowering& lowering, const LayerPart& part);
bool LowerMixture(Lowering& lowering, const LayerPart& part);
bool LowerMultiply(Lowering& lowering, const LayerPart& part);
bool LowerPool(Lowering& lowering, const LayerPart& part);
bool LowerSelfAttention(Lowering& lowering, const LayerPart& part);

}  // namespace millrace
