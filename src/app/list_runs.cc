#include "app/list_runs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "app/command_line.h"
#include "core/file.h"
#include "core/harmless_text.h"
#include "core/terminal.h"
#include "runs/run_comparison.h"
#include "runs/run_folder.h"
#include "runs/run_table_text.h"
#include "runs/runs_page.h"

namespace millrace {
namespace {

/// Leaves out what all folders have in common, which is then said once.
std::string TakeCommonFolder(std::vector<RunRecord>* runs) {
  if (runs->size() < 2) return "";
  std::string common = runs->front().name.substr(0, runs->front().name.rfind('/') + 1);
  for (const RunRecord& run : *runs) {
    while (!run.name.starts_with(common)) {
      common.pop_back();
      common.erase(common.rfind('/') + 1);
    }
  }
  for (RunRecord& run : *runs) run.name.erase(0, common.size());
  return common;
}

bool IsRun(const std::filesystem::path& folder) {
  std::error_code none;
  return std::filesystem::exists(folder / "run.json", none) || std::filesystem::exists(folder / "metrics.jsonl", none);
}

/// The runs in a folder that is none itself, as a sweep leaves it; else the folder. Of a plain file, which a pattern of
/// the shell brings along, nothing.
std::vector<std::string> RunsIn(const std::string& named) {
  std::error_code none;
  if (std::filesystem::is_regular_file(named, none)) {
    std::fprintf(stderr, "note: \"%s\" is a file, and left out\n", Harmless(named).c_str());
    return {};
  }
  std::vector<std::string> runs;
  if (!IsRun(named)) {
    for (const auto& entry : std::filesystem::directory_iterator(named, none)) {
      if (entry.is_directory(none) && IsRun(entry.path())) runs.push_back(entry.path().string());
    }
    std::sort(runs.begin(), runs.end());
  }
  return runs.empty() ? std::vector<std::string>{named} : runs;
}

}  // namespace

Status ListRuns(const RunsRequest& request) {
  // Whatever else is named by mistake stays as it is.
  if (!request.html.empty() && !request.html.ends_with(".html")) {
    return InvalidConfig("--html names the page to write, which ends in .html: " + request.html);
  }
  std::vector<RunRecord> runs;
  std::vector<Status> failures;
  std::vector<std::string> folders;
  for (const std::string& named : request.folders) {
    const std::vector<std::string> found = RunsIn(named);
    folders.insert(folders.end(), found.begin(), found.end());
  }
  if (folders.empty()) return InvalidConfig("which runs? Each is the --output_dir of a training, a folder");
  for (const std::string& folder : folders) {
    Result<RunRecord> run = ReadRun(folder);
    if (run.ok()) {
      runs.push_back(std::move(run).value());
    } else {
      failures.push_back(Harmless(run.status()));
    }
  }
  std::string table_text;
  std::string page;
  const std::string common = TakeCommonFolder(&runs);
  if (!runs.empty()) {
    MR_ASSIGN(const RunTable table, CompareRuns(runs, request.sort_by));
    table_text = RunTableText(table);
    if (!common.empty()) table_text += "  the runs are in " + Harmless(common) + "\n";
    if (!request.html.empty()) page = RunsPage(runs, table);
  }
  for (const RunRecord& run : runs) {
    for (const std::string& note : run.notes) std::fprintf(stderr, "note: %s\n", Harmless(note).c_str());
  }
  PrintOut(table_text);
  MR_TRY(FlushStandardOutput());
  if (!page.empty()) {
    MR_TRY(WriteFileAtomically(request.html, page));
    std::fprintf(stderr, "the page is %s\n", Harmless(request.html).c_str());
  }
  if (failures.empty()) return Status::Ok();
  if (failures.size() == 1) return failures[0];
  std::string all =
      std::to_string(failures.size()) + " of " + std::to_string(folders.size()) + " folders cannot be read:";
  for (const Status& failure : failures) all += "\n  " + failure.message();
  return {failures[0].code(), all};
}

}  // namespace millrace
