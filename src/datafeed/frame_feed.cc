#include "datafeed/frame_feed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "data_feed.pb.h"
#include "datafeed/csv_column_feed.h"
#include "reader/record_stream.h"

namespace millrace {
namespace {

using Frames = std::vector<std::shared_ptr<const DataFrame>>;

/// Identifies a row; passed to parsing threads instead of a line.
struct RowPlace {
  uint32_t frame = 0;
  uint32_t part = 0;
  int64_t row = 0;
};
struct SizedPlace {
  uint32_t size = sizeof(RowPlace);  ///< read by TakeSized
  uint32_t frame = 0;
  uint32_t part = 0;
  uint32_t low = 0;
  uint32_t high = 0;
};
static_assert(sizeof(SizedPlace) == sizeof(uint32_t) + sizeof(RowPlace));

/// Rows per block, which one thread processes: small enough to use several threads for a small frame.
constexpr size_t kRowsOfBlock = 2048;

/// The row identifiers of a frame.
class FramePlaces final : public RecordSource {
 public:
  FramePlaces(std::shared_ptr<const DataFrame> frame, uint32_t number) : frame_(std::move(frame)), number_(number) {}

  Result<bool> Next(RecordFrame* out, const std::stop_token& stop) override {
    if (stop.stop_requested()) return Cancelled("stopped while reading rows");
    constexpr size_t kAtOnce = 256;
    places_.clear();
    while (places_.size() < kAtOnce && HasNext()) {
      const int64_t length = frame_->parts()[part_]->array->length;
      for (; row_ < length && places_.size() < kAtOnce; ++row_) {
        const auto row = static_cast<uint64_t>(row_);
        places_.push_back({sizeof(RowPlace), number_, static_cast<uint32_t>(part_), static_cast<uint32_t>(row),
                           static_cast<uint32_t>(row >> 32)});
      }
      if (row_ == length) {
        ++part_;
        row_ = 0;
      }
    }
    *out = {{reinterpret_cast<const char*>(places_.data()), places_.size() * sizeof(SizedPlace)},
            static_cast<uint32_t>(places_.size()),
            true};
    return !places_.empty();
  }
  bool HasNext() const override { return part_ < frame_->parts().size(); }
  bool WaitReadable(std::chrono::milliseconds) override { return true; }
  bool is_damaged() const override { return false; }
  bool is_within_frame() const override { return false; }
  uint64_t bytes() const override { return 0; }  // not a file

 private:
  const std::shared_ptr<const DataFrame> frame_;
  const uint32_t number_;
  size_t part_ = 0;
  int64_t row_ = 0;
  std::vector<SizedPlace> places_;
};

/// Makes rows from identifiers of frames. One thread.
class FrameFeed final : public ColumnFeed {
 public:
  static Result<std::unique_ptr<DataFeed>> Create(std::shared_ptr<const Frames> frames, const SlotSchema& schema,
                                                  const DataFeedDesc& desc, const ColumnSetup& setup) {
    std::unique_ptr<FrameFeed> feed(new FrameFeed(std::move(frames), schema, setup, desc));
    MR_TRY(feed->FindColumns());
    return std::unique_ptr<DataFeed>(std::move(feed));
  }

 private:
  FrameFeed(std::shared_ptr<const Frames> frames, const SlotSchema& schema, const ColumnSetup& setup,
            const DataFeedDesc& desc)
      : ColumnFeed(schema, setup, desc, Source::kFrames),
        frames_(std::move(frames)),
        cells_(texts().size()),
        lists_(texts().size()) {}

  Status FindColumns() {
    std::string problems;
    for (const std::shared_ptr<const DataFrame>& frame : *frames_) {
      Result<std::vector<size_t>> places = frame->FindColumns(plan().columns());
      if (!places.ok()) problems += (problems.empty() ? "" : "\n") + places.status().message();
      places_.push_back(places.ok() ? std::move(*places) : std::vector<size_t>());
    }
    return problems.empty() ? Status::Ok() : BadData(problems);
  }

  LineResult Read(std::string_view line) override {
    RowPlace place;
    std::memcpy(&place, line.data(), sizeof(place));
    const DataFrame& frame = *(*frames_)[place.frame];
    const FramePart& part = *frame.parts()[place.part];
    const int64_t row = part.array->offset + place.row;
    const std::vector<size_t>& places = places_[place.frame];
    for (size_t i = 0; i < places.size(); ++i) {
      const FrameColumn& column = part.columns[places[i]];
      if (column.is_list()) [[unlikely]] {
        TakeList(column, row, i);
        continue;
      }
      lists_[i] = {};
      texts()[i] = Taken(column.Text(row, plan().text_rule(), &cells_[i].text));
    }
    return PutRow(line, lists_);
  }

  void TakeList(const FrameColumn& column, int64_t row, size_t i) {
    Cell& cell = cells_[i];
    int64_t begin = 0;
    int64_t end = 0;
    column.List(row, &begin, &end);
    const auto count = static_cast<size_t>(end - begin);
    if (cell.texts.size() < count) cell.texts.resize(count);
    cell.views.clear();
    for (size_t k = 0; k < count; ++k) {
      const std::string_view text =
          Taken(column.items().Text(begin + static_cast<int64_t>(k), plan().text_rule(), &cell.texts[k]));
      if (!text.empty()) cell.views.push_back(text);
    }
    texts()[i] = {};
    lists_[i] = cell.views;
  }

  struct Cell {
    std::string text;
    std::vector<std::string> texts;  ///< values of a list
    std::vector<std::string_view> views;
  };

  const std::shared_ptr<const Frames> frames_;
  std::vector<std::vector<size_t>> places_;  ///< by frame, for the plan's columns
  std::vector<Cell> cells_;
  std::vector<FeatureRow::List> lists_;
};

LineCut CutOfFrames(const std::shared_ptr<const Frames>& frames) {
  const auto find = [frames](const std::string& file) {
    const std::string name = PathOfFormat(file, std::string(kFrameScheme));
    return std::find_if(frames->begin(), frames->end(), [&](const auto& frame) { return frame->name() == name; });
  };
  LineCut cut;
  cut.opened_by = kFrameScheme;
  cut.block_bytes = kRowsOfBlock * sizeof(SizedPlace);
  cut.records = [frames, find](std::unique_ptr<ByteSource>, const std::string& file,
                               const LineLimit&) -> Result<std::unique_ptr<RecordSource>> {
    const auto found = find(file);
    if (found == frames->end()) return NotFound("no frame of this name is in memory");
    return std::unique_ptr<RecordSource>(
        std::make_unique<FramePlaces>(*found, static_cast<uint32_t>(found - frames->begin())));
  };
  cut.in_memory = [frames, find](const std::string& file) {
    const auto found = find(file);
    if (found == frames->end()) return RowsInMemory();
    return RowsInMemory{static_cast<uint64_t>((*found)->rows()), (*found)->Checksum()};
  };
  return cut;
}

}  // namespace

std::string FileOfFrame(std::string_view name) { return std::string(kFrameScheme) + ":" + std::string(name); }

Result<DataFeedFactory> FrameFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc,
                                   std::vector<std::shared_ptr<const DataFrame>> frames,
                                   std::shared_ptr<const FeaturePlans> plans) {
  MR_ASSIGN(const FeedKind* const kind, feeds.Get(desc.name()).Context("data_desc.name"));
  if (kind->columns == nullptr || desc.feature_size() == 0) {
    return InvalidConfig(
        "data_desc.feature: rows in memory have columns with names, and the job has no feature that "
        "makes slots of these: name: \"csv\" feature { name: \"age\" hash {} } ...");
  }
  if (plans == nullptr) plans = std::make_shared<const FeaturePlans>();
  const auto shared = std::make_shared<const Frames>(std::move(frames));
  FeedKind of_frames;
  of_frames.columns = [shared](const SlotSchema& schema, const DataFeedDesc& own, const ColumnSetup& setup) {
    return FrameFeed::Create(shared, schema, own, setup);
  };
  of_frames.maker = [shared, plans](const SlotSchema& schema,
                                    const DataFeedDesc& own) -> Result<std::unique_ptr<DataFeed>> {
    MR_ASSIGN(const ColumnSetup setup, plans->Setup(schema, own));
    return FrameFeed::Create(shared, schema, own, setup);
  };
  of_frames.cut = CutOfFrames(shared);
  DataFeedFactory factory;
  MR_TRY(factory.Add(desc.name(), "makes rows of frames in memory", std::move(of_frames)));
  return factory;
}

}  // namespace millrace
