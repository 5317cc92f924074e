#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "datafeed/data_feed.h"
#include "datafeed/packed_rows.h"
#include "datafeed/row_layout.h"
#include "dataset/dataset.h"
#include "dataset/label_thinning.h"
#include "dataset/line_draw.h"

namespace millrace {

class DataFeedDesc;

/// The unit of which batches of a pass consist.
enum class PassPhase : uint8_t {
  kUpdate,  ///< desc.batch_size rows
  kJoin,    ///< desc.pv_batch_size whole page views
};

/// How rows are filtered when loaded, and how they are grouped.
struct InMemoryRows {
  bool merge_by_lineid = false;  ///< lines with the same name become one row (MergeRowsByName)
  int merge_size = 2;
  bool enable_pv_merge = false;        ///< rows of one search form a page view
  std::vector<PassPhase> phases = {};  ///< of pass 0, 1, ... cyclically; empty: kUpdate
  double sample_rate = 1;              ///< fraction of the lines to load
  ThinnedLabel thinned = {};
  LineShare held = {};
  LineDraw sample = {};  ///< draws the lines for sample_rate
  /// Rows are grouped in TakeRows, not when loaded; the dataset may have no files of its own.
  bool are_exchanged = false;
};

struct InMemoryDatasetOptions {
  int threads = 1;             ///< loading threads if desc.thread_num is not set
  int queue_num = 0;           ///< output and consume channels; 0: the number of workers of the pass
  bool local_shuffle = false;  ///< BeginPass shuffles by (PassOptions::seed, PassOptions::pass)
  InMemoryRows rows = {};
  std::string output_dir = {};  ///< folder of QUARANTINE's bad_lines.txt if the policy names no file
  DataFeedFactory feeds = DataFeedFactory::Builtin();  ///< including plugin classes for desc.name
  std::stop_token stop = {};                           ///< cancels Create's check of many files (kCancelled)
};

/// Keeps all rows of its files in memory, packed, and delivers them in batches, pass after pass, in any seeded order.
///
/// After loading, rows are in (file, line) order for any number of threads. A shuffle permutes that order; the result
/// depends only on the seed and the rows. Batch k of a pass is rows [k * batch_size, (k + 1) * batch_size) of the
/// order, for any number of workers. At most one batch is not full (none with drop_last). A span counts these
/// positions. One worker gets the batches in order.
///
/// With page views, a kJoin pass delivers whole views in the order of their first rows, or shuffled as views; batch k
/// holds page views [k * pv_batch_size, (k + 1) * pv_batch_size). With input_type 1 a row is a line that is a whole
/// batch.
///
/// Rows travel as in Paddle: threads load them into the input channel, and a pass moves them to `queue_num` output
/// channels. Workers take a block per batch from there and put it into as many consume channels. A pass ends by
/// swapping the two. A shuffle moves all rows back to the input channel in a new order. Not thread-safe except for the
/// sources and the preloading thread.
class InMemoryDataset final : public Dataset, public InMemoryControl {
 public:
  /// Checks the desc and every file; reads nothing. Fails with kInvalidConfig for a setting or feed that does not fit,
  /// with InputOpener::Create's errors (all bad files in one message), and with the feed's.
  static Result<std::unique_ptr<InMemoryDataset>> Create(const DataFeedDesc& desc, std::vector<std::string> files,
                                                         InMemoryDatasetOptions options);
  ~InMemoryDataset() override;

  /// Waits for a preload and fails as it did. kInvalidConfig if nothing is loaded.
  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override;
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override;
  const SlotSchema& schema() const override;

  Result<PassStats> LoadIntoMemory(std::stop_token stop) override;
  Status PreloadIntoMemory(std::stop_token stop) override;
  Result<PassStats> WaitPreloadDone() override;
  /// Starts from (file, line) order, regardless of earlier shuffles. All rows are in the input channel afterwards. Must
  /// not be called during a pass.
  Status LocalShuffle(uint64_t seed) override;
  /// Shuffles over all machines of the job; on one machine it is LocalShuffle, with the same failures.
  Status GlobalShuffle(uint64_t seed) { return LocalShuffle(seed); }
  void ReleaseMemory() override;
  bool IsLoaded() const override;
  /// Loaded rows, before, during and after passes.
  int64_t MemoryDataSize() const override;
  int64_t MemoryBytes() const;
  /// Rows that a pass can deliver: on one machine all loaded rows.
  int64_t ShuffleDataSize() const { return MemoryDataSize(); }
  /// Counts rows per channel. During a pass, rows are in no channel if a worker is assembling them, drop_last excludes
  /// them, or an interrupted run trained them.
  struct ChannelRows {
    int64_t input = 0;
    std::vector<int64_t> output;  ///< by channel; empty before the first pass
    std::vector<int64_t> consume;
  };
  ChannelRows RowsInChannels() const;
  /// Loaded page views; 0 without enable_pv_merge.
  int64_t PvDataSize() const;

  // For a shuffle over ranks (dataset/row_exchange.h), not within a pass.

  /// Rows in (file, line) order.
  struct Rows {
    const PackedRows* packed = nullptr;  ///< owned by the dataset, like `layout`; valid until it loads, takes or
                                         ///< releases rows
    const RowLayout* layout = nullptr;
    std::vector<RowHandle> order;
  };
  /// The loaded rows. Waits for a preload and fails as it did; kInvalidConfig if nothing is loaded.
  Result<Rows> LoadedRows();
  /// Replaces the rows by those of `packed` from the next pass on, as if they had been loaded in this order: (file,
  /// line), where a file is an index into `files`. `packed` receives the previous rows. Adds counts of the grouping to
  /// `counters`.
  void TakeRows(PackedRows* packed, std::vector<RowHandle> order, const std::vector<std::string>& files,
                std::map<std::string, int64_t>* counters);

  /// From the next pass on, every row takes the values of these slots from another row, chosen at random among
  /// `candidate_size` rows (0: all). One row supplies all of them. Other slots and the order do not change. The choice
  /// depends only on `seed` and the row's position. An empty list restores the own values. Fails with kInvalidConfig
  /// for an unknown slot, with input_type 1, or if nothing is loaded.
  Status SlotsShuffle(const std::vector<std::string>& slots, uint64_t seed, int64_t candidate_size = 0);
  /// Sets options.queue_num from the next pass on; rows stay. Workers are PassOptions::workers of each pass. Fails with
  /// kInvalidConfig if `channels` is less than 1.
  Status DynamicAdjustChannelNum(int channels);
  /// Sets options.rows.phases from the next pass on; rows stay. Fails with kInvalidConfig for kJoin without page views.
  Status SetPhases(std::vector<PassPhase> phases);
  /// Sets the batch fields of the description from the next pass on; rows stay. Fails with kInvalidConfig like Create.
  Status SetBatches(int batch_size, int pv_batch_size, bool drop_last);

 private:
  struct Impl;
  explicit InMemoryDataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
