#include "mini_dataset.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/rng.h"

namespace mini {
namespace {

/// Two numbers with a comma between them, and nothing else.
bool CommaSplit(std::string_view line, MiniSample* sample) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t comma = line.find(',');
  if (comma == std::string_view::npos) return false;
  const std::string_view texts[] = {line.substr(0, comma), line.substr(comma + 1)};
  for (size_t i = 0; i < 2; ++i) {
    const char* end = texts[i].data() + texts[i].size();
    const auto [rest, error] = std::from_chars(texts[i].data(), end, (*sample)[i]);
    if (error != std::errc() || rest != end) return false;
  }
  return true;
}

}  // namespace

MiniDataset::MiniDataset(std::vector<std::string> paths, bool shuffle_after_epoch, uint64_t seed)
    : paths_(std::move(paths)), shuffle_after_epoch_(shuffle_after_epoch), seed_(seed) {}

millrace::Result<LoadTargetList<MiniSample>> MiniDataset::Next(const std::stop_token& stop) {
  if (stop.stop_requested()) return millrace::Cancelled("stopped while reading lines");
  std::string line;
  MR_ASSIGN(bool more, ReadLine(&line));
  if (!more) {
    ShuffleAfterEpoch();
    MR_ASSIGN(more, ReadLine(&line));
    if (!more) return millrace::BadData("\"" + paths_[0] + "\" and the parts behind it hold no line");
  }
  auto sample = std::make_unique<MiniSample>();
  if (!CommaSplit(line, sample.get())) {
    return millrace::BadData(paths_[next_path_ - 1] + ":" + std::to_string(line_number_) +
                             ": expected two numbers with a comma between them, found \"" + line + "\"");
  }
  LoadTargetList<MiniSample> one;
  one.push_back(std::move(sample));
  return one;
}

millrace::Result<bool> MiniDataset::ReadLine(std::string* line) {
  for (;;) {
    if (in_stream_.is_open() && std::getline(in_stream_, *line)) {
      ++line_number_;
      return true;
    }
    if (in_stream_.bad()) return millrace::IoError("cannot read on in \"" + paths_[next_path_ - 1] + "\"");
    if (next_path_ == paths_.size()) return false;
    const std::string& path = paths_[next_path_++];
    in_stream_ = std::ifstream(path);
    line_number_ = 0;
    if (!in_stream_.is_open()) return millrace::IoError("cannot open \"" + path + "\"");
  }
}

void MiniDataset::ShuffleAfterEpoch() {
  ++current_epoch_;
  next_path_ = 0;
  in_stream_ = std::ifstream();
  if (!shuffle_after_epoch_) return;
  millrace::Rng rng(seed_ + current_epoch_);
  for (size_t left = paths_.size(); left > 1; --left) std::swap(paths_[left - 1], paths_[rng.Below(left)]);
}

}  // namespace mini
