// Writes a seeded click log whose attainable AUC is known.

#include <gflags/gflags.h>
#include <unistd.h>

#include <cstdio>

#include "app/command_line.h"
#include "clickgen/click_log.h"
#include "core/numbers.h"
#include "core/on_threads.h"

DEFINE_string(output_dir, "",
              "DIR: output folder for train/, test/, data_feed.prototxt and meta.json; - writes to standard output");
DEFINE_int64(rows, 100000, "training rows");
DEFINE_int64(test_rows, 0, "test rows, drawn from the same distribution");
DEFINE_int32(parts, 1, "files per split");
DEFINE_string(format, "multislot", "multislot (for a data feed) or raw (tab-separated, for a pipe_command)");
DEFINE_string(ids, "local", "local (1 to the slot's vocabulary) or hash64 (64 bits, different in each slot)");
DEFINE_bool(gzip, false, "compress the files");
DEFINE_int32(threads, 0, "threads; 0: one per CPU. Files do not depend on it");
DEFINE_uint64(seed, 1, "seed of all random sequences");
DEFINE_int32(dense, 13, "float values per row");
DEFINE_int32(slots, 26, "sparse slots: C1, C2 and so on");
DEFINE_uint64(vocabulary, 100000, "ids of the largest slot; the smallest has 4");
DEFINE_double(zipf, 1.05, "exponent of the power law of ids; 0: uniform");
DEFINE_int32(many_valued, 4, "slots with 1 to max_length ids per row");
DEFINE_int32(max_length, 10, "maximum number of ids in a many-valued slot");
DEFINE_double(missing, 0.03, "probability that a value is missing (raw: an empty field; multislot: 0)");
DEFINE_double(click_rate, 0.25, "target fraction of clicks");
DEFINE_double(signal, 1, "strength of the signal in the features; larger values raise the attainable AUC");
DEFINE_int32(fm_slots, 6, "slots with pairwise interactions, the smallest ones");
DEFINE_int32(fm_dim, 3, "dimensions of the interaction");

namespace millrace {
namespace {

const ProgramInfo kProgram{
    .name = "clickgen",
    .summary = "Writes a click log with a known distribution, and reports the AUC of the best possible model.",
    .usage = "clickgen --output_dir=DIR [flags]",
    .groups = {{"Output", {"output_dir", "rows", "test_rows", "parts", "format", "ids", "gzip", "threads"}},
               {"Rows", {"dense", "slots", "vocabulary", "zipf", "many_valued", "max_length", "missing"}},
               {"Clicks", {"seed", "click_rate", "signal", "fm_slots", "fm_dim"}}},
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
