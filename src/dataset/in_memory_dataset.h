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
#include "dataset/held_rows.h"
#include "dataset/label_thinning.h"

namespace millrace {

class DataFeedDesc;

/// What the batches of a pass are made of.
enum class PassPhase : uint8_t {
  kUpdate,  ///< rows: desc.batch_size of them
  kJoin,    ///< whole page views: desc.pv_batch_size of them
};

/// What becomes of rows when they are loaded, and how they are grouped.
struct InMemoryRows {
  bool merge_by_lineid = false;  ///< lines of one name become one row (MergeRowsByName)
  int merge_size = 2;
  bool enable_pv_merge = false;        ///< rows of one search are a page view
  std::vector<PassPhase> phases = {};  ///< of pass 0, 1, ... in turns; empty: kUpdate
  double sample_rate = 1;              ///< share of the lines that is loaded
  ThinnedLabel thinned = {};
  HeldRows held = {};
  LineDraw sample = {};  ///< which lines sample_rate loads
  /// Rows are grouped when TakeRows brings them, not when they are loaded; there may be no files of its own.
  bool are_exchanged = false;
};

struct InMemoryDatasetOptions {
  int threads = 1;             ///< that load, when desc.thread_num is not set
  int queue_num = 0;           ///< output and consume channels; 0: as many as the pass has workers
  bool local_shuffle = false;  ///< BeginPass shuffles by (PassOptions::seed, PassOptions::pass)
  InMemoryRows rows = {};
  std::string output_dir = {};  ///< where QUARANTINE writes bad_lines.txt when the policy names no file
  DataFeedFactory feeds = DataFeedFactory::Builtin();  ///< with the classes of plugins that desc.name may be
  std::stop_token stop = {};                           ///< ends Create's look at many files: kCancelled
};

/// Holds all rows of its files, packed, and hands them out in batches, pass after pass, in any order that a seed gives.
///
/// After loading, rows stand in (file, line) order, however many threads read. A shuffle permutes that order: the
/// result depends on the seed and the rows alone. Batch k of a pass is rows [k * batch_size, (k + 1) * batch_size) of
/// the order, so at most one is not full (none with drop_last), for any number of workers; its span is these
/// positions. One worker gets the batches in order.
///
/// With page views, a pass of the phase kJoin hands out whole ones, in the order of their first rows, or shuffled as
/// such; batch k holds page views [k * pv_batch_size, (k + 1) * pv_batch_size). With input_type 1 a row is a line that
/// is a whole batch.
///
/// Rows travel as in Paddle: threads load them into the input channel; a pass takes them from there into `queue_num`
/// output channels, whence workers take them, a block for each batch, into as many consume channels; a pass ends by
/// swapping the two. A shuffle brings all rows back to the input channel, in another order. Not thread-safe but for the
/// sources and the preloading thread.
class InMemoryDataset final : public Dataset, public InMemoryControl {
 public:
  /// Checks the desc and every file (missing, folder, no name: one message for all); reads nothing.
  static Result<std::unique_ptr<InMemoryDataset>> Create(const DataFeedDesc& desc, std::vector<std::string> files,
                                                         InMemoryDatasetOptions options);
  ~InMemoryDataset() override;

  /// Waits for a preload. kInvalidConfig when nothing was loaded.
  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override;
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override;
  const SlotSchema& schema() const override;

  Result<PassStats> LoadIntoMemory(std::stop_token stop) override;
  Status PreloadIntoMemory(std::stop_token stop) override;
  Result<PassStats> WaitPreloadDone() override;
  /// Starts from (file, line) order, whatever was shuffled before. All rows are in the input channel then. Not during a
  /// pass.
  Status LocalShuffle(uint64_t seed) override;
  /// Shuffles over all machines of the job; with one machine, the same as LocalShuffle.
  Status GlobalShuffle(uint64_t seed) { return LocalShuffle(seed); }
  void ReleaseMemory() override;
  bool IsLoaded() const override;
  /// Rows that are loaded, before, within and after passes.
  int64_t MemoryDataSize() const override;
  int64_t MemoryBytes() const;
  /// Rows that a pass has to hand out: on one machine all that are loaded, shuffled or not.
  int64_t ShuffleDataSize() const { return MemoryDataSize(); }
  /// Where these rows are. In no channel are, within a pass, those that a worker makes a batch of, that drop_last
  /// leaves out, or that an interrupted run has trained.
  struct ChannelRows {
    int64_t input = 0;
    std::vector<int64_t> output;  ///< by channel; none before the first pass
    std::vector<int64_t> consume;
  };
  ChannelRows RowsInChannels() const;
  /// Page views among them; 0 without enable_pv_merge.
  int64_t PvDataSize() const;

  // For a shuffle over ranks (dataset/row_exchange.h), not within a pass.

  /// Rows in (file, line) order.
  struct Rows {
    const PackedRows* packed = nullptr;  ///< of the dataset, as is `layout`; until it loads, takes or releases rows
    const RowLayout* layout = nullptr;
    std::vector<RowHandle> order;
  };
  /// Those that it holds. Waits for a preload; kInvalidConfig when nothing was loaded.
  Result<Rows> LoadedRows();
  /// From the next pass on the dataset holds the rows of `packed`, which takes those from before, as if it had loaded
  /// them in this order: (file, line), where a file is a number of `files`. What grouping them came to is added to
  /// `counters`.
  void TakeRows(PackedRows* packed, std::vector<RowHandle> order, const std::vector<std::string>& files,
                std::map<std::string, int64_t>* counters);

  /// From the next pass on, the values of these slots are, in every row, those of another row chosen at random among
  /// `candidate_size` (0: all): one row for all of them. Other slots, the rows and their order stay as they are. Which
  /// row depends on `seed` and the row's place alone. No slots: every row has its own values again. kInvalidConfig
  /// names slots that are not there.
  Status SlotsShuffle(const std::vector<std::string>& slots, uint64_t seed, int64_t candidate_size = 0);
  /// From the next pass on, as if options.queue_num were this; rows stay. Workers are PassOptions::workers of each
  /// pass.
  Status DynamicAdjustChannelNum(int channels);
  /// From the next pass on, as if options.rows.phases were these; rows stay. kInvalidConfig for kJoin without page
  /// views.
  Status SetPhases(std::vector<PassPhase> phases);
  /// From the next pass on, as if these were the description's; rows stay. kInvalidConfig as Create says it.
  Status SetBatches(int batch_size, int pv_batch_size, bool drop_last);

 private:
  struct Impl;
  explicit InMemoryDataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
