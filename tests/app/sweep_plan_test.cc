#include "app/sweep_plan.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "sweep.pb.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TrainerDesc JobOfSweep() {
  TrainerDesc job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "epochs: 9 eval { filelist: 'test' } data_desc { batch_size: 32 }"
      " model { layer { name: 'h' fc { in: 'x' units: 8 } } optimizer { adagrad { lr: 0.1 } } }",
      &job));
  return job;
}

Result<Sweep> Read(const std::string& text) { return ReadSweepText("s.prototxt", text, JobOfSweep()); }
std::string Message(const std::string& text) { return Read(text).status().message(); }

std::vector<std::string> Names(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const SweepTrial& trial : sweep.trials) names.push_back(trial.name);
  return names;
}

TEST(SweepPlan, AGridHasAllCombinations) {
  const Sweep sweep = Read(
                          "field { path: 'model.optimizer.adagrad.lr' value: ['0.1', '1e-2'] }"
                          "field { path: 'model.layer[h].fc.units' value: ['[8]', '[16, 4]'] }")
                          .value();
  EXPECT_THAT(Names(sweep),
              ElementsAre("lr=0.1,units=8", "lr=0.1,units=16_4", "lr=1e-2,units=8", "lr=1e-2,units=16_4"));
  EXPECT_THAT(sweep.trials[3].overrides,
              ElementsAre("model.optimizer.adagrad.lr=1e-2", "model.layer[h].fc.units=[16, 4]"));
}

TEST(SweepPlan, SeedsAloneAreASweep) {
  const Sweep sweep = Read("seeds: [1, 2]").value();
  ASSERT_THAT(sweep.trials, SizeIs(1));
  EXPECT_THAT(sweep.trials[0].overrides, SizeIs(0));
}

TEST(SweepPlan, DrawsComeFromTheirRangesAndAgain) {
  const std::string text =
      "search: RANDOM draws: 200 field { path: 'model.optimizer.adagrad.lr' range { from: 0.001 to: 1 scale: LOG } }"
      "field { path: 'data_desc.batch_size' range { from: 16 to: 64 integer: true } }"
      "field { path: 'seed' range { from: 1 to: 1000 scale: LOG integer: true } }";
  const Sweep sweep = Read(text).value();
  ASSERT_THAT(sweep.trials, SizeIs(200));
  int small = 0;
  std::set<int> sizes;
  for (const SweepTrial& trial : sweep.trials) {
    const double lr = std::stod(trial.overrides[0].substr(trial.overrides[0].find('=') + 1));
    EXPECT_TRUE(lr >= 0.001 && lr <= 1) << lr;
    small += lr < 0.0316 ? 1 : 0;
    sizes.insert(std::stoi(trial.overrides[1].substr(trial.overrides[1].find('=') + 1)));
  }
  EXPECT_TRUE(small > 70 && small < 130) << "half of them are below the middle of the logarithms: " << small;
  EXPECT_GE(*sizes.begin(), 16);
  EXPECT_LE(*sizes.rbegin(), 64);
  EXPECT_THAT(Names(Read(text).value()), testing::ElementsAreArray(Names(sweep)));
  EXPECT_NE(Names(Read(text + " draw_seed: 2").value()), Names(sweep));
}

TEST(SweepPlan, ASeedDrawsTheSameTrialsInEveryVersion) {
  const Sweep sweep = Read(
                          "search: RANDOM draws: 4 draw_seed: 3"
                          " field { path: 'model.optimizer.adagrad.lr' range { from: 0.001 to: 0.1 scale: LOG } }"
                          " field { path: 'data_desc.batch_size' range { from: 16 to: 64 integer: true } }"
                          " field { path: 'epochs' value: ['2', '3'] }")
                          .value();
  EXPECT_THAT(Names(sweep), ElementsAre("lr=0.001267,batch_size=47,epochs=3", "lr=0.04894,batch_size=46,epochs=2",
                                        "lr=0.002293,batch_size=46,epochs=3", "lr=0.001124,batch_size=44,epochs=2"));
}

TEST(SweepPlan, DrawsOfANarrowRangeDifferAndStayInIt) {
  const auto drawn = [](const std::string& range) {
    std::vector<double> values;
    const Sweep sweep =
        Read("search: RANDOM draws: 200 field { path: 'model.optimizer.adagrad.lr' range { " + range + " } }").value();
    for (const SweepTrial& trial : sweep.trials) {
      values.push_back(std::stod(trial.overrides[0].substr(trial.overrides[0].find('=') + 1)));
    }
    return values;
  };
  for (const std::string scale : {"", " scale: LOG"}) {
    const std::vector<double> values = drawn("from: 0.999 to: 0.99999" + scale);
    EXPECT_GT(values.size(), 190U) << "four digits have 11";
    EXPECT_THAT(values, testing::Each(AllOf(testing::Ge(0.999), testing::Le(0.99999))));
  }
  EXPECT_THAT(drawn("from: 0.123456 to: 0.1234561"),
              testing::Each(AllOf(testing::Ge(0.123456), testing::Le(0.1234561))));
  EXPECT_THAT(Message("search: RANDOM field { path: 'seed' range { from: 0.99999 to: 0.999 } }"),
              HasSubstr("not from 0.99999 to 0.999"));
}

TEST(SweepPlan, NoCombinationIsDrawnTwice) {
  const Sweep sweep = Read("search: RANDOM draws: 50 field { path: 'epochs' value: ['1', '2', '3'] }").value();
  EXPECT_THAT(Names(sweep), testing::UnorderedElementsAre("epochs=1", "epochs=2", "epochs=3"));
}

TEST(SweepPlan, NamesThatWouldBeOneAreTold) {
  const Sweep sweep = Read("field { path: 'filelist' value: ['[a/b]', '[a,b]', '[a b]'] }").value();
  const std::vector<std::string> names = Names(sweep);
  EXPECT_EQ(names[0], "filelist=a_b");
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 3U);
  const Sweep lengthy = Read("field { path: 'filelist' value: ['" + std::string(300, 'x') + "'] }").value();
  EXPECT_LT(lengthy.trials[0].name.size(), 140U);
}

TEST(SweepPlan, AllMistakesComeAtTheirPlaces) {
  const std::string message = Message(
      "field { path: 'model.optimizer.adagrad.rate' value: ['1', '2'] }\n"
      "field { path: 'model.layer[h].fc.units' value: ['[8]', '[x]'] }\n"
      "field { path: 'data_desc.batch_size' range { from: 9 to: 1 } }\n"
      "field { path: 'epochs' value: ['1', '1'] }\n"
      "draws: 3 at_once: 0\n");
  EXPECT_THAT(message, AllOf(HasSubstr("s.prototxt:1:15: error: AdagradDesc has no field \"rate\""),
                             HasSubstr("s.prototxt:2:56: error: units takes a whole number"),
                             HasSubstr("s.prototxt:3:58: error: a range goes from a number up to a larger one"),
                             HasSubstr("s.prototxt:3:38: error: a range is drawn from, and a grid has all values"),
                             HasSubstr("s.prototxt:4:37: error: the value 1 is there already"),
                             HasSubstr("s.prototxt:5:8: error: draws is for search: RANDOM")));
  EXPECT_THAT(message, HasSubstr("at_once must be at least 1, not 0"));
}

TEST(SweepPlan, WhatSaysNothingOrTwoThingsIsRefused) {
  EXPECT_THAT(Message(""), HasSubstr("a sweep needs fields"));
  EXPECT_THAT(Message("field { value: '1' }"), HasSubstr("a field needs a path"));
  EXPECT_THAT(Message("field { path: 'epochs' }"), HasSubstr("the field needs values"));
  EXPECT_THAT(Message("field { path: 'epochs=3' value: '1' }"), HasSubstr("without a value"));
  EXPECT_THAT(Message("field { path: 'output.dir' value: 'x' }"), HasSubstr("output.dir is no field of a sweep"));
  EXPECT_THAT(Message("field { path: 'seed' value: '1' } seeds: [2, 3]"), HasSubstr("leave out one of the two"));
  EXPECT_THAT(Message("search: RANDOM field { path: 'epochs' value: '1' range { from: 1 to: 2 } }"),
              HasSubstr("values or a range, not both"));
  EXPECT_THAT(Message("search: RANDOM field { path: 'model.optimizer.adagrad.lr' range { from: 0 to: 2 scale: LOG } }"),
              HasSubstr("a LOG range is of numbers above 0"));
  EXPECT_THAT(Message("search: RANDOM field { path: 'data_desc.batch_size' range { from: 1.5 to: 2 integer: true } }"),
              HasSubstr("begins and ends with one"));
  EXPECT_THAT(Message("search: RANDOM field { path: 'data_desc.batch_size' range { from: 1 to: 20 } }"),
              HasSubstr("batch_size takes a whole number"));
  EXPECT_THAT(Message("search: RANDOM field { path: 'epochs' range { to: 20 } }"), HasSubstr("a range needs from"));
  std::string values = "value: [";
  for (int i = 1; i <= 150; ++i) values += (i > 1 ? ", '" : "'") + std::to_string(i) + "'";
  values += "]";
  EXPECT_THAT(Message("field { path: 'epochs' " + values + "} field { path: 'data_desc.batch_size' " + values + "}"),
              HasSubstr("the grid has more than 10000 combinations"));
}

TEST(SweepPlan, ANumberOfSeedsIsNotTakenForASeed) {
  EXPECT_THAT(Message("metric: 'auc' seeds: 3"),
              AllOf(HasSubstr("s.prototxt:1:22: error: seeds lists them, and does not say how many there are"),
                    HasSubstr("as in seeds: [1, 2, 3]. For the seed 3 alone leave seeds out and say --set seed=3")));
  EXPECT_THAT(Message("seeds: [1]"), HasSubstr("as in seeds: [1, 2]. For the seed 1 alone"));
  EXPECT_THAT(Message("seeds: 1234567"), HasSubstr("as in seeds: [1, 2]. For the seed 1234567 alone"));
}

TEST(SweepPlan, ASeedThatIsThereTwiceIsNoSecondDraw) {
  EXPECT_THAT(Message("seeds: [7, 8,\n 7]"),
              HasSubstr("s.prototxt:2:2: error: the seed 7 is there already: the same training would count twice"));
  EXPECT_THAT(Message("seeds: 7 seeds: 7"), HasSubstr("s.prototxt:1:17: error: the seed 7 is there already"));
  EXPECT_THAT(Message("field { path: 'seed' value: ['7', '8', '0x7'] }"),
              HasSubstr("s.prototxt:1:40: error: the value 0x7 is there already, as 7"));
}

TEST(SweepPlan, AValueThatIsWrittenInTwoWaysIsOneValue) {
  EXPECT_THAT(Message("field { path: 'model.optimizer.adagrad.lr' value: ['0.1', '1e-1', '0.2'] }"),
              HasSubstr("s.prototxt:1:59: error: the value 1e-1 is there already, as 0.1"));
  EXPECT_THAT(Message("field { path: 'model.layer[h].fc.units' value: ['[8, 4]', '[8,4]'] }"),
              HasSubstr("the value [8,4] is there already, as [8, 4]"));
}

TEST(SweepPlan, HalvingWantsEpochsAndAnEvaluation) {
  const std::string fields = "field { path: 'data_desc.batch_size' value: ['1', '2'] } ";
  EXPECT_TRUE(Read(fields + "halving {}").ok());
  EXPECT_THAT(Message(fields + "halving { first_epochs: 9 }"),
              HasSubstr("the first round would be the whole training"));
  EXPECT_THAT(Message("halving {} field { path: 'epochs' value: '3' }"), HasSubstr("leave out one of the two"));
  TrainerDesc job = JobOfSweep();
  job.clear_eval();
  EXPECT_THAT(ReadSweepText("s", fields + "halving {}", job).status().message(), HasSubstr("the job has no eval"));
  job.mutable_incremental();
  EXPECT_THAT(ReadSweepText("s", fields + "halving {}", job).status().message(), HasSubstr("the job has days"));
}

TEST(SweepPlan, RoundsGrow) {
  EXPECT_THAT(HalvingEpochs(1, 3, 9), ElementsAre(1, 3, 9));
  EXPECT_THAT(HalvingEpochs(2, 2, 10), ElementsAre(2, 4, 8, 10));
  EXPECT_THAT(HalvingEpochs(1, 1000, 2'000'000'000), ElementsAre(1, 1000, 1'000'000, 1'000'000'000, 2'000'000'000));
}

}  // namespace
}  // namespace millrace
