#include "app/same_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "config/print_config.h"

namespace millrace {

Status CheckSameText(RankGroup& ranks, const std::string& mine) {
  std::string of_leader = mine;
  MR_TRY(ranks.FromLeader(&of_leader));
  if (of_leader == mine) return ranks.Agree(Status::Ok());
  const auto differs = std::mismatch(mine.begin(), mine.end(), of_leader.begin(), of_leader.end()).first;
  const size_t place = std::min(static_cast<size_t>(differs - mine.begin()), mine.size());
  const size_t before = place == 0 ? std::string::npos : mine.rfind('\n', place - 1);
  const size_t at = before == std::string::npos ? 0 : before + 1;
  return ranks.Agree(
      InvalidConfig("this rank was given another job than rank 0; the first line that differs is here \"" +
                    mine.substr(at, mine.find('\n', at) - at) + "\""));
}

Status CheckSameJob(RankGroup& ranks, const LoadedConfig& config, const std::string& output_dir) {
  std::string mine = PrintConfig(*config.desc);
  std::vector<const std::vector<std::string>*> lists = {&config.files};
  for (const EvalSet& set : config.eval_sets) lists.push_back(&set.files);
  for (const std::vector<std::string>& files : config.pass_files) lists.push_back(&files);
  for (const std::vector<std::string>* files : lists) {
    for (const std::string& file : *files) mine += "input file: \"" + file + "\"\n";
  }
  mine += "output folder: \"" + output_dir + "\"\n";
  return CheckSameText(ranks, mine);
}

}  // namespace millrace
