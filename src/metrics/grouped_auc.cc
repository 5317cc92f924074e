#include <limits>

#include "metrics/group_sample.h"

namespace millrace {
namespace {

/// Counts for one group, added by ascending prediction.
struct GroupPairs {
  double negatives = 0;
  double positives = 0;
  double ordered = 0;  ///< pairs with the positive above the negative; ties count half

  void AddTied(double tied_negatives, double tied_positives) {
    ordered += tied_positives * (negatives + tied_negatives / 2);
    negatives += tied_negatives;
    positives += tied_positives;
  }
};

}  // namespace

double GroupedAuc(GroupSample& sample) {
  sample.Sort();
  double weighted = 0;
  double weight = 0;
  const auto end = sample.rows().end();
  for (auto row = sample.rows().begin(); row != end;) {
    const uint64_t group = row->group;
    GroupPairs pairs;
    while (row != end && row->group == group) {
      const float prediction = row->prediction;
      double tied_negatives = 0;
      double tied_positives = 0;
      for (; row != end && row->group == group && row->prediction == prediction; ++row) {
        const auto counts = static_cast<double>(row->weight);
        if (counts > 0) {
          tied_positives += counts;
        } else {
          tied_negatives += counts == 0 ? 1 : -counts;
        }
      }
      pairs.AddTied(tied_negatives, tied_positives);
    }
    if (pairs.negatives <= 0 || pairs.positives <= 0) continue;
    const double size = pairs.negatives + pairs.positives;
    weighted += pairs.ordered / (pairs.negatives * pairs.positives) * size;
    weight += size;
  }
  return weight > 0 ? weighted / weight : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace millrace
