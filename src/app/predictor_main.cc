// Scores lines with a saved model: what `predictor --model_dir=DIR --input=FILE` runs.

#include <gflags/gflags.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/command_line.h"
#include "app/score_lines.h"
#include "app/stop_on_signal.h"
#include "core/file.h"
#include "core/numbers.h"
#include "core/same_file.h"
#include "program/text_proto.h"
#include "trainer/default_environment.h"

DEFINE_string(
    model_dir, "",
    "DIR: a saved model: OUTPUT_DIR/model of a run, or the folder or prefix of a Paddle save_inference_model");
DEFINE_string(input, "-", "FILE: lines to score, plain, gz or zstd; - reads standard input");
DEFINE_string(output, "", "FILE: scores, one per line; - writes to standard output, the default without --compare");
DEFINE_string(pipe_command, "", "COMMAND: shell command for the input, instead of the model's; cat reads it directly");
DEFINE_bool(allow_model_command, false,
            "run the model's commands (pipe_command, input_commands); use it only for models that you trust");
DEFINE_string(feed, "offline", "NAME: offline (reads lines as in training) or online (reads pooled embeddings)");
DEFINE_string(data_feed, "", "FILE: a DataFeedDesc in prototxt that describes the lines, instead of the model's");
DEFINE_string(
    format, "",
    "NAME: input format of a model with features, if it differs from training: csv, json, libsvm, parquet or arrow");
DEFINE_string(prediction, "", "NAME: score variable of a Paddle model with several outputs");
DEFINE_string(without, "", "SLOTS: comma-separated slots missing from the input lines, for example the label");
DEFINE_string(compare, "", "FILE: expected scores, one per line; a difference above --tolerance exits with code 3");
DEFINE_double(tolerance, 1e-6, "largest difference that --compare accepts");
DEFINE_bool(allow_non_finite, false, "count NaN and infinite scores instead of exiting with code 3");
DEFINE_int32(batch_size, 0, "rows per batch; 0: as in training");

namespace millrace {
namespace {

const ProgramInfo kProgram{
    .name = "predictor",
    .summary = "Scores lines with a saved model and writes one score per line.",
    .usage = "predictor --model_dir=DIR [--input=FILE] [flags]",
    .groups = {{"Model and input",
                {"model_dir", "input", "format", "data_feed", "pipe_command", "allow_model_command", "feed",
                 "prediction", "without", "batch_size", "plugin"}},
               {"Scores", {"output", "compare", "tolerance", "allow_non_finite"}}},
    .repeated = {{"plugin", "FILE", "a plugin that the model requires, for its operators and data feeds"}},
    .examples =
        "predictor --model_dir=out/model --input=data/part-0 --output=scores.txt\n"
        "zcat part-9.gz | predictor --model_dir=out/model --pipe_command=cat",
};

/// Scores would take the place of a part of the model.
Status CheckIsNoFileOf(const std::string& model, const std::string& output) {
  if (output.empty() || output == "-") return Status::Ok();
  std::error_code ended;
  for (std::filesystem::recursive_directory_iterator file(model, ended), end; !ended && file != end;
       file.increment(ended)) {
    if (!IsSamePlainFile(file->path().string(), output)) continue;
    return InvalidConfig("--output is \"" + output + "\", a file of the model, which would be lost: name another file");
  }
  return Status::Ok();
}

Status Run(const CommandLine& line) {
  if (!line.arguments.empty()) {
    std::error_code ignored;
    const std::string& word = line.arguments[0];
    if (FLAGS_model_dir.empty() && std::filesystem::is_directory(word, ignored)) {
      return InvalidConfig("the model's folder is given by a flag: predictor --model_dir=" + word);
    }
    return InvalidConfig("\"" + line.arguments[0] + "\" is no flag; the lines to score are --input=FILE");
  }
  if (FLAGS_model_dir.empty()) return InvalidConfig("--model_dir is missing: the folder of a saved model");
  if (FLAGS_batch_size < 0) {
    return InvalidConfig("--batch_size is a number of rows, or 0 for that of training, not " +
                         std::to_string(FLAGS_batch_size));
  }
  if (!(FLAGS_tolerance >= 0)) {
    return InvalidConfig("--tolerance must not be negative, not " + ShortestNumber(FLAGS_tolerance));
  }
  MR_TRY(CheckIsNoFileOf(FLAGS_model_dir, FLAGS_output));
  const StopOnSignal signals;
  MR_ASSIGN(const Environment environment, MakeEnvironment(line.repeated[0]));
  PredictorOptions options;
  options.feed = FLAGS_feed;
  options.prediction = FLAGS_prediction;
  options.keeps_logits = true;
  options.feeds = &environment.feeds;
  options.stop = signals.token();
  DataFeedDesc data_desc;
  if (!FLAGS_data_feed.empty()) {
    MR_ASSIGN(const std::string text, ReadFile(FLAGS_data_feed));
    MR_TRY(ParseTextProto(text, FLAGS_data_feed, &data_desc));
    options.data_desc = &data_desc;
  }
  MR_ASSIGN(const std::unique_ptr<const Predictor> predictor,
            Predictor::Load(FLAGS_model_dir, environment.ops, options));
  for (const std::string& warning : predictor->warnings()) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  ScoreRequest request;
  request.input = FLAGS_input;
  // What --data_feed names is the caller's own.
  request.allow_model_command = FLAGS_allow_model_command || !FLAGS_data_feed.empty();
  request.output = FLAGS_output.empty() && FLAGS_compare.empty() ? "-" : FLAGS_output;
  request.format = FLAGS_format;
  request.without = FLAGS_without;
  request.compare = FLAGS_compare;
  request.tolerance = FLAGS_tolerance;
  request.batch_size = FLAGS_batch_size;
  request.allow_non_finite = FLAGS_allow_non_finite;
  if (!google::GetCommandLineFlagInfoOrDie("pipe_command").is_default) request.pipe_command = FLAGS_pipe_command;
  return ScoreLines(*predictor, environment, request, signals.token());
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  const millrace::CommandLine line = millrace::ParseCommandLine(millrace::kProgram, argc, argv);
  if (line.exit_code.has_value()) return *line.exit_code;
  const millrace::Status status = millrace::Run(line);
  return millrace::EndProgram("predictor", status);
}
