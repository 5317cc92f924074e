// Shows what a job's input looks like: the first batches, or statistics of every slot. Writes it as binary files.

#include <gflags/gflags.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>

#include "app/command_line.h"
#include "app/compare_jobs.h"
#include "app/convert_job.h"
#include "app/job_input.h"
#include "app/list_features.h"
#include "app/list_model.h"
#include "app/list_plugin.h"
#include "app/list_table.h"
#include "app/runs_script.h"
#include "app/stop_on_signal.h"
#include "app/write_records.h"
#include "batch/slot_batch.h"
#include "core/terminal.h"
#include "inspect/batch_json.h"
#include "inspect/multi_slot_text.h"
#include "inspect/slot_stats.h"
#include "program/model_defaults.h"
#include "program/var_meta.h"
#include "serving/inference_model.h"
#include "trainer_desc.pb.h"

DEFINE_string(trainer_desc, "", "FILE: the job");
DEFINE_string(model_dir, "", "DIR: saved model (features, model)");
DEFINE_int64(batches, 1, "batches to show (head) or to read (stats; 0: all)");
DEFINE_string(
    format, "table",
    "table, jsonl (head: one object per batch; stats: one object) or multi_slot (head: lines for a data feed)");
DEFINE_string(label, "",
              "NAME: slot with positive values for clicks. Default: the label of the model's loss, or \"label\"");
DEFINE_int32(top, 10, "most frequent ids per slot (stats) or words per vocabulary (features) to show");
DEFINE_int64(exact_ids, 1000000, "distinct ids per slot to count exactly (stats); larger counts are estimated");
DEFINE_string(output_dir, "", "DIR: folder for the binary files (convert)");
DEFINE_int64(part_mib, 256, "size of a file in MiB (convert)");
DEFINE_string(outputs, "",
              "SHAPES: types and shapes of a record, for example \"float32[-1,64] int64[-1,1]\" (records)");
DEFINE_string(records, "", "FILE: RecordIO file to write (records)");
DEFINE_string(html, "", "FILE: runs: writes a page with the table and the curves, FILE.html");
DEFINE_string(sort, "", "METRIC: runs: best first by this metric of the last evaluation");
DEFINE_bool(compare_jobs, false, "for scripts: compares jobs (app/compare_jobs.h)");
DEFINE_int32(max_values, 12, "values per slot in a table (head)");

namespace millrace {
namespace {

const ProgramInfo kProgram{
    .name = "inspect",
    .summary = "Shows a job's input exactly as training reads it, converts it to binary files, or compares runs.",
    .usage =
        "inspect head --trainer_desc=FILE [flags]\n"
        "inspect stats --trainer_desc=FILE [flags]\n"
        "inspect features --trainer_desc=FILE | --model_dir=DIR [flags]\n"
        "inspect model --model_dir=DIR\n"
        "inspect convert --trainer_desc=FILE --output_dir=DIR [flags]\n"
        "inspect records --outputs=SHAPES --records=FILE [--plugin=FILE] INPUT...\n"
        "inspect plugin FILE\n"
        "inspect runs DIR... [--html=FILE] [--sort=METRIC]\n"
        "inspect table FILE...",
    .groups = {{"Input", {"trainer_desc", "model_dir", "batches", "plugin"}},
               {"Binary files", {"output_dir", "part_mib"}},
               {"RecordIO", {"outputs", "records"}},
               {"Runs", {"html", "sort"}},
               {"Output", {"format", "max_values", "top", "label", "exact_ids"}}},
    .repeated = {{"set", "PATH=VALUE", "override a field of the job, like --set of trainer"},
                 {"plugin", "FILE", "a plugin with data feeds or file formats, in addition to the job's plugins"}},
    .examples =
        "inspect head --trainer_desc=job.prototxt --batches=2 --format=jsonl\n"
        "inspect stats --trainer_desc=job.prototxt --top=5\n"
        "inspect features --model_dir=out/model\n"
        "inspect runs out/* --html=runs.html\n"
        "inspect convert --trainer_desc=job.prototxt --output_dir=binary\n"
        "inspect records --outputs=\"float32[-1,64] int64[-1,1]\" --records=digits.recordio digits.csv.gz",
};

Status RunRecords(const CommandLine& line, const std::stop_token& stop) {
  if (FLAGS_records.empty()) return InvalidConfig("--records is missing: the file to write");
  WriteRecordsRequest request{.files = {line.arguments.begin() + 1, line.arguments.end()},
                              .outputs = FLAGS_outputs,
                              .path = FLAGS_records,
                              .plugins = line.repeated[1]};
  if (request.files.empty()) return InvalidConfig("missing INPUT: pass the files to write as records");
  return WriteRecords(request, stop);
}

/// Lists what a plugin provides. A plugin that is a test runs.
Status ShowPlugin(const CommandLine& line) {
  if (line.arguments.size() != 2) return InvalidConfig("missing FILE: usage: inspect plugin FILE");
  MR_ASSIGN(const std::string text, ListPlugin(line.arguments[1]));
  PrintOut(text);
  return FlushStandardOutput();
}

Status ShowTables(const CommandLine& line) {
  const std::vector<std::string> files(line.arguments.begin() + 1, line.arguments.end());
  if (files.empty()) return InvalidConfig("missing FILE: usage: inspect table out/checkpoints/step-*/tables/NAME");
  MR_ASSIGN(const std::string text, ListTables(files));
  PrintOut(text);
  return FlushStandardOutput();
}

/// Compares what trainings left in their output folders.
Status ShowRuns(const CommandLine& line) {
  const std::vector<std::string> folders(line.arguments.begin() + 1, line.arguments.end());
  if (folders.empty()) return InvalidConfig("which runs? inspect runs DIR..., each the --output_dir of a training");
  for (const char* flag : {"trainer_desc", "model_dir", "batches", "format", "label", "top", "exact_ids", "output_dir",
                           "part_mib", "outputs", "records", "max_values"}) {
    if (!gflags::GetCommandLineFlagInfoOrDie(flag).is_default) {
      return InvalidConfig("--" + std::string(flag) + " is not for inspect runs");
    }
  }
  if (!line.repeated[0].empty() || !line.repeated[1].empty()) {
    return InvalidConfig("--set and --plugin are not for inspect runs");
  }
  std::vector<std::string> arguments = {"runs", FLAGS_html, FLAGS_sort};
  arguments.insert(arguments.end(), folders.begin(), folders.end());
  return BecomeRunsScript(arguments);
}

/// Whether the folder of a model follows a command that takes it by a flag: what to write is then the failure.
Status CheckNoFolder(const CommandLine& line) {
  std::error_code ignored;
  if (line.arguments.size() != 2) return Status::Ok();
  const std::string& folder = line.arguments[1];
  if (!FLAGS_model_dir.empty() || !FLAGS_trainer_desc.empty()) {
    return InvalidConfig("inspect " + line.arguments[0] + " takes nothing beside --" +
                         (FLAGS_model_dir.empty() ? "trainer_desc" : "model_dir") + ": leave out \"" + folder + "\"");
  }
  if (!std::filesystem::is_directory(folder, ignored)) return Status::Ok();
  const std::string inner = ModelInOutput(folder);
  return InvalidConfig("the model's folder is given by a flag: inspect " + line.arguments[0] +
                       " --model_dir=" + (inner.empty() ? folder : inner));
}

/// Of a model, or of a job, whose training files are read where its features learn from them.
Status ShowFeatures(const CommandLine& line, const std::stop_token& stop) {
  MR_TRY(CheckNoFolder(line));
  if (line.arguments.size() != 1 || FLAGS_trainer_desc.empty() == FLAGS_model_dir.empty()) {
    return InvalidConfig("whose features? inspect features --trainer_desc=FILE, or --model_dir=DIR");
  }
  if (FLAGS_top < 0) return InvalidConfig("--top must not be negative");
  DataFeedDesc desc;
  if (!FLAGS_model_dir.empty()) {
    MR_ASSIGN(const InferenceModel model, ReadInferenceModel(FLAGS_model_dir, 1, stop));
    if (model.feed_size() > 0) desc = model.feed(0).data_desc();
  } else {
    MR_ASSIGN(const JobAndEnvironment job,
              LoadInputJob({FLAGS_trainer_desc, line.repeated[0], line.repeated[1]}, stop));
    desc = job.config.desc->data_desc();
  }
  if (desc.feature_size() == 0) return InvalidConfig("it has no features: its slots stand in lines as they are");
  PrintOut(ListFeatures(desc, FLAGS_top));
  return FlushStandardOutput();
}

/// What a saved model predicts, and by what its predictions are calibrated.
Status ShowModel(const CommandLine& line, const std::stop_token& stop) {
  MR_TRY(CheckNoFolder(line));
  if (line.arguments.size() != 1 || FLAGS_model_dir.empty()) {
    return InvalidConfig("missing --model_dir: usage: inspect model --model_dir=DIR");
  }
  MR_ASSIGN(const InferenceModel model, ReadInferenceModel(FLAGS_model_dir, 1, stop));
  PrintOut(ListModel(model));
  return FlushStandardOutput();
}

Status CheckFlags(const CommandLine& line) {
  const std::string command = line.arguments.size() == 1 ? line.arguments[0] : "";
  std::error_code ignored;
  if (FLAGS_trainer_desc.empty() && !line.arguments.empty() &&
      std::filesystem::is_regular_file(line.arguments.back(), ignored)) {
    const std::string wanted = line.arguments.size() == 1 ? "head" : line.arguments[0];
    return InvalidConfig("the job's file is given by a flag: inspect " + wanted +
                         " --trainer_desc=" + line.arguments.back());
  }
  if (command != "head" && command != "stats" && command != "convert") {
    std::string given;
    for (const std::string& word : line.arguments) given += (given.empty() ? ": " : " ") + word;
    return InvalidConfig("expected one command, head, stats, features, model, convert, records, plugin, runs or table" +
                         given);
  }
  if (FLAGS_trainer_desc.empty()) return InvalidConfig("--trainer_desc is missing: the job's file");
  const bool is_lines = FLAGS_format == "multi_slot";
  if (FLAGS_format != "table" && FLAGS_format != "jsonl" && FLAGS_format != "json" && !is_lines) {
    return InvalidConfig("--format must be table, jsonl or multi_slot: " + FLAGS_format);
  }
  if (is_lines && line.arguments[0] != "head") return InvalidConfig("--format=multi_slot is for inspect head");
  if (FLAGS_batches < 0) return InvalidConfig("--batches must not be negative: " + std::to_string(FLAGS_batches));
  if (FLAGS_top < 0 || FLAGS_max_values < 1 || FLAGS_exact_ids < 1) {
    return InvalidConfig("--top must not be negative, --max_values and --exact_ids must be positive");
  }
  if (command == "convert" && FLAGS_output_dir.empty()) return InvalidConfig("--output_dir is missing: where to write");
  if (FLAGS_part_mib < 1 || FLAGS_part_mib > 1 << 20) {
    return InvalidConfig("--part_mib must be from 1 to 1048576: " + std::to_string(FLAGS_part_mib));
  }
  return Status::Ok();
}

Status PrintLine(const std::string& text) {
  PrintOut(text);
  return FlushStandardOutput();
}

/// Lines that are read again are data, to the byte, except for who looks at them.
Status PrintData(const std::string& text) {
  if (::isatty(STDOUT_FILENO) == 1) return PrintLine(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return FlushStandardOutput();
}

Status Head(JobInput& input, std::stop_token stop) {
  int64_t number = 0;
  return input.ForEachBatch(FLAGS_batches, stop, [&number](const SlotBatch& batch) {
    const int64_t n = number++;
    if (FLAGS_format == "multi_slot") return PrintData(BatchAsMultiSlot(batch));
    return PrintLine(FLAGS_format == "table" ? BatchAsTable(batch, n, FLAGS_max_values) : BatchAsJson(batch, n) + "\n");
  });
}

Status Stats(JobInput& input, int64_t batches, std::stop_token stop) {
  const auto& losses = input.desc().model().loss();
  // Of more than two classes none is the click.
  const bool has_label = !losses.empty() && !losses[0].label().empty();
  const bool is_of_classes = has_label && ClassesRead(input.desc().model(), losses[0]) > kClickClasses;
  const std::string label = !FLAGS_label.empty() ? FLAGS_label
                            : is_of_classes      ? ""
                            : has_label          ? losses[0].label()
                                                 : "label";
  if (!FLAGS_label.empty() && input.schema().Find(label) < 0) return InvalidConfig("--label: no used slot " + label);
  DatasetStats stats(input.schema(), label, static_cast<size_t>(FLAGS_exact_ids));
  MR_TRY(input.ForEachBatch(batches == 0 ? INT64_MAX : batches, stop, [&stats](const SlotBatch& batch) {
    stats.Add(batch);
    return Status::Ok();
  }));
  const auto top = static_cast<size_t>(FLAGS_top);
  return PrintLine(FLAGS_format == "table" ? stats.AsTable(top) : stats.AsJson(top) + "\n");
}

Status Run(const CommandLine& line, std::stop_token stop) {
  if (!line.arguments.empty() && line.arguments[0] == "records") return RunRecords(line, stop);
  if (!line.arguments.empty() && line.arguments[0] == "plugin") return ShowPlugin(line);
  if (!line.arguments.empty() && line.arguments[0] == "table") return ShowTables(line);
  if (!line.arguments.empty() && line.arguments[0] == "runs") return ShowRuns(line);
  if (!line.arguments.empty() && line.arguments[0] == "features") return ShowFeatures(line, stop);
  if (!line.arguments.empty() && line.arguments[0] == "model") return ShowModel(line, stop);
  MR_TRY(CheckFlags(line));
  const InputJob job{FLAGS_trainer_desc, line.repeated[0], line.repeated[1]};
  if (line.arguments[0] == "convert") {
    return ConvertJob({job, FLAGS_output_dir, static_cast<uint64_t>(FLAGS_part_mib) << 20}, stop);
  }
  MR_ASSIGN(const std::unique_ptr<JobInput> input, JobInput::Open(job, stop));
  if (!input->warnings().empty()) std::fprintf(stderr, "%s\n", input->warnings().c_str());
  if (line.arguments[0] == "head") return Head(*input, stop);
  // The default of --batches is for head; statistics of one batch are wanted by nobody who did not ask.
  const bool asked = !gflags::GetCommandLineFlagInfoOrDie("batches").is_default;
  return Stats(*input, asked ? FLAGS_batches : 0, stop);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  const millrace::CommandLine line = millrace::ParseCommandLine(millrace::kProgram, argc, argv);
  if (line.exit_code) return *line.exit_code;
  if (FLAGS_compare_jobs) return millrace::EndProgram("inspect", millrace::CompareJobs());
  const millrace::StopOnSignal signals;
  const millrace::Status status = millrace::Run(line, signals.token());
  return millrace::EndProgram("inspect", status);
}
