#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_batch.h"
#include "program/op_registry.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

class BlockKernels;
class Executable;
class LabelRangeMonitor;
class PackedWeights;
class ReaderRegistry;
class TableFactory;
class RowLocks;
class Stream;

/// How workers update shared parameters; TrainerDesc.update_mode.
enum class UpdateMode : uint8_t { kHogwild, kRowLock, kSerial };

/// What a frame's kernels may know of it when they are made.
struct FrameOptions {
  int worker = 0;  ///< number of the worker thread, from 0
  int workers = 1;
  int max_rows = 0;   ///< rows of a full batch
  uint64_t seed = 1;  ///< of random operators
  UpdateMode update_mode = UpdateMode::kSerial;
  bool bf16 = false;  ///< matrix products of training in bfloat16
  /// Evaluation and prediction: tables show the initial values of keys they do not have and make no rows, and a row's
  /// results do not depend on its batch.
  bool read_only = false;
  /// With read_only, the parameters as matrix products read them, for all frames over the same root scope. Null: they
  /// may change from batch to batch. Outlives the frames.
  PackedWeights* packed_weights = nullptr;
  /// Persistable tensors of which the frame has a copy of its own, starting at zero (stat_var_names).
  std::vector<std::string> private_vars;
  /// One object for all workers of a job with kRowLock; null in other modes, and of one worker. Outlives the frames.
  RowLocks* row_locks = nullptr;
  /// Formats of the files that the program's readers open; null: it cannot open any. Outlives the frames.
  const ReaderRegistry* readers = nullptr;
  /// Classes of the tables that the program makes; null: those of TableFactory::Builtin. Outlives the frames.
  const TableFactory* tables = nullptr;
  /// The program was written elsewhere, not lowered from a model: advice in messages is for its author.
  bool is_program = false;
  /// One object for all frames of a job: takes labels that a loss or a measure has no meaning for. Null: nobody looks.
  /// Outlives the frames.
  LabelRangeMonitor* label_monitor = nullptr;
};

struct RunContext;

/// Stands beside the outermost `while` of a program that is a whole training, and looks at it between its rounds.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;
  /// Before the first round; may put the frame's variables where an earlier run left them. `body` is what the rounds
  /// run with; its step is the observer's to set.
  virtual Status BeforeLoop(RunContext* body) = 0;
  /// After each round. A failure ends the loop and is that of the operator.
  virtual Status AfterRound(RunContext* body) = 0;
  /// In place of AfterRound when operator number `op` of the loop's block failed. What comes back ends the loop.
  virtual Status AfterCutRound(size_t op, Status failure, RunContext* body) = 0;
};

/// What changes from batch to batch.
struct RunContext {
  const SlotBatch* batch = nullptr;  ///< null in a startup program
  int rows = 0;
  int64_t step = 0;  ///< batches that all workers started before this one
  /// "part-3:17" (file and line) of a row; "row 5 of the batch" when the feed keeps no origins. For error messages.
  std::string DescribeRow(int row) const;
  const std::vector<std::string>* file_names = nullptr;  ///< by RowOrigin::file; may be null
  /// Asked by operators that may run for long (a `while` that is a whole training); never stops by default.
  std::stop_token stop;
  LoopObserver* loop = nullptr;  ///< null: nobody looks
  /// Where kernels queue their work, given by the frame; null on the CPU, where they do it.
  Stream* stream = nullptr;
  /// Lines are those that a pipe_command wrote, which DescribeRow then says.
  bool lines_are_piped = false;
};

/// One operator of one frame, with its variables resolved.
///
/// Made whole by the Create function of its type, for one device, on which its tensors lie. Run allocates nothing once
/// it has seen the largest batch, takes no lock and looks up no name. One thread at a time.
class OpKernel {
 public:
  virtual ~OpKernel() = default;
  virtual Status Run(const RunContext& context) = 0;
};

/// Resolves an operator's variables while its kernel is made.
class KernelContext {
 public:
  /// `executable` is the program that the operator stands in; null for an operator that is tried alone.
  KernelContext(const OpView& op, Scope& scope, const FrameOptions& options, const Executable* executable = nullptr)
      : op_(&op), scope_(&scope), options_(&options), executable_(executable) {}
  /// The operator of `other` with its variables in another scope, for a kernel that has another device's do its work.
  KernelContext(const KernelContext& other, Scope& scope) : KernelContext(other) { scope_ = &scope; }

  const OpView& op() const { return *op_; }
  const FrameOptions& options() const { return *options_; }
  Scope& scope() const { return *scope_; }
  /// The program that the operator stands in; null for an operator that is tried alone.
  const Executable* executable() const { return executable_; }

  /// The variables bound to a parameter; null entries for "@EMPTY@". Inputs that do not exist are an error that names
  /// operator, parameter and variable.
  Result<std::vector<Variable*>> InputVariables(std::string_view parameter) const;
  Result<std::vector<Variable*>> OutputVariables(std::string_view parameter) const;

  /// One tensor; an error when the parameter is not bound.
  Result<const Tensor*> Input(std::string_view parameter) const;
  Result<Tensor*> Output(std::string_view parameter) const;
  /// Null when the parameter is not bound or is bound to "@EMPTY@".
  Result<const Tensor*> OptionalInput(std::string_view parameter) const;
  Result<Tensor*> OptionalOutput(std::string_view parameter) const;
  Result<std::vector<const Tensor*>> Inputs(std::string_view parameter) const;
  /// Null entries for "@EMPTY@".
  Result<std::vector<Tensor*>> Outputs(std::string_view parameter) const;
  /// Name of the first variable of a parameter, for messages.
  std::string InputName(std::string_view parameter) const;
  std::string OutputName(std::string_view parameter) const;

  /// FrameOptions::packed_weights if an input's variables are parameters that no operator of the program writes,
  /// otherwise null.
  PackedWeights* PackedWeightsOf(std::string_view parameter) const;

  /// What the program says of a variable; null for an operator that is tried alone, and for a name that it lacks.
  const VarMeta* Declared(const std::string& name) const;
  /// The declaration itself of a reader, for what VarMeta leaves out, its outputs; null for all else.
  const VarDesc* Declaration(std::string_view name) const;

  /// The kernels of the block that an attribute names, over the same variables.
  Result<std::unique_ptr<BlockKernels>> Block(std::string_view attribute) const;

 private:
  const OpView* op_;
  Scope* scope_;
  const FrameOptions* options_;
  const Executable* executable_;
};

}  // namespace millrace
