#include "clickgen/row_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "clickgen/keyed_random.h"

namespace millrace {
namespace {

constexpr double kMeanCount = 20;
constexpr double kMeanFeature = 2.6;  // approximate mean of log(1 + count)
constexpr int kMostCount = 9999;
constexpr int kCountCells = 4096;
constexpr uint64_t kFrequentRanks = 1024;
constexpr int kCalibrationRows = 20000;

// The purpose of a key, so that different uses never collide.
enum Purpose : uint64_t { kRow = 1, kWeight, kFmWeight, kDenseWeight, kId, kCalibration };

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double CountOf(double uniform) { return -std::log(1 - uniform) * kMeanCount; }

// A number near golden * vocabulary that is coprime with it, so its multiples visit every id.
uint64_t CoprimeMultiplier(uint64_t vocabulary) {
  auto multiplier = static_cast<uint64_t>(0.6180339887498949 * static_cast<double>(vocabulary)) | 1;
  while (std::gcd(multiplier, vocabulary) != 1) multiplier += 2;
  return multiplier;
}

}  // namespace

RowSampler::RowSampler(const ClickLogOptions& options) : options_(options), slots_(PlanSlots(options)) {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const uint64_t vocabulary = slots_[slot].vocabulary;
    draws_.push_back({Zipf(vocabulary, options_.zipf),
                      CoprimeMultiplier(vocabulary),
                      KeyedBits(options_.seed, kWeight, slot),
                      KeyedBits(options_.seed, kFmWeight, slot),
                      {},
                      {}});
    Slot& drawn = draws_.back();
    for (uint64_t rank = 0; rank < std::min(vocabulary, kFrequentRanks); ++rank) {
      drawn.frequent.push_back(DrawnOf(slot, rank));
      for (int d = 0; slots_[slot].in_fm && d < options_.fm_dim; ++d) {
        drawn.frequent_fm.push_back(FmWeight(slot, rank, static_cast<size_t>(d)));
      }
    }
  }
  for (int count = 0; count <= kMostCount; ++count) features_.push_back(std::log1p(count));
  for (int i = 0; i < kCountCells; ++i) {
    constexpr double kDoubt = 1e-9;  // larger than rounding errors
    const double least = std::floor(CountOf(static_cast<double>(i) / kCountCells) - kDoubt);
    const double most = std::floor(CountOf(static_cast<double>(i + 1) / kCountCells) + kDoubt);
    count_of_cell_.push_back(least == most ? static_cast<int>(least) : -1);
  }
  for (int i = 0; i < options_.dense; ++i) {
    dense_weights_.push_back(0.25 * KeyedNormal(KeyedBits(options_.seed, kDenseWeight, i)));
  }
  std::vector<double> logits;
  ClickRow row;
  for (int i = 0; i < kCalibrationRows; ++i) {
    Rng random(KeyedBits(options_.seed, kCalibration, i));
    logits.push_back(DrawFeatures(random, &row));
  }
  double low = -100;
  double high = 100;
  for (int i = 0; i < 60; ++i) {
    bias_ = (low + high) / 2;
    double mean = 0;
    for (double logit : logits) mean += Sigmoid(logit + bias_);
    (mean / kCalibrationRows < options_.click_rate ? low : high) = bias_;
  }
}

void RowSampler::Sample(int split, int64_t number, ClickRow* row) const {
  Rng random(KeyedBits(options_.seed, kRow, split, number));
  row->probability = Sigmoid(bias_ + DrawFeatures(random, row));
  row->clicked = random.Uniform() < row->probability;
}

int RowSampler::DrawCount(Rng& random) const {
  const double uniform = random.Uniform();
  const int count = count_of_cell_[static_cast<size_t>(uniform * kCountCells)];
  return count >= 0 ? count : static_cast<int>(std::min<double>(CountOf(uniform), kMostCount));
}

double RowSampler::DrawFeatures(Rng& random, ClickRow* row) const {
  row->dense.clear();
  row->ids.clear();
  row->ends.clear();
  double logit = 0;
  for (double weight : dense_weights_) {
    const int count = DrawCount(random);
    const bool missing = random.Uniform() < options_.missing;
    row->dense.push_back(missing ? -1 : count);
    logit += weight * (features_[missing ? 0 : static_cast<size_t>(count)] - kMeanFeature);
  }
  FmSums sums{};
  for (size_t slot = 0; slot < slots_.size(); ++slot) logit += DrawSlot(slot, random, row, &sums);
  double fm = -sums.squares;
  for (int d = 0; d < options_.fm_dim; ++d) fm += sums.mean[d] * sums.mean[d];
  return options_.signal * (logit + 0.15 * 0.5 * fm);
}

double RowSampler::DrawSlot(size_t slot, Rng& random, ClickRow* row, FmSums* fm) const {
  const SlotPlan& plan = slots_[slot];
  const Slot& draws = draws_[slot];
  const size_t fm_dim = plan.in_fm ? static_cast<size_t>(options_.fm_dim) : 0;
  double weight = 0;
  if (random.Uniform() >= options_.missing) {
    const auto length = 1 + random.Below(static_cast<uint64_t>(plan.max_length));
    double vector[64];
    std::fill_n(vector, fm_dim, 0.0);
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t rank = draws.rank.Draw(random);
      const bool is_frequent = rank < draws.frequent.size();
      const Drawn drawn = is_frequent ? draws.frequent[rank] : DrawnOf(slot, rank);
      row->ids.push_back(drawn.id);
      weight += drawn.weight;
      for (size_t d = 0; d < fm_dim; ++d) {
        vector[d] += is_frequent ? draws.frequent_fm[rank * fm_dim + d] : FmWeight(slot, rank, d);
      }
    }
    weight /= static_cast<double>(length);
    for (size_t d = 0; d < fm_dim; ++d) {
      const double mean = vector[d] / static_cast<double>(length);
      fm->mean[d] += mean;
      fm->squares += mean * mean;
    }
  }
  row->ends.push_back(static_cast<uint32_t>(row->ids.size()));
  return 0.3 * weight;
}

RowSampler::Drawn RowSampler::DrawnOf(size_t slot, uint64_t rank) const {
  const double rarity = std::sqrt(1 + static_cast<double>(rank) / 200);
  return {IdOf(slot, rank), KeyedNormal(KeyedBits(draws_[slot].weight_key, rank)) / rarity};
}

double RowSampler::FmWeight(size_t slot, uint64_t rank, size_t d) const {
  return KeyedNormal(KeyedBits(draws_[slot].fm_key, rank, d));
}

uint64_t RowSampler::IdOf(size_t slot, uint64_t rank) const {
  __extension__ using Wide = unsigned __int128;
  const uint64_t vocabulary = slots_[slot].vocabulary;
  const uint64_t multiplier = draws_[slot].multiplier;
  const uint64_t local =
      1 + (vocabulary <= UINT32_MAX ? rank * multiplier % vocabulary
                                    : static_cast<uint64_t>(static_cast<Wide>(rank) * multiplier % vocabulary));
  if (options_.ids == ClickLogOptions::Ids::kLocal) return local;
  return std::max<uint64_t>(KeyedBits(options_.seed, kId, slot, local), 1);
}

}  // namespace millrace
