#include "app/convert_job.h"

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <system_error>

#include "config/feed_names.h"
#include "config/print_config.h"
#include "core/file.h"
#include "core/same_file.h"
#include "dataset/dataset_factory.h"
#include "dataset/instant_converter.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// The desc that the text is read with: slots that are not used are left out of the files.
Result<DataFeedDesc> ReadingDesc(const TrainerDesc& job) {
  DataFeedDesc desc = job.data_desc();
  const std::string& class_name = job.dataset().class_name();
  if (job.has_incremental()) {
    return InvalidConfig("incremental: convert one pass at a time: --set filelist, in a job without incremental");
  }
  if (class_name == "FileInstantDataset") {
    return InvalidConfig("dataset.class_name: the files of a FileInstantDataset are binary already");
  }
  if (desc.parse_ins_id() || desc.parse_content() || desc.parse_logkey()) {
    return InvalidConfig(std::string("data_desc.") +
                         (desc.parse_ins_id()    ? "parse_ins_id"
                          : desc.parse_content() ? "parse_content"
                                                 : "parse_logkey") +
                         ": binary rows hold no texts; drop them in the pipe_command, or train from the text");
  }
  if (job.dataset().sample_rate() < 1) {
    return InvalidConfig("dataset.sample_rate: files hold every line; leave it out, or draw lines in the pipe_command");
  }
  ForgetOwnFeed(&desc);
  return desc;
}

/// The job that trains from the binary files.
TrainerDesc BinaryJob(const TrainerDesc& job, const std::string& output_dir, bool has_eval) {
  TrainerDesc binary = job;
  binary.clear_filelist();
  binary.add_filelist(output_dir + "/part-?????");
  if (has_eval) {
    binary.mutable_eval()->clear_filelist();
    binary.mutable_eval()->add_filelist(output_dir + "/eval-?????");
  }
  binary.mutable_dataset()->Clear();
  binary.mutable_dataset()->set_class_name("FileInstantDataset");
  const DataFeedDesc& text = job.data_desc();
  DataFeedDesc feed;
  feed.set_name("MultiSlotFileInstantDataFeed");
  feed.set_batch_size(text.batch_size());
  if (text.drop_last()) feed.set_drop_last(true);
  // They are gone from the files, and the model drops them from text, too.
  if (text.zeros() == DataFeedDesc::DROP) feed.set_zeros(DataFeedDesc::DROP);
  // Rows that features make may lack values.
  if (text.empty_slot() == DataFeedDesc::ALLOW || text.feature_size() > 0) feed.set_empty_slot(DataFeedDesc::ALLOW);
  for (const Slot& slot : text.multi_slot_desc().slots()) {
    if (slot.is_used()) *feed.mutable_multi_slot_desc()->add_slots() = slot;
  }
  *binary.mutable_data_desc() = std::move(feed);
  return binary;
}

Status ConvertFiles(const DataFeedDesc& desc, const DataFeedFactory& feeds, const std::vector<std::string>& files,
                    const std::string& prefix, const ConvertJobRequest& request, const std::stop_token& stop) {
  ConvertRequest conversion;
  conversion.desc = &desc;
  conversion.feeds = feeds;
  conversion.files = files;
  conversion.output_dir = request.output_dir;
  conversion.prefix = prefix;
  conversion.part_bytes = request.part_bytes;
  MR_ASSIGN(const ConvertReport report, ConvertToInstant(conversion, stop));
  std::fprintf(stderr, "%s/%s-*: %lld rows, %lld bytes in %lld files%s\n", request.output_dir.c_str(), prefix.c_str(),
               static_cast<long long>(report.rows), static_cast<long long>(report.bytes),
               static_cast<long long>(report.parts), report.resumed ? ", some of them from an earlier call" : "");
  for (const auto& [kind, count] : report.stats.counters) {
    std::fprintf(stderr, "  %s: %lld\n", kind.c_str(), static_cast<long long>(count));
  }
  return Status::Ok();
}

}  // namespace

Status ConvertJob(const ConvertJobRequest& request, std::stop_token stop) {
  const std::string job = request.output_dir + "/job.prototxt";
  if (IsSamePlainFile(job, request.job.file)) {
    return InvalidConfig("the job of the binary files is written to \"" + job +
                         "\", which is the job to convert: name another folder");
  }
  const std::string text_feed = request.output_dir + "/text_feed.prototxt";
  if (IsSamePlainFile(text_feed, request.job.file)) {
    return InvalidConfig("how the text was read is written to \"" + text_feed +
                         "\", which is the job to convert: name another folder");
  }
  MR_ASSIGN(const JobAndEnvironment loaded, LoadInputJob(request.job, stop));
  const LoadedConfig& config = loaded.config;
  if (!config.warnings.empty()) std::fprintf(stderr, "%s\n", config.warnings.c_str());
  if (config.desc->eval().set_size() > 0) {
    return config.Report({{"eval.set[0]",
                           "not supported yet: sets with names are not converted; give the watched one as "
                           "eval.filelist, and convert the others as jobs of their own"}});
  }
  MR_ASSIGN(const DataFeedDesc desc, ReadingDesc(*config.desc));
  std::string text;
  google::protobuf::TextFormat::PrintToString(desc, &text);
  MR_TRY(ConvertFiles(desc, loaded.environment.feeds, config.files, "part", request, stop));
  const bool has_eval = !config.eval_sets.empty();
  if (has_eval) {
    MR_TRY(ConvertFiles(desc, loaded.environment.feeds, config.eval_sets[0].files, "eval", request, stop));
  }
  MR_TRY(WriteFileAtomically(job, PrintConfig(BinaryJob(*config.desc, request.output_dir, has_eval))));
  if (config.desc->dataset().local_shuffle() || config.desc->dataset().global_shuffle()) {
    std::fprintf(stderr, "shuffling is left out: a FileInstantDataset reads its rows in order\n");
  }
  std::fprintf(stderr, "train from them: trainer --trainer_desc=%s\n", job.c_str());
  MR_TRY(WriteFileAtomically(text_feed, text));
  std::fprintf(stderr, "score text as they were made of with such a model: predictor --data_feed=%s\n",
               text_feed.c_str());
  return Status::Ok();
}

}  // namespace millrace
