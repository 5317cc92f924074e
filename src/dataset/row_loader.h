#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "datafeed/bad_lines.h"
#include "datafeed/data_feed.h"
#include "datafeed/line_block_queue.h"
#include "datafeed/line_error.h"
#include "datafeed/packed_rows.h"
#include "dataset/dataset.h"
#include "dataset/input_channel.h"
#include "dataset/label_thinning.h"
#include "dataset/line_input.h"

namespace millrace {

/// Reads all files into packed rows with several threads, which share large files block by block.
///
/// Used once, by one thread; what the constructor refers to must outlive it.
class RowLoader {
 public:
  struct Options {
    int threads = 1;
    int retries = 0;
    std::function<Result<std::unique_ptr<DataFeed>>()> make_feed;  ///< called once per thread
    LineCut cut = {};                                              ///< of the feed's class
    LineRules rules = {};
    LabelThinning thinning = {};
  };
  RowLoader(const InputOpener& opener, const std::vector<std::string>& files, const SlotSchema& schema,
            const RowLayout& layout, BadLines& bad_lines, const Options& options);

  /// Adds the rows of all files to `rows`, and their handles in (file, line) order to `input`. The first failure of any
  /// thread stops the others and is returned: kBadData past the limits for bad lines, kIo for a file or command,
  /// kCancelled after a stop request. Both outputs are incomplete then.
  Result<PassStats> Load(PackedRows* rows, InputChannel* input, std::stop_token stop);

 private:
  /// State and results of one thread.
  struct Reader;

  Status ReadAll(Reader& reader, InputChannel& input, const std::stop_token& stop);
  Status ParseBlock(Reader& reader, InputChannel& input);
  PassStats Stats(const std::vector<Reader>& readers) const;

  const SlotSchema* schema_;
  const RowLayout* layout_;
  BadLines* bad_lines_;
  Options options_;
  LineBlockQueue blocks_;
  std::mutex mutex_;
  Status first_failure_;
};

}  // namespace millrace
