#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "table/ctr_rule.h"
#include "table/row_initializer.h"
#include "table/row_policy.h"

namespace millrace {

class TableDesc;

/// Rows that count shows and clicks: TableDesc.accessor, Paddle's CtrCommonAccessor (ps/table/ctr_accessor.cc of 2.6).
///
///     weights: show | click | embed | embedx[D]
///     state:   unseen_days | delta_score | embedx_from | state of embed's rule | state of embedx's rule
///
/// The first two columns of a push are the batch's shows and clicks, as in the gradient of the operator cvm; gradients
/// follow. embedx is zero and does not learn until the row's score reaches embedx_threshold. That push creates embedx,
/// uniform by its rule's initial_range. embedx_from is an integer in [1, 2^24] derived only from the key, which seeds
/// embedx; 0 means embedx exists. A key without a row shows zeros. Paddle's slot is not stored.
class CtrRows final : public RowPolicy {
 public:
  static constexpr int kShow = 0;
  static constexpr int kClick = 1;
  static constexpr int kEmbed = 2;
  static constexpr int kEmbedx = 3;
  static constexpr int kCounters = 3;       ///< floats of state before that of the rules
  static constexpr int kMostEmbedx = 1024;  ///< limit of the schema

  /// Fails with kInvalidConfig, starting with the accessor's field, for an invalid setting.
  static Result<std::unique_ptr<CtrRows>> Create(const TableDesc& desc, uint64_t seed);

  void Start(uint64_t key, float* row) const override;
  void StartState(uint64_t key, float* row) const override;
  void ShowUnknown(uint64_t key, float* weights) const override;
  /// Fails with kBadData for a push without a show, because gradients are divided by shows.
  Status Check(std::span<const float> gradients) const override;
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override;
  bool IsIn(TableContent content, const float* row) const override;
  std::string Describe() const override;

  /// Resets the row's score after a save of kBase or kDelta that contained it.
  void WasSaved(float* row) const { row[delta_score()] = 0; }
  /// Ages a row by a day: decays its counts. Returns true if it must be deleted, otherwise adds an unseen day.
  bool Ages(float* row) const;
  bool HasEmbedx(const float* row) const { return row[embedx_from()] == 0; }

  /// Appends the numbers of a row as Paddle's servers write them after key and slot: unseen_days, delta_score, show,
  /// click, embed and its state, and, if embedx exists, embedx and its state.
  void AppendNumbers(const float* row, std::vector<float>* numbers) const;
  /// Creates a row from such numbers; false if their count is wrong.
  bool TakeNumbers(uint64_t key, std::span<const float> numbers, float* row) const;
  /// Counts of these numbers without and with embedx.
  size_t least_numbers() const { return 2 + kEmbedx + embed_->state_floats(); }
  size_t most_numbers() const { return least_numbers() + embedx_dim() + embedx_->state_floats(); }
  /// How many of them must be finite. Without embedx weights, its state can be NaN, because servers write it anyway.
  size_t finite_numbers() const { return embedx_dim() == 0 ? least_numbers() : most_numbers(); }

 private:
  struct Worth {
    float nonclk = 0;
    float click = 0;
    float Of(float show, float clicks) const { return (show - clicks) * nonclk + clicks * click; }
  };
  CtrRows(const TableDesc& desc, std::unique_ptr<CtrRule> embed, std::unique_ptr<CtrRule> embedx,
          const RowInitializer& start_embed, const RowInitializer& start_embedx);

  size_t embedx_dim() const { return static_cast<size_t>(dim() - kEmbedx); }
  // Offsets of the state's parts in a row.
  size_t unseen_days() const { return static_cast<size_t>(dim()); }
  size_t delta_score() const { return unseen_days() + 1; }
  size_t embedx_from() const { return unseen_days() + 2; }
  size_t embed_state() const { return unseen_days() + 3; }
  size_t embedx_state() const { return embed_state() + embed_->state_floats(); }
  void UpdateOne(float examples, const float* gradient, float* row) const;

  std::string name_;  ///< table name
  std::unique_ptr<CtrRule> embed_;
  std::unique_ptr<CtrRule> embedx_;
  RowInitializer start_embed_;
  RowInitializer start_embedx_;
  Worth worth_;
  float embedx_threshold_;
  float decay_;
  float delete_threshold_;
  float delete_after_days_;
  float base_threshold_;
  float delta_threshold_;
  float delta_keep_days_;
  bool show_scale_;
  bool zero_init_;
};

}  // namespace millrace
