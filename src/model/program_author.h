#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "batch/slot_schema.h"
#include "core/status.h"
#include "model.pb.h"
#include "model/lowering.h"
#include "program/backward.h"
#include "program/op_registry.h"

namespace millrace {

/// Grows a program operator by operator, as an author calls layers, and lets the compiler add what follows from a loss.
///
/// What is appended is checked at once, so that a mistake is at the line that makes it; a failure leaves the programs
/// as they were. Names are those of CompiledModel. Errors are kInvalidConfig with every mistake of the call, a line
/// each. One thread. `registry` must outlive it.
class ProgramAuthor {
 public:
  static Result<std::unique_ptr<ProgramAuthor>> Create(const OpRegistry& registry);
  ~ProgramAuthor();
  ProgramAuthor(const ProgramAuthor&) = delete;
  ProgramAuthor& operator=(const ProgramAuthor&) = delete;

  /// Declares a variable that is fed: a slot of that name. -1 in dims is the batch, or its values with lod_level 1.
  Status AddData(const std::string& name, const VarMeta& meta);
  /// Declares a parameter that the startup program fills. One that is not trainable gets no gradient.
  Status AddParameter(const std::string& name, const Dims& dims, const Initializer& init, bool trainable);
  /// What the updates of a parameter or table have of their own; again with the same does nothing.
  Status SetRule(const std::string& name, const ParameterRule& rule);
  /// Lets the startup program fill a parameter, or a table with a vocabulary, with these values, row by row, instead.
  Status SetInitialValues(const std::string& name, const std::vector<float>& values);
  /// Declares a persistable variable that the startup program fills with one value.
  Status AddState(const std::string& name, DType dtype, const Dims& dims, float value);
  /// Declares a table for LookUp; again with the same description does nothing. Its rule, unless it names one, is that
  /// of Minimize.
  Status AddTable(const TableDesc& table);
  /// Makes a table with a vocabulary one that grows, so that its rows can lie on several ranks. Rows start as those of
  /// the matrix would. Adam moves those alone that a batch looks up. Call it before Minimize.
  ///
  /// Does nothing and returns false where the table has to be a matrix:
  /// - its rule (`optimizer`, or its own) moves all rows at each step;
  /// - it starts with given values;
  /// - ids beyond the vocabulary have a rule;
  /// - its rows get no gradient, or a penalty of their own;
  /// - other operators than lookups read it.
  Result<bool> Spread(const std::string& table, const OptimizerDesc& optimizer);
  /// Looks the variable `ids` up in a table that was added, into a new variable.
  Status LookUp(const std::string& ids, const std::string& table, const std::string& out);
  /// Declares a variable that an operator is to write, which cannot tell its type and sizes (`read`).
  Status AddVariable(const std::string& name, const VarMeta& meta);
  /// Appends an operator that makes a reader to the startup program. Its output is a new reader variable of both
  /// programs; its inputs are such readers.
  Status AddReader(OpDesc make);
  /// Appends an operator of the forward part and declares what it writes, in the block that is open.
  Status Append(OpDesc op);
  /// Opens a block within the one that is open; what is appended goes there. Parameters, states, slots and readers are
  /// in the first block wherever they are added.
  Status BeginBlock();
  /// Closes the block that is open and appends the operator that runs it, `while` or `conditional_block` with its
  /// condition; the rest of it follows from what the block reads and writes of variables around it. `exports` are
  /// variables of the block that become variables around it. After a failure the block is open still, to be dropped.
  Status EndBlock(OpDesc op, const std::vector<std::string>& exports = {});
  /// Takes the block that is open back, with everything that was added since.
  Status DropBlock();
  /// Whether gradients end at a variable.
  Status SetStopGradient(const std::string& name, bool stop);
  Result<bool> StopsGradient(const std::string& name) const;
  /// Which parameters Minimize leaves as they are; names that the program does not have are kNotFound.
  struct Trained {
    std::vector<std::string> only;     ///< no others; empty: all
    std::vector<std::string> without;  ///< not these; also other variables, behind which there is no gradient
  };
  /// Appends gradients of `loss` and updates of every trainable parameter and table, once a program, to the block that
  /// is open. Returns the gradients as they are before clipping and penalties.
  Result<std::vector<ParamGrad>> Minimize(const std::string& loss, const OptimizerDesc& optimizer,
                                          const Trained& trained);
  Result<std::vector<ParamGrad>> Minimize(const std::string& loss, const OptimizerDesc& optimizer) {
    return Minimize(loss, optimizer, Trained());
  }
  /// How Minimize names its states (Lowering::StateNames), for programs that share a scope.
  void set_state_names(Lowering::StateNames names) { lowering_->set_state_names(std::move(names)); }

  /// What is known of a variable; kNotFound with the nearest name.
  Result<VarMeta> Find(const std::string& name) const;
  /// Parameters and tables, in the order in which they were added.
  std::vector<std::string> Parameters() const;
  bool Has(const std::string& name) const { return lowering_->main().Has(name); }
  const ProgramDesc& main() const { return main_; }
  const ProgramDesc& startup() const { return startup_; }
  void set_seed(uint64_t seed) { seed_ = seed; }
  uint64_t seed() const { return seed_; }
  const OpRegistry& registry() const { return *registry_; }
  /// From now on, operators are those of `registry`, which has all of the one before. Must outlive it.
  void set_registry(const OpRegistry& registry);

 private:
  struct OpenBlock;
  /// What a failure is undone to.
  struct Before {
    ProgramDesc main;
    BlockDesc startup;
    ModelDesc model;
    Lowering::Known known;
  };
  /// Where a variable is declared: a block of main, and which of its variables; -1: nowhere.
  struct Place {
    int block = -1;
    int var = -1;
  };

  explicit ProgramAuthor(const OpRegistry& registry);
  /// The number of the block that is open.
  int Current() const;
  /// The blocks that operators can go to or name variables of: those that are open, from the inside out, and the first.
  std::vector<int> OpenBlocks() const;
  Before Now() const;
  Status Restore(const Before& before);
  /// Tells the builders of open blocks what was done to their blocks and to the first ones behind their backs.
  Status Reload();
  Place FindPlace(const std::string& name) const;
  /// Whether the rows of a table with a vocabulary may be those of one that grows, but for how they learn.
  bool MaySpread(const TableDesc& table) const;
  Status TakeMistakes();
  Status AppendMinimization(const std::string& loss, const Trained& trained, std::vector<ParamGrad>* gradients);
  Status StopGradients(const Trained& trained);
  void FinishTables();

  const OpRegistry* registry_;
  uint64_t seed_ = 1;
  ModelDesc model_;  ///< tables, and the optimizer of Minimize
  SlotSchema schema_;
  const ModelParts parts_ = ModelParts::Builtin();
  ProgramDesc main_;
  ProgramDesc startup_;
  std::unique_ptr<Lowering> lowering_;
  std::vector<std::unique_ptr<OpenBlock>> open_;  ///< the outermost first
  VarMetas closed_;                               ///< variables of blocks that were closed
  std::set<std::string> spread_;                  ///< tables that were matrices
  bool is_minimized_ = false;
};

}  // namespace millrace
