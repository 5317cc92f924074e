#include <algorithm>
#include <limits>
#include <tuple>

#include "metrics/group_sample.h"

namespace millrace {
namespace {

/// Counts of one group's rows, fed in rising order of the prediction.
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

double GroupedAuc(const GroupSample& sample) {
  std::vector<GroupedRow> rows(sample.rows().begin(), sample.rows().end());
  std::sort(rows.begin(), rows.end(), [](const GroupedRow& a, const GroupedRow& b) {
    return std::tie(a.group, a.prediction) < std::tie(b.group, b.prediction);
  });
  double weighted = 0;
  double weight = 0;
  for (size_t i = 0; i < rows.size();) {
    const uint64_t group = rows[i].group;
    GroupPairs pairs;
    while (i < rows.size() && rows[i].group == group) {
      const float prediction = rows[i].prediction;
      double tied_negatives = 0;
      double tied_positives = 0;
      for (; i < rows.size() && rows[i].group == group && rows[i].prediction == prediction; ++i) {
        (rows[i].label > 0.5f ? tied_positives : tied_negatives) += 1;
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
