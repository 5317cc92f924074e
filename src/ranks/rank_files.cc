#include "ranks/rank_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "table/table_io.h"

namespace millrace {

Result<std::string> MarkFile(const std::string& path) {
  std::random_device random;
  std::string mark = "a rank writes this file: ";
  for (int i = 0; i < 4; ++i) mark += std::to_string(random()) + " ";
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.is_open()) return IoErrorFromErrno("cannot make \"" + path + "\"", errno);
  MR_TRY(WriteAll(file, mark, path));
  return mark;
}

void PutOwnersFile(const OwnersFile& file, WireWriter* out) {
  out->Put(file.shards);
  out->Put(file.content);
  out->Put(file.pushes);
  out->Put(file.since);
  out->PutText(file.path);
  out->PutText(file.mark);
}

OwnersFile GetOwnersFile(WireReader* in) {
  OwnersFile file;
  file.shards = in->Get<ShardRange>();
  file.content = in->Get<TableContent>();
  file.pushes = in->Get<uint64_t>();
  file.since = in->Get<std::optional<uint64_t>>();
  file.path = in->GetText();
  file.mark = in->GetText();
  return file;
}

Result<ShardWriter> WriteOwnersFile(const SparseTable& part, const OwnersFile& file) {
  // One descriptor for the mark and the rows: by its name the file may be another one by the time they are ready.
  FileDescriptor there(::open(file.path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!there.is_open()) return ShardWriter{.reason = std::generic_category().message(errno)};
  std::string found(file.mark.size() + 1, '\0');
  const ssize_t bytes = ::pread(there.get(), found.data(), found.size(), 0);
  if (bytes < 0 || found.substr(0, static_cast<size_t>(bytes)) != file.mark) {
    return ShardWriter{.reason = "another file is there"};
  }
  std::stringstream rows;
  MR_TRY(part.Save(file.shards, file.content, rows));
  std::vector<std::istringstream> parts;
  parts.emplace_back(std::move(rows).str());
  MR_ASSIGN(const auto written, ChecksummedFile::Over(std::move(there), file.path));
  const Status put = PutTogether(std::move(parts), file.shards, file.pushes, file.since, &written->stream());
  MR_ASSIGN(const FileSum sum, written->Finish());  // says "disk full" before "not written"
  MR_TRY(put);
  return ShardWriter{.sum = sum};
}

bool HasBytes(const std::string& path, uint64_t bytes) {
  // Opened, since a network's file system asks its server anew then.
  const Result<FileDescriptor> file = OpenForReading(path);
  struct stat seen {};
  return file.ok() && ::fstat(file->get(), &seen) == 0 && static_cast<uint64_t>(seen.st_size) == bytes;
}

Status PutTogether(std::vector<std::istringstream> parts, ShardRange shards, uint64_t pushes,
                   std::optional<uint64_t> since, std::ostream* out) {
  std::vector<TableReader> readers;
  for (std::istringstream& part : parts) {
    MR_ASSIGN(TableReader reader, TableReader::Open(part));
    readers.push_back(std::move(reader));
  }
  TableHeader header = readers[0].header();
  header.shards = shards;
  header.rows = 0;
  // Owners count pushes that have rows of theirs; files of a save with state have one number.
  if (!header.optimizer.empty()) header.pushes = pushes;
  header.since = since;
  for (const TableReader& reader : readers) header.rows += reader.header().rows;
  MR_ASSIGN(TableWriter writer, TableWriter::Create(*out, header));
  for (TableReader& reader : readers) {
    while (true) {
      MR_ASSIGN(const TableBlock* block, reader.Next());
      if (block == nullptr) break;
      for (size_t i = 0; i < block->keys.size(); ++i) {
        MR_TRY(writer.Add(block->keys[i], block->values.data() + i * header.row_floats));
      }
    }
  }
  return writer.Finish();
}

}  // namespace millrace
