#pragma once

#include <memory>
#include <string>

#include "core/line_blocks.h"
#include "datafeed/data_feed.h"
#include "datafeed/format_feed.h"
#include "datafeed/row_file.h"
#include "reader/record_stream.h"

namespace millrace {

/// A data feed class at the level of files; `maker` gets no bytes if `format` opens its files itself.
FeedKind FeedOfRows(RowFileMaker maker, const FormatTraits& format);

/// Encodes the rows of a file as records, which a RowRecordFeed with the same schema decodes. Rows can then travel in
/// blocks to any thread and be counted like lines. `who` is named if `open` or its rows throw. Null `bytes`: `open`
/// opens the file itself, and its failures name the row. Fails with `open`'s errors; reading fails with kBadData for a
/// row longer than `limit`, kCancelled after a stop request.
Result<std::unique_ptr<RecordSource>> RecordsOfRows(const RowFileOpener& open, std::unique_ptr<ByteSource> bytes,
                                                    const std::string& file, const SlotSchema& schema,
                                                    const LineLimit& limit, const std::string& who);

/// Decodes the records of RecordsOfRows.
class RowRecordFeed final : public FormatFeed {
 public:
  RowRecordFeed(const SlotSchema& schema, const MultiSlotOptions& options) : FormatFeed(schema, options) {}

 private:
  LineResult Read(std::string_view line) override;

  std::vector<uint64_t> ids_;
  std::vector<float> floats_;
};

}  // namespace millrace
