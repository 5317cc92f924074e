#include "clickgen/click_log_options.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/numbers.h"

namespace millrace {

Status Validate(const ClickLogOptions& options) {
  std::string mistakes;
  auto require = [&mistakes](bool good, const std::string& what) {
    if (!good) mistakes += (mistakes.empty() ? "" : "\n") + what;
  };
  auto number = [](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) return std::to_string(value);
    return ShortestNumber(static_cast<double>(value));
  };
  require(options.train_rows >= 0 && options.test_rows >= 0 && options.train_rows + options.test_rows > 0,
          "rows and test_rows must not be negative, nor both 0: " + number(options.train_rows) + ", " +
              number(options.test_rows));
  require(options.parts >= 1 && options.parts <= 100000, "parts must be 1 to 100000: " + number(options.parts));
  require(options.threads >= 1 && options.threads <= 1024, "threads must be 1 to 1024: " + number(options.threads));
  require(options.dense >= 0 && options.dense <= 4096, "dense must be 0 to 4096: " + number(options.dense));
  require(options.slots >= 1 && options.slots <= 4096, "slots must be 1 to 4096: " + number(options.slots));
  require(options.vocabulary >= 4 && options.vocabulary <= (uint64_t{1} << 48),
          "vocabulary must be 4 to 2^48: " + number(options.vocabulary));
  require(options.zipf >= 0 && options.zipf <= 5, "zipf must be 0 to 5: " + number(options.zipf));
  require(options.many_valued >= 0 && options.many_valued <= options.slots,
          "many_valued must be 0 to slots: " + number(options.many_valued));
  require(options.max_length >= 1 && options.max_length <= 10000,
          "max_length must be 1 to 10000: " + number(options.max_length));
  require(options.missing >= 0 && options.missing < 1, "missing must be in [0, 1): " + number(options.missing));
  require(options.click_rate > 0 && options.click_rate < 1,
          "click_rate must be between 0 and 1: " + number(options.click_rate));
  require(options.signal >= 0 && options.signal <= 100, "signal must be 0 to 100: " + number(options.signal));
  require(options.fm_slots >= 0 && options.fm_slots <= options.slots,
          "fm_slots must be 0 to slots: " + number(options.fm_slots));
  require(options.fm_dim >= 1 && options.fm_dim <= 64, "fm_dim must be 1 to 64: " + number(options.fm_dim));
  return mistakes.empty() ? Status::Ok() : InvalidConfig(mistakes);
}

std::vector<SlotPlan> PlanSlots(const ClickLogOptions& options) {
  std::vector<SlotPlan> plan(static_cast<size_t>(options.slots));
  const double log_range = std::log(static_cast<double>(options.vocabulary) / 4);
  for (size_t i = 0; i < plan.size(); ++i) {
    plan[i].name = "C" + std::to_string(i + 1);
    // Multiples of the golden ratio fill the range evenly and mix large and small slots.
    const double place = std::fmod(0.6180339887498949 * static_cast<double>(i + 1), 1.0);
    plan[i].vocabulary = static_cast<uint64_t>(std::llround(4 * std::exp(place * log_range)));
  }
  for (int i = 0; i < options.many_valued; ++i) {
    plan[static_cast<size_t>(i) * plan.size() / static_cast<size_t>(options.many_valued)].max_length =
        options.max_length;
  }
  std::vector<size_t> by_size(plan.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&plan](size_t a, size_t b) { return plan[a].vocabulary < plan[b].vocabulary; });
  for (int i = 0; i < options.fm_slots; ++i) plan[by_size[static_cast<size_t>(i)]].in_fm = true;
  return plan;
}

}  // namespace millrace
