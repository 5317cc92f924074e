// Scores lines with a saved model: what `predictor --model_dir=DIR --input=FILE` runs.

#include <gflags/gflags.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/command_line.h"
#include "app/score_lines.h"
#include "app/stop_on_signal.h"
#include "core/file.h"
#include "core/same_file.h"
#include "core/shortest_number.h"
#include "program/text_proto.h"
#include "trainer/default_environment.h"

DEFINE_string(
    model_dir, "",
    "DIR: a saved model, OUTPUT_DIR/model of a run, or one of Paddle's save_inference_model (its folder or prefix)");
DEFINE_string(input, "-", "FILE: lines to score (gz and zstd are known by their first bytes); - is standard input");
DEFINE_string(output, "", "FILE: where the scores go, one a line; - is standard output, the default without --compare");
DEFINE_string(pipe_command, "", "COMMAND: what the input is piped through, instead of the model's; cat for none");
DEFINE_bool(
    allow_model_command, false,
    "runs the commands that the model names for its lines (pipe_command, input_commands), as who trained it did");
DEFINE_string(feed, "offline", "NAME: offline (lines as in training) or online (pooled embeddings)");
DEFINE_string(data_feed, "", "FILE: how lines are read, a DataFeedDesc in prototxt, instead of the model's own");
DEFINE_string(format, "",
              "NAME: csv, json, libsvm, parquet or arrow, of a model with features: how the columns of the input are "
              "written, where that is not as in training");
DEFINE_string(prediction, "", "NAME: the variable to score by, of several that a model of Paddle returns");
DEFINE_string(without, "", "SLOTS: comma-separated slots that the input lines lack, for example the label");
DEFINE_string(compare, "", "FILE: expected scores, one a line; a difference beyond --tolerance ends with exit code 3");
DEFINE_double(tolerance, 1e-6, "largest difference that --compare accepts");
DEFINE_bool(allow_non_finite, false,
            "scores that are NaN or infinite are counted, and do not end the program with exit code 3");
DEFINE_int32(batch_size, 0, "rows scored at once; 0: as in training");

namespace millrace {
namespace {

const ProgramInfo kProgram{
    .name = "predictor",
    .summary = "Scores lines with a model that trainer saved, one score a line.",
    .usage = "predictor --model_dir=DIR [--input=FILE] [flags]",
    .groups = {{"Model and input",
                {"model_dir", "input", "format", "data_feed", "pipe_command", "allow_model_command", "feed",
                 "prediction", "without", "batch_size", "plugin"}},
               {"Scores", {"output", "compare", "tolerance", "allow_non_finite"}}},
    .repeated = {{"plugin", "FILE", "a plugin that the model was trained with, for its operators and data feeds"}},
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
