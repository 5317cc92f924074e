#include "dataset/row_exchange.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "core/caught.h"
#include "core/hash.h"
#include "core/wire.h"
#include "datafeed/packed_rows.h"
#include "datafeed/row_decoder.h"
#include "datafeed/varint.h"

namespace millrace {
namespace {

/// The rows of one round for a rank.
///
///     message = ok more block*      block = file rows row*      row = stream line_delta size bytes
///
/// The numbers of a row are varints. `stream` counts from the rank's first one, `line_delta` from the previous line in
/// the block.
class OutgoingRows {
 public:
  /// Untouched memory is free.
  void Reserve(size_t bytes) { bytes_.reserve(bytes); }
  void Begin() {
    bytes_.clear();
    rows_ = 0;
    block_rows_ = 0;
    // Flags set at the end: whether this rank succeeded, and whether it has more.
    bytes_.append(2, '\0');
  }
  void Append(const RowOrigin& origin, int stream, std::span<const uint8_t> row) {
    if (block_rows_ == 0 || file_ != origin.file) BeginBlock(origin.file);
    uint8_t head[3 * kMaxVarintSize];
    uint8_t* end = PutVarint(head, static_cast<uint64_t>(stream));
    end = PutVarint(end, origin.line - std::exchange(line_, origin.line));
    end = PutVarint(end, row.size());
    bytes_.append(reinterpret_cast<const char*>(head), static_cast<size_t>(end - head));
    bytes_.append(reinterpret_cast<const char*>(row.data()), row.size());
    ++block_rows_;
    ++rows_;
  }
  void End(bool is_ok, bool has_more) {
    EndBlock();
    bytes_[0] = is_ok ? 1 : 0;
    bytes_[1] = has_more ? 1 : 0;
  }
  int64_t rows() const { return rows_; }
  size_t bytes() const { return bytes_.size(); }
  std::string& message() { return bytes_; }

 private:
  void BeginBlock(uint32_t file) {
    EndBlock();
    file_ = file;
    line_ = 0;
    WireWriter out(&bytes_);
    out.Put(file);
    out.Put(uint32_t{0});
    block_begin_ = bytes_.size();
  }
  void EndBlock() {
    if (block_rows_ == 0) return;
    std::memcpy(bytes_.data() + block_begin_ - sizeof(block_rows_), &block_rows_, sizeof(block_rows_));
    block_rows_ = 0;
  }

  std::string bytes_;
  int64_t rows_ = 0;
  size_t block_begin_ = 0;
  uint32_t block_rows_ = 0;
  uint32_t file_ = 0;
  uint64_t line_ = 0;
};

/// The rows received for a stream.
class ArrivedRows {
 public:
  ArrivedRows() : writer_(&packed_) {}

  void Append(uint32_t file, uint64_t line, std::span<const uint8_t> row) {
    if (runs_.empty() || runs_.back().file != file) {
      writer_.BeginFile(file);
      runs_.push_back({file, handles_.size()});
    }
    handles_.push_back(writer_.Append(line, row));
  }
  PackedRows* packed() { return &packed_; }
  /// By position. All rows of a file come from one rank, in line order.
  std::vector<RowHandle> TakeOrder() {
    for (size_t i = 0; i < runs_.size(); ++i) {
      runs_[i].end = i + 1 < runs_.size() ? runs_[i + 1].begin : handles_.size();
    }
    std::stable_sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.file < b.file; });
    std::vector<RowHandle> order;
    order.reserve(handles_.size());
    const auto at = [this](size_t i) { return handles_.begin() + static_cast<std::ptrdiff_t>(i); };
    for (const Run& run : runs_) order.insert(order.end(), at(run.begin), at(run.end));
    std::vector<RowHandle>().swap(handles_);
    return order;
  }

 private:
  struct Run {
    uint32_t file = 0;
    size_t begin = 0;
    size_t end = 0;
  };
  PackedRows packed_;
  PackedRowWriter writer_;
  std::vector<RowHandle> handles_;
  std::vector<Run> runs_;  ///< consecutive rows of one file
};

bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

class Exchange {
 public:
  Exchange(const RowShuffle& shuffle, std::span<InMemoryDataset* const> streams, int first)
      : shuffle_(&shuffle),
        streams_(streams),
        first_(first),
        out_(static_cast<size_t>(shuffle.ranks->size())),
        messages_(out_.size()),
        arrived_(streams.size()) {
    for (int r = 0; r < shuffle.ranks->trainers(); ++r) {
      const int count = shuffle.ranks->ShareOf(shuffle.targets.streams, r).second;
      for (int s = 0; s < count; ++s) owners_.push_back({r, s});
    }
    for (int r = 0; r < shuffle.ranks->size(); ++r) {
      if (r != shuffle.ranks->rank()) out_[static_cast<size_t>(r)].Reserve(shuffle.most_bytes / out_.size());
    }
    for (std::unique_ptr<ArrivedRows>& rows : arrived_) rows = std::make_unique<ArrivedRows>();
  }

  /// Sends and receives until no rank has more.
  Status Run(const std::stop_token& stop);
  void HandOver(const std::vector<std::string>& files, std::map<std::string, int64_t>* counters);

 private:
  /// The owner of a stream.
  struct Owner {
    int rank = 0;
    int stream = 0;  ///< counted from the rank's first one
  };
  bool has_more() const { return sending_ < streams_.size(); }
  /// Moves rows into messages, or to their local stream, until the round is full.
  Status Fill();
  Status SendRowsOf(InMemoryDataset* stream);
  Status Take(std::string_view message);
  bool TakeRow(std::string_view* bytes, uint32_t file, uint64_t* line);
  void Pause(const std::stop_token& stop) const;

  const RowShuffle* shuffle_;
  const std::span<InMemoryDataset* const> streams_;
  const int first_;
  std::vector<Owner> owners_;  ///< by stream of the job
  std::vector<OutgoingRows> out_;
  std::vector<std::string> messages_;                  ///< contents of out_ during the exchange
  std::vector<std::unique_ptr<ArrivedRows>> arrived_;  ///< by stream of this rank
  size_t own_bytes_ = 0;                               ///< local rows in this round
  bool is_full_ = false;                               ///< the round is full

  size_t sending_ = 0;                           ///< stream of this rank being sent
  std::optional<InMemoryDataset::Rows> source_;  ///< rows of this stream
  size_t next_row_ = 0;
};

Status Exchange::Run(const std::stop_token& stop) {
  Communicator& communicator = shuffle_->ranks->communicator();
  std::vector<std::string> in;
  Status mine;
  for (bool any_has_more = true; any_has_more;) {
    for (OutgoingRows& out : out_) out.Begin();
    if (mine.ok() && stop.stop_requested()) mine = Cancelled("stopped while rows went from rank to rank");
    if (mine.ok()) mine = Caught("rows for other ranks", [this] { return Fill(); });
    for (size_t r = 0; r < out_.size(); ++r) {
      out_[r].End(mine.ok(), has_more());
      messages_[r].swap(out_[r].message());
    }
    MR_TRY(communicator.AllToAll(messages_, &in));
    for (size_t r = 0; r < out_.size(); ++r) messages_[r].swap(out_[r].message());
    bool all_are_well = true;
    any_has_more = false;
    for (const std::string& message : in) {
      const bool is_whole = message.size() >= 2;
      all_are_well = all_are_well && is_whole && message[0] != 0;
      any_has_more = any_has_more || (is_whole && message[1] != 0);
    }
    if (!all_are_well) return shuffle_->ranks->Agree(mine);
    mine = Caught("rows of other ranks", [&] {
      for (const std::string& message : in) MR_TRY(Take(std::string_view(message).substr(2)));
      return Status::Ok();
    });
    if (any_has_more) Pause(stop);
  }
  return shuffle_->ranks->Agree(mine);
}

Status Exchange::Fill() {
  is_full_ = false;
  own_bytes_ = 0;
  while (has_more() && !is_full_) MR_TRY(SendRowsOf(streams_[sending_]));
  return Status::Ok();
}

Status Exchange::SendRowsOf(InMemoryDataset* stream) {
  if (!source_) {
    MR_ASSIGN(source_, stream->LoadedRows());
    next_row_ = 0;
  }
  const RowTargets& targets = shuffle_->targets;
  const size_t most_bytes = shuffle_->most_bytes / out_.size();
  const auto most_rows = shuffle_->most_rows > 0 ? shuffle_->most_rows : INT64_MAX;
  for (; next_row_ < source_->order.size() && !is_full_; ++next_row_) {
    const RowHandle handle = source_->order[next_row_];
    const uint8_t* const row = source_->packed->Row(handle);
    RowOrigin origin = source_->packed->Origin(handle);
    // Index in the whole list.
    origin.file = origin.file * static_cast<uint32_t>(targets.streams) + static_cast<uint32_t>(first_) +
                  static_cast<uint32_t>(sending_);
    const Owner& owner = owners_[static_cast<size_t>(targets.StreamOf(*source_->layout, row, origin))];
    const std::span<const uint8_t> bytes = EncodedRow(*source_->layout, row);
    if (owner.rank == shuffle_->ranks->rank()) {
      arrived_[static_cast<size_t>(owner.stream)]->Append(origin.file, origin.line, bytes);
      // So a round with only local rows also ends.
      own_bytes_ += bytes.size();
      is_full_ = own_bytes_ >= most_bytes;
      continue;
    }
    OutgoingRows& out = out_[static_cast<size_t>(owner.rank)];
    out.Append(origin, owner.stream, bytes);
    is_full_ = out.bytes() >= most_bytes || out.rows() >= most_rows;
  }
  if (next_row_ < source_->order.size()) return Status::Ok();
  source_.reset();
  stream->ReleaseMemory();
  ++sending_;
  return Status::Ok();
}

Status Exchange::Take(std::string_view message) {
  bool is_whole = true;
  while (!message.empty() && is_whole) {
    WireReader in(message);
    const auto file = in.Get<uint32_t>();
    const auto rows = in.Get<uint32_t>();
    is_whole = in.ok();
    message = in.rest();
    uint64_t line = 0;
    for (uint32_t i = 0; i < rows && is_whole; ++i) is_whole = TakeRow(&message, file, &line);
  }
  return is_whole ? Status::Ok() : Internal("rows of another rank end too soon, or are of no stream of this one");
}

bool Exchange::TakeRow(std::string_view* bytes, uint32_t file, uint64_t* line) {
  uint64_t stream = 0;
  uint64_t delta = 0;
  uint64_t size = 0;
  if (!TakeVarint(bytes, &stream) || !TakeVarint(bytes, &delta) || !TakeVarint(bytes, &size)) return false;
  if (stream >= arrived_.size() || size > bytes->size()) return false;
  *line += delta;
  arrived_[stream]->Append(file, *line, {reinterpret_cast<const uint8_t*>(bytes->data()), size});
  bytes->remove_prefix(size);
  return true;
}

void Exchange::Pause(const std::stop_token& stop) const {
  if (shuffle_->pause_of_rounds.count() == 0) return;
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, shuffle_->pause_of_rounds, [] { return false; });
}

void Exchange::HandOver(const std::vector<std::string>& files, std::map<std::string, int64_t>* counters) {
  for (size_t s = 0; s < streams_.size(); ++s) {
    streams_[s]->TakeRows(arrived_[s]->packed(), arrived_[s]->TakeOrder(), files, counters);
    arrived_[s].reset();
  }
}

}  // namespace

int RowTargets::StreamOf(const RowLayout& layout, const uint8_t* row, const RowOrigin& origin) const {
  const auto of = [this](uint64_t hash) { return static_cast<int>(hash % static_cast<uint64_t>(streams)); };
  if (by == By::kName) return of(Mix64(seed, HashName(InsIdOf(layout, row))));
  if (by == By::kUid) {
    if (const std::optional<uint64_t> uid = FirstIdOf(layout, row, uid_slot)) return of(Mix64(seed, *uid));
  }
  return of(HashedNumber(Mix64(seed, origin.file), origin.line));
}

Status ExchangeRows(const RowShuffle& shuffle, std::span<InMemoryDataset* const> streams, int first,
                    const std::vector<std::string>& files, std::map<std::string, int64_t>* counters,
                    const std::stop_token& stop) {
  std::optional<Exchange> exchange;
  const Status begun = Caught("a shuffle over ranks", [&] {
    exchange.emplace(shuffle, streams, first);
    return Status::Ok();
  });
  MR_TRY(shuffle.ranks->Agree(begun));
  MR_TRY(exchange->Run(stop));
  const Status grouped = Caught("rows of a shuffle over ranks", [&] {
    exchange->HandOver(files, counters);
    return Status::Ok();
  });
  return shuffle.ranks->Agree(grouped);
}

}  // namespace millrace
