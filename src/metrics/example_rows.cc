#include "metrics/example_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <tuple>

namespace millrace {
namespace {

// Replaces the number of examples.
constexpr uint64_t kTooMany = std::numeric_limits<uint64_t>::max();

bool ComesBefore(const ExampleRow& a, const ExampleRow& b) {
  return std::tie(a.prediction, a.label, a.weight) < std::tie(b.prediction, b.label, b.weight);
}

}  // namespace

bool ExampleRows::HasRoomFor(size_t more) {
  if (!is_whole_) return false;
  if (more <= most_ - rows_.size()) return true;
  is_whole_ = false;
  rows_ = {};
  return false;
}

void ExampleRows::Add(const MetricRows& rows) {
  if (!HasRoomFor(rows.predictions.size())) return;
  for (size_t i = 0; i < rows.predictions.size(); ++i) {
    rows_.push_back({rows.predictions[i], rows.labels[i], rows.WeightOf(i)});
  }
}

void ExampleRows::Merge(const ExampleRows& other) {
  const bool fits = HasRoomFor(other.is_whole_ ? other.rows_.size() : std::numeric_limits<size_t>::max());
  if (fits) rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
}

std::span<const ExampleRow> ExampleRows::Sorted() {
  if (!std::is_sorted(rows_.begin(), rows_.end(), ComesBefore)) std::sort(rows_.begin(), rows_.end(), ComesBefore);
  return rows_;
}

void ExampleRows::Write(std::ostream& out) const {
  const uint64_t count = is_whole_ ? rows_.size() : kTooMany;
  out.write(reinterpret_cast<const char*>(&count), sizeof(count));
  out.write(reinterpret_cast<const char*>(rows_.data()),
            static_cast<std::streamsize>(rows_.size() * sizeof(ExampleRow)));
}

bool ExampleRows::TakeBytes(std::string_view* bytes) {
  uint64_t count = 0;
  if (bytes->size() < sizeof(count)) return false;
  std::memcpy(&count, bytes->data(), sizeof(count));
  bytes->remove_prefix(sizeof(count));
  if (count == kTooMany) {
    HasRoomFor(std::numeric_limits<size_t>::max());
    return true;
  }
  if (count > bytes->size() / sizeof(ExampleRow)) return false;
  const size_t size = count * sizeof(ExampleRow);
  if (HasRoomFor(count)) {
    rows_.resize(count);
    if (count > 0) std::memcpy(rows_.data(), bytes->data(), size);
  }
  bytes->remove_prefix(size);
  return true;
}

double ExactAuc(std::span<const ExampleRow> sorted) {
  double negatives = 0;
  double positives = 0;
  double ordered_pairs = 0;
  for (size_t i = 0; i < sorted.size();) {
    const float prediction = sorted[i].prediction;
    double tied_negatives = 0;
    double tied_positives = 0;
    for (; i < sorted.size() && sorted[i].prediction == prediction; ++i) {
      (sorted[i].label > 0.5F ? tied_positives : tied_negatives) += static_cast<double>(sorted[i].weight);
    }
    ordered_pairs += tied_positives * (negatives + tied_negatives / 2);
    negatives += tied_negatives;
    positives += tied_positives;
  }
  if (negatives <= 0 || positives <= 0) return std::numeric_limits<double>::quiet_NaN();
  return ordered_pairs / (negatives * positives);
}

}  // namespace millrace
