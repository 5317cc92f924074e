#include "datafeed/row_records.h"

#include <cstring>
#include <utility>

#include "core/harmless_text.h"
#include "data_feed.pb.h"
#include "datafeed/checked_feed.h"

namespace millrace {
namespace {

/// Replaces the count of the first slot's values: a bad row, followed by the LineError.
constexpr uint32_t kBadRow = UINT32_MAX;

template <class T>
void Append(const T& value, std::string* record) {
  record->append(reinterpret_cast<const char*>(&value), sizeof(value));
}
template <class T>
T Take(std::string_view* record) {
  T value;
  std::memcpy(&value, record->data(), sizeof(value));
  record->remove_prefix(sizeof(value));
  return value;
}
template <class T>
void AppendValues(std::span<const T> values, std::string* record) {
  Append(static_cast<uint32_t>(values.size()), record);
  record->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}
template <class T>
void TakeValues(std::string_view* record, std::vector<T>* values) {
  values->resize(Take<uint32_t>(record));
  if (values->empty()) return;
  std::memcpy(values->data(), record->data(), values->size() * sizeof(T));
  record->remove_prefix(values->size() * sizeof(T));
}

/// State of a RowFile's byte source; the file owns the source and may destroy it before its end.
struct SourceCounts {
  ByteSource* source = nullptr;  ///< null: destroyed
  uint64_t bytes = 0;
  bool was_asked = false;
  Status failure;
};

class CountedSource final : public ByteSource {
 public:
  CountedSource(std::unique_ptr<ByteSource> source, SourceCounts* counts)
      : source_(std::move(source)), counts_(counts) {
    counts_->source = source_.get();
  }
  ~CountedSource() override { counts_->source = nullptr; }

  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    counts_->was_asked = true;
    Result<size_t> got = source_->Read(out, stop);
    if (!got.ok()) counts_->failure = got.status();
    if (got.ok()) counts_->bytes += *got;
    return got;
  }
  bool WaitReadable(std::chrono::milliseconds most) override { return source_->WaitReadable(most); }

 private:
  const std::unique_ptr<ByteSource> source_;
  SourceCounts* const counts_;
};

class RowRecords final : public RecordSource {
 public:
  RowRecords(const SlotSchema& schema, LineLimit limit, std::string who)
      : schema_(schema), limit_(std::move(limit)), who_(std::move(who)) {}

  Status Open(const RowFileOpener& open, std::unique_ptr<ByteSource> bytes, const std::string& file) {
    if (bytes != nullptr) bytes = std::make_unique<CountedSource>(std::move(bytes), &counts_);
    names_its_place_ = bytes == nullptr;
    return Guarded([&]() -> Status {
      MR_ASSIGN(file_, open(std::move(bytes), file));
      return file_ != nullptr ? Status::Ok() : BadData("made nothing that reads the file");
    });
  }

  Result<bool> Next(RecordFrame* frame, const std::stop_token& stop) override {
    if (stop.stop_requested()) return Cancelled("stopped while reading files");
    counts_.was_asked = false;
    RowFile::Got got = RowFile::Got::kEnd;
    Status read = Guarded([&]() -> Status {
      MR_ASSIGN(got, file_->Next(stop));
      return Encode(got);
    });
    // A RowFile may not pass on the failure of its bytes.
    if (!counts_.failure.ok()) return counts_.failure;
    if (stop.stop_requested() && read.code() == StatusCode::kCancelled) return read;
    if (!read.ok()) {
      // No stop was requested.
      const bool is_damage = read.code() == StatusCode::kBadData || read.code() == StatusCode::kCancelled;
      is_damaged_ = is_damage && !names_its_place_;
      return read;
    }
    if (got == RowFile::Got::kEnd) return false;
    *frame = {.body = record_};
    bytes_ = counts_.bytes;
    return true;
  }
  // Unknown: the bytes already taken may contain another row.
  bool HasNext() const override { return false; }
  bool WaitReadable(std::chrono::milliseconds most) override {
    // After a row that needed no bytes, the next one may be available or not: do not wait.
    if (!counts_.was_asked) most = std::chrono::milliseconds(0);
    return counts_.source == nullptr || counts_.source->WaitReadable(most);
  }
  bool is_damaged() const override { return is_damaged_; }
  bool is_within_frame() const override { return counts_.bytes > bytes_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  template <class Call>
  Status Guarded(const Call& call) const {
    try {
      return Harmless(call());
    } catch (...) {
      return FeedThrew(who_);
    }
  }

  Status Encode(RowFile::Got got) {
    record_.clear();
    if (got == RowFile::Got::kBad) {
      LineError error = file_->error();
      Append(kBadRow, &record_);
      Append(error.kind, &record_);
      Append(error.ends_reading, &record_);
      Append(static_cast<uint64_t>(error.column), &record_);
      Append(static_cast<uint32_t>(error.slot.size()), &record_);
      record_ += error.slot;
      error.slot.clear();  // the row continued
      record_ += error.ToString();
    }
    if (got == RowFile::Got::kRow) {
      for (const SlotSpec& slot : schema_.used()) {
        if (slot.type == SlotType::kUint64) {
          AppendValues(file_->ids(slot.id), &record_);
        } else {
          AppendValues(file_->floats(slot.id), &record_);
        }
        if (record_.size() > limit_.bytes) break;
      }
    }
    if (record_.size() <= limit_.bytes) return Status::Ok();
    return BadData("a row of more than " + std::to_string(limit_.bytes) + " bytes. " + limit_.advice);
  }

  const SlotSchema& schema_;
  const LineLimit limit_;
  const std::string who_;
  SourceCounts counts_;
  std::unique_ptr<RowFile> file_;  ///< declared after what its bytes refer to
  std::string record_;
  uint64_t bytes_ = 0;
  bool is_damaged_ = false;
  bool names_its_place_ = false;  ///< for a format that opens its file itself
};

/// The feed of a class at the level of files, if `maker` accepts schema and desc.
Result<std::unique_ptr<DataFeed>> MakeRowRecordFeed(const RowFileMaker& maker, const SlotSchema& schema,
                                                    const DataFeedDesc& desc) {
  MR_TRY(maker(schema, desc).status());
  const MultiSlotOptions options = MultiSlotOptions::FromDesc(desc);
  return std::unique_ptr<DataFeed>(std::make_unique<RowRecordFeed>(schema, options));
}

}  // namespace

FeedKind FeedOfRows(RowFileMaker maker, const FormatTraits& format) {
  const FeedKind::Cutter cut = [maker](const SlotSchema& schema, const DataFeedDesc& desc,
                                       const std::string& who) -> Result<LineCut> {
    MR_ASSIGN(RowFileOpener open, maker(schema, desc));
    return LineCut{.records = [open = std::move(open), &schema, who](std::unique_ptr<ByteSource> bytes,
                                                                     const std::string& file, const LineLimit& limit) {
      return RecordsOfRows(open, std::move(bytes), file, schema, limit, who);
    }};
  };
  const FeedKind::Maker make = [maker = std::move(maker)](const SlotSchema& schema, const DataFeedDesc& desc) {
    return MakeRowRecordFeed(maker, schema, desc);
  };
  return {.maker = make, .cut_of = cut, .format = format};
}

Result<std::unique_ptr<RecordSource>> RecordsOfRows(const RowFileOpener& open, std::unique_ptr<ByteSource> bytes,
                                                    const std::string& file, const SlotSchema& schema,
                                                    const LineLimit& limit, const std::string& who) {
  auto records = std::make_unique<RowRecords>(schema, limit, who);
  MR_TRY(records->Open(open, std::move(bytes), file));
  return std::unique_ptr<RecordSource>(std::move(records));
}

LineResult RowRecordFeed::Read(std::string_view line) {
  std::string_view peeked = line;
  if (Take<uint32_t>(&peeked) == kBadRow) {
    const auto kind = Take<LineErrorKind>(&peeked);
    const auto ends_reading = Take<bool>(&peeked);
    const auto column = Take<uint64_t>(&peeked);
    const auto slot = Take<uint32_t>(&peeked);
    std::string message(peeked.substr(slot));
    if (ends_reading) {
      FailForGood(kind, std::string(peeked.substr(0, slot)), std::move(message), column);
    } else {
      Fail(kind, std::string(peeked.substr(0, slot)), std::move(message), column);
    }
    return LineResult::kBad;
  }
  for (const SlotSpec& slot : schema().used()) {
    bool is_put = false;
    if (slot.type == SlotType::kUint64) {
      TakeValues(&line, &ids_);
      is_put = Put(slot, ids_);
    } else {
      TakeValues(&line, &floats_);
      is_put = Put(slot, floats_);
    }
    if (!is_put) return LineResult::kBad;
  }
  return LineResult::kRow;
}

}  // namespace millrace
