#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "program/op_registry.h"

namespace millrace {

/// The primitive operators that compute one composite operator, in variables of its program.
struct ExpandedOp {
  std::vector<OpDesc> ops;
  VarMetas vars;         ///< what `ops` write: the operator's outputs, and temporaries
  VarMetas temporaries;  ///< of `vars`, those that no other operator knows
  /// Variables whose shapes are equal in each batch.
  std::vector<std::pair<std::string, std::string>> equal_shapes;
};

/// Builds the primitive operators of a composite operator; see docs/adding_an_op.md.
///
/// After a failure, calls that append do nothing and return empty names; the failure is what ExpandOp returns. Views
/// the operator and the registry, which must outlive it. One thread.
class Expansion : public InferShapeContext {
 public:
  /// The variables of an operator, an argument each: {{"X", x}, {"Y", {a, b}}}. Empty names are left out.
  struct Argument {
    Argument(std::string_view name, std::string variable) : parameter(name), variables({std::move(variable)}) {}
    Argument(std::string_view name, std::vector<std::string> list) : parameter(name), variables(std::move(list)) {}
    std::string_view parameter;
    std::vector<std::string> variables;
  };
  using Arguments = std::vector<Argument>;
  using Attributes = std::vector<std::pair<std::string_view, AttrValue>>;

  /// `vars` describes the inputs of `op`. Temporaries are named by its first output and numbers from `first_number` on.
  Expansion(const OpView& op, const VarMetas& vars, const OpRegistry& registry, int first_number = 0);

  /// The i-th variable of an input; empty when it is not bound.
  std::string In(std::string_view parameter, size_t i = 0) const;
  /// What is known of a variable that the operator reads or that an appended operator writes.
  const VarMeta& Meta(const std::string& variable) const;

  /// Appends an operator that writes temporaries, and returns that of its first output.
  std::string Add(const std::string& type, const Arguments& inputs, const Attributes& attrs = {});
  /// The same for an operator whose first output is a list of `count` variables.
  std::vector<std::string> AddList(const std::string& type, const Arguments& inputs, const Attributes& attrs,
                                   size_t count);
  /// Makes a variable the i-th of an output. Does nothing for an output that is not bound.
  void SetOut(std::string_view parameter, const std::string& variable, size_t i = 0);
  /// Makes the operator fail, now or with a batch, when inputs differ in their shapes.
  void ExpectEqualShapes(const std::vector<std::string_view>& parameters);
  /// The same of two variables, of which the second may be one that an appended operator writes.
  void ExpectEqualShape(const std::string& one, const std::string& other);

 private:
  friend Result<ExpandedOp> ExpandOp(const OpView& op, const VarMetas& vars, const OpRegistry& registry,
                                     int first_number);
  friend Status ExpandGradient(Expansion& expansion);

  std::string NewName() { return prefix_ + "#" + std::to_string(next_number_++); }
  /// Appends an operator that writes temporaries.
  void Append(OpDesc op);
  /// Writes what SetOut said to the operator's own variables.
  Result<ExpandedOp> Finish() &&;
  void Rename(const std::string& from, const std::string& to);

  VarMetas known_;
  std::string prefix_;
  int next_number_;
  Status status_;
  ExpandedOp made_;
  std::vector<std::pair<std::string, std::string>> outs_;  ///< an output's variable, and the one that it is to equal
};

/// Expands a composite operator (OpInfo::expand). kInvalidConfig that begins with its type when its attributes or the
/// shapes of its inputs do not fit; kInternal when the expansion is wrong.
Result<ExpandedOp> ExpandOp(const OpView& op, const VarMetas& vars, const OpRegistry& registry, int first_number = 0);

/// OpInfo::expand of TYPE_grad for a composite TYPE: the gradient of TYPE's expansion. What TYPE_grad reads of the
/// forward operator's variables is taken as it is, the rest is computed again.
Status ExpandGradient(Expansion& expansion);

}  // namespace millrace
