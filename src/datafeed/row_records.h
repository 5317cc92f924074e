#pragma once

#include <memory>
#include <string>

#include "core/line_blocks.h"
#include "datafeed/data_feed.h"
#include "datafeed/format_feed.h"
#include "datafeed/row_file.h"
#include "reader/record_stream.h"

namespace millrace {

/// A class of data feeds at the level of files; `maker` gets no bytes where `format` opens its files itself.
FeedKind FeedOfRows(RowFileMaker maker, const FormatTraits& format);

/// Makes records of the rows of a file, which a RowRecordFeed of the same schema turns into rows again: so they travel
/// in blocks to any thread, and are counted, as lines are. `who` is blamed for what `open` and its rows throw. No
/// `bytes`: `open` opens the file itself, and its failures name the row.
Result<std::unique_ptr<RecordSource>> RecordsOfRows(const RowFileOpener& open, std::unique_ptr<ByteSource> bytes,
                                                    const std::string& file, const SlotSchema& schema,
                                                    const LineLimit& limit, const std::string& who);

/// Rows of RecordsOfRows.
class RowRecordFeed final : public FormatFeed {
 public:
  RowRecordFeed(const SlotSchema& schema, const MultiSlotOptions& options) : FormatFeed(schema, options) {}

 private:
  LineResult Read(std::string_view line) override;

  std::vector<uint64_t> ids_;
  std::vector<float> floats_;
};

}  // namespace millrace
