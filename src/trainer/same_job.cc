#include "trainer/same_job.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "config/print_config.h"
#include "core/hash.h"
#include "core/shortened.h"
#include "core/wire.h"

namespace millrace {
namespace {

constexpr int64_t kNoSize = -1;

std::string_view TakeLine(std::string_view* rest) {
  const std::string_view line = rest->substr(0, rest->find('\n'));
  rest->remove_prefix(std::min(line.size() + 1, rest->size()));
  return line;
}

/// A line in quotes, without its indent, and shortened.
std::string Shown(std::string_view line) {
  constexpr size_t kMost = 200;  // a vocabulary may be a line
  return "\"" + Shortened(line.substr(std::min(line.find_first_not_of(' '), line.size())), kMost) + "\"";
}

/// The first line that `text` has more of than `other`, for people; empty where there is none.
std::string FirstLineOf(std::string_view text, std::string_view other) {
  std::multiset<std::string_view> others;
  while (!other.empty()) others.insert(TakeLine(&other));
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    const auto same = others.find(line);
    if (same == others.end()) return Shown(line);
    others.erase(same);
  }
  return "";
}

/// What is wrong where two texts have the same lines in another order.
std::string OtherOrder(std::string_view mine, std::string_view of_leader) {
  std::string_view here;
  std::string_view there;
  while (here == there && !mine.empty() && !of_leader.empty()) {
    here = TakeLine(&mine);
    there = TakeLine(&of_leader);
  }
  if (here.starts_with("input file: ")) return "this rank sees the same input files as rank 0 in another order";
  return "this rank was given the job of rank 0 in another order, of slots or other fields: here " + Shown(here) +
         ", there " + Shown(there);
}

/// What a rank sees, as it tells the one that leads.
struct SeenSizes {
  std::string host;
  std::vector<int64_t> sizes;
};

/// kBadData where a file has two sizes.
Status CompareSizes(const std::vector<std::string>& files, const std::vector<SeenSizes>& seen) {
  std::string first;
  int differing = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto has_size = [i](const SeenSizes& rank) { return rank.sizes[i] != kNoSize; };
    const auto one = std::find_if(seen.begin(), seen.end(), has_size);
    if (one == seen.end()) continue;
    const auto other = std::find_if(
        one, seen.end(), [&](const SeenSizes& rank) { return has_size(rank) && rank.sizes[i] != one->sizes[i]; });
    if (other == seen.end() || ++differing > 1) continue;
    const auto told = [&](const auto& rank) {
      return std::to_string(rank->sizes[i]) + " bytes on rank " + std::to_string(rank - seen.begin()) + " (" +
             rank->host + ")";
    };
    first = "input file \"" + files[i] + "\" has " + told(one) + " and " + told(other);
  }
  if (differing == 0) return Status::Ok();
  return BadData(first + " (of " + std::to_string(files.size()) + " files " + std::to_string(differing) +
                 " differ so); copy the files to all hosts, or wait until they are written, and start again");
}

}  // namespace

Status CheckSameText(RankGroup& ranks, const std::string& mine) {
  std::string of_leader = mine;
  MR_TRY(ranks.FromLeader(&of_leader));
  if (of_leader == mine) return ranks.Agree(Status::Ok());
  const std::string here = FirstLineOf(mine, of_leader);
  const std::string there = FirstLineOf(of_leader, mine);
  return ranks.Agree(InvalidConfig(
      here.empty() && there.empty()
          ? OtherOrder(mine, of_leader)
          : "this rank was given another job than rank 0, or sees other input files: here " +
                (here.empty() ? "nothing more" : here) + ", there " + (there.empty() ? "nothing more" : there)));
}

Status CheckSameSizes(RankGroup& ranks, const std::vector<std::string>& files) {
  std::vector<int64_t> sizes;
  for (const std::string& file : files) {
    std::error_code none;
    const auto size = std::filesystem::file_size(file, none);
    sizes.push_back(none ? kNoSize : static_cast<int64_t>(size));
  }
  std::string mine;
  WireWriter out(&mine);
  out.PutAll(std::span<const int64_t>(sizes));
  const uint64_t hash = HashName(mine);
  std::string of_leader(reinterpret_cast<const char*>(&hash), sizeof(hash));
  MR_TRY(ranks.FromLeader(&of_leader));
  int64_t differing = WireReader(of_leader).Get<uint64_t>() == hash ? 0 : 1;
  MR_TRY(ranks.communicator().SumOverRanks({&differing, 1}));
  if (differing == 0) return Status::Ok();
  out.PutText(HostName());
  std::vector<std::string> all;
  MR_TRY(ranks.ToLeader(std::move(mine), &all));
  if (!ranks.leads()) return ranks.Agree(Status::Ok());
  std::vector<SeenSizes> seen(all.size());
  for (size_t r = 0; r < all.size(); ++r) {
    WireReader in(all[r]);
    in.GetAll(&seen[r].sizes);
    seen[r].host = in.GetText();
  }
  return ranks.Agree(CompareSizes(files, seen));
}

Status CheckSameJob(RankGroup& ranks, const LoadedConfig& config, const std::string& output_dir) {
  if (ranks.size() == 1) return Status::Ok();
  std::string mine = PrintConfig(*config.desc);
  std::vector<const std::vector<std::string>*> lists = {&config.files};
  for (const EvalSet& set : config.eval_sets) lists.push_back(&set.files);
  for (const std::vector<std::string>& files : config.pass_files) lists.push_back(&files);
  std::vector<std::string> all;
  for (const std::vector<std::string>* files : lists) all.insert(all.end(), files->begin(), files->end());
  for (const std::string& file : all) mine += "input file: \"" + file + "\"\n";
  mine += "output folder: \"" + output_dir + "\"\n";
  MR_TRY(CheckSameText(ranks, mine));
  return CheckSameSizes(ranks, all);
}

}  // namespace millrace
