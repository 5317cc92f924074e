#include "checkpoint/checkpoint_store.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "core/checksummed_file.h"
#include "core/contained_file.h"
#include "core/file.h"
#include "core/folder_entries.h"
#include "core/hash.h"
#include "core/numbers.h"
#include "core/on_threads.h"
#include "core/replace_folder.h"
#include "core/sealed_text.h"
#include "runtime/checkpoint_manifest.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "MANIFEST";
constexpr char kMetricsFile[] = "metrics";
constexpr char kWriting[] = ".writing-";
constexpr char kBest[] = "best";
constexpr char kRun[] = "RUN";
constexpr std::string_view kStep = "step-";

std::string StepFolder(int64_t step) {
  std::string digits = std::to_string(step);
  return std::string(kStep) + std::string(digits.size() < 12 ? 12 - digits.size() : 0, '0') + digits;
}

// The step of "step-000000001200"; nothing for any other name.
std::optional<int64_t> StepOf(std::string_view name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  name.remove_prefix(kStep.size());
  int64_t step = 0;
  return ReadWhole(name, &step) ? std::optional(step) : std::nullopt;
}

// Newest first.
std::vector<std::string> StepFolders(const std::string& folder) {
  Result<std::vector<std::string>> all = NamesIn(folder);
  if (!all.ok()) return {};
  std::vector<std::string> names = *std::move(all);
  std::erase_if(names, [&](const std::string& name) {
    std::error_code unknown;
    return !StepOf(name).has_value() || !fs::is_directory(folder + "/" + name, unknown);
  });
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  return names;
}

uint64_t SumOfBytes(const std::vector<StoredFile>& files) {
  uint64_t bytes = 0;
  for (const StoredFile& file : files) bytes += file.bytes();
  return bytes;
}

/// As FileInFolder; a file that is missing is damage as well.
Result<std::string> InCheckpoint(const std::string& folder, const char* file) {
  Result<std::string> path = FileInFolder(folder, file);
  if (path.status().code() == StatusCode::kNotFound) return BadData(path.status().message());
  return path;
}

Result<CheckpointManifest> ManifestIn(const std::string& folder) {
  MR_ASSIGN(const std::string path, InCheckpoint(folder, kManifest));
  return ReadManifest(path);
}

/// Says which step a folder is of, as its name does.
Status CheckStep(const std::string& name, const FoundCheckpoint& found) {
  if (StepOf(name) == found.manifest.step()) return Status::Ok();
  return BadData("its MANIFEST is of step " + std::to_string(found.manifest.step()));
}

Result<StoredFile> WriteMetrics(const std::string& folder, const std::vector<const MetricTotals*>& metrics) {
  MR_ASSIGN(const auto file, ChecksummedFile::Create(folder + "/" + kMetricsFile));
  for (const MetricTotals* totals : metrics) MetricSet::Write(*totals, file->stream());
  return FinishFile(*file, kMetricsFile);
}

/// Writes everything that a checkpoint holds into a folder of its own.
Result<StoredVariables> Fill(const std::string& folder, const CheckpointContent& content, const ProgramDesc& program,
                             const Scope& root, const EarlierSave& earlier, int threads, const LongWork& work) {
  MR_ASSIGN(StoredVariables stored, StoreVariables(program, folder, root, TableContent::kAll, threads, work, &earlier));
  CheckpointManifest manifest = content.manifest;
  if (content.is_between) manifest.set_is_between(true);
  for (const StoredVariable& variable : stored.variables) *manifest.add_variable() = variable;
  for (const StoredFile& file : stored.files) *manifest.add_file() = file;
  MR_ASSIGN(*manifest.add_file(), WriteMetrics(folder, content.metrics));
  MR_TRY(WriteFileAtomically(folder + "/" + kManifest, ManifestText(std::move(manifest))));
  return stored;
}

Status PointBestAt(const std::string& folder, const std::string& step_folder) {
  const std::string beside = folder + "/" + kWriting + kBest;
  std::error_code error;
  fs::remove(beside, error);
  fs::create_directory_symlink(step_folder, beside, error);
  if (!error) fs::rename(beside, folder + "/" + kBest, error);
  return error ? IoError("cannot link \"" + folder + "/" + kBest + "\": " + error.message()) : Status::Ok();
}

}  // namespace

Status NoCheckpoint(const std::string& folder) {
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) {
    return InvalidConfig("--resume is auto, never or the folder of a checkpoint, and there is no folder \"" + folder +
                         "\"");
  }
  const bool is_model = std::filesystem::exists(folder + "/MODEL", none);
  return InvalidConfig(
      "--resume: \"" + folder + "\" is " +
      (is_model ? "a saved model, and no checkpoint: it has not what the optimizer keeps"
                : "no checkpoint: it has no MANIFEST") +
      ". Those of a run are OUTPUT_DIR/checkpoints/step-..., and --resume=auto takes the newest whole one");
}

Result<CheckpointStore> CheckpointStore::Create(const std::string& folder, int keep, int threads) {
  MR_TRY(MakeFolder(folder));
  MR_ASSIGN(const std::vector<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    if (name.starts_with(kWriting)) MR_TRY(RemoveFolder(folder + "/" + name));
  }
  return CheckpointStore(folder, std::max(keep, 1), threads);
}

Status CheckpointStore::BeginRun(uint64_t run_id) const {
  return WriteFileAtomically(folder_ + "/" + kRun, SealText(std::to_string(run_id) + "\n"));
}

Result<std::optional<uint64_t>> CheckpointStore::CurrentRun() const {
  const std::string path = folder_ + "/" + kRun;
  if (!MayBeThere(path)) return std::optional<uint64_t>();
  MR_TRY(FileInFolder(folder_, kRun).status());
  MR_ASSIGN(const std::string text, ReadSealedText(path));
  uint64_t run_id = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), run_id).ec != std::errc()) {
    return BadData("\"" + path + "\" names no run");
  }
  return std::optional<uint64_t>(run_id);
}

EarlierSave CheckpointStore::EarlierFor(const CheckpointContent& content) const {
  EarlierSave earlier = last_.value_or(EarlierSave());
  earlier.full_every = content.full_every;
  earlier.hurries = content.hurries;
  return earlier;
}

Status CheckpointStore::ResumeFrom(const FoundCheckpoint& found, const Scope& root) {
  const auto& variables = found.manifest.variable();
  const auto& files = found.manifest.file();
  StoredVariables stored{{variables.begin(), variables.end()}, {files.begin(), files.end()}, {}};
  MR_TRY(SumLargeTensors(root, threads_, &stored));
  last_ = EarlierSave{found.folder, std::move(stored)};
  return Status::Ok();
}

uint64_t CheckpointStore::BytesToWrite(const CheckpointContent& content, const ProgramDesc& program,
                                       const Scope& root) const {
  const EarlierSave earlier = EarlierFor(content);
  return BytesToStore(program, root, &earlier);
}

Status CheckpointStore::Write(const CheckpointContent& content, const ProgramDesc& program, Scope& root,
                              const LongWork& work) {
  const std::string name = StepFolder(content.manifest.step());
  const std::string beside = folder_ + "/" + kWriting + name;
  MR_TRY(RemoveFolder(beside));
  Result<StoredVariables> filled = Fill(beside, content, program, root, EarlierFor(content), threads_, work);
  Status written = filled.status();
  if (written.ok()) written = ReplaceFolder(beside, folder_ + "/" + name);
  if (!written.ok()) {
    // On a full disk what was written so far is what fills it.
    std::error_code error;
    fs::remove_all(beside, error);
    return written;
  }
  last_.reset();
  runs_[name] = content.manifest.run_id();
  between_.erase(name);
  if (content.is_between) between_.insert(name);
  if (content.is_best) MR_TRY(PointBestAt(folder_, name));
  MR_TRY(SyncFolder(folder_));
  MR_TRY(Prune(content.manifest.run_id(), content.manifest.step()));
  // The checkpoint is there, whatever comes of this: without it the next one has all rows.
  if (content.full_every > 1 && BeginChanges(filled->variables, root, false).ok()) {
    last_ = EarlierSave{folder_ + "/" + name, *std::move(filled)};
  }
  return Status::Ok();
}

Result<std::optional<CheckpointManifest>> ManifestToResume(const std::string& resume, const std::string& output_dir) {
  if (resume == "auto") return CheckpointStore::Open(output_dir + "/checkpoints", 1).NewestManifest();
  if (!MayBeThere(resume + "/MANIFEST")) return NoCheckpoint(resume);
  MR_ASSIGN(CheckpointManifest manifest, ReadManifest(resume + "/MANIFEST"));
  return std::optional<CheckpointManifest>(std::move(manifest));
}

int64_t CompletePasses(const std::string& resume, const std::string& output_dir) {
  if (resume == "never" || (resume == "auto" && output_dir.empty())) return 0;
  const Result<std::optional<CheckpointManifest>> manifest = ManifestToResume(resume, output_dir);
  return manifest.ok() && manifest->has_value() ? (*manifest)->epoch() : 0;
}

std::optional<CheckpointManifest> CheckpointStore::NewestManifest() const {
  const Result<std::optional<uint64_t>> run = CurrentRun();
  const uint64_t run_id = run.ok() ? run->value_or(0) : 0;  // 0: any run
  for (const std::string& name : StepFolders(folder_)) {
    Result<CheckpointManifest> manifest = ManifestIn(folder_ + "/" + name);
    if (manifest.ok() && (run_id == 0 || manifest->run_id() == run_id)) return *std::move(manifest);
  }
  return std::nullopt;
}

bool CheckpointStore::HasAny() const { return !StepFolders(folder_).empty(); }

bool CheckpointStore::HasLaterThan(int64_t step) const {
  const std::vector<std::string> names = StepFolders(folder_);
  return !names.empty() && StepOf(names[0]).value_or(0) > step;
}

Status CheckpointStore::Prune(uint64_t run_id, int64_t step) {
  std::error_code error;
  const std::string best = fs::read_symlink(folder_ + "/" + kBest, error).string();
  int kept = 0;
  for (const std::string& name : StepFolders(folder_)) {
    const std::string path = folder_ + "/" + name;
    // A manifest lists every input file, and is not read again for each checkpoint.
    if (!runs_.contains(name)) {
      if (const Result<CheckpointManifest> manifest = ManifestIn(path); manifest.ok()) {
        runs_[name] = manifest->run_id();
        if (manifest->is_between()) between_.insert(name);
      }
    }
    const auto run = runs_.find(name);
    const bool is_ours = run != runs_.end() && run->second == run_id;
    const bool is_left_behind = StepOf(name).value_or(0) > step;
    if (is_ours && !is_left_behind && name == best) continue;
    if (is_ours && !is_left_behind && between_.contains(name)) {
      if (StepOf(name) == step) continue;
    } else if (is_ours && !is_left_behind && kept++ < keep_) {
      continue;
    }
    MR_TRY(RemoveFolder(path));
    runs_.erase(name);
    between_.erase(name);
    if (name == best) fs::remove(folder_ + "/" + kBest, error);
  }
  return Status::Ok();
}

uint64_t NewRunId() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return Mix64(static_cast<uint64_t>(now), static_cast<uint64_t>(getpid()));
}

uint64_t FileBytesOf(const CheckpointManifest& manifest) {
  return SumOfBytes({manifest.file().begin(), manifest.file().end()});
}

Result<FoundCheckpoint> ReadCheckpoint(const std::string& folder, const CheckpointFits& fits, CheckedFiles checked,
                                       const LongWork& work) {
  FoundCheckpoint found;
  found.folder = folder;
  MR_ASSIGN(found.manifest, ManifestIn(folder));
  std::vector<StoredFile> files(found.manifest.file().begin(), found.manifest.file().end());
  const std::vector<StoredVariable> variables(found.manifest.variable().begin(), found.manifest.variable().end());
  if (checked == CheckedFiles::kButThoseOfTables) {
    std::set<std::string> of_tables;
    for (const StoredVariable& variable : variables) {
      const std::vector<std::string> names = variable.has_table() ? FilesOf(variable) : std::vector<std::string>();
      of_tables.insert(names.begin(), names.end());
    }
    std::erase_if(files, [&of_tables](const StoredFile& file) { return of_tables.contains(file.name()); });
  }
  if (work.on_expected) work.on_expected(SumOfBytes(files));
  MR_TRY(CheckStoredFiles(folder, files, variables, ThreadsHere(), work));
  MR_TRY(fits(found.manifest).Context("checkpoint \"" + folder + "\" does not fit this job"));
  MR_ASSIGN(const std::string metrics, InCheckpoint(folder, kMetricsFile));
  MR_ASSIGN(found.metrics, ReadFile(metrics));
  return found;
}

Result<std::optional<FoundCheckpoint>> CheckpointStore::FindNewest(const CheckpointFits& fits,
                                                                   std::vector<std::string>* refused,
                                                                   const LongWork& work) const {
  Result<std::optional<uint64_t>> run = CurrentRun();
  if (!run.ok()) refused->push_back(run.status().message() + "; any run's checkpoint will do");
  const uint64_t run_id = run.ok() ? run->value_or(0) : 0;  // 0: any run
  std::string all;
  for (const std::string& name : StepFolders(folder_)) {
    const std::string path = folder_ + "/" + name;
    if (const auto manifest = ManifestIn(path); manifest.ok() && run_id != 0 && manifest->run_id() != run_id) {
      refused->push_back("checkpoint \"" + path + "\" is of an earlier run, before one that started anew; --resume=" +
                         path + " goes on from it");
      continue;
    }
    Result<FoundCheckpoint> found = ReadCheckpoint(path, fits, CheckedFiles::kAll, work);
    if (found.ok()) {
      if (Status same = CheckStep(name, *found); !same.ok()) found = std::move(same);
    }
    if (found.ok()) return std::optional<FoundCheckpoint>(std::move(found).value());
    if (found.status().code() != StatusCode::kBadData) return std::move(found).status();
    refused->push_back("checkpoint \"" + path + "\" is refused: " + found.status().message());
    all += (all.empty() ? "" : "\n") + refused->back();
  }
  if (all.empty()) return std::optional<FoundCheckpoint>();
  return BadData(all + "\nno checkpoint is whole; --resume=never starts anew");
}

Result<std::optional<FoundCheckpoint>> CheckpointStore::FindBest(const CheckpointFits& fits,
                                                                 const LongWork& work) const {
  Result<FoundCheckpoint> found = ReadCheckpoint(folder_ + "/" + kBest, fits, CheckedFiles::kAll, work);
  if (found.status().code() == StatusCode::kCancelled) return std::move(found).status();
  return found.ok() ? std::optional(std::move(found).value()) : std::nullopt;
}

}  // namespace millrace
