#include "table/table_files.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "core/on_threads.h"
#include "table/table_io.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFileBytes = uint64_t{32} << 20;
constexpr uint64_t kMostFiles = 16;  // each then contains whole index shards of a hash table

std::string RangeName(ShardRange shards) {
  char text[32];
  std::snprintf(text, sizeof(text), "%04u-%04u", shards.begin, shards.end - 1);
  return text;
}

/// Prepares `path` for writing: removes a file or folder left by an earlier save.
Status MakeWay(const std::string& path, bool is_folder) {
  std::error_code error;
  if (is_folder || fs::is_directory(path, error)) {
    fs::remove_all(path, error);
  } else {
    error.clear();  // nothing exists, or a file to overwrite
  }
  if (!error && is_folder) fs::create_directory(path, error);
  return error ? IoError("cannot make \"" + path + "\" anew: " + error.message()) : Status::Ok();
}

Result<FileSum> SaveFile(const SparseTable& table, TableContent content, ShardRange shards, const std::string& path,
                         const LongWork& work) {
  if (const auto* others = dynamic_cast<const SavesThroughOthers*>(&table); others != nullptr) {
    MR_ASSIGN(const std::optional<FileSum> written, others->SaveThroughOwner(shards, content, path));
    if (written) {
      MR_TRY(work.Done(written->bytes, "writing \"" + path + "\""));
      return *written;
    }
  }
  MR_ASSIGN(const auto file, ChecksummedFile::Create(path, work));
  const Status saved = table.Save(shards, content, file->stream());
  MR_ASSIGN(const FileSum sum, file->Finish());  // says "disk full" or "stopped" before Save's "not written"
  MR_TRY(saved);
  return sum;
}

/// A file that reports reading progress and ends at a stop request; the reader then considers it truncated.
class StoppableFile final : public std::filebuf {
 public:
  explicit StoppableFile(const LongWork& work) : work_(work) {}

 protected:
  std::streamsize xsgetn(char* to, std::streamsize bytes) override {
    return work_.Done(static_cast<uint64_t>(bytes), "loading").ok() ? std::filebuf::xsgetn(to, bytes) : 0;
  }

 private:
  const LongWork& work_;
};

/// A file and its header.
struct OpenedFile {
  std::string path;
  TableHeader header;
};

Result<OpenedFile> Look(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError("cannot open \"" + path + "\"");
  Result<TableReader> reader = TableReader::Open(file);
  if (!reader.ok()) return Status(reader.status()).Context(path);
  return OpenedFile{path, reader->header()};
}

/// Describes a file's save, for messages.
std::string SaveOf(const TableHeader& header) {
  return "table \"" + header.name + "\" after " + std::to_string(header.pushes) + " updates" +
         (header.since ? " (what changed since update " + std::to_string(*header.since) + ")" : "");
}

/// Checks that files, by ascending range, are one complete save.
Status CheckWhole(const std::vector<OpenedFile>& files, const std::string& table) {
  const std::string of = "table \"" + table + "\": ";
  uint32_t end = 0;
  for (size_t i = 0; i <= files.size(); ++i) {
    const uint32_t begin = i < files.size() ? files[i].header.shards.begin : kVirtualShards;
    if (begin > end) {
      return BadData(of + "none of its " + std::to_string(files.size()) + " files holds virtual shards " +
                     RangeName({end, begin}) + (i == 0 ? "" : ", which come behind \"" + files[i - 1].path + "\"") +
                     ": a file is missing or was left out of the list; copy all files of the folder again, or use "
                     "another checkpoint");
    }
    if (i == files.size()) break;
    if (begin < end) {
      return BadData(of + "\"" + files[i - 1].path + "\" and \"" + files[i].path + "\" both hold virtual shard " +
                     std::to_string(begin) + ": they are not of one save; use another checkpoint");
    }
    const TableHeader& first = files[0].header;
    const TableHeader& now = files[i].header;
    if (now.name != first.name || now.optimizer != first.optimizer || now.dim != first.dim ||
        now.row_floats != first.row_floats || now.pushes != first.pushes || now.since != first.since) {
      return BadData(of + "\"" + files[i].path + "\" is of " + SaveOf(now) + ", and \"" + files[0].path + "\" of " +
                     SaveOf(first) +
                     ": they are not of one save; copy all files of the folder again, or use another checkpoint");
    }
    end = now.shards.end;
  }
  return Status::Ok();
}

/// Checks that the complete save `files` follows the save `before`; without one, that it has all rows.
Status CheckFollows(const std::vector<OpenedFile>& files, const std::vector<OpenedFile>* before,
                    const std::string& table) {
  const std::string of = "table \"" + table + "\": \"" + files[0].path + "\" ";
  const std::optional<uint64_t> since = files[0].header.since;
  if (before == nullptr) {
    if (!since) return Status::Ok();
    return BadData(of + "has only what changed since update " + std::to_string(*since) +
                   ": the files with all rows are missing; use a whole checkpoint");
  }
  const OpenedFile& last = (*before)[0];
  const TableHeader& now = files[0].header;
  if (now.name != last.header.name || now.dim != last.header.dim || now.row_floats != last.header.row_floats) {
    return BadData(of + "is of table \"" + now.name + "\", and \"" + last.path + "\" of table \"" + last.header.name +
                   "\": they do not belong together; use another checkpoint");
  }
  if (since == last.header.pushes) return Status::Ok();
  return BadData(of + (since ? "has what changed since update " + std::to_string(*since) : "has all rows") +
                 ", and \"" + last.path + "\" is of update " + std::to_string(last.header.pushes) +
                 ": they do not belong together; use another checkpoint");
}

/// The files of each save, by ascending range, if they belong together.
Result<std::vector<std::vector<OpenedFile>>> LookAtSaves(const std::vector<FilesOfSave>& saves,
                                                         const std::string& table) {
  std::vector<std::vector<OpenedFile>> all;
  for (const FilesOfSave& paths : saves) {
    std::vector<OpenedFile> files;
    for (const std::string& path : paths) {
      MR_ASSIGN(OpenedFile file, Look(path));
      files.push_back(std::move(file));
    }
    std::sort(files.begin(), files.end(),
              [](const OpenedFile& a, const OpenedFile& b) { return a.header.shards.begin < b.header.shards.begin; });
    MR_TRY(CheckWhole(files, table));
    MR_TRY(CheckFollows(files, all.empty() ? nullptr : &all.back(), table));
    all.push_back(std::move(files));
  }
  return all;
}

}  // namespace

uint64_t BytesOfRows(const TableShape& shape, TableContent content, int64_t rows) {
  const bool is_whole = content == TableContent::kAll || content == TableContent::kChanges;
  const int floats = is_whole ? shape.row_floats : shape.dim;
  return static_cast<uint64_t>(rows) * (sizeof(uint64_t) + static_cast<uint64_t>(floats) * sizeof(float));
}

int CountTableFiles(const TableShape& shape, TableContent content, int64_t rows) {
  const uint64_t bytes = BytesOfRows(shape, content, rows);
  return static_cast<int>(std::min(std::bit_ceil((bytes + kFileBytes - 1) / kFileBytes), kMostFiles));
}

Result<std::vector<TableFile>> SaveTable(const SparseTable& table, TableContent content, const std::string& folder,
                                         const std::string& name, int files, int threads, const LongWork& work) {
  MR_TRY(MakeWay(folder + "/" + name, files > 1));
  std::vector<TableFile> saved(static_cast<size_t>(files));
  const uint32_t width = kVirtualShards / static_cast<uint32_t>(files);
  MR_TRY(OnThreads(threads, saved.size(), "saving a table", [&](size_t i) {
    const uint32_t begin = static_cast<uint32_t>(i) * width;
    const ShardRange shards{begin, begin + width};
    saved[i].name = files == 1 ? name : name + "/" + RangeName(shards);
    MR_ASSIGN(saved[i].sum, SaveFile(table, content, shards, folder + "/" + saved[i].name, work));
    return Status::Ok();
  }));
  if (files > 1) MR_TRY(SyncFolder(folder + "/" + name));
  return saved;
}

Status LoadTable(const std::vector<FilesOfSave>& saves, ShardRange shards, int threads, SparseTable* table,
                 const LongWork& work) {
  const std::string& name = table->shape().name;
  if (!table->IsEmptyHere()) return AlreadyExists("table \"" + name + "\" is not empty: load into a new one");
  MR_ASSIGN(const auto all, LookAtSaves(saves, name));
  // From the newest to the oldest: each row is created once, and older versions are skipped.
  for (size_t k = all.size(); k-- > 0;) {
    const std::vector<OpenedFile>& files = all[k];
    const LoadMode mode = k + 1 == all.size() ? LoadMode::kNew : LoadMode::kBehind;
    MR_TRY(OnThreads(threads, files.size(), "loading a table", [&](size_t i) {
      if (!files[i].header.shards.Meets(shards)) return Status::Ok();
      StoppableFile bytes(work);
      if (bytes.open(files[i].path, std::ios::in | std::ios::binary) == nullptr) {
        return IoError("cannot open \"" + files[i].path + "\"");
      }
      std::istream file(&bytes);
      Status loaded = table->Load(shards, file, mode).Context(files[i].path);
      if (!loaded.ok() && work.stop.stop_requested()) return Cancelled("stopped while loading table \"" + name + "\"");
      return loaded;
    }));
  }
  return Status::Ok();
}

}  // namespace millrace
