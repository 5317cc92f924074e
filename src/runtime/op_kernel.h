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

/// How workers update shared parameters: TrainerDesc.update_mode.
enum class UpdateMode : uint8_t { kHogwild, kRowLock, kSerial };

/// Properties of a frame for its kernels.
struct FrameOptions {
  int worker = 0;  ///< number of the worker thread, from 0
  int workers = 1;
  int max_rows = 0;   ///< rows of a full batch
  uint64_t seed = 1;  ///< seed of random operators
  UpdateMode update_mode = UpdateMode::kSerial;
  bool bf16 = false;  ///< matrix products of training use bfloat16
  /// Evaluation and prediction: tables show initial values for missing keys without creating rows, and the results of a
  /// row do not depend on its batch.
  bool read_only = false;
  /// With read_only, the parameters packed for matrix products, shared by all frames of a root scope. Null: parameters
  /// can change between batches. Must outlive the frames.
  PackedWeights* packed_weights = nullptr;
  /// Persistable tensors of which the frame has a private copy starting at zero (stat_var_names).
  std::vector<std::string> private_vars;
  /// Shared by all workers of a job with kRowLock; null in other modes and for a single worker. Must outlive the
  /// frames.
  RowLocks* row_locks = nullptr;
  /// Formats of the files that the program's readers open; null: it cannot open any. Must outlive the frames.
  const ReaderRegistry* readers = nullptr;
  /// Classes of the tables that the program creates; null: TableFactory::Builtin. Must outlive the frames.
  const TableFactory* tables = nullptr;
  /// The program was written elsewhere, not compiled from a model: messages advise its author.
  bool is_program = false;
  /// Shared by all frames of a job: receives labels for which a loss or a metric is undefined. Null: not checked. Must
  /// outlive the frames.
  LabelRangeMonitor* label_monitor = nullptr;
};

struct RunContext;

/// Observes the outermost `while` of a program that contains its whole training, between its rounds. A failure ends the
/// loop and becomes the operator's.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;
  /// Before the first round; can restore the frame's variables of an earlier run. `body` is the context of the rounds;
  /// the observer sets its step.
  virtual Status BeforeLoop(RunContext* body) = 0;
  /// After each round.
  virtual Status AfterRound(RunContext* body) = 0;
  /// Replaces AfterRound if operator number `op` of the loop's block failed. Its result ends the loop.
  virtual Status AfterCutRound(size_t op, Status failure, RunContext* body) = 0;
};

/// Arguments that change from batch to batch.
struct RunContext {
  const SlotBatch* batch = nullptr;  ///< null in a startup program
  int rows = 0;
  int64_t step = 0;  ///< batches that all workers started before this one
  /// "part-3:17" (file and line) for a row; "row 5 of the batch" without origins. For messages.
  std::string DescribeRow(int row) const;
  const std::vector<std::string>* file_names = nullptr;  ///< by RowOrigin::file; may be null
  /// Polled by long-running operators (a `while` that is a whole training); never stops by default.
  std::stop_token stop;
  LoopObserver* loop = nullptr;  ///< null: no observer
  /// The queue for kernels' work, set by the frame; null on the CPU.
  Stream* stream = nullptr;
  /// Line numbers refer to the output of a pipe_command, as DescribeRow then states.
  bool lines_are_piped = false;
};

/// One operator of one frame, with resolved variables.
///
/// The Create function of its type builds it for one device, on which its tensors are. Run does not allocate once it
/// has seen the largest batch, does not lock, and does not look up names. One thread at a time.
class OpKernel {
 public:
  virtual ~OpKernel() = default;
  /// Fails with the operator's failure; it can also throw NoMemory and std::invalid_argument, which BlockKernels
  /// converts.
  virtual Status Run(const RunContext& context) = 0;
};

/// Resolves an operator's variables while its kernel is created. All functions that return a Result fail with
/// kInvalidConfig, naming operator, parameter and variable, if a variable is missing or does not hold a tensor.
class KernelContext {
 public:
  /// `executable` is the program of the operator; null for a stand-alone operator.
  KernelContext(const OpView& op, Scope& scope, const FrameOptions& options, const Executable* executable = nullptr)
      : op_(&op), scope_(&scope), options_(&options), executable_(executable) {}
  /// The operator of `other` with its variables in another scope, for a kernel that delegates to another device's
  /// kernel.
  KernelContext(const KernelContext& other, Scope& scope) : KernelContext(other) { scope_ = &scope; }

  const OpView& op() const { return *op_; }
  const FrameOptions& options() const { return *options_; }
  Scope& scope() const { return *scope_; }
  /// The program that the operator stands in; null for an operator that is tried alone.
  const Executable* executable() const { return executable_; }

  /// The variables bound to a parameter; null entries for "@EMPTY@".
  Result<std::vector<Variable*>> InputVariables(std::string_view parameter) const;
  Result<std::vector<Variable*>> OutputVariables(std::string_view parameter) const;

  /// The parameter's first tensor. Also fails if the parameter is not bound.
  Result<const Tensor*> Input(std::string_view parameter) const;
  Result<Tensor*> Output(std::string_view parameter) const;
  /// Null if the parameter is not bound or is bound to "@EMPTY@".
  Result<const Tensor*> OptionalInput(std::string_view parameter) const;
  Result<Tensor*> OptionalOutput(std::string_view parameter) const;
  Result<std::vector<const Tensor*>> Inputs(std::string_view parameter) const;
  /// Null entries for "@EMPTY@".
  Result<std::vector<Tensor*>> Outputs(std::string_view parameter) const;
  /// Name of a parameter's first variable, for messages.
  std::string InputName(std::string_view parameter) const;
  std::string OutputName(std::string_view parameter) const;

  /// FrameOptions::packed_weights if an input's variables are parameters that no operator of the program writes;
  /// otherwise null.
  PackedWeights* PackedWeightsOf(std::string_view parameter) const;

  /// The program's description of a variable; null for a stand-alone operator or an unknown name.
  const VarMeta* Declared(const std::string& name) const;
  /// The declaration of a reader, whose outputs VarMeta does not contain; null for anything else.
  const VarDesc* Declaration(std::string_view name) const;

  /// Creates the kernels of the block named by an attribute, over the same variables. Fails like BlockKernels::Create,
  /// kInvalidConfig for a stand-alone operator.
  Result<std::unique_ptr<BlockKernels>> Block(std::string_view attribute) const;

 private:
  const OpView* op_;
  Scope* scope_;
  const FrameOptions* options_;
  const Executable* executable_;
};

}  // namespace millrace
