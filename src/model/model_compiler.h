#pragma once

#include <google/protobuf/arena.h>

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "batch/slot_schema.h"
#include "core/status.h"
#include "framework.pb.h"
#include "model.pb.h"
#include "model/metric_spec.h"
#include "model/model_parts.h"
#include "program/model_judgement.h"
#include "program/op_registry.h"

namespace millrace {

/// How a model becomes operators.
enum class ModelForm : uint8_t {
  kPaddle,         ///< operators of Paddle alone, each by itself
  kPaddleForward,  ///< the same without gradients and updates: `test` alone, and an empty main
  /// An embedding layer of several slots is the one operator that fusion would make of those of its slots, where
  /// nothing else can tell the difference: operators and variables do not grow with the slots. For who fuses what comes
  /// out.
  kFused,
};

/// A table of Paddle's servers, as a worker's program names it.
struct ServerTable {
  int64_t id = 0;
  bool is_rows = false;                ///< of rows by id; otherwise of dense parameters, one behind the other
  std::vector<std::string> variables;  ///< the table, or the dense parameters
};

/// One of a model's losses, as those see it who measure and serve.
struct CompiledTask {
  std::string name;                 ///< empty: the only one, and it has none
  std::string prediction;           ///< variable
  std::string label;                ///< slot
  std::string sample_weight;        ///< slot; empty: none
  std::string mask;                 ///< slot; empty: none
  std::vector<float> class_weight;  ///< of labels 0, 1, ...; empty: none
};

/// A model lowered to programs, and the names by which the rest of the trainer finds what it needs in them.
///
/// main: forward, backward and updates of one batch. test: the forward part alone, with dropout off. startup: run once
/// in the root scope; makes every persistable variable.
///
/// Names of variables are stable; they are what checkpoints and inference models hold:
/// - a layer's output: the layer's name (an fc of several units: its last; before it "h.0", "h.1");
/// - fc "h": "h.w_0", "h.b_0", for several units "h.w_1", ...; cross "c": "c.w_0", "c.b_0" for each layer;
/// - a table: its name (kind SPARSE_TABLE, or a [vocabulary, dim] parameter);
/// - optimizer state: Paddle's PARAM_moment_0, PARAM_moment1_0, PARAM_moment2_0, PARAM_beta1_pow_acc_0,
///   PARAM_beta2_pow_acc_0, PARAM_squared_0, PARAM_linear_0;
/// - learning rates: "learning_rate_0" (dense parameters), "learning_rate_TABLE" for a table with its own optimizer.
///   Persistable constants; with a schedule, not persistable and written by a `learning_rate_schedule` operator at the
///   head of main from RunContext::step, so that nobody else has to know of it.
/// - the loss: "loss" ([1], mean over the batch), and the prediction below. Of several losses "loss" is the sum, and
///   each has "loss.NAME" and "prediction.NAME".
///
/// A hash table is made by the startup operator `create_sparse_table` {-> Out} whose attribute `table` is the text of
/// its TableDesc with init and optimizer filled in (the variable's attribute `table` says the same); it is read by
/// lookup_table (W) and updated by `sparse_table_push` {Table, Grad, LearningRate -> TableOut}.
struct CompiledModel {
  /// Holds the programs: the many small parts of each lie side by side, and go at once.
  std::unique_ptr<google::protobuf::Arena> memory = NewMemory();
  ProgramDesc& main = *google::protobuf::Arena::CreateMessage<ProgramDesc>(memory.get());
  ProgramDesc& startup = *google::protobuf::Arena::CreateMessage<ProgramDesc>(memory.get());
  ProgramDesc& test = *google::protobuf::Arena::CreateMessage<ProgramDesc>(memory.get());
  std::string loss;
  /// The model's losses; none of a program.
  std::vector<CompiledTask> tasks;
  /// What a click's probability (or a regression's value) is read from: [B, 1], or [B, classes]. Of several losses that
  /// of the first.
  std::string prediction;
  std::string label;
  std::vector<MetricSpec> metrics;
  /// Tables with every default filled in.
  std::vector<TableDesc> tables;
  /// Of a program that Paddle's fleet wrote (model/fleet_program.h): persistable variables that its servers had, tables
  /// and what updates keep. The startup program makes them, wherever the others start.
  std::vector<std::string> of_servers;
  /// Which of these and of its parameters the servers kept in tables, by number.
  std::vector<ServerTable> server_tables;
  /// Slots that layers read: what a prediction must be fed with, in schema order (the label is not among them).
  std::vector<std::string> feeds;

 private:
  static std::unique_ptr<google::protobuf::Arena> NewMemory();
};

/// What is wrong with `model` over the slots of `schema`, without the programs; none of what only gradients and updates
/// show. Slots that `schema` has none of are not missed in one without any slot. `is_of_program`: the model stands
/// beside a program and has metrics, tables and an optimizer.
ModelJudgement JudgeModel(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry,
                          const ModelParts& parts, bool is_of_program);

/// Lowers `model` over the slots of `schema`. Every mistake is reported at once, a line each, with the layer's name
/// and the nearest name: `layer "h": in: no layer or slot "x"; did you mean "x1"?`. kInvalidConfig. Its layers, loss
/// and initialisers are those of Millrace, its form is Paddle's.
Result<CompiledModel> CompileModel(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry);
/// As above, of these parts; the mistakes are in `*mistakes` as well, for who knows where they stand in a file.
/// kCancelled after a stop request.
Result<CompiledModel> CompileModel(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry,
                                   const ModelParts& parts, ModelForm form, std::vector<ConfigMistake>* mistakes,
                                   const std::stop_token& stop = {});

}  // namespace millrace
