#include "clickgen/row_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "clickgen/keyed_random.h"

namespace millrace {
namespace {

constexpr double kMeanCount = 20;
constexpr double kMeanFeature = 2.6;  // of log(1 + count), about
constexpr int kCalibrationRows = 20000;

// What a key is for, so that no two uses meet.
enum Purpose : uint64_t { kRow = 1, kWeight, kFmWeight, kDenseWeight, kId, kCalibration };

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A number near golden * vocabulary without a common divisor, so that multiples of it visit every id.
uint64_t CoprimeMultiplier(uint64_t vocabulary) {
  auto multiplier = static_cast<uint64_t>(0.6180339887498949 * static_cast<double>(vocabulary)) | 1;
  while (std::gcd(multiplier, vocabulary) != 1) multiplier += 2;
  return multiplier;
}

}  // namespace

RowSampler::RowSampler(const ClickLogOptions& options) : options_(options), slots_(PlanSlots(options)) {
  for (const SlotPlan& slot : slots_) {
    draws_.push_back({Zipf(slot.vocabulary, options_.zipf), CoprimeMultiplier(slot.vocabulary)});
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

double RowSampler::DrawFeatures(Rng& random, ClickRow* row) const {
  row->dense.clear();
  row->ids.clear();
  row->ends.clear();
  double logit = 0;
  for (double weight : dense_weights_) {
    const int count = static_cast<int>(std::min(-std::log(1 - random.Uniform()) * kMeanCount, 9999.0));
    const bool missing = random.Uniform() < options_.missing;
    row->dense.push_back(missing ? -1 : count);
    logit += weight * (std::log1p(missing ? 0 : count) - kMeanFeature);
  }
  std::vector<double> fm_sum(static_cast<size_t>(options_.fm_dim));
  double fm_squares = 0;
  for (size_t slot = 0; slot < slots_.size(); ++slot) logit += DrawSlot(slot, random, row, &fm_sum, &fm_squares);
  double fm = -fm_squares;
  for (double sum : fm_sum) fm += sum * sum;
  return options_.signal * (logit + 0.15 * 0.5 * fm);
}

double RowSampler::DrawSlot(size_t slot, Rng& random, ClickRow* row, std::vector<double>* fm_sum,
                            double* fm_squares) const {
  const SlotPlan& plan = slots_[slot];
  double weight = 0;
  double vector[64] = {};
  if (random.Uniform() >= options_.missing) {
    const auto length = 1 + random.Below(static_cast<uint64_t>(plan.max_length));
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t rank = draws_[slot].rank.Draw(random);
      row->ids.push_back(IdOf(slot, rank));
      const double rarity = std::sqrt(1 + static_cast<double>(rank) / 200);
      weight += KeyedNormal(KeyedBits(options_.seed, kWeight, slot, rank)) / rarity;
      for (size_t d = 0; plan.in_fm && d < fm_sum->size(); ++d) {
        vector[d] += KeyedNormal(KeyedBits(options_.seed, kFmWeight, slot, rank, d));
      }
    }
    weight /= static_cast<double>(length);
    for (size_t d = 0; plan.in_fm && d < fm_sum->size(); ++d) {
      const double mean = vector[d] / static_cast<double>(length);
      (*fm_sum)[d] += mean;
      *fm_squares += mean * mean;
    }
  }
  row->ends.push_back(static_cast<uint32_t>(row->ids.size()));
  return 0.3 * weight;
}

uint64_t RowSampler::IdOf(size_t slot, uint64_t rank) const {
  __extension__ using Wide = unsigned __int128;
  const uint64_t vocabulary = slots_[slot].vocabulary;
  const auto local = static_cast<uint64_t>(static_cast<Wide>(rank) * draws_[slot].multiplier % vocabulary) + 1;
  if (options_.ids == ClickLogOptions::Ids::kLocal) return local;
  return std::max<uint64_t>(KeyedBits(options_.seed, kId, slot, local), 1);
}

}  // namespace millrace
