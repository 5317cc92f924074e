#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/wire.h"
#include "ranks/micro_batch_sums.h"
#include "ranks/rank_group.h"
#include "runtime/frame.h"
#include "runtime/pipeline_program.h"

namespace millrace {

/// What a rank has read for a step, and the same of all ranks together.
struct StepInput {
  bool wants_pause = false;    ///< for a checkpoint, an evaluation or a stop
  bool lacks_batches = false;  ///< a stop kept a rank from reading them: no rank takes the step
  int64_t micro_batches = 0;
  int64_t examples = 0;
};

/// How the ranks of a job take a step together (dist { update: SYNC }).
///
/// A step has the gradients of a fixed number of micro-batches, of which each rank runs consecutive ones on the same
/// parameters. They are added in an order that does not depend on the ranks (ranks/micro_batch_sums.h), each part by
/// one rank, and their mean updates the parameters: a table's rows where they lie, dense parameters, of which every
/// rank has a copy, on all ranks alike. So any number of ranks comes to the same bytes. Rows that count shows and
/// clicks are updated by the sum over all examples.
///
/// Costs, a step and rank: what its micro-batches have for other ranks' rows, and twice the dense parameters' bytes.
///
/// Belongs to the one worker of a rank.
class RankStep {
 public:
  /// `frame` is that of program.step; what is given outlives the object. kInvalidConfig for programs whose ranks would
  /// drift apart: operators that write a parameter in the forward part, or read a table's gradient but for its update.
  static Result<std::unique_ptr<RankStep>> Create(const PipelineProgram& program, const Frame& frame, Scope& root,
                                                  const FrameOptions& options, RankGroup& ranks, int micro_batches);

  /// The micro-batches of a step that are this rank's: [first(), first() + count()).
  int first() const { return first_; }
  int count() const { return count_; }

  // A step: Begin, then, where there is a micro-batch and none lacks, Add or AddNothing of each of this rank's, in
  // their order, Exchange, and, where that is ok, Finish. Begin, Exchange and Finish are collectives.

  /// What all ranks have read. The failure of a rank's `read` is everyone's.
  Result<StepInput> Begin(const Status& read, const StepInput& mine);
  /// Takes the gradients that the frame has of a micro-batch of so many examples.
  Status Add(int micro_batch, int examples);
  /// For one that the input has no examples for.
  void AddNothing(int micro_batch);
  /// Exchanges gradients. The failure of a rank's `ran` is everyone's, and nothing is updated then.
  Status Exchange(const Status& ran);
  /// Adds up the gradients of `micro_batches`, and updates. Where a rank cannot add up, its failure is everyone's, and
  /// nothing is updated. No update happens where `ready`, this rank's alone, is a failure; that, or one of
  /// taking what others added up or of an update itself, is in updated(). `first` is the context of the step: for
  /// learning rates.
  Status Finish(const Status& ready, int64_t micro_batches, const RunContext& first);

  /// What this rank's Finish of the last step came to. Others learn of a failure in the next Begin.
  const Status& updated() const { return updated_; }
  const Frame& update() const { return *update_; }

 private:
  enum class Kind : uint8_t { kDense, kMatrixRows, kTableRows };
  struct Gradient {
    std::string name;
    Kind kind = Kind::kDense;
    const Variable* from = nullptr;  ///< of the frame
    Variable* sum = nullptr;         ///< what updates read
    const SparseTable* table = nullptr;
    Dims dims;           ///< of a dense one
    int64_t height = 0;  ///< of a matrix
    uint64_t width = 0;  ///< of rows
    // What this rank's micro-batches have, of all parts; and what all ranks' have, of the part that this rank adds up.
    MicroBatchSums<DenseValues> dense;
    MicroBatchSums<DenseValues> all_dense;
    MicroBatchSums<RowValues> rows;
    MicroBatchSums<RowValues> all_rows;
    std::vector<RowValues> own_rows;  ///< of `rows`, piece by piece, those that this rank adds up

    /// Of rows with an accessor, whose counts and gradients are those of the sum over examples, not of means.
    bool sums_examples() const { return table != nullptr && table->shape().counts; }
  };

  RankStep(const PipelineProgram& program, RankGroup& ranks) : program_(&program), ranks_(&ranks) {}
  Status FindGradients(const Frame& frame, const Scope& root);
  /// Writes for each other rank what it adds up of the gradient.
  void PutPieces(Gradient* gradient, std::vector<WireWriter>* out);
  void PutRowPieces(Gradient* gradient, std::vector<WireWriter>* out);
  /// Adds up this rank's part of what all ranks have.
  Status AddPieces(Gradient* gradient, std::vector<WireReader>* in);
  void AddOwnPieces(Gradient* gradient);
  void AddPiecesOf(Gradient* gradient, WireReader* in);
  /// Writes this rank's part of the mean for the others, and keeps rows of a table.
  void PutPart(Gradient* gradient, int64_t micro_batches, std::string* out);
  Status TakeParts(Gradient* gradient, std::vector<WireReader>* in);
  Status TakeDenseParts(Gradient* gradient, std::vector<WireReader>* in);
  Status TakeMatrixRows(Gradient* gradient, std::vector<WireReader>* in);
  void Clear();
  size_t rank() const { return static_cast<size_t>(ranks_->rank()); }

  const PipelineProgram* program_;
  RankGroup* ranks_;
  int first_ = 0;
  int count_ = 0;
  std::unique_ptr<Scope> sums_;
  std::unique_ptr<Frame> update_;
  std::vector<Gradient> gradients_;
  std::vector<std::string> out_;
  std::vector<std::string> in_;
  std::string part_;                ///< of the mean, for the others
  RowValues sum_;                   ///< of a micro-batch
  std::vector<RowValues> of_rank_;  ///< rows of a piece
  Status updated_;
};

}  // namespace millrace
