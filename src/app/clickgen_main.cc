// Writes a seeded click log whose attainable AUC is known.

#include <gflags/gflags.h>
#include <unistd.h>

#include <cstdio>

#include "app/command_line.h"
#include "clickgen/click_log.h"
#include "core/number_format.h"
#include "core/on_threads.h"

DEFINE_string(output_dir, "", "DIR: folder for train/, test/, data_feed.prototxt and meta.json; - writes to stdout");
DEFINE_int64(rows, 100000, "rows to train on");
DEFINE_int64(test_rows, 0, "rows to test on, drawn by the same law");
DEFINE_int32(parts, 1, "files of each split");
DEFINE_string(format, "multislot", "multislot (what a data feed parses) or raw (tab-separated, for a pipe_command)");
DEFINE_string(ids, "local", "local (1 to the slot's vocabulary) or hash64 (64-bit, other ones in each slot)");
DEFINE_bool(gzip, false, "compress the files");
DEFINE_int32(threads, 0, "threads; 0: one a processor. The bytes are the same for any number");
DEFINE_uint64(seed, 1, "starts every random sequence");
DEFINE_int32(dense, 13, "floats in a row");
DEFINE_int32(slots, 26, "sparse slots, C1 and so on");
DEFINE_uint64(vocabulary, 100000, "ids of the largest slot; the smallest has 4");
DEFINE_double(zipf, 1.05, "exponent of the power law of ids; 0: all alike");
DEFINE_int32(many_valued, 4, "slots with 1 to max_length ids in a row");
DEFINE_int32(max_length, 10, "most ids of a many-valued slot");
DEFINE_double(missing, 0.03, "probability that a value is missing (raw: an empty field; multislot: 0)");
DEFINE_double(click_rate, 0.25, "share of clicks that is aimed at");
DEFINE_double(signal, 1, "scales what decides over clicks: more makes a higher AUC attainable");
DEFINE_int32(fm_slots, 6, "slots whose pairs interact; the smallest are taken");
DEFINE_int32(fm_dim, 3, "dimensions of the interaction");

namespace millrace {
namespace {

const ProgramInfo kProgram{
    .name = "clickgen",
    .summary = "Writes a click log whose law is known, and says which AUC the best model can reach on it.",
    .usage = "clickgen --output_dir=DIR [flags]",
    .groups = {{"Output", {"output_dir", "rows", "test_rows", "parts", "format", "ids", "gzip", "threads"}},
               {"What a row holds", {"dense", "slots", "vocabulary", "zipf", "many_valued", "max_length", "missing"}},
               {"What decides over clicks", {"seed", "click_rate", "signal", "fm_slots", "fm_dim"}}},
    .repeated = {},
    .examples =
        "clickgen --output_dir=/tmp/clicks --rows=1000000 --test_rows=100000 --parts=8 --gzip\n"
        "clickgen --output_dir=- --rows=3 --format=raw",
};

Result<ClickLogOptions> OptionsFromFlags() {
  if (FLAGS_output_dir.empty()) return InvalidConfig("--output_dir is missing: a folder, or - for standard output");
  if (FLAGS_format != "multislot" && FLAGS_format != "raw") {
    return InvalidConfig("--format must be multislot or raw: " + FLAGS_format);
  }
  if (FLAGS_ids != "local" && FLAGS_ids != "hash64")
    return InvalidConfig("--ids must be local or hash64: " + FLAGS_ids);
  const int processors = ThreadsHere();
  return ClickLogOptions{
      .seed = FLAGS_seed,
      .train_rows = FLAGS_rows,
      .test_rows = FLAGS_test_rows,
      .parts = FLAGS_parts,
      .format = FLAGS_format == "raw" ? ClickLogOptions::Format::kRaw : ClickLogOptions::Format::kMultiSlot,
      .ids = FLAGS_ids == "hash64" ? ClickLogOptions::Ids::kHash64 : ClickLogOptions::Ids::kLocal,
      .gzip = FLAGS_gzip,
      .threads = FLAGS_threads == 0 ? processors : FLAGS_threads,
      .dense = FLAGS_dense,
      .slots = FLAGS_slots,
      .vocabulary = FLAGS_vocabulary,
      .zipf = FLAGS_zipf,
      .many_valued = FLAGS_many_valued,
      .max_length = FLAGS_max_length,
      .missing = FLAGS_missing,
      .click_rate = FLAGS_click_rate,
      .signal = FLAGS_signal,
      .fm_slots = FLAGS_fm_slots,
      .fm_dim = FLAGS_fm_dim,
  };
}

Status Run(const CommandLine& line) {
  if (!line.arguments.empty()) return InvalidConfig("\"" + line.arguments[0] + "\" is no flag");
  MR_ASSIGN(const ClickLogOptions options, OptionsFromFlags());
  if (FLAGS_output_dir == "-") MR_TRY(CheckIsOpen(STDOUT_FILENO, "cannot write rows"));
  MR_ASSIGN(const std::vector<ClickLogSplit> splits, WriteClickLog(options, FLAGS_output_dir));
  for (const ClickLogSplit& split : splits) {
    const double clicks = 100.0 * static_cast<double>(split.clicks) / static_cast<double>(split.rows);
    std::fprintf(stderr, "%s: %lld rows, %s MB in %zu files, %s %% clicks; attainable AUC %s, log loss %s\n",
                 split.name.c_str(), static_cast<long long>(split.rows),
                 FixedNumber(static_cast<double>(split.bytes) / 1e6, 1).c_str(), split.files.size(),
                 FixedNumber(clicks, 2).c_str(), FixedNumber(split.attainable_auc, 4).c_str(),
                 FixedNumber(split.attainable_log_loss, 4).c_str());
  }
  return Status::Ok();
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  const millrace::CommandLine line = millrace::ParseCommandLine(millrace::kProgram, argc, argv);
  if (line.exit_code) return *line.exit_code;
  const millrace::Status status = millrace::Run(line);
  return millrace::EndProgram("clickgen", status);
}
