#include "session/script_job.h"

#include <string_view>
#include <utility>

#include "config/print_config.h"
#include "core/contained_file.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/wire.h"
#include "program/program_files.h"
#include "trainer/default_environment.h"
#include "trainer/same_job.h"

namespace millrace {
namespace {

/// The filelist of a dataset without files on this rank; other ranks may have some (DatasetBase._files).
constexpr std::string_view kNoFiles = "/dev/null";

/// A text that is equal on all ranks if they train the same program with the same settings.
std::string JobText(const LoadedConfig& config) {
  TrainerDesc desc = *config.desc;
  // Each rank has the program in a folder of its own.
  const std::string path = desc.program().main();
  desc.clear_program();
  desc.clear_filelist();
  // What rank 0 alone shows.
  desc.clear_fetch_config();
  desc.clear_debug();
  std::string text = PrintConfig(desc);
  const Result<std::string> bytes = ReadFile(path);
  const Result<ProgramDesc> program =
      bytes.ok() ? ParseProgram(*bytes, "program") : Result<ProgramDesc>(bytes.status());
  if (!program.ok()) return text + program.status().message();
  const BlockDesc& block = program->blocks(0);
  text += PrintOps(std::vector<OpDesc>(block.ops().begin(), block.ops().end()));
  return text + "the program's bytes: " + std::to_string(HashName(*bytes)) + "\n";
}

}  // namespace

Result<LoadedConfig> ReadScriptJob(const Environment& environment, const std::string& origin, const std::string& text,
                                   bool needs_model, bool of_ranks) {
  ConfigRequest request;
  request.known = NamesOf(environment);
  request.needs_model = needs_model;
  request.has_output_folder = false;
  request.of_ranks = of_ranks;
  return LoadTrainerDescText(origin, text, request);
}

Result<std::vector<std::vector<std::string>>> FileLists(const CallContext& context, const std::string& call,
                                                        const Result<LoadedConfig>& read) {
  std::string mine;
  WireWriter out(&mine);
  for (const std::string& file : read.ok() ? read->files : std::vector<std::string>()) {
    if (file != kNoFiles) out.PutText(file);
  }
  MR_ASSIGN(const std::vector<std::string> all, context.ranks.Together(call, mine, context.stop));
  MR_TRY(context.ranks.group->Agree(read.status()));
  std::vector<std::vector<std::string>> lists(all.size());
  for (size_t r = 0; r < all.size(); ++r) {
    for (WireReader in(all[r]); !in.rest().empty() && in.ok();) lists[r].emplace_back(in.GetText());
  }
  return lists;
}

Status NoFilesOnAnyRank() { return InvalidConfig("the dataset has no files on any rank: call set_filelist"); }

Status CompareJobs(const CallContext& context, bool has_rows, Result<LoadedConfig>* job) {
  const bool infer = job->ok() && (*job)->desc->infer();
  const std::string call = infer ? "infer_from_dataset" : "train_from_dataset";
  MR_ASSIGN(const std::vector<std::vector<std::string>> lists, FileLists(context, call, *job));
  RankGroup& group = *context.ranks.group;
  MR_TRY(CheckSameText(group, JobText(**job)));
  if (has_rows) return Status::Ok();
  MR_ASSIGN((*job)->files, FilesOfRanks(lists));
  if ((*job)->files.empty()) return NoFilesOnAnyRank();
  return CheckSameSizes(group, (*job)->files);
}

}  // namespace millrace
