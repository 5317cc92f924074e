#include "config/validate.h"

#include <algorithm>
#include <cctype>

#include "config/checker.h"
#include "config/paddle_fields.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

std::string LowerCase(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Checks that a metric is one that an evaluation of the model gives.
void CheckMetricName(const TrainerDesc& desc, const std::string& path, const std::string& name, Checker& check) {
  std::vector<std::string> known = {"loss"};
  for (int i = 0; i < MetricDesc::Kind_ARRAYSIZE; ++i) {
    known.push_back(LowerCase(MetricDesc::Kind_Name(static_cast<MetricDesc::Kind>(i))));
  }
  if (std::find(known.begin(), known.end(), name) == known.end()) return CheckKnown(check, path, "metric", name, known);
  if (!desc.has_model() || name == "loss") return;
  for (const MetricDesc& metric : desc.model().metric()) {
    if (LowerCase(MetricDesc::Kind_Name(metric.kind())) == name) return;
  }
  std::string kind = name;
  for (char& c : kind) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  check.Error(path, "the model does not compute \"" + name + "\"; add metric { kind: " + kind + " } to it");
}

void CheckDataset(const TrainerDesc& desc, Checker& check) {
  const DatasetDesc& dataset = desc.dataset();
  CheckKnown(check, "dataset.class_name", "dataset", dataset.class_name(), check.known().datasets);
  if (dataset.has_queue_num()) check.AtLeast("dataset.queue_num", dataset.queue_num(), 1);
  check.AtMost("dataset.queue_num", dataset.queue_num(), kMostThreads);
  if (dataset.has_prefetch_batches()) check.AtLeast("dataset.prefetch_batches", dataset.prefetch_batches(), 1);
  check.AtMost("dataset.prefetch_batches", dataset.prefetch_batches(), 1 << 20);
  const bool is_binary = dataset.class_name() == "FileInstantDataset";
  if (is_binary && dataset.has_prefetch_batches()) {
    check.Error("dataset.prefetch_batches",
                "prefetch_batches needs class_name: \"QueueDataset\"; the workers of a "
                "FileInstantDataset read for themselves");
  }
  if (dataset.class_name() != "QueueDataset" && !is_binary) return;
  const auto needs_memory = [&](bool is_set, const std::string& field) {
    if (!is_set) return;
    check.Error("dataset." + field, field + " needs class_name: \"InMemoryDataset\"; a " + dataset.class_name() +
                                        (is_binary ? " reads its files in order" : " streams its files"));
  };
  needs_memory(dataset.local_shuffle(), "local_shuffle");
  needs_memory(dataset.preload(), "preload");
  needs_memory(dataset.has_queue_num(), "queue_num");
}

void CheckFetch(const FetchConfig& fetch, Checker& check) {
  check.AtLeast("fetch_config.print_period", fetch.print_period(), 0);
  const int names = fetch.fetch_var_names_size();
  const int formats = fetch.fetch_var_str_format_size();
  if (formats > 0 && formats != names) {
    check.Error("fetch_config.fetch_var_str_format[0]", "fetch_var_str_format names " + std::to_string(formats) +
                                                            ", but fetch_var_names " + std::to_string(names) +
                                                            "; there is one for each, or none");
  }
  for (int i = 0; i < names; ++i) {
    if (fetch.fetch_var_names(i).empty()) {
      check.Error("fetch_config.fetch_var_names[" + std::to_string(i) + "]", "the name of a variable is empty");
    }
  }
}

void CheckEval(const TrainerDesc& desc, Checker& check) {
  if (!desc.has_eval()) return;
  const EvalDesc& eval = desc.eval();
  if (eval.filelist_size() == 0) {
    check.Missing("eval", "filelist", "eval has no filelist: which files are to be evaluated?");
  }
  check.AtLeast<int64_t>("eval.every_steps", eval.every_steps(), 0);
  check.AtLeast("eval.every_epochs", eval.every_epochs(), 0);
  if (!eval.has_early_stopping()) return;
  const EvalDesc::EarlyStopping& stopping = eval.early_stopping();
  CheckMetricName(desc, "eval.early_stopping.metric", stopping.metric(), check);
  check.AtLeast("eval.early_stopping.patience", stopping.patience(), 1);
  check.NotNegative("eval.early_stopping.min_delta", stopping.min_delta());
  if (eval.every_steps() == 0 && eval.every_epochs() == 0) {
    check.Error("eval.early_stopping",
                "without every_steps and every_epochs there is one evaluation, at the end: too late "
                "to stop early");
  }
}

void CheckCheckpoint(const TrainerDesc& desc, Checker& check) {
  const CheckpointDesc& checkpoint = desc.checkpoint();
  check.AtLeast<int64_t>("checkpoint.every_steps", checkpoint.every_steps(), 0);
  check.AtLeast("checkpoint.every_epochs", checkpoint.every_epochs(), 0);
  check.NotNegative("checkpoint.every_minutes", checkpoint.every_minutes());
  check.AtLeast("checkpoint.keep", checkpoint.keep(), 1);
  if (checkpoint.keep_best().empty()) return;
  CheckMetricName(desc, "checkpoint.keep_best", checkpoint.keep_best(), check);
  if (!desc.has_eval()) {
    check.Error("checkpoint.keep_best", "the best is found by evaluation: add eval { filelist: \"...\" }");
  }
}

void CheckOutput(const OutputDesc& output, Checker& check) {
  check.AtLeast<int64_t>("output.trace_first_batch", output.trace_first_batch(), 0);
  check.AtLeast<int64_t>("output.trace_batches", output.trace_batches(), 1);
  check.AtMost<int64_t>("output.trace_batches", output.trace_batches(), 1 << 20);
  if (output.has_dir() && output.dir().empty()) check.Error("output.dir", "the name of the folder is empty");
  for (int i = 0; i < output.export__size(); ++i) {
    const std::string where = "output.export[" + std::to_string(i) + "]";
    const ExportDesc& wanted = output.export_(i);
    if (!wanted.has_format()) check.Missing(where, "format", "an export needs a format: PADDLE or ONNX");
    if (wanted.has_vocabulary()) check.AtLeast<int64_t>(where + ".vocabulary", wanted.vocabulary(), 1);
    if (wanted.has_dir() && wanted.dir().empty()) check.Error(where + ".dir", "the name of the folder is empty");
  }
}

void CheckProgram(const ProgramFiles& program, Checker& check) {
  if (program.main().empty()) {
    check.Missing("program", "main", "program needs main, the file with the ProgramDesc: main: \"main_program.bin\"");
  }
  if (program.startup().empty() && program.init_dir().empty()) {
    check.Error("program", "program needs startup or init_dir: where do the parameters start?");
  }
}

}  // namespace

void CheckOutputFolder(const TrainerDesc& desc, const FieldPositions& positions, Diagnostics* diagnostics) {
  if (!desc.output().dir().empty()) return;
  const auto writes = [&](bool wanted, const std::string& path) {
    if (!wanted || !positions.Has(path)) return;
    diagnostics->Error(positions.Find(path), Checker::Field(path) +
                                                 " is written to the output folder, and there is none: give "
                                                 "--output_dir=DIR or output { dir: \"...\" }");
  };
  writes(true, "checkpoint");
  writes(desc.output().tensorboard(), "output.tensorboard");
  writes(desc.output().trace(), "output.trace");
  writes(desc.output().save_inference_model(), "output.save_inference_model");
}

void ValidateTrainerDesc(const TrainerDesc& desc, const KnownNames& known, bool needs_model,
                         const FieldPositions& positions, Diagnostics* diagnostics) {
  Checker check(known, positions, diagnostics);
  CheckKnown(check, "class_name", "trainer", desc.class_name(), known.trainers);
  CheckKnown(check, "device_worker_name", "device worker", desc.device_worker_name(), known.device_workers);
  check.AtLeast("thread_num", desc.thread_num(), 1);
  check.AtMost("thread_num", desc.thread_num(), kMostThreads);
  check.AtLeast("epochs", desc.epochs(), 1);
  if (desc.filelist_size() == 0) {
    check.Missing("", "filelist", "filelist is missing: which files are to be read? filelist: \"data/part-*\"");
  }
  const std::vector<DefinedName> slots = CheckDataFeed(desc, check);
  CheckDataset(desc, check);
  if (desc.has_model() && desc.has_program()) {
    check.Error("program", "program and model (line " + std::to_string(check.Line("model")) +
                               ") exclude each other: one says what is trained");
  } else if (desc.has_program()) {
    CheckProgram(desc.program(), check);
  } else if (needs_model && !desc.has_model() && !positions.Has("program")) {
    check.Missing("", "model", "model is missing (or program, for one that was written elsewhere): what is trained?");
  }
  if (desc.has_model()) CheckModel(desc.model(), slots, check);
  CheckFetch(desc.fetch_config(), check);
  CheckEval(desc, check);
  CheckCheckpoint(desc, check);
  CheckOutput(desc.output(), check);
  RejectUnsupportedFields(desc, positions, diagnostics);
}

}  // namespace millrace
