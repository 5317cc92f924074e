#include "clickgen/attainable.h"

#include <algorithm>
#include <cmath>

namespace millrace {

void Attainable::Add(double probability, bool clicked) {
  const auto bucket = std::min<size_t>(static_cast<size_t>(probability * kBuckets), kBuckets - 1);
  ++(clicked ? clicked_ : ignored_)[bucket];
  ++rows_;
  clicks_ += clicked ? 1 : 0;
  log_loss_sum_ -= clicked ? std::log(probability) : std::log1p(-probability);
}

double Attainable::Auc() const {
  const int64_t ignored = rows_ - clicks_;
  if (clicks_ == 0 || ignored == 0) return 0.5;
  double pairs_won = 0;
  int64_t below = 0;
  for (size_t i = 0; i < clicked_.size(); ++i) {
    pairs_won +=
        static_cast<double>(clicked_[i]) * (static_cast<double>(below) + 0.5 * static_cast<double>(ignored_[i]));
    below += ignored_[i];
  }
  return pairs_won / static_cast<double>(clicks_) / static_cast<double>(ignored);
}

}  // namespace millrace
