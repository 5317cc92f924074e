#include "session/model_scorer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "config/feed_names.h"
#include "core/words.h"
#include "datafeed/csv_column_feed.h"
#include "datafeed/drop_zeros.h"
#include "datafeed/file_columns.h"
#include "datafeed/scoring_feeds.h"
#include "dataset/dataset.h"
#include "features/feature_spec.h"
#include "program/text_proto.h"
#include "serving/absent_slots.h"

namespace millrace {

/// The parts of a call that the next one reuses.
struct ModelScorer::Buffers {
  std::vector<std::string> without;  ///< slots that the lines lack
  std::unique_ptr<const SlotSchema> schema;
  std::unique_ptr<SlotBatch> batch;
  std::unique_ptr<PredictSession> session;
  std::unique_ptr<DataFeed> feed;  ///< null until it reads lines
  LineCut cut;                     ///< of these lines
};

namespace {

constexpr int kRowsAtOnce = 1024;

/// Rows [begin, end) of the columns as a batch. Slots that are not fed are zeros, or empty.
void FillBatch(std::span<const ScoredColumn> columns, int64_t begin, int64_t end, SlotBatch* batch) {
  batch->Clear();
  const auto rows = static_cast<size_t>(end - begin);
  batch->set_rows(static_cast<int>(rows));
  for (const SlotSpec& slot : batch->schema().used()) {
    SlotColumn& column = batch->column(slot.id);
    const auto fed =
        std::find_if(columns.begin(), columns.end(), [&](const ScoredColumn& c) { return c.slot == slot.id; });
    int64_t first = 0;
    auto count = slot.is_dense ? rows * static_cast<size_t>(slot.width) : 0;
    if (fed != columns.end()) {
      first = slot.is_dense ? begin * slot.width : fed->offsets[begin];
      if (!slot.is_dense) count = static_cast<size_t>(fed->offsets[end] - first);
    }
    if (!slot.is_dense) {
      column.offsets.resize(rows + 1);
      for (size_t row = 0; row <= rows; ++row) {
        column.offsets[row] =
            fed == columns.end() ? 0 : static_cast<uint32_t>(fed->offsets[begin + static_cast<int64_t>(row)] - first);
      }
    }
    const auto fill = [&](auto& into) {
      into.resize(count);
      if (count == 0) return;
      using Value = std::remove_reference_t<decltype(into[0])>;
      if (fed == columns.end()) {
        std::fill(into.begin(), into.end(), Value{});
      } else {
        std::memcpy(into.data(), static_cast<const Value*>(fed->values) + first, count * sizeof(Value));
      }
    };
    if (slot.type == SlotType::kFloat) {
      fill(column.floats);
    } else {
      fill(column.ids);
    }
  }
}

/// Warnings about numbers and times written differently than in training. Missing keys are not reported, because a call
/// has few lines.
std::map<std::string, std::string> WarningsOf(const DataFeed& feed, bool is_frame) {
  const auto* const naming = dynamic_cast<const NamedValuesFeed*>(&feed);
  if (naming == nullptr) return {};
  PassStats read;
  read.names = naming->names();
  read.names.absent.clear();
  const auto find_place = [is_frame](NumberForm* value) {
    value->place = is_frame ? "in the rows" : "byte " + std::to_string(value->column) + " of its line";
  };
  for (auto* const numbers : read.names.forms()) {
    for (auto& [column, number] : *numbers) find_place(&number);
  }
  for (auto& [column, of_column] : read.names.zones) {
    for (auto& [zone, time] : of_column) find_place(&time);
  }
  for (auto& [column, time] : read.names.of_1970) find_place(&time);
  return ValueWarnings(read, Reads::kModel);
}

/// Appends the scores of a batch.
Status AppendScores(const SlotBatch& batch, PredictSession& session, std::vector<float>* scores) {
  MR_ASSIGN(const std::span<const float> some, session.Run(batch));
  scores->insert(scores->end(), some.begin(), some.end());
  return Status::Ok();
}

/// Likewise, of the batch that `feed` has filled; a batch without rows is skipped.
Status ScoreFilled(DataFeed& feed, const SlotBatch& batch, PredictSession& session, std::vector<float>* scores) {
  const bool has_rows = feed.rows() > 0;
  MR_TRY(feed.Detach());
  return has_rows ? AppendScores(batch, session, scores) : Status::Ok();
}

Status ScoreLines(const std::string& text, const LineCut& cut, DataFeed& feed, PredictSession& session,
                  SlotBatch& batch, const std::stop_token& stop, std::vector<float>* scores) {
  // Parsers can read bytes after the last line.
  std::string padded = text;
  padded.append(kLinePadding + 1, '\0');
  uint64_t number = 0;
  size_t start = 0;
  if (auto* const headed = dynamic_cast<HeadedFeed*>(&feed)) {
    const std::string_view first = std::string_view(text).substr(0, text.find('\n'));
    const std::string_view header = cut.header == nullptr ? std::string_view() : cut.header(first);
    const bool is_there = !header.empty();
    if (is_there || !text.empty()) MR_TRY(headed->TakeHeader(header).Context("lines:1"));
    if (!headed->note().empty()) Say("note: lines:1: " + headed->note() + "\n");
    if (is_there) {
      number = 1;
      start = first.size() + 1;
    }
  }
  while (start < text.size()) {
    if (stop.stop_requested()) return Cancelled("interrupted");
    batch.Clear();
    MR_TRY(feed.Attach(&batch));
    while (start < text.size() && feed.rows() < kRowsAtOnce) {
      const size_t end = std::min(text.find('\n', start), text.size());
      ++number;
      MR_ASSIGN(const LineResult result, feed.ParseLine({padded.data() + start, end - start}));
      if (result == LineResult::kBad) {
        MR_TRY(feed.Detach());
        return feed.error().ToStatus("lines", number);
      }
      start = end + 1;
    }
    MR_TRY(ScoreFilled(feed, batch, session, scores));
  }
  return Status::Ok();
}

Status ScoreRows(const std::string& name, RecordSource& rows, DataFeed& feed, PredictSession& session, SlotBatch& batch,
                 const std::stop_token& stop, std::vector<float>* scores) {
  uint64_t number = 0;
  for (bool more = true; more;) {
    batch.Clear();
    MR_TRY(feed.Attach(&batch));
    while (more && feed.rows() < kRowsAtOnce) {
      RecordFrame some;
      MR_ASSIGN(more, rows.Next(&some, stop));
      for (std::string_view records = some.body; more && !records.empty(); ++number) {
        MR_ASSIGN(const LineResult result, feed.ParseLine(TakeSized(&records)));
        if (result != LineResult::kBad) continue;
        MR_TRY(feed.Detach());
        return BadData(name + ": row " + std::to_string(number) + ": " + feed.error().ToString());
      }
    }
    MR_TRY(ScoreFilled(feed, batch, session, scores));
  }
  return Status::Ok();
}

/// Lets earlier rows weigh no more than a few thousand: a server that scored millions must notice what comes now.
void WeighLess(SlotShare* share) {
  constexpr int64_t kRemembered = 4096;
  if (share->rows <= kRemembered) return;
  const double part = static_cast<double>(kRemembered) / static_cast<double>(share->rows);
  for (int64_t* count : {&share->rows, &share->empty, &share->ids, &share->unknown}) {
    *count = std::llround(part * static_cast<double>(*count));
  }
}

}  // namespace

ModelScorer::ModelScorer() = default;
ModelScorer::~ModelScorer() = default;

Result<std::unique_ptr<ModelScorer>> ModelScorer::Load(const std::string& folder, const Options& options,
                                                       const Environment& environment, std::stop_token stop) {
  PredictorOptions how;
  how.feed = options.feed;
  how.given = options.given;
  how.prediction = options.prediction;
  how.stop = std::move(stop);
  how.feeds = &environment.feeds;
  DataFeedDesc desc;
  if (options.data_desc.has_value()) {
    MR_TRY(ParseTextProto(*options.data_desc, "data_desc", &desc));
    how.data_desc = &desc;
  }
  std::unique_ptr<ModelScorer> made(new ModelScorer);
  MR_ASSIGN(made->predictor_, Predictor::Load(folder, environment.ops, how));
  made->names_ = made->predictor_->columns();
  if (made->has_features()) {
    MR_ASSIGN(made->feeds_of_columns_, ScoringFeeds(environment.feeds, made->predictor_->data_desc()));
  }
  return made;
}

Result<std::vector<std::string>> ModelScorer::Columns(const std::vector<std::string>& without) const {
  const DataFeedDesc desc = LinesWithout(without);
  MR_ASSIGN(const SlotSchema schema, SlotSchema::Create(desc));
  MR_ASSIGN(const auto setup, plans_->Setup(schema, desc));
  return setup.plan->columns();
}

Status ModelScorer::MakeFeed(const Environment& environment, Buffers* buffers) const {
  const DataFeedDesc desc = LinesWithout(buffers->without);
  const DataFeedFactory& feeds = has_features() ? feeds_of_columns_ : environment.feeds;
  const bool is_text = feeds.ReadsText(desc.name());
  if (!is_text && desc.feature_size() > 0) {
    return InvalidConfig("predict_lines: the model reads files of \"" + desc.name() +
                         "\", which are no text; predict takes a data frame, or the path of a .parquet file");
  }
  const std::string feed_class = desc.name().empty() || !is_text ? "MultiSlotDataFeed" : desc.name();
  MR_ASSIGN(buffers->feed, feeds.Create(feed_class, *buffers->schema, desc));
  MR_ASSIGN(buffers->cut, feeds.CutOf(feed_class, *buffers->schema, desc));
  return Status::Ok();
}

Result<Scores> ModelScorer::ScoreText(const Environment& environment, const std::string& text,
                                      const std::vector<std::string>& without, const std::stop_token& stop) {
  MR_TRY(predictor_->CheckLines(environment.feeds));
  Scores scores;
  MR_ASSIGN(std::unique_ptr<Buffers> buffers, TakeBuffers(WithAbsent(without, text)));
  if (buffers->feed == nullptr) MR_TRY(MakeFeed(environment, buffers.get()));
  DataFeed& feed = *buffers->feed;
  const int64_t before = feed.counters().zeros_dropped;
  MR_TRY(ScoreLines(text, buffers->cut, feed, *buffers->session, *buffers->batch, stop, &scores.values));
  scores.zeros_dropped = feed.counters().zeros_dropped - before;
  scores.warnings = WarningsOf(feed, false);
  MR_TRY(Finish(std::move(buffers), &scores.warnings));
  return scores;
}

Result<Scores> ModelScorer::ScoreFrame(const Environment& environment, const std::shared_ptr<const DataFrame>& frame,
                                       const std::vector<std::string>& without, const std::stop_token& stop) {
  MR_TRY(predictor_->CheckLines(environment.feeds));
  Scores scores;
  MR_ASSIGN(std::unique_ptr<Buffers> buffers, TakeBuffers(without));
  const DataFeedDesc desc = LinesWithout(without);
  MR_ASSIGN(const DataFeedFactory feeds, FrameFeeds(environment.feeds, desc, {frame}, plans_));
  MR_ASSIGN(const std::unique_ptr<DataFeed> feed, feeds.Create(desc.name(), *buffers->schema, desc));
  MR_ASSIGN(const LineCut cut, feeds.CutOf(desc.name(), *buffers->schema, desc));
  MR_ASSIGN(const auto rows, cut.records(nullptr, FileOfFrame(frame->name()), LineLimit()));
  MR_TRY(ScoreRows(frame->name(), *rows, *feed, *buffers->session, *buffers->batch, stop, &scores.values));
  scores.zeros_dropped = feed->counters().zeros_dropped;
  scores.warnings = WarningsOf(*feed, true);
  MR_TRY(Finish(std::move(buffers), &scores.warnings));
  return scores;
}

Result<Scores> ModelScorer::ScoreColumns(std::span<const ScoredColumn> columns, int64_t rows,
                                         const std::stop_token& stop) {
  const bool drops_zeros = predictor_->data_desc().zeros() == DataFeedDesc::DROP;
  Scores scores;
  MR_ASSIGN(std::unique_ptr<Buffers> buffers, TakeBuffers({}));
  for (int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    if (stop.stop_requested()) return Cancelled("interrupted");
    FillBatch(columns, begin, std::min<int64_t>(begin + kRowsAtOnce, rows), buffers->batch.get());
    if (drops_zeros) scores.zeros_dropped += DropZeros(*buffers->batch);
    MR_TRY(AppendScores(*buffers->batch, *buffers->session, &scores.values));
  }
  MR_TRY(Finish(std::move(buffers), &scores.warnings));
  return scores;
}

/// `without`, and the slots that no score depends on and whose columns the header of `text` lacks.
std::vector<std::string> ModelScorer::WithAbsent(std::vector<std::string> without, std::string_view text) {
  const DataFeedDesc& desc = predictor_->data_desc();
  if (!HasHeader(desc)) return without;
  const std::string_view header = CsvHeaderOf(desc)(text.substr(0, text.find('\n')));
  const std::lock_guard lock(mutex_);
  if (header != last_header_) {
    absent_.clear();
    const Result<std::vector<std::string>> names = CsvHeaderNames(header, desc);
    if (names.ok()) {
      for (AbsentSlot& one : AbsentSlotsOf(*predictor_, desc, *names)) absent_.push_back(std::move(one.slot));
    }
    last_header_ = header;
  }
  without.insert(without.end(), absent_.begin(), absent_.end());
  return without;
}

DataFeedDesc ModelScorer::LinesWithout(const std::vector<std::string>& without) const {
  DataFeedDesc desc = predictor_->data_desc();
  ForgetOwnFeed(&desc);
  auto* slots = desc.mutable_multi_slot_desc()->mutable_slots();
  for (const std::string& name : without) {
    slots->erase(std::remove_if(slots->begin(), slots->end(), [&](const Slot& s) { return s.name() == name; }),
                 slots->end());
  }
  return desc;
}

Result<std::unique_ptr<ModelScorer::Buffers>> ModelScorer::TakeBuffers(const std::vector<std::string>& without) {
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(free_.begin(), free_.end(), [&](const auto& buffers) { return buffers->without == without; });
    if (found != free_.end()) {
      std::unique_ptr<Buffers> buffers = std::move(*found);
      free_.erase(found);
      return buffers;
    }
  }
  auto buffers = std::make_unique<Buffers>();
  buffers->without = without;
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(LinesWithout(without)));
  buffers->schema = std::make_unique<const SlotSchema>(std::move(schema));
  buffers->batch = std::make_unique<SlotBatch>(*buffers->schema);
  MR_ASSIGN(buffers->session, PredictSession::Create(*predictor_, *buffers->schema, kRowsAtOnce));
  ++buffers_made_;
  return buffers;
}

/// Adds warnings about slots that differ from the last evaluation, and returns the buffers. A few rows show nothing:
/// they are counted with the next ones.
Status ModelScorer::Finish(std::unique_ptr<Buffers> buffers, std::map<std::string, std::string>* warnings) {
  constexpr int64_t kWorthALook = 16;
  if (buffers->session->rows_looked() >= kWorthALook) {
    PassStats read;
    {
      const std::lock_guard lock(mutex_);
      MR_TRY(buffers->session->TakeShares(&shares_));
      read.names.shares = shares_;
      for (auto& [slot, share] : shares_) WeighLess(&share);
    }
    read.names.trained_shares = predictor_->slot_shares();
    warnings->merge(ValueWarnings(read, Reads::kModel));
  }
  constexpr size_t kKept = 64;
  const std::lock_guard lock(mutex_);
  if (free_.size() == kKept) free_.erase(free_.begin());
  free_.push_back(std::move(buffers));
  return Status::Ok();
}

}  // namespace millrace
