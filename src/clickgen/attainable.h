#pragma once

#include <cstdint>
#include <vector>

namespace millrace {

/// Measures how well the true probabilities predict the labels drawn from them: no model can do better except by
/// chance. Counts labels in 2^20 buckets of the probability, so memory does not grow with the log; rows of one bucket
/// count as ties, which changes the AUC by less than 1e-6. One thread.
class Attainable {
 public:
  static constexpr int kBuckets = 1 << 20;

  Attainable() : clicked_(kBuckets), ignored_(kBuckets) {}

  void Add(double probability, bool clicked);

  int64_t rows() const { return rows_; }
  int64_t clicks() const { return clicks_; }
  double click_rate() const { return rows_ == 0 ? 0 : static_cast<double>(clicks_) / static_cast<double>(rows_); }
  /// Probability that a clicked row has a higher probability than an unclicked one, ties counted half; 0.5 if all
  /// labels are equal.
  double Auc() const;
  double LogLoss() const { return rows_ == 0 ? 0 : log_loss_sum_ / static_cast<double>(rows_); }

 private:
  std::vector<int64_t> clicked_;
  std::vector<int64_t> ignored_;
  int64_t rows_ = 0;
  int64_t clicks_ = 0;
  double log_loss_sum_ = 0;
};

}  // namespace millrace
