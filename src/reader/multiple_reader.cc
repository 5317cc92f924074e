#include "reader/multiple_reader.h"

#include <algorithm>
#include <utility>

#include "reader/line_file.h"

namespace millrace {

Result<std::unique_ptr<MultipleReader>> MultipleReader::Create(const OpenFilesOptions& options,
                                                               const ReaderRegistry& registry,
                                                               std::vector<TensorSpec> shapes) {
  if (options.files.empty()) return InvalidConfig("there are no files to open");
  if (options.threads < 1) {
    return InvalidConfig("files are read by at least 1 thread, not " + std::to_string(options.threads));
  }
  if (options.buffer_size < 1) return InvalidConfig("the buffer holds at least 1 example");
  std::vector<ReaderRegistry::NamedFile> files;
  for (const std::string& name : options.files) {
    MR_ASSIGN(ReaderRegistry::NamedFile file, registry.Resolve(name, options.format));
    MR_TRY(ReaderRegistry::Open(file, shapes).status());
    files.push_back(std::move(file));
  }
  return std::unique_ptr<MultipleReader>(new MultipleReader(options, std::move(files), std::move(shapes)));
}

MultipleReader::MultipleReader(const OpenFilesOptions& options, std::vector<ReaderRegistry::NamedFile> files,
                               std::vector<TensorSpec> shapes)
    : ReaderBase(std::move(shapes)),
      files_(std::move(files)),
      is_begun_(files_.size(), 0),
      // More threads than files are useless.
      prefetcher_(static_cast<int>(std::min<size_t>(static_cast<size_t>(options.threads), files_.size())),
                  options.buffer_size, [this](int, const std::stop_token& stop) { return ReadFiles(stop); }) {}

Status MultipleReader::ReadFiles(const std::stop_token& stop) {
  Prefetcher::Item item;
  const auto read_whole = [&](const ReaderRegistry::NamedFile& file) -> Status {
    MR_TRY(stamps_.Begin(file.path));
    MR_ASSIGN(const std::unique_ptr<FileReader> reader, ReaderRegistry::Open(file, shapes()));
    for (;;) {
      MR_ASSIGN(const bool more, reader->ReadNext(&item, stop));
      if (!more) return stamps_.End(file.path);
      MR_TRY(prefetcher_.Push(&item, stop));
    }
  };
  for (;;) {
    const size_t number = next_file_.fetch_add(1);
    if (number >= files_.size()) return Status::Ok();
    const ReaderRegistry::NamedFile& file = files_[number];
    if (std::exchange(is_begun_[number], 1) != 0) MR_TRY(CheckStartsOver(file.path));
    Status whole = read_whole(file);
    if (whole.ok()) continue;
    // A file that failed may be repaired before the next pass.
    if (whole.code() != StatusCode::kCancelled) stamps_.Forget();
    return whole;
  }
}

Result<bool> MultipleReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  return prefetcher_.Next(out, expected(), stop);
}

Status MultipleReader::Restart() {
  prefetcher_.Stop();
  next_file_ = 0;
  return Status::Ok();
}

}  // namespace millrace
