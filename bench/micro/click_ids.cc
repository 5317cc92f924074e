#include "micro/click_ids.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace millrace {

const std::vector<int64_t>& ClickVocabularies() {
  static const std::vector<int64_t> vocabularies = {1500,  600,  300000, 120000, 300, 24,    12000,  640,  3,
                                                    60000, 5600, 260000, 3200,   27,  12000, 160000, 10,   5000,
                                                    2000,  4,    200000, 18,     16,  80000, 100,    60000};
  return vocabularies;
}

std::vector<ClickIds> MakeClickIds(int count, int rows) {
  constexpr double kZipf = 1.05;
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> draw(0, 1);
  const std::vector<int64_t>& vocabularies = ClickVocabularies();
  std::vector<ClickIds> batches(static_cast<size_t>(count));
  for (ClickIds& batch : batches) {
    batch.ids.resize(vocabularies.size());
    batch.offsets.assign(vocabularies.size(), {0});
  }
  for (size_t slot = 0; slot < vocabularies.size(); ++slot) {
    const auto rows_of_slot = static_cast<size_t>(vocabularies[slot]);
    std::vector<double> mass(rows_of_slot);
    for (size_t i = 0; i < mass.size(); ++i) mass[i] = std::pow(static_cast<double>(i + 1), -kZipf);
    std::partial_sum(mass.begin(), mass.end(), mass.begin());
    std::vector<uint64_t> id_of_rank(rows_of_slot);
    std::iota(id_of_rank.begin(), id_of_rank.end(), 0);
    std::shuffle(id_of_rank.begin(), id_of_rank.end(), rng);
    const uint64_t longest = slot == 6 || slot == 12 || slot == 23 ? 10 : slot == 17 ? 5 : 1;
    for (ClickIds& batch : batches) {
      for (int row = 0; row < rows; ++row) {
        for (uint64_t i = 1 + rng() % longest; i > 0; --i) {
          const auto at = std::upper_bound(mass.begin(), mass.end(), draw(rng) * mass.back()) - mass.begin();
          batch.ids[slot].push_back(id_of_rank[std::min<size_t>(static_cast<size_t>(at), rows_of_slot - 1)]);
        }
        batch.offsets[slot].push_back(static_cast<uint32_t>(batch.ids[slot].size()));
      }
    }
  }
  return batches;
}

}  // namespace millrace
