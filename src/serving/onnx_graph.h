#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "onnx.pb.h"
#include "program/op_registry.h"
#include "serving/feed_lists.h"

namespace millrace {

using OnnxAttrs = std::vector<std::pair<std::string_view, AttrValue>>;

/// Translates one program to an ONNX graph: values named by variables, constants, LoD as inputs.
///
/// A sparse slot S is two inputs: S, int64 [values, 1], and S.lod, int64 [rows + 1], its row offsets. A dense slot is
/// one input of its shape. Refers to the program; one thread.
class OnnxGraph {
 public:
  /// Starts with the inputs of `feed`, which must outlive the graph. Fails with kInvalidConfig if a variable cannot be
  /// an input.
  static Result<OnnxGraph> Create(const FeedList& feed);

  /// The current value of a variable; a parameter becomes an initializer to be filled.
  std::string Value(const std::string& variable);
  /// The program's description of a variable.
  const VarMeta& Meta(const std::string& variable) const { return vars_.find(variable)->second; }

  /// Adds a node and returns the name of its value.
  std::string Add(std::string_view type, const std::vector<std::string>& inputs, const OnnxAttrs& attrs = {});
  /// Sets the value of an operator's output, with the LoD of variable `lod_from` (empty: none).
  void SetOutput(const OpDesc& op, std::string_view parameter, const std::string& value, const std::string& lod_from);
  std::string Ints(const std::vector<int64_t>& values);                                    ///< a constant [n]
  std::string Int(int64_t value);                                                          ///< a constant []
  std::string Floats(const std::vector<float>& values, const std::vector<int64_t>& dims);  ///< a constant
  /// A constant [] with the type of variable `like`.
  std::string Number(double value, const std::string& like);

  /// The slot that provides a variable's LoD; empty: none.
  std::string LodOf(const std::string& variable) const;

  /// Makes a variable's value an output of the graph under the variable's name.
  void AddOutput(const std::string& variable);
  /// The parameters read by nodes: initializers without values so far.
  const std::vector<std::string>& parameters() const { return parameters_; }
  onnx::Graph Take() && { return std::move(graph_); }

 private:
  OnnxGraph() = default;
  std::string Constant(onnx::DataType type, const std::vector<int64_t>& dims, std::string bytes);
  void AddInput(const std::string& name, onnx::DataType type, const Dims& dims, const std::string& open);

  VarMetas vars_;
  onnx::Graph graph_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::string> lods_;
  std::vector<std::string> parameters_;
  int names_ = 0;
};

}  // namespace millrace
