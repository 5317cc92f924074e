#pragma once

#include <string>
#include <vector>

#include "config/trainer_desc_reader.h"
#include "job/environment.h"
#include "model/model_compiler.h"
#include "serving/export_model.h"

namespace millrace {

/// CompileModel of the job's model, with its mistakes as LoadedConfig::Report takes them.
Result<CompiledModel> CompileModelOf(const TrainerDesc& desc, const SlotSchema& schema, const Environment& environment,
                                     ModelForm form, std::vector<ConfigMistake>* mistakes,
                                     const std::stop_token& stop = {});

/// Metrics that count every example once where the loss weighs them, and do not say so, and those of one value a row
/// where the prediction has more than two classes.
std::vector<ConfigMistake> FindUnfitMetrics(const CompiledModel& model, const MetricRegistry& registry);

/// Everything by name that a job wants of its program and the program does not have: what is fetched, dumped, checked
/// for NaN or counted by each worker. `model` may be a program that was written elsewhere.
std::vector<ConfigMistake> FindUnknownNames(const TrainerDesc& desc, const CompiledModel& model,
                                            const std::vector<std::string>& metrics);

/// Plans output.export, in its order, below `output_dir` where an export names no folder; `*mistakes` gets why one
/// cannot be written. The exports refer to `registry`.
std::vector<ModelExport> PlanExports(const TrainerDesc& desc, const CompiledModel& model, const OpRegistry& registry,
                                     const std::string& output_dir, std::vector<ConfigMistake>* mistakes);

/// Whether the tensors that a program keeps fit into this machine: asked before the first of them is made.
Status CheckFitsMemory(const ProgramDesc& program);

/// The outputs of the embedding layers.
std::vector<std::string> PooledOf(const ModelDesc& model);

/// What is wrong with a job and shows only when its model is compiled: the mistakes of CompileModel, or, of a model
/// that compiles, unknown names. For ConfigRequest::find_deeper: a job that is sound so far meets them in
/// CompiledJob::Create.
/// Of a job with `program` nothing is said.
std::vector<ConfigMistake> FindDeeperMistakes(const TrainerDesc& desc, const Environment& environment);

}  // namespace millrace
