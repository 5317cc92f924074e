#include "datafeed/builtin_formats.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datafeed/cell_records.h"
#include "datafeed/column_feed.h"
#include "datafeed/csv_column_feed.h"
#include "datafeed/csv_feed.h"
#include "datafeed/data_feed.h"
#include "datafeed/feature_feed.h"
#include "datafeed/format_feed.h"
#include "datafeed/jpeg_feed.h"
#include "datafeed/json_column_feed.h"
#include "datafeed/libsvm_column_feed.h"
#include "datafeed/libsvm_feed.h"
#include "datafeed/multi_slot_reader.h"
#include "datafeed/reader_rows.h"
#include "datafeed/recordio_feed.h"
#include "reader/csv_reader.h"
#include "reader/feature_reader.h"
#include "reader/jpeg_reader.h"
#include "reader/libsvm_reader.h"
#include "reader/reader_registry.h"
#include "reader/record_stream.h"
#include "reader/recordio.h"

namespace millrace {
namespace {

/// A format, for readers of programs and for datasets.
struct BuiltinFormat {
  FileFormat file;
  FeedKind feed = {};  ///< without a maker, its reader also serves datasets (FeedOfReader)
};

LineCut CutBy(const Framing& framing) {
  return {.records = [&framing](std::unique_ptr<ByteSource> bytes, const std::string&,
                                const LineLimit& limit) -> Result<std::unique_ptr<RecordSource>> {
    return std::unique_ptr<RecordSource>(
        std::make_unique<RecordStream>(std::move(bytes), framing, limit.bytes, limit.advice,
                                       "; is this a file of the format " + std::string(framing.format) + "?"));
  }};
}

FeedKind FeedOfPictures() {
  FeedKind feed = JpegFeedKind();
  feed.format = {.no_trailing_values = "is a picture with its label", .opens_files = true};
  return feed;
}

/// Extends a format of rows with named columns by features.
template <class Feed>
FeedKind WithColumns(FeedKind kind) {
  kind.columns = Feed::Create;
  const auto plans = std::make_shared<const FeaturePlans>();
  kind.begin_job = [plans] { plans->ForgetSaid(); };
  kind.maker = [plain = std::move(kind.maker), plans](const SlotSchema& schema,
                                                      const DataFeedDesc& desc) -> Result<std::unique_ptr<DataFeed>> {
    if (desc.feature_size() == 0) return plain(schema, desc);
    MR_ASSIGN(const ColumnSetup setup, plans->Setup(schema, desc));
    return Feed::Create(schema, desc, setup);
  };
  kind.format->has_columns = true;
  return kind;
}

/// The maker of a format that requires features: `what` are not slots.
FeedKind::Maker NeedsFeatures(std::string_view what) {
  return [what](const SlotSchema&, const DataFeedDesc&) -> Result<std::unique_ptr<DataFeed>> {
    return InvalidConfig("data_desc.feature: " + std::string(what) +
                         " are no slots by themselves: feature { name: \"...\" ... }");
  };
}

FeedKind JsonFeedKind() {
  return WithColumns<JsonColumnFeed>(
      {.maker = NeedsFeatures("the keys of JSON"),
       .format = {
           {.no_trailing_values = "has an object in each line; keys that no feature takes are left out anyway"}}});
}

/// For columnar files, read by pyarrow.
FeedKind CellFeedKind(std::string_view format) {
  FeedKind feed = WithColumns<CellFeed>(
      {.maker = NeedsFeatures("the columns of a file"),
       .cut = CutBy(kCellFraming),
       .format = {{.no_trailing_values = "has columns with names; those that no feature takes are left out anyway"}}});
  feed.command_of = [format](const DataFeedDesc& desc, std::span<const std::string> columns) {
    return CellCommand(format, desc, columns);
  };
  feed.names_command = [format] { return CellNamesCommand(format); };
  return feed;
}

/// The formats, in the order of messages.
std::vector<BuiltinFormat> Formats() {
  using Record = FeatureRecord::Format;
  constexpr FormatTraits kFeatures = {.no_trailing_values =
                                          "has features with names; those that no slot has are left out anyway"};
  return {
      {CsvFormat(),
       WithColumns<CsvColumnFeed>({.maker = MakeFormat<CsvFeed>, .header_of = CsvHeaderOf, .format = FormatTraits{}})},
      {LibsvmFormat(),
       WithColumns<LibsvmColumnFeed>(
           {.maker = MakeFormat<LibsvmFeed>,
            .format = {{.no_trailing_values = "has pairs up to the end of its lines, or a comment behind \"#\"",
                        .no_dropped_zeros = "has a value for each index; dropped zeros would shift the others"}}})},
      {TfRecordFormat(),
       {.maker = MakeFormat<FeatureFeed, Record::kTfRecord>, .cut = CutBy(kTfRecordFraming), .format = kFeatures}},
      {OfRecordFormat(),
       {.maker = MakeFormat<FeatureFeed, Record::kOfRecord>, .cut = CutBy(kOfRecordFraming), .format = kFeatures}},
      {RecordIOFormat(),
       {.maker = MakeFormat<RecordIOFeed>,
        .cut = CutBy(kRecordIOFraming),
        .format = {{.no_trailing_values =
                        "has a tensor for each slot; add a slot that is not used for one that is to be "
                        "left out"}}}},
      {JpegFormat(), FeedOfPictures()},
  };
}

}  // namespace

Status AddBuiltinFormats(ReaderRegistry* readers) {
  for (BuiltinFormat& format : Formats()) MR_TRY(readers->Add(std::move(format.file)));
  return readers->Add(MultiSlotFormat());
}

Status AddBuiltinFormats(DataFeedFactory* feeds) {
  for (BuiltinFormat& format : Formats()) {
    FeedKind feed = format.feed.maker == nullptr ? FeedOfReader(format.file) : std::move(format.feed);
    MR_TRY(feeds->Add(format.file.tag, format.file.doc, std::move(feed)));
  }
  MR_TRY(feeds->Add("json", "a JSON object a line, of whose keys features make slots", JsonFeedKind()));
  MR_TRY(feeds->Add("parquet", "Parquet files, of whose columns features make slots; Python's pyarrow reads them",
                    CellFeedKind("parquet")));
  return feeds->Add("arrow", "files or streams of Arrow's IPC (Feather), likewise", CellFeedKind("arrow"));
}

}  // namespace millrace
