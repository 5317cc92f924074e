#include "device_worker/dump_files.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "core/caught.h"
#include "core/channel.h"
#include "core/file.h"
#include "core/subprocess.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using Lines = Channel<std::string>;

constexpr size_t kWaitingBlocks = 16;
constexpr std::chrono::milliseconds kPatience{1000};

/// Reads bytes that others push into a channel.
class LinesSource final : public ByteSource {
 public:
  explicit LinesSource(Lines& lines) : lines_(&lines) {}

  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    while (rest_.empty()) {
      MR_ASSIGN(std::optional<std::string> block, lines_->Pop(stop));
      if (!block.has_value()) return size_t{0};
      block_ = std::move(*block);
      rest_ = block_;
    }
    const size_t bytes = std::min(out.size(), rest_.size());
    std::memcpy(out.data(), rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return bytes;
  }
  /// Unused: a command reads from it as fast as it can.
  bool WaitReadable(std::chrono::milliseconds) override { return !rest_.empty(); }

 private:
  Lines* lines_;
  std::string block_;
  std::string_view rest_;
};

std::string FileName(const TrainerDesc& desc, int rank, int number) {
  char of_rank[16];
  std::snprintf(of_rank, sizeof(of_rank), "%03d", std::max(0, rank < 0 ? desc.mpi_rank() : rank));
  char part[16];
  std::snprintf(part, sizeof(part), "%05d", number);
  std::string named = desc.user_define_dump_filename();
  if (!named.empty() && rank > 0) named += ".rank-" + std::to_string(rank);
  return desc.dump_fields_path() + "/part-" + (named.empty() ? of_rank : named) + "-" + part;
}

}  // namespace

/// One file with its thread.
class DumpFiles::Part {
 public:
  static Result<std::unique_ptr<Part>> Create(std::string path, bool append, const std::string& converter,
                                              std::stop_token abandoned) {
    std::unique_ptr<Part> part(new Part(std::move(path), std::move(abandoned)));
    const int mode = append ? O_APPEND : O_TRUNC;
    part->file_ = FileDescriptor(::open(part->path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666));
    if (!part->file_.is_open()) return IoErrorFromErrno("cannot write the dump \"" + part->path_ + "\"", errno);
    part->source_ = std::make_unique<LinesSource>(part->lines_);
    if (!converter.empty()) MR_TRY(part->StartConverter(converter));
    part->thread_ = std::jthread([p = part.get()] { p->Run(); });
    return part;
  }

  Status Push(std::string lines) { return lines_.Push(std::move(lines), abandoned_); }
  void End() { lines_.Close(Status::Ok()); }
  bool ended() const { return ended_.load(); }
  Status Join() {
    thread_.join();
    return status_;
  }

 private:
  Part(std::string path, std::stop_token abandoned) : path_(std::move(path)), abandoned_(std::move(abandoned)) {}

  Status StartConverter(const std::string& converter) {
    MR_ASSIGN(guard_, ChildGuard::Create());
    SubprocessOptions options;
    options.argv = ShellArgv(converter);
    options.label = path_;
    options.input = std::move(source_);
    MR_ASSIGN(source_, StartSubprocess(std::move(options), *guard_));
    converter_ = converter;
    return Status::Ok();
  }

  Status Copy() {
    std::array<char, 1 << 16> bytes;
    while (true) {
      MR_ASSIGN(const size_t count, source_->Read(bytes, abandoned_));
      if (count == 0) break;
      MR_TRY(WriteAll(file_, {bytes.data(), count}, path_));
    }
    if (lines_.closed()) return Status::Ok();
    return IoError("it ended before the dump \"" + path_ + "\" did; it must read its input to the end");
  }

  void Run() {
    status_ = Caught("the dump", [this] { return Copy(); });
    if (!status_.ok() && abandoned_.stop_requested()) {
      status_ =
          Unavailable("\"" + converter_ + "\" did not end after the stop; the dump \"" + path_ + "\" is not whole");
    }
    if (!status_.ok() && !converter_.empty()) {
      status_ = std::move(status_).Context("dump_converter \"" + converter_ + "\"");
    }
    lines_.Close(status_);
    source_.reset();
    ended_ = true;
  }

  std::string path_;
  std::stop_token abandoned_;
  std::string converter_;
  FileDescriptor file_;
  Lines lines_{kWaitingBlocks};
  std::unique_ptr<ChildGuard> guard_;
  std::unique_ptr<ByteSource> source_;
  Status status_;
  std::atomic<bool> ended_{false};
  std::jthread thread_;
};

DumpFiles::DumpFiles() = default;

DumpFiles::~DumpFiles() {
  Abandon();
  for (const auto& part : parts_) part->End();
}

Result<std::unique_ptr<DumpFiles>> DumpFiles::Create(const TrainerDesc& desc, bool append, int rank) {
  std::error_code error;
  std::filesystem::create_directories(desc.dump_fields_path(), error);
  if (error) {
    return IoError("dump_fields_path: cannot make the folder \"" + desc.dump_fields_path() + "\": " + error.message());
  }
  std::unique_ptr<DumpFiles> dump(new DumpFiles);
  for (int i = 0; i < desc.dump_file_num(); ++i) {
    dump->paths_.push_back(FileName(desc, rank, i));
    MR_ASSIGN(std::unique_ptr<Part> part, Part::Create(dump->paths_.back(), append || desc.dump_fields_mode() == "a",
                                                       desc.dump_converter(), dump->abandoned_.get_token()));
    dump->parts_.push_back(std::move(part));
  }
  return dump;
}

Status DumpFiles::Write(int64_t turn, std::string lines) {
  ++begun_;
  Status pushed = parts_[static_cast<size_t>(turn) % parts_.size()]->Push(std::move(lines));
  ++ended_;
  return pushed;
}

bool DumpFiles::IsHeldUp() {
  const int64_t ended = ended_.load();
  const bool waits = begun_.load() > ended;
  return std::exchange(ended_before_, waits ? ended : -1) == ended && waits;
}

Status DumpFiles::Finish(const std::stop_token& stop) {
  for (const auto& part : parts_) part->End();
  const auto all_ended = [this] {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->ended(); });
  };
  std::chrono::milliseconds waited{0};
  constexpr std::chrono::milliseconds kTick{10};
  while (!all_ended()) {
    std::this_thread::sleep_for(kTick);
    if (stop.stop_requested() && (waited += kTick) >= kPatience) Abandon();
  }
  Status first;
  for (const auto& part : parts_) {
    Status status = part->Join();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

void DumpFiles::Abandon() { abandoned_.request_stop(); }

}  // namespace millrace
