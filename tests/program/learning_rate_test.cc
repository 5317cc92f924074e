#include "program/learning_rate.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "model.pb.h"

namespace millrace {
namespace {

LearningRateSchedule ParseSchedule(const std::string& text) {
  LearningRateSchedule schedule;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &schedule)) << text;
  return schedule;
}

struct RateCase {
  const char* schedule;
  int64_t step;
  double rate;  // for base 0.1
};

// The numbers are PyTorch's (torch.optim.lr_scheduler, base 0.1): ExponentialLR and StepLR with the gamma of one step,
// PolynomialLR, MultiStepLR, CosineAnnealingLR, LinearLR for the warm-up.
constexpr RateCase kCases[] = {
    {"", 0, 0.1},
    {"", 1000000, 0.1},
    {"exponential { decay_steps: 10 decay_rate: 0.5 }", 0, 0.1},
    {"exponential { decay_steps: 10 decay_rate: 0.5 }", 5, 0.07071067811865475},
    {"exponential { decay_steps: 10 decay_rate: 0.5 }", 25, 0.01767766952966369},
    {"exponential { decay_steps: 10 decay_rate: 0.5 staircase: true }", 9, 0.1},
    {"exponential { decay_steps: 10 decay_rate: 0.5 staircase: true }", 10, 0.05},
    {"exponential { decay_steps: 10 decay_rate: 0.5 staircase: true }", 25, 0.025},
    {"polynomial { decay_steps: 10 end_rate: 0 power: 2 }", 0, 0.1},
    {"polynomial { decay_steps: 10 end_rate: 0 power: 2 }", 5, 0.025},
    {"polynomial { decay_steps: 10 end_rate: 0 power: 2 }", 10, 0},
    {"polynomial { decay_steps: 10 end_rate: 0 power: 2 }", 99, 0},
    {"polynomial { decay_steps: 10 end_rate: 0.02 }", 5, 0.06},
    {"piecewise { boundaries: 3 boundaries: 6 rates: 0.1 rates: 0.01 rates: 0.001 }", 2, 0.1},
    {"piecewise { boundaries: 3 boundaries: 6 rates: 0.1 rates: 0.01 rates: 0.001 }", 3, 0.01},
    {"piecewise { boundaries: 3 boundaries: 6 rates: 0.1 rates: 0.01 rates: 0.001 }", 6, 0.001},
    {"cosine { decay_steps: 10 }", 0, 0.1},
    {"cosine { decay_steps: 10 }", 3, 0.07938926261462367},
    {"cosine { decay_steps: 10 end_rate: 0.01 }", 5, 0.055},
    {"cosine { decay_steps: 10 end_rate: 0.01 }", 99, 0.01},
    // Paddle 2.6's NaturalExpDecay, InverseTimeDecay, NoamDecay, PolynomialDecay, LinearWarmup; fluid's cosine_decay.
    {"natural_exponential { decay_steps: 10 decay_rate: 0.5 }", 5, 0.0778800783071405},
    {"natural_exponential { decay_steps: 10 decay_rate: 0.5 }", 25, 0.028650479686019012},
    {"natural_exponential { decay_steps: 10 decay_rate: 0.5 staircase: true }", 9, 0.1},
    {"inverse_time { decay_steps: 10 decay_rate: 0.5 }", 5, 0.08},
    {"inverse_time { decay_steps: 10 decay_rate: 0.5 }", 25, 0.044444444444444446},
    {"inverse_time { decay_steps: 10 decay_rate: 0.5 staircase: true }", 29, 0.05},
    {"noam { d_model: 16 warmup_steps: 4 }", 0, 0.003125},
    {"noam { d_model: 16 warmup_steps: 4 }", 3, 0.0125},
    {"noam { d_model: 16 warmup_steps: 4 }", 8, 0.008333333333333333},
    {"polynomial { decay_steps: 10 end_rate: 0.02 cycle: true }", 0, 0.1},
    {"polynomial { decay_steps: 10 end_rate: 0.02 cycle: true }", 10, 0.02},
    {"polynomial { decay_steps: 10 end_rate: 0.02 cycle: true }", 11, 0.056},
    {"polynomial { decay_steps: 10 end_rate: 0.02 cycle: true }", 25, 0.033333333333333333},
    {"cosine { decay_steps: 50 stair_steps: 10 }", 29, 0.06545084971874737},
    {"linear_warmup { steps: 4 start_rate: 0.01 end_rate: 0.05 }", 0, 0.01},
    {"linear_warmup { steps: 4 start_rate: 0.01 end_rate: 0.05 }", 3, 0.04},
    {"linear_warmup { steps: 4 start_rate: 0.01 end_rate: 0.05 }", 4, 0.1},
    {"linear_warmup { steps: 4 start_rate: 0 end_rate: 0.1 } exponential { decay_steps: 10 decay_rate: 0.5 }", 5,
     0.07071067811865475},
    {"warmup_steps: 4", 0, 0.025},
    {"warmup_steps: 4", 3, 0.1},
    {"warmup_steps: 4", 4, 0.1},
    {"warmup_steps: 4 exponential { decay_steps: 10 decay_rate: 0.5 }", 4, 0.1},
    {"warmup_steps: 4 exponential { decay_steps: 10 decay_rate: 0.5 }", 14, 0.05},
};

TEST(LearningRateTest, EqualsTheFormulas) {
  for (const RateCase& c : kCases) {
    EXPECT_NEAR(LearningRateAt(ParseSchedule(c.schedule), 0.1, c.step), c.rate, 1e-8)
        << c.schedule << " step " << c.step;
    EXPECT_TRUE(ValidateSchedule(ParseSchedule(c.schedule)).ok()) << c.schedule;
  }
}

TEST(LearningRateTest, ReportsEveryMistake) {
  EXPECT_EQ(ValidateSchedule(ParseSchedule("warmup_steps: -1 exponential { decay_steps: 0 decay_rate: -1 }")).message(),
            "warmup_steps must be at least 0, not -1\n"
            "exponential: decay_steps must be at least 1, not 0\n"
            "exponential: decay_rate must be above 0, not -1");
  EXPECT_EQ(ValidateSchedule(ParseSchedule("piecewise { boundaries: 6 boundaries: 3 rates: 0.1 rates: -1 }")).message(),
            "piecewise needs one rate more than boundaries; it has 2 rates and 2 boundaries\n"
            "boundaries rise from 1 on; 3 follows 6\n"
            "piecewise: rates must not be negative, not -1");
}

}  // namespace
}  // namespace millrace
