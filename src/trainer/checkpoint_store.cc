#include "trainer/checkpoint_store.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/checksummed_file.h"
#include "core/file.h"
#include "core/replace_folder.h"
#include "core/sealed_text.h"
#include "program/variable_store.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr int kFormatVersion = 1;
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
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(step) : std::nullopt;
}

// Newest first.
std::vector<std::string> StepFolders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (StepOf(name).has_value() && entry.is_directory(error)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  return names;
}

std::string ManifestText(const CheckpointManifest& manifest) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(manifest, &text);
  return SealText(std::move(text));
}

Result<CheckpointManifest> ReadManifest(const std::string& path) {
  MR_ASSIGN(const std::string text, ReadSealedText(path));
  CheckpointManifest manifest;
  if (!google::protobuf::TextFormat::ParseFromString(text, &manifest)) {
    return BadData("\"" + path + "\" is not a checkpoint's manifest that this version reads");
  }
  if (manifest.format_version() != kFormatVersion) {
    return BadData("\"" + path + "\" has format version " + std::to_string(manifest.format_version()) +
                   "; this program reads version " + std::to_string(kFormatVersion));
  }
  if (manifest.epoch() < 0 || manifest.step() < 0 || manifest.examples() < 0) {
    return BadData("\"" + path + "\" counts below zero: epoch " + std::to_string(manifest.epoch()) + ", step " +
                   std::to_string(manifest.step()) + ", " + std::to_string(manifest.examples()) + " examples");
  }
  return manifest;
}

Result<StoredFile> WriteMetrics(const std::string& folder, const std::string& metrics) {
  MR_ASSIGN(const auto file, ChecksummedFile::Create(folder + "/" + kMetricsFile));
  file->stream().write(metrics.data(), static_cast<std::streamsize>(metrics.size()));
  MR_ASSIGN(const FileSum sum, file->Finish());
  StoredFile stored;
  stored.set_name(kMetricsFile);
  stored.set_bytes(sum.bytes);
  stored.set_crc32c(sum.crc32c);
  return stored;
}

/// Writes everything that a checkpoint holds into a folder of its own.
Status Fill(const std::string& folder, const CheckpointContent& content, const ProgramDesc& program,
            const Scope& root) {
  MR_ASSIGN(const StoredVariables stored, StoreVariables(program, folder, root, TableContent::kAll));
  CheckpointManifest manifest = content.manifest;
  manifest.set_format_version(kFormatVersion);
  for (const StoredVariable& variable : stored.variables) *manifest.add_variable() = variable;
  for (const StoredFile& file : stored.files) *manifest.add_file() = file;
  MR_ASSIGN(*manifest.add_file(), WriteMetrics(folder, content.metrics));
  return WriteFileAtomically(folder + "/" + kManifest, ManifestText(manifest));
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

Result<CheckpointStore> CheckpointStore::Create(const std::string& folder, int keep) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return IoError("cannot make the folder \"" + folder + "\": " + error.message());
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(kWriting)) MR_TRY(RemoveFolder(entry.path().string()));
  }
  if (error) return IoError("cannot read the folder \"" + folder + "\": " + error.message());
  return CheckpointStore(folder, std::max(keep, 1));
}

Status CheckpointStore::BeginRun(uint64_t run_id) const {
  return WriteFileAtomically(folder_ + "/" + kRun, SealText(std::to_string(run_id) + "\n"));
}

Result<std::optional<uint64_t>> CheckpointStore::CurrentRun() const {
  const std::string path = folder_ + "/" + kRun;
  if (!fs::exists(path)) return std::optional<uint64_t>();
  MR_ASSIGN(const std::string text, ReadSealedText(path));
  uint64_t run_id = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), run_id).ec != std::errc()) {
    return BadData("\"" + path + "\" names no run");
  }
  return std::optional<uint64_t>(run_id);
}

Status CheckpointStore::Write(const CheckpointContent& content, const ProgramDesc& program, const Scope& root) {
  const std::string name = StepFolder(content.manifest.step());
  const std::string beside = folder_ + "/" + kWriting + name;
  MR_TRY(RemoveFolder(beside));
  Status written = Fill(beside, content, program, root);
  if (written.ok()) written = ReplaceFolder(beside, folder_ + "/" + name);
  if (!written.ok()) {
    // On a full disk what was written so far is what fills it.
    std::error_code error;
    fs::remove_all(beside, error);
    return written;
  }
  if (content.is_best) MR_TRY(PointBestAt(folder_, name));
  MR_TRY(SyncFolder(folder_));
  return Prune(content.manifest.run_id(), content.manifest.step());
}

bool CheckpointStore::HasLaterThan(int64_t step) const {
  const std::vector<std::string> names = StepFolders(folder_);
  return !names.empty() && StepOf(names[0]).value_or(0) > step;
}

Status CheckpointStore::Prune(uint64_t run_id, int64_t step) const {
  std::error_code error;
  const std::string best = fs::read_symlink(folder_ + "/" + kBest, error).string();
  int kept = 0;
  for (const std::string& name : StepFolders(folder_)) {
    const std::string path = folder_ + "/" + name;
    const Result<CheckpointManifest> manifest = ReadManifest(path + "/" + kManifest);
    const bool is_ours = manifest.ok() && manifest->run_id() == run_id;
    const bool is_left_behind = StepOf(name).value_or(0) > step;
    if (is_ours && !is_left_behind && (kept++ < keep_ || name == best)) continue;
    MR_TRY(RemoveFolder(path));
    if (name == best) fs::remove(folder_ + "/" + kBest, error);
  }
  return Status::Ok();
}

Result<FoundCheckpoint> ReadCheckpoint(const std::string& folder, const ProgramDesc& program) {
  FoundCheckpoint found;
  found.folder = folder;
  MR_ASSIGN(found.manifest, ReadManifest(folder + "/" + kManifest));
  const auto& files = found.manifest.file();
  MR_TRY(CheckStoredFiles(folder, {files.begin(), files.end()}));
  const auto& variables = found.manifest.variable();
  if (Status fits = CompareVariables(program, {variables.begin(), variables.end()}); !fits.ok()) {
    return std::move(fits).Context("checkpoint \"" + folder + "\" does not fit this job");
  }
  MR_ASSIGN(found.metrics, ReadFile(folder + "/" + kMetricsFile));
  return found;
}

Result<std::optional<FoundCheckpoint>> CheckpointStore::FindNewest(const ProgramDesc& program,
                                                                   std::vector<std::string>* refused) const {
  Result<std::optional<uint64_t>> run = CurrentRun();
  if (!run.ok()) refused->push_back(run.status().message() + "; any run's checkpoint will do");
  const uint64_t run_id = run.ok() ? run->value_or(0) : 0;  // 0: any run
  std::string all;
  for (const std::string& name : StepFolders(folder_)) {
    const std::string path = folder_ + "/" + name;
    if (const auto manifest = ReadManifest(path + "/" + kManifest);
        manifest.ok() && run_id != 0 && manifest->run_id() != run_id) {
      refused->push_back("checkpoint \"" + path + "\" is of an earlier run, before one that started anew; --resume=" +
                         path + " goes on from it");
      continue;
    }
    Result<FoundCheckpoint> found = ReadCheckpoint(path, program);
    if (found.ok()) return std::optional<FoundCheckpoint>(std::move(found).value());
    if (found.status().code() != StatusCode::kBadData) return std::move(found).status();
    refused->push_back("checkpoint \"" + path + "\" is refused: " + found.status().message());
    all += (all.empty() ? "" : "\n") + refused->back();
  }
  if (all.empty()) return std::optional<FoundCheckpoint>();
  return BadData(all + "\nno checkpoint is whole; --resume=never starts anew");
}

std::optional<FoundCheckpoint> CheckpointStore::FindBest(const ProgramDesc& program) const {
  Result<FoundCheckpoint> found = ReadCheckpoint(folder_ + "/" + kBest, program);
  return found.ok() ? std::optional(std::move(found).value()) : std::nullopt;
}

}  // namespace millrace
