#include "session/open_job.h"

#include <utility>

#include "features/feature_statistics.h"
#include "job/input_headers.h"
#include "job/output_folder.h"
#include "trainer/feature_preparation.h"

namespace millrace {
namespace {

/// Checks the headers of the input and, if statistics are needed, locks the output folder: both fail before the first
/// long step.
Result<FileDescriptor> CheckInput(const LoadedConfig& config, const Environment& environment,
                                  const OpenOptions& options, const std::stop_token& stop) {
  MR_TRY(CheckInputHeaders(config, environment, stop));
  const bool needs_folder = options.locks_folder && !options.output_dir.empty();
  return needs_folder && NeedsStatistics(config.desc->data_desc()) ? MakeOutputFolder(options.output_dir)
                                                                   : FileDescriptor();
}

}  // namespace

Result<OpenedJob> OpenJob(RankGroup& ranks, LoadedConfig config, const Environment& environment, OpenOptions options,
                          const std::stop_token& stop) {
  OpenedJob opened;
  if (options.reads_input) {
    Result<FileDescriptor> folder = FileDescriptor();
    if (ranks.leads()) folder = CheckInput(config, environment, options, stop);
    MR_TRY(ranks.Agree(folder.status()));
    opened.folder = std::move(folder).value();
    const FeaturePreparation how{.ranks = ranks,
                                 .resume = options.resume,
                                 .output_dir = options.output_dir,
                                 .reads_again = true,
                                 .terminal = options.terminal};
    MR_TRY(PrepareFeatures(how, environment, stop, &config));
  }
  if (options.on_prepared) options.on_prepared(&config);
  auto job = CompiledJob::Create(std::move(config), environment, std::move(options.output_dir), options.watched, stop);
  MR_TRY(ranks.Agree(job.status()));
  opened.job = std::move(job).value();
  if (!options.makes_session) return opened;
  if (options.on_compiled) options.on_compiled(*opened.job);
  auto session = JobSession::Create(opened.job, options.inputs, stop);
  MR_TRY(ranks.Agree(session.status()));
  opened.session = std::move(session).value();
  return opened;
}

}  // namespace millrace
