// Jobs whose features make slots of CSV: statistics, resume, ranks, and the model that they leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/file.h"
#include "core/rng.h"
#include "e2e/killed_job.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

/// A folder with CSV files, whose columns are in another order in each, and a job on them.
class CsvJob {
 public:
  explicit CsvJob(int rows) {
    Rng rng(42);
    std::string parts[2] = {"click,age,country,genres\n", "genres,country,extra,age,click\n"};
    for (int i = 0; i < rows; ++i) {
      const std::string click = std::to_string(rng.Below(2));
      const std::string age = rng.Below(10) == 0 ? "" : std::to_string(18 + rng.Below(60));
      const std::string country = "\"land, " + std::to_string(rng.Below(30)) + "\"";
      const std::string genres = "g" + std::to_string(rng.Below(5)) + "|g" + std::to_string(rng.Below(5));
      if (i % 2 == 0) parts[0] += click + "," + age + "," + country + "," + genres + "\n";
      if (i % 2 == 1) parts[1] += genres + "," + country + ",x," + age + "," + click + "\n";
    }
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(WriteFileAtomically(File(i), parts[i]).ok());
  }

  std::string folder() const { return folder_.path(); }
  std::string File(int i) const { return folder_.path() + "/part-" + std::to_string(i) + ".csv"; }

  std::string Job(const std::string& extra, const std::string& of_feed = "") const {
    const std::string text = R"(
        class_name: "MultiTrainer" device_worker_name: "HogwildWorker" thread_num: 1
        filelist: ")" + folder_.path() +
                             R"(/part-*"
        data_desc {
          name: "csv" batch_size: 16 )" +
                             of_feed + R"(
          feature { name: "label" from: "click" id {} is_dense: true }
          feature { name: "age" default_from: MEDIAN standardize {} }
          feature { name: "band" from: "age" bucketize { quantiles: 4 } is_used: false }
          feature { name: "country" vocabulary { min_count: 2 } hash {} }
          feature { name: "genres" split {} hash {} }
          feature { name: "x" from: "country" of: "band" cross {} }
        }
        model {
          table { name: "t" dim: 2 init { uniform: 0.1 } optimizer { adagrad { lr: 0.1 } } }
          layer { name: "e" embedding { slots: ["country", "genres", "x"] table: "t" } }
          layer { name: "y" fc { in: ["e", "age"] units: 1 } }
          loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" }
          metric { kind: AUC } metric { kind: LOGLOSS }
          optimizer { sgd { lr: 0.1 } }
        }
        eval { filelist: ")" +
                             File(1) + R"(" }
        )" + extra;
    const std::string path = folder_.path() + "/job" + std::to_string(std::hash<std::string>()(text)) + ".prototxt";
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }

 private:
  TempDir folder_ = TempDir::Create("millrace_features").value();
};

TEST(FeaturesJob, KilledOrNotTrainsTheSameModel) {
  const CsvJob csv(600);
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    const std::string job =
        csv.Job("update_mode: SERIAL epochs: 2 checkpoint { every_steps: 5 } dataset { class_name: \"" + dataset +
                "\" } output { tensorboard: false }");
    const std::string expected = csv.folder() + "/whole" + dataset;
    const std::string killed = csv.folder() + "/killed" + dataset;
    TrainToTheEnd(job, expected);
    TrainKilled(job, killed, 3, 20);
    EXPECT_EQ(ParametersOf(killed + "/model"), ParametersOf(expected + "/model")) << dataset;
    EXPECT_EQ(ReadFile(killed + "/metrics.jsonl").value(), ReadFile(expected + "/metrics.jsonl").value()) << dataset;
  }
}

// Such a training went well, and every value was an unknown word.
TEST(FeaturesJob, AVocabularyOfWhichNoRowHasAWordIsToldOnce) {
  const CsvJob csv(40);
  const std::string words = csv.folder() + "/words.txt";
  const auto errors = [&](const std::string& dataset) {
    Process trainer("trainer", {"--trainer_desc=" + csv.Job("epochs: 2 dataset { class_name: \"" + dataset + "\" }"),
                                "--output_dir=" + csv.folder() + "/out" + dataset,
                                "--set=data_desc.feature[country].vocabulary={ file: \"" + words + "\" }"});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    std::filesystem::remove_all(csv.folder() + "/out" + dataset);
    return trainer.errors();
  };
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    ASSERT_TRUE(WriteFileAtomically(words, "LAND, 1\nLAND, 2\n").ok());
    EXPECT_THAT(errors(dataset),
                HasSubstr("warning: feature \"country\": no value in the data is in its vocabulary; the first one is "
                          "\"land, "));
    std::string all;
    for (int i = 0; i < 30; ++i) all += "\"land, " + std::to_string(i) + "\"\n";
    ASSERT_TRUE(WriteFileAtomically(words, "\xEF\xBB\xBF" + all).ok());
    EXPECT_THAT(errors(dataset), testing::Not(HasSubstr("vocabulary")));
  }
}

TEST(FeaturesJob, ALabelThatIsNotDenseIsToldWhatItsFeatureLacks) {
  const CsvJob csv(10);
  const auto errors = [&](const std::string& set) {
    Process trainer("trainer", {"--trainer_desc=" + csv.Job("epochs: 1"), "--validate_only", "--set=" + set});
    EXPECT_EQ(trainer.Wait(), 2);
    return trainer.errors();
  };
  const std::string label = errors("data_desc.feature[label].is_dense=false");
  EXPECT_THAT(label, HasSubstr("must have one value an example; say is_dense: true in feature { name: \"label\" }"));
  EXPECT_THAT(label, testing::Not(HasSubstr("shape")));
  EXPECT_THAT(errors("data_desc.feature[label].from=[click, age]"),
              HasSubstr("its feature takes 2 columns: name one by from"));
}

TEST(FeaturesJob, ARunThatTakesStatisticsKeepsOthersOutOfItsFolder) {
  const CsvJob csv(40);
  const std::string mark = csv.folder() + "/mark";
  const std::vector<std::string> flags = {"--trainer_desc=" + csv.Job("epochs: 1"),
                                          "--output_dir=" + csv.folder() + "/out",
                                          "--set=data_desc.pipe_command=\"touch " + mark + "; sleep 20; cat\""};
  Process first("trainer", flags);
  for (int i = 0; i < 400 && !std::filesystem::exists(mark); ++i) usleep(50'000);
  ASSERT_TRUE(std::filesystem::exists(mark)) << first.errors();
  Process second("trainer", flags);
  EXPECT_EQ(second.Wait(), 2);
  EXPECT_THAT(second.errors(), HasSubstr("another run is writing to the output folder"));
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait(), 130) << first.errors();
}

TEST(FeaturesJob, AModelIsNoCheckpointToGoOnFrom) {
  const CsvJob csv(40);
  TrainToTheEnd(csv.Job("epochs: 1"), csv.folder() + "/out");
  Process trainer("trainer", {"--trainer_desc=" + csv.Job("epochs: 2"), "--output_dir=" + csv.folder() + "/next",
                              "--resume=" + csv.folder() + "/out/model"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("/out/model\" is a saved model, and no checkpoint"));
}

TEST(FeaturesJob, ValidateReadsTheEvaluationSetToo) {
  const CsvJob csv(40);
  const std::string rows = ReadFile(csv.File(1)).value();
  const std::string header = rows.substr(0, rows.find('\n'));
  ASSERT_THAT(header, HasSubstr("click"));
  const auto validate = [&](const std::string& eval_header) {
    EXPECT_TRUE(WriteFileAtomically(csv.File(1), eval_header + rows.substr(header.size())).ok());
    Process trainer("trainer", {"--trainer_desc=" + csv.Job("epochs: 1"), "--validate_only",
                                "--set=filelist=[\"" + csv.File(0) + "\"]"});
    const int code = trainer.Wait();
    return std::to_string(code) + trainer.errors();
  };
  EXPECT_EQ(validate(header).substr(0, 1), "0");
  EXPECT_TRUE(WriteFileAtomically(csv.folder() + "/none.csv", header + "\n").ok());
  Process none("trainer", {"--trainer_desc=" + csv.Job("epochs: 1"), "--validate_only",
                           "--set=eval.filelist=[\"" + csv.folder() + "/none.csv\"]"});
  EXPECT_EQ(none.Wait(), 3);
  EXPECT_THAT(none.errors(), HasSubstr("nothing to evaluate"));
  std::string renamed = header;
  renamed.replace(renamed.find("click"), 5, "klick");
  EXPECT_THAT(validate(renamed), testing::AllOf(testing::StartsWith("3"), HasSubstr(csv.File(1) + ":1: "),
                                                HasSubstr("no column \"click\"; did you mean \"klick\"?")));
}

TEST(FeaturesJob, HeadersOfEvaluationFilesAreLookedAtBeforeTraining) {
  const CsvJob csv(40);
  const std::string more = csv.folder() + "/more.csv";
  EXPECT_TRUE(WriteFileAtomically(more, "klick,age,country,genres\n1,20,a,b\n").ok());
  for (const std::string& set : {"eval.filelist=[\"" + csv.File(1) + "\", \"" + more + "\"]",
                                 "eval={ set { name: \"late\" filelist: \"" + more + "\" } }"}) {
    Process trainer("trainer", {"--trainer_desc=" + csv.Job("epochs: 1"), "--output_dir=" + csv.folder() + "/out",
                                "--set=filelist=[\"" + csv.File(0) + "\"]", "--set=" + set});
    EXPECT_EQ(trainer.Wait(), 3) << trainer.errors();
    EXPECT_THAT(trainer.errors(), HasSubstr("before training: " + more + ":1: the header has no column \"click\""));
    EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("epoch 1")));
  }
}

TEST(FeaturesJob, ADayThatIsDoneMayHaveAnotherHeader) {
  const CsvJob csv(40);
  const auto train = [&](const std::string& days) {
    Process trainer("trainer", {"--trainer_desc=" + csv.Job(""), "--output_dir=" + csv.folder() + "/out",
                                "--resume=auto", "--set=filelist=[]", "--set=incremental={ " + days + " }"});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  };
  const auto day = [&](const std::string& name, const std::string& file) {
    return "pass { name: \"" + name + "\" filelist: \"" + file + "\" } ";
  };
  const std::string first = day("first", csv.File(0));
  train(first);
  EXPECT_TRUE(WriteFileAtomically(csv.File(0), "klick,age,country,genres\n1,20,a,b\n").ok());
  train(first + day("second", csv.File(1)));
}

TEST(FeaturesJob, HeadersOfAllFilesAreLookedAtBeforeTraining) {
  const CsvJob csv(40);
  const auto write = [&](const std::string& name, const std::string& header) {
    EXPECT_TRUE(WriteFileAtomically(csv.folder() + "/" + name, header + "\n1,20,a,b\n").ok());
    return csv.folder() + "/" + name;
  };
  const std::string second = write("second.csv", "klick,age,country,genres");
  const std::string third = write("third.csv", "click,age,country,genre");
  for (const char* const statistics : {"standardize {}", "log1p {}"}) {
    Process trainer("trainer",
                    {"--trainer_desc=" + csv.Job("epochs: 1"), "--set=eval.filelist=\"" + second + "\"",
                     "--set=data_desc.feature[age]={ name: \"age\" default: \"30\" " + std::string(statistics) + " }",
                     "--set=filelist=[\"" + csv.File(0) + "\", \"" + csv.File(1) + "\", \"" + third + "\"]"});
    EXPECT_EQ(trainer.Wait(), 3) << trainer.errors();
    EXPECT_THAT(trainer.errors(), HasSubstr("before training: " + second + ":1: the header has no column \"click\""));
    EXPECT_THAT(trainer.errors(),
                HasSubstr(third + ":1: the header has no column \"genres\"; did you mean \"genre\"?"));
    EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("rows")));
  }
}

TEST(FeaturesJob, ARunThatGoesOnHasTheStatisticsOfItsBeginning) {
  const CsvJob csv(400);
  const std::string out = csv.folder() + "/out";
  const std::string job = csv.Job("update_mode: SERIAL epochs: 1");
  TrainToTheEnd(job, out);
  const auto learned = [&](const std::string& flags) {
    Process inspect("inspect", {"features", flags});
    EXPECT_EQ(inspect.Wait(), 0) << inspect.errors();
    return inspect.output();
  };
  const std::string before = learned("--model_dir=" + out + "/model");
  EXPECT_EQ(learned("--trainer_desc=" + job), before);
  EXPECT_THAT(before, HasSubstr("statistics of 400 rows"));
  EXPECT_THAT(before, HasSubstr("30 words: \"land, "));
  EXPECT_THAT(before, HasSubstr("band = bucketize of age, ids, not a slot\n  4 buckets of "));
  // A file that came has other numbers, which a training that begins would take up.
  EXPECT_TRUE(WriteFileAtomically(csv.folder() + "/part-2.csv", "click,age,country,genres\n1,1000,\"new\",g\n").ok());
  EXPECT_NE(learned("--trainer_desc=" + job), before);
  Process more("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto", "--set=epochs=2"});
  ASSERT_EQ(more.Wait(), 0) << more.errors();
  EXPECT_EQ(learned("--model_dir=" + out + "/model"), before);
}

TEST(FeaturesJob, ARunThatGoesOnKeepsWhatItsFeaturesMake) {
  const CsvJob csv(100);
  const std::string out = csv.folder() + "/out";
  const std::string job = csv.Job("update_mode: SERIAL epochs: 1");
  TrainToTheEnd(job, out);
  Process more("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto", "--set=epochs=2",
                           "--set=data_desc.feature[genres].hash.salt=\"other\""});
  EXPECT_EQ(more.Wait(), 2);
  EXPECT_THAT(more.errors(), HasSubstr("data_desc.feature[genres].hash.salt was (none) and is now \"other\""));
}

TEST(FeaturesJob, WithinAnEpochAChangedWayToCutLinesIsToldByItsField) {
  const CsvJob csv(100);
  const std::string out = csv.folder() + "/out";
  const std::string job = csv.Job("update_mode: SERIAL epochs: 1 checkpoint { every_steps: 2 }");
  TrainToTheEnd(job, out);
  Process more("trainer",
               {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=" + out + "/checkpoints/step-000000000004",
                "--set=data_desc.csv.missing=[\"NA\"]"});
  EXPECT_EQ(more.Wait(), 2);
  EXPECT_THAT(
      more.errors(),
      HasSubstr("does not fit this job: data_desc.csv was (none) and is now { missing: \"NA\" }; it stands in the "
                "middle of epoch 1 of that input"));
  EXPECT_THAT(more.errors(), testing::Not(HasSubstr("checksum")));
}

TEST(FeaturesJob, StatisticsDoNotDependOnThreads) {
  const CsvJob csv(500);
  const auto learned = [&](const std::string& threads) {
    Process inspect("inspect", {"features", "--trainer_desc=" + csv.Job(""), "--set=thread_num=" + threads});
    EXPECT_EQ(inspect.Wait(), 0) << inspect.errors();
    return inspect.output();
  };
  EXPECT_EQ(learned("4"), learned("1"));
}

TEST(FeaturesJob, AnInferenceAsksForTheRunThatItKnowsStatisticsFrom) {
  const CsvJob csv(100);
  Process infer("trainer", {"--trainer_desc=" + csv.Job("infer: true")});
  EXPECT_EQ(infer.Wait(), 2);
  EXPECT_THAT(infer.errors(), HasSubstr("--resume=auto, with the output folder of the training, knows them"));
}

TEST(FeaturesJob, AFeatureWithoutValuesIsTold) {
  const CsvJob csv(400);
  Process trainer("trainer",
                  {"--trainer_desc=" + csv.Job(""), "--set=data_desc.feature[country].vocabulary.min_count=1000"});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(
      trainer.errors(),
      HasSubstr("feature \"country\": none of its 30 texts stands 1000 times in the training files (min_count)"));
}

TEST(FeaturesJob, AModelIsScoredFromRawColumnsWithoutTheLabels) {
  const CsvJob csv(300);
  const std::string out = csv.folder() + "/out";
  TrainToTheEnd(csv.Job("update_mode: SERIAL epochs: 1"), out);
  const std::vector<std::string> scores = ScoresOf(out, {csv.File(1)});
  EXPECT_EQ(scores.size(), 150U);
  // The same rows without the column of the label, and in another order of columns.
  Process cut("predictor",
              {"--model_dir=" + out + "/model", "--input=" + csv.File(0), "--output=" + csv.folder() + "/s"});
  ASSERT_EQ(cut.Wait(), 0) << cut.errors();
  const std::string bare = csv.folder() + "/bare.csv";
  EXPECT_TRUE(WriteFileAtomically(bare, "genres,age,country\ng1|g2,,\"land, 3\"\ng9,77,nowhere\n").ok());
  // It is said that the columns are others than those of the training.
  Process moved("predictor", {"--model_dir=" + out + "/model", "--input=" + csv.File(1)});
  EXPECT_EQ(moved.Wait(), 0);
  EXPECT_THAT(moved.errors(),
              HasSubstr("part-1.csv:1: its columns are not those of the first file that trained: it has "
                        "\"extra\", which no feature takes; columns are found by their names"));
  Process scored("predictor", {"--model_dir=" + out + "/model", "--input=" + bare, "--without=label"});
  EXPECT_EQ(scored.Wait(), 0) << scored.errors();
  EXPECT_THAT(scored.errors(), testing::Not(HasSubstr("note: the input has no column")));
}

TEST(FeaturesJob, ScoringSaysWhyItMeasuresNoAucAndWhatAFailureLeavesInTheOutput) {
  const CsvJob csv(40);
  const std::string out = csv.folder() + "/out";
  TrainToTheEnd(csv.Job("epochs: 1"), out);
  const std::string input = csv.folder() + "/others.csv";
  const std::string scores = csv.folder() + "/scores";
  std::string rows = "click,age,country,genres\n";
  for (int i = 0; i < 2000; ++i) rows += std::to_string(1 + i % 2) + ",30,land,g1\n";
  EXPECT_TRUE(WriteFileAtomically(input, rows).ok());
  const std::vector<std::string> flags = {"--model_dir=" + out + "/model", "--input=" + input, "--output=" + scores};
  Process others("predictor", flags);
  EXPECT_EQ(others.Wait(), 0) << others.errors();
  EXPECT_THAT(others.errors(), HasSubstr("of 2000 examples: a label is 2, so there is no auc and no logloss, which are "
                                         "of labels from 0 to 1\n"));
  EXPECT_TRUE(WriteFileAtomically(input, rows + "1,old,land,g1\n").ok());
  Process cut("predictor", flags);
  EXPECT_EQ(cut.Wait(), 3);
  const std::string kept = ReadFile(scores).value();
  EXPECT_THAT(cut.errors(), HasSubstr("\"" + scores + "\" has the scores of the first " +
                                      std::to_string(std::count(kept.begin(), kept.end(), '\n')) + " rows\n"));
}

TEST(FeaturesJob, AnInputWithoutRowsIsTold) {
  const CsvJob csv(40);
  const std::string out = csv.folder() + "/out";
  TrainToTheEnd(csv.Job("epochs: 1"), out);
  for (const std::string text : {"", "click,age,country,genres\n"}) {
    EXPECT_TRUE(WriteFileAtomically(csv.folder() + "/none.csv", text).ok());
    Process scored("predictor", {"--model_dir=" + out + "/model", "--input=" + csv.folder() + "/none.csv"});
    EXPECT_EQ(scored.Wait(), 0) << scored.errors();
    EXPECT_EQ(scored.output(), "");
    EXPECT_EQ(scored.errors(), "warning: no rows in " + csv.folder() + "/none.csv\n");
  }
}

TEST(FeaturesJob, WithoutAColumnsNameNamesTheSlot) {
  const CsvJob csv(40);
  const std::string out = csv.folder() + "/out";
  TrainToTheEnd(csv.Job("epochs: 1"), out);
  Process scored("predictor", {"--model_dir=" + out + "/model", "--input=" + csv.File(0), "--without=click"});
  EXPECT_EQ(scored.Wait(), 2);
  EXPECT_THAT(
      scored.errors(),
      HasSubstr("--without: the model's lines have no slot \"click\", but a column, which --without=label leaves out"));
}

TEST(FeaturesJob, TheTextNanOfANumberIsAdvisedAsAMissingValue) {
  const TempDir folder = TempDir::Create("millrace_nan").value();
  ASSERT_TRUE(WriteFileAtomically(folder.path() + "/rows.csv", "label,x\n1,nan\n0,1\n").ok());
  const std::string job = folder.path() + "/job.prototxt";
  ASSERT_TRUE(WriteFileAtomically(job, "filelist: \"" + folder.path() + R"(/rows.csv"
      data_desc { name: "csv" feature { name: "label" id {} is_dense: true } feature { name: "x" } }
      model {
        layer { name: "y" fc { in: "x" units: 1 } }
        loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" }
        optimizer { sgd { lr: 0.1 } }
      })")
                  .ok());
  Process trained("trainer", {"--trainer_desc=" + job});
  trained.Wait();
  EXPECT_THAT(trained.errors(), HasSubstr("REJECT_NON_FINITE makes a bad line of it, and csv { missing: \"nan\" } a "
                                          "missing value of the text nan\n"));
}

TEST(FeaturesJob, AColumnThatScoresDependOnIsNoAdviceForWithout) {
  const CsvJob csv(40);
  const std::string out = csv.folder() + "/out";
  const std::string job = csv.Job("epochs: 1");
  std::string text = ReadFile(job).value();
  for (const std::string from : {"feature { name: \"age\" ", "in: [\"e\", \"age\"]"}) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(),
                 from[0] == 'f' ? "feature { name: \"years\" from: \"age\" " : "in: [\"e\", \"years\"]");
  }
  ASSERT_TRUE(WriteFileAtomically(job, text).ok());
  TrainToTheEnd(job, out);
  Process scored("predictor", {"--model_dir=" + out + "/model", "--input=" + csv.File(0), "--without=age"});
  EXPECT_EQ(scored.Wait(), 2);
  EXPECT_THAT(scored.errors(),
              HasSubstr("--without: the model's score depends on column \"age\", of which slot \"years\" is made"));
}

TEST(FeaturesJob, StatisticsSayOfAHeaderOfAnotherOrderWhatTheTrainingSays) {
  const CsvJob csv(60);
  const std::string text = ReadFile(csv.File(0)).value();
  const std::string job = csv.Job("update_mode: SERIAL");
  // Statistics are taken of age and country, which both headers have at the same places.
  ASSERT_TRUE(
      WriteFileAtomically(csv.File(0), text + "genres,age,country,click\n" + text.substr(text.find('\n') + 1)).ok());
  Process swapped("trainer", {"--trainer_desc=" + job});
  EXPECT_EQ(swapped.Wait(), 3);
  EXPECT_THAT(swapped.errors(),
              HasSubstr("found a header of other columns, or of another order, than the file's first"));
  ASSERT_TRUE(WriteFileAtomically(csv.File(0), text + text).ok());
  Process again("trainer", {"--trainer_desc=" + job});
  EXPECT_EQ(again.Wait(), 3);
  EXPECT_THAT(again.errors(), HasSubstr("expected values, found the header once more"));
}

TEST(FeaturesJob, LinesWithoutHeaderMayLackTheColumnsOfSlotsThatAreLeftOut) {
  const CsvJob csv(60);
  std::string lines = ReadFile(csv.File(0)).value();
  lines.erase(0, lines.find('\n') + 1);
  std::string bare;  // without the first column, the label's
  for (size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    bare += lines.substr(at + 2, lines.find('\n', at) - at - 1);
  }
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(WriteFileAtomically(csv.File(i), lines).ok());
  const std::string out = csv.folder() + "/out";
  const std::string job = csv.Job("update_mode: SERIAL", R"(csv { names: ["click", "age", "country", "genres"] })");
  TrainToTheEnd(job, out);
  const std::string file = csv.folder() + "/bare.csv";
  ASSERT_TRUE(WriteFileAtomically(file, bare).ok());
  const std::string model = "--model_dir=" + out + "/model";
  Process whole("predictor", {model, "--input=" + csv.File(0), "--without=label"});
  EXPECT_EQ(whole.Wait(), 0) << whole.errors();
  Process lacking("predictor", {model, "--input=" + file, "--without=label"});
  EXPECT_EQ(lacking.Wait(), 0) << lacking.errors();
  EXPECT_EQ(lacking.output(), whole.output());
  Process unsaid("predictor", {model, "--input=" + file});
  EXPECT_EQ(unsaid.Wait(), 3);
  EXPECT_THAT(unsaid.errors(), HasSubstr("expected 4 columns, as the job's csv.names says, found 3"));
  EXPECT_THAT(unsaid.errors(),
              HasSubstr("--without reads lines that lack the columns of slots on which no score depends: label"));
  ASSERT_TRUE(WriteFileAtomically(file, "30\n").ok());
  Process narrow("predictor", {model, "--input=" + file, "--without=label"});
  EXPECT_EQ(narrow.Wait(), 3);
  EXPECT_THAT(narrow.errors(),
              HasSubstr("expected 4 columns, as the job's csv.names says (or 3 without those of the slots "
                        "left out), found 1"));
}

TEST(FeaturesJob, APipeThatStatisticsAndTrainingWouldReadIsRefused) {
  const CsvJob csv(60);
  const std::string text = ReadFile(csv.File(0)).value();
  std::filesystem::remove(csv.File(0));
  ASSERT_EQ(::mkfifo(csv.File(0).c_str(), 0600), 0);
  Process refused("trainer", {"--trainer_desc=" + csv.Job("update_mode: SERIAL")});
  EXPECT_EQ(refused.Wait(), 2);
  EXPECT_THAT(refused.errors(), HasSubstr("a pipe can be read only once, and this job reads it twice (statistics of "
                                          "features, training)"));
  // Features that take no statistics read it once.
  std::string job = ReadFile(csv.Job("update_mode: SERIAL")).value();
  for (const std::string learned : {"default_from: MEDIAN standardize {}", "quantiles: 4", "min_count: 2"}) {
    const size_t at = job.find(learned);
    ASSERT_NE(at, std::string::npos);
    job.replace(at, learned.size(),
                learned[0] == 'd'   ? "default: \"0\""
                : learned[0] == 'q' ? "boundaries: [30]"
                                    : "words: [\"land, 3\"]");
  }
  ASSERT_TRUE(WriteFileAtomically(csv.folder() + "/once.prototxt", job).ok());
  Process trained("trainer", {"--trainer_desc=" + csv.folder() + "/once.prototxt"});
  {
    std::ofstream writer(csv.File(0));  // waits for the reader
    writer << text;
  }
  EXPECT_EQ(trained.Wait(), 0) << trained.errors();
}

TEST(FeaturesJob, ScoringAdvisesWhatWorksWithASavedModel) {
  const CsvJob csv(60);
  const std::string out = csv.folder() + "/out";
  const std::string job = csv.Job("update_mode: SERIAL");
  TrainToTheEnd(job, out);
  const std::string file = csv.folder() + "/new";
  const auto errors_of = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(file, text).ok());
    Process scored("predictor", {"--model_dir=" + out + "/model", "--input=" + file});
    EXPECT_EQ(scored.Wait(), 3);
    return scored.errors();
  };
  EXPECT_THAT(errors_of("click,age,country,genres\n1,NA,a,b\n"),
              HasSubstr("leave it empty, or train again with csv { missing: \"NA\" }"));
  EXPECT_THAT(errors_of("click;age;country;genres\n1;20;a;b\n"), HasSubstr("predictor --pipe_command=\"tr ';' ','\""));
  EXPECT_THAT(errors_of("1,20,a,b\n"), HasSubstr("a header comes before the lines, as in training"));
  EXPECT_THAT(errors_of("{\"click\": 1, \"age\": 20}\n"), HasSubstr("predictor --format=json scores it"));
  EXPECT_THAT(errors_of("click,age,country,genres\r1,20,a,b\r"), HasSubstr("tr '\\r' '\\n'"));
  ASSERT_TRUE(WriteFileAtomically(file, "click,age,country,genres\n1,20,a,b\n").ok());
  Process json("predictor", {"--model_dir=" + out + "/model", "--input=" + file, "--format=json"});
  EXPECT_EQ(json.Wait(), 3);
  EXPECT_THAT(json.errors(), HasSubstr("predictor --format=csv scores it"));
}

TEST(FeaturesJob, AFileWithoutTheLabelIsScoredWithoutAFlagAndSaysThatThereAreNoMetrics) {
  const CsvJob csv(300);
  const std::string out = csv.folder() + "/out";
  TrainToTheEnd(csv.Job("update_mode: SERIAL epochs: 1"), out);
  const std::string bare = csv.folder() + "/bare.csv";
  EXPECT_TRUE(WriteFileAtomically(bare, "genres,age,country\ng1|g2,,\"land, 3\"\ng9,77,nowhere\n").ok());
  Process scored("predictor", {"--model_dir=" + out + "/model", "--input=" + bare});
  EXPECT_EQ(scored.Wait(), 0) << scored.errors();
  EXPECT_THAT(scored.errors(),
              HasSubstr("note: the input has no column \"click\", on which no score depends; without it "
                        "there are no metrics\n"));
  Process::Options options;
  options.input = bare;
  Process from_input("predictor", {"--model_dir=" + out + "/model"}, options);
  EXPECT_EQ(from_input.Wait(), 0) << from_input.errors();
  EXPECT_EQ(from_input.output(), scored.output());
  // What a command writes can be read once only: the flag is named.
  Process piped("predictor", {"--model_dir=" + out + "/model", "--input=" + bare, "--pipe_command=cat -"});
  EXPECT_EQ(piped.Wait(), 3);
  EXPECT_THAT(piped.errors(), HasSubstr("the header has no column \"click\""));
  EXPECT_THAT(piped.errors(), HasSubstr("the score does not depend on it: --without=label reads lines that lack it"));
  // A column that scores depend on is still told.
  EXPECT_TRUE(WriteFileAtomically(bare, "click,genres,age\n1,g1,3\n").ok());
  Process lacking("predictor", {"--model_dir=" + out + "/model", "--input=" + bare});
  EXPECT_EQ(lacking.Wait(), 3);
  EXPECT_THAT(lacking.errors(), HasSubstr("bare.csv:1: the header has no column \"country\""));
}

/// Writes JSON lines with ages and countries, each beginning with `label`, and before all `before`.
void WriteJsonLines(const std::string& path, const std::string& label, const std::string& before = "") {
  std::string lines = before;
  for (int i = 0; i < 40; ++i) {
    lines +=
        "{" + label + "\"age\": " + std::to_string(20 + i) + ", \"country\": \"c" + std::to_string(i % 3) + "\"}\n";
  }
  EXPECT_TRUE(WriteFileAtomically(path, lines).ok());
}

/// A job on JSON lines.
std::string JsonJob(const std::string& folder) {
  WriteJsonLines(folder + "/part-0.jsonl", "\"click\": 1, ");
  WriteJsonLines(folder + "/part-1.jsonl", "\"click\": 1, ");
  const std::string text = R"(
      class_name: "MultiTrainer" device_worker_name: "HogwildWorker" thread_num: 2
      filelist: ")" + folder +
                           R"(/part-*" epochs: 2
      data_desc {
        name: "json" batch_size: 16
        feature { name: "label" from: "click" id {} is_dense: true }
        feature { name: "age" default: "30" }
        feature { name: "country" hash {} }
      }
      model {
        table { name: "t" dim: 2 init { uniform: 0.1 } optimizer { adagrad { lr: 0.1 } } }
        layer { name: "e" embedding { slots: "country" table: "t" } }
        layer { name: "y" fc { in: ["e", "age"] units: 1 } }
        loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" }
        metric { kind: LOGLOSS }
        optimizer { sgd { lr: 0.001 } }
      }
      eval { filelist: ")" +
                           folder + "/test.jsonl\" }";
  WriteJsonLines(folder + "/test.jsonl", "\"click\": 1, ");
  EXPECT_TRUE(WriteFileAtomically(folder + "/job.prototxt", text).ok());
  return folder + "/job.prototxt";
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(FeaturesJob, AKeyThatNoLineHasIsToldOnce) {
  const TempDir folder = TempDir::Create("millrace_json").value();
  const std::string job = "--trainer_desc=" + JsonJob(folder.path());
  const std::string told =
      "warning: none of 80 lines has the key \"agee\", so that the feature which takes it finds no value: correct its "
      "from, or its name where it has no from; did you mean \"age\"?\n";
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    Process trainer("trainer", {job, "--output_dir=" + folder.path() + "/" + dataset,
                                "--set=data_desc.feature[age].from=agee", "--set=dataset.class_name=" + dataset});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    EXPECT_THAT(trainer.errors(), HasSubstr(told));
    EXPECT_EQ(CountOf(trainer.errors(), "agee"), 1) << "in both epochs and evaluations";
  }
  // Also of days, whose numbers of lines differ.
  ASSERT_TRUE(
      WriteFileAtomically(folder.path() + "/part-2.jsonl", "{\"click\": 1, \"age\": 2, \"country\": \"x\"}\n").ok());
  const std::string day = "filelist: \"" + folder.path() + "/part-";
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    Process trainer(
        "trainer",
        {job, "--output_dir=" + folder.path() + "/days" + dataset, "--set=filelist=[]", "--set=epochs=1",
         "--set=data_desc.feature[age].from=agee", "--set=dataset.class_name=" + dataset,
         "--set=incremental={ pass { name: \"1\" " + day + "0.jsonl\" } pass { name: \"2\" " + day + "2.jsonl\" } }"});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    EXPECT_THAT(trainer.errors(), HasSubstr("none of 40 lines has the key \"agee\""));
    EXPECT_EQ(CountOf(trainer.errors(), "agee"), 1) << dataset;
  }
  std::filesystem::remove(folder.path() + "/part-2.jsonl");
  Process right("trainer", {job});
  EXPECT_EQ(right.Wait(), 0) << right.errors();
  EXPECT_THAT(right.errors(), testing::Not(HasSubstr("warning")));
  Process scored("predictor", {"--model_dir=" + folder.path() + "/QueueDataset/model",
                               "--input=" + folder.path() + "/part-1.jsonl"});
  EXPECT_EQ(scored.Wait(), 0) << scored.errors();
  EXPECT_THAT(scored.errors(), HasSubstr("warning: none of 40 lines has the key \"agee\""));
}

TEST(FeaturesJob, IdsThatJsonLinesWriteAsFloatsAreToldOnceAColumn) {
  const TempDir folder = TempDir::Create("millrace_json").value();
  const std::string job = "--trainer_desc=" + JsonJob(folder.path());
  const auto write = [&](const std::string& file, std::initializer_list<const char*> countries) {
    std::string lines;
    for (const char* const country : countries) {
      lines += std::string(R"({"click": 1, "user": {"age": 30.0}, "age": 30.0, "country": )") + country + "}\n";
    }
    EXPECT_TRUE(WriteFileAtomically(folder.path() + "/" + file, lines).ok());
    return folder.path() + "/" + file;
  };
  const std::string whole = write("whole.jsonl", {"5", "6", "\"7\"", "null"});
  const std::string floats = write("floats.jsonl", {"5.0", "[6.0, 7.0]", "null"});
  const std::string fractions = write("fractions.jsonl", {"5.0", "6.5"});
  const std::string advice =
      "pandas makes floats of whole numbers where some are missing; astype(\"Int64\") keeps them\n";
  const auto train = [&](const std::string& one, const std::string& other) {
    Process trainer("trainer", {job, "--output_dir=" + folder.path() + "/out", "--set=eval.filelist=\"" + one + "\"",
                                "--set=filelist=[\"" + one + "\", \"" + other + "\"]", "--set=thread_num=2"});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    return trainer.errors();
  };
  const std::string told = train(floats, whole);
  EXPECT_THAT(told, HasSubstr("warning: column \"country\" holds whole numbers as floats in some lines: its words are "
                              "\"5.0\" (" +
                              floats + ":1:61) there, and \"5\" (" + whole + ":1:61) in others. " + advice));
  EXPECT_EQ(CountOf(told, "as floats"), 1) << "of two epochs, and of words alone: " << told;
  EXPECT_THAT(train(fractions, whole), testing::Not(HasSubstr("as floats")));
  EXPECT_THAT(train(whole, whole), testing::Not(HasSubstr("as floats")));
  Process scored("predictor", {"--model_dir=" + folder.path() + "/out/model", "--input=" + floats});
  EXPECT_EQ(scored.Wait(), 0) << scored.errors();
  EXPECT_THAT(scored.errors(),
              HasSubstr("warning: column \"country\" holds whole numbers as floats: its words are "
                        "\"5.0\" (" +
                        floats + ":1:61), and \"5\" (" + whole +
                        ":1:61) where the training began, so that one number is two words: write them alike, or "
                        "retrain. " +
                        advice));
  const std::string texts = write("texts.jsonl", {"\"land\"", "7.0"});
  EXPECT_THAT(train(texts, texts), testing::Not(HasSubstr("as floats")));
  const std::string truths = write("truths.jsonl", {"\"True\"", "true", "\"True\"", "true"});
  EXPECT_THAT(train(truths, texts),
              HasSubstr("column \"country\" holds truth values in some lines: its words are \"True\" (" + truths +
                        ":1:61) there, and \"1\" (" + truths + ":2:61) in others"));
}

TEST(FeaturesJob, ValuesOfLibsvmThatAreWordsAndFloatsAreTold) {
  const TempDir folder = TempDir::Create("millrace_libsvm").value();
  const std::string file = folder.path() + "/rows.libsvm";
  ASSERT_TRUE(WriteFileAtomically(file, "1 1:5.0 2:0.5\n0 1:6.0\n").ok());
  const std::string job = folder.path() + "/job.prototxt";
  ASSERT_TRUE(WriteFileAtomically(job, "filelist: \"" + file + R"(" data_desc { name: "libsvm"
      feature { name: "label" id {} is_dense: true } feature { name: "user" from: "1" hash {} } })")
                  .ok());
  Process looked("inspect", {"stats", "--trainer_desc=" + job});
  EXPECT_EQ(looked.Wait(), 0) << looked.errors();
  EXPECT_THAT(looked.errors(),
              HasSubstr("warning: column \"1\" holds whole numbers as floats: its words are \"5.0\" (" + file +
                        ":1:5), not \"5\""));
}

// The hash of 1 stood for every index, and nothing was learned.
TEST(FeaturesJob, OneHotLinesOfLibsvmWhoseValuesAreHashedAreTold) {
  const TempDir folder = TempDir::Create("millrace_one_hot").value();
  const std::string file = folder.path() + "/rows.libsvm";
  const std::string job = folder.path() + "/job.prototxt";
  const auto errors = [&](const std::string& lines, const std::string& feature) {
    EXPECT_TRUE(WriteFileAtomically(file, lines).ok());
    EXPECT_TRUE(WriteFileAtomically(job, "filelist: \"" + file + R"(" data_desc { name: "libsvm"
        feature { name: "label" id {} is_dense: true } feature { name: "c" )" +
                                             feature + " hash {} } }")
                    .ok());
    Process looked("inspect", {"stats", "--trainer_desc=" + job});
    EXPECT_EQ(looked.Wait(), 0) << looked.errors();
    return looked.errors();
  };
  const auto told = HasSubstr(
      "warning: feature \"c\": all values of its columns are 1, as in one-hot data, so that one word stands for all of "
      "them; from: \"index\" takes the indices of a line in place of their values");
  EXPECT_THAT(errors("1 1:1\n0 2:1\n", "from: \"1..9\""), told);
  EXPECT_THAT(errors("1 1:1\n0 2:7\n", "from: \"1..9\""), testing::Not(told));
  EXPECT_THAT(errors("1 1:1\n0 2:1\n", "from: \"1\""), testing::Not(told));
  EXPECT_THAT(errors("1 1:1\n0 2:1\n", "from: \"index\""), testing::Not(told));
}

// Of two features the later one was judged by all columns, and the earlier one by those that it had alone.
TEST(FeaturesJob, OneHotFeaturesOfLibsvmThatShareColumnsAreJudgedByAllOfTheirs) {
  const TempDir folder = TempDir::Create("millrace_shared_columns").value();
  const std::string file = folder.path() + "/rows.libsvm";
  const std::string job = folder.path() + "/job.prototxt";
  ASSERT_TRUE(WriteFileAtomically(job, "filelist: \"" + file + R"(" data_desc { name: "libsvm"
      feature { name: "label" id {} is_dense: true } feature { name: "a" from: "1..2" hash {} }
      feature { name: "b" from: "2..3" hash {} } feature { name: "c" from: "3..4" hash {} } })")
                  .ok());
  const auto told = [&](const std::string& line) {
    EXPECT_TRUE(WriteFileAtomically(file, line).ok());
    Process looked("inspect", {"stats", "--trainer_desc=" + job});
    EXPECT_EQ(looked.Wait(), 0) << looked.errors();
    std::string features;
    for (const std::string feature : {"a", "b", "c"}) {
      if (looked.errors().find("feature \"" + feature + "\": all values of its columns are 1") != std::string::npos) {
        features += feature;
      }
    }
    return features;
  };
  EXPECT_EQ(told("1 1:1 2:7 3:1 4:1\n"), "c");
  EXPECT_EQ(told("1 2:1\n"), "ab");
  EXPECT_EQ(told("1 1:1 2:1 3:1 4:1\n"), "abc");
}

/// The flag with a job in `folder` that trains on `file` by the slot "c" alone.
std::string JobOfOneSlot(const std::string& folder, const std::string& file, const std::string& format,
                         const std::string& steps) {
  const std::string job = folder + "/job.prototxt";
  EXPECT_TRUE(WriteFileAtomically(job, "filelist: \"" + file + "\" data_desc { name: \"" + format + R"(" batch_size: 8
      feature { name: "label" id {} is_dense: true } feature { name: "c" )" +
                                           steps + R"( } }
      model { table { name: "t" dim: 2 } layer { name: "e" embedding { slots: ["c"] table: "t" } }
        layer { name: "y" fc { in: "e" units: 1 } }
        loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" } optimizer { sgd { lr: 0.1 } } })")
                  .ok());
  return "--trainer_desc=" + job;
}

// Nothing was noted of lists, which were looked for in a million rows.
TEST(FeaturesJob, WhatListsBeginWithIsNotedInTheFirstRows) {
  const TempDir folder = TempDir::Create("millrace_lists").value();
  const auto model_of = [&](const std::string& format, const std::string& lines, const std::string& steps) {
    const std::string file = folder.path() + "/rows." + format;
    EXPECT_TRUE(WriteFileAtomically(file, lines).ok());
    const std::string out = folder.path() + "/out";
    std::filesystem::remove_all(out);
    Process trainer("trainer", {JobOfOneSlot(folder.path(), file, format, steps), "--output_dir=" + out});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    return ReadFile(out + "/model/MODEL").value();
  };
  EXPECT_THAT(model_of("libsvm", "1 3:1 7:1\n0 2:1\n", "from: \"index\" hash {}"),
              testing::ContainsRegex("column: \"index\"\n *text: \"3\"\n *place: \".*rows.libsvm:1:3\""));
  EXPECT_THAT(model_of("json", "{\"label\": 1, \"c\": [3, 7]}\n{\"label\": 0, \"c\": []}\n", "hash {}"),
              testing::ContainsRegex("column: \"c\"\n *text: \"3\"\n *place: \".*rows.json:1:20\""));
}

// Values outside of the vocabulary train too, as many as there are.
TEST(FeaturesJob, AVocabularyOfFewWordsIsNotToldOfTheOthers) {
  const TempDir folder = TempDir::Create("millrace_few_words").value();
  const std::string file = folder.path() + "/rows.csv";
  std::string lines = "label,c\n";
  for (int i = 0; i < 500; ++i) lines += std::to_string(i % 2) + ",land " + std::to_string(i % 5) + "\n";
  ASSERT_TRUE(WriteFileAtomically(file, lines).ok());
  const std::string out = folder.path() + "/out";
  Process trainer("trainer",
                  {JobOfOneSlot(folder.path(), file, "csv", R"(vocabulary { words: ["land 1", "land 2"] })"),
                   "--output_dir=" + out, "--set=epochs=3", R"(--set=eval={ set { name: "held" share: 0.3 } })"});
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("warning")));
  Process scored("predictor", {"--model_dir=" + out + "/model", "--input=" + file});
  EXPECT_EQ(scored.Wait(), 0) << scored.errors();
  EXPECT_THAT(scored.errors(), testing::Not(HasSubstr("warning")));
}

// In the order of a year, summer comes after the rows that a training looks at before it starts.
TEST(FeaturesJob, AZoneThatComesLateInTheTrainingIsNotTold) {
  const TempDir folder = TempDir::Create("millrace_late_zone").value();
  const auto write = [&](const std::string& name, int winter, int summer) {
    std::string lines = "label,time\n";
    for (int i = 0; i < winter; ++i) lines += std::to_string(i % 2) + ",2026-01-26T10:00+01:00\n";
    for (int i = 0; i < summer; ++i) lines += std::to_string(i % 2) + ",2026-07-26T10:00+02:00\n";
    EXPECT_TRUE(WriteFileAtomically(folder.path() + "/" + name, lines).ok());
    return folder.path() + "/" + name;
  };
  const std::string year = write("year.csv", 5000, 100);
  const std::string summer = write("summer.csv", 0, 100);
  const std::string job = JobOfOneSlot(folder.path(), year, "csv", "from: \"time\" date_part { part: HOUR } hash {}");
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    const std::string out = folder.path() + "/out" + dataset;
    Process trainer("trainer", {job, "--output_dir=" + out, "--set=eval.filelist=\"" + summer + "\"",
                                "--set=dataset.class_name=" + dataset});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("warning"))) << dataset;
    Process scored("predictor", {"--model_dir=" + out + "/model", "--input=" + summer});
    EXPECT_EQ(scored.Wait(), 0) << scored.errors();
    EXPECT_THAT(scored.errors(), testing::Not(HasSubstr("warning"))) << dataset;
  }
}

// A training of winter and summer was told of either at every evaluation.
TEST(FeaturesJob, TheZonesOfSummerAndWinterThatTrainedAreNotTold) {
  const TempDir folder = TempDir::Create("millrace_zones").value();
  const auto write = [&](const std::string& name, std::initializer_list<const char*> zones) {
    std::string lines = "label,time\n";
    for (int i = 0; i < 40; ++i) {
      const char* const zone = zones.begin()[static_cast<size_t>(i) % zones.size()];
      lines += std::to_string(i % 2) + ",2026-07-0" + std::to_string(1 + i % 9) + "T10:00" + zone + "\n";
    }
    EXPECT_TRUE(WriteFileAtomically(folder.path() + "/" + name, lines).ok());
    return folder.path() + "/" + name;
  };
  const std::string both = write("both.csv", {"+01:00", "+02:00"});
  const std::string job = JobOfOneSlot(folder.path(), both, "csv", "from: \"time\" date_part { part: HOUR } hash {}");
  for (const char* const zone : {"+01:00", "+02:00", "+09:00"}) {
    const std::string file = write("new.csv", {zone});
    Process trainer("trainer", {job, "--output_dir=" + folder.path() + "/out", "--set=eval.filelist=\"" + file + "\""});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    Process scored("predictor", {"--model_dir=" + folder.path() + "/out/model", "--input=" + file});
    EXPECT_EQ(scored.Wait(), 0) << scored.errors();
    const bool is_told = zone == std::string("+09:00");
    const std::string expected = "and the zones +01:00, +02:00 where the training began (" + both + ":2:3)";
    for (const std::string& said : {trainer.errors(), scored.errors()}) {
      EXPECT_EQ(CountOf(said, "has times with the zone"), is_told ? 1 : 0) << said;
      EXPECT_EQ(CountOf(said, expected), is_told ? 1 : 0) << said;
    }
    std::filesystem::remove_all(folder.path() + "/out");
  }
}

TEST(FeaturesJob, IdsThatCsvFilesWriteAsFloatsAreTold) {
  const CsvJob csv(10);
  const std::string folder = csv.folder();
  const auto write = [&](const std::string& name, std::initializer_list<const char*> countries) {
    std::string lines = "click,genres,country,age\n";
    for (const char* const country : countries) lines += std::string("1,g1|g2,") + country + ",30.0\n";
    EXPECT_TRUE(WriteFileAtomically(folder + "/" + name, lines).ok());
    return folder + "/" + name;
  };
  const std::string whole = write("whole.csv", {"7", "12345678901", "", "NA", "7", "12345678901"});
  const std::string floats = write("floats.csv", {"", "7.0", "12345678901.0", "7.0"});
  const std::string texts = write("texts.csv", {"7.0", "land", "7.0", "land"});
  const std::string job = "--trainer_desc=" + csv.Job("epochs: 2");
  const auto quoted = [](const std::string& file) { return '"' + file + '"'; };
  const auto train = [&](const std::string& files, const std::string& evaluated) {
    Process trainer("trainer", {job, "--output_dir=" + folder + "/out", "--set=filelist=[" + files + "]",
                                "--set=eval.filelist=" + quoted(evaluated)});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    return trainer.errors();
  };
  const std::string both = train(quoted(floats) + ", " + quoted(whole), whole);
  EXPECT_THAT(both, HasSubstr("holds whole numbers as floats in some lines: its words are \"7.0\" (" + floats +
                              ":3:9) there, and \"7\" (" + whole + ":2:9) in others"));
  EXPECT_EQ(CountOf(both, "as floats"), 1) << both;
  EXPECT_THAT(train(quoted(texts), texts), testing::Not(HasSubstr("whole numbers")));
  for (const char* const dataset : {"QueueDataset", "InMemoryDataset"}) {
    Process looked("inspect", {"stats", job, "--set=filelist=" + quoted(floats),
                               std::string("--set=dataset.class_name=") + dataset});
    EXPECT_EQ(looked.Wait(), 0) << looked.errors();
    EXPECT_THAT(looked.errors(), HasSubstr("warning: column \"country\" holds whole numbers as floats: "));
    EXPECT_EQ(CountOf(looked.errors(), "as floats"), 1)
        << "once, with what statistics are taken of: " << looked.errors();
  }
  const std::string truths = write("truths.csv", {"True", "False", "", "True", "False"});
  const std::string bits = write("bits.csv", {"", "0", "1"});
  EXPECT_THAT(train(quoted(truths), bits),
              HasSubstr("evaluation: column \"country\" holds truth values: its words are \"0\" (" + bits +
                        ":3:9), and \"True\" (" + truths + ":2:9) where the training began"));
  EXPECT_THAT(train(quoted(truths), truths), testing::Not(HasSubstr("truth values")));
  EXPECT_THAT(train(quoted(whole), whole), testing::Not(HasSubstr("whole numbers")));
  EXPECT_THAT(
      train(quoted(whole), floats),
      HasSubstr("warning: evaluation: column \"country\" holds whole numbers as floats: its words are \"7.0\" (" +
                floats + ":3:9), and \"7\" (" + whole + ":2:9) where the training began"));
  // What the training itself is told of does not hide it.
  EXPECT_THAT(
      train(quoted(floats), whole),
      testing::AllOf(HasSubstr("its words are \"7.0\" (" + floats + ":3:9), not \"7\""),
                     HasSubstr("warning: evaluation: column \"country\" holds whole numbers: its words are \"7\" (" +
                               whole + ":2:9), and \"7.0\" (" + floats + ":3:9) where the training began")));
  const std::string versions = write("versions.csv", {"10", "10.1", "11.0", "10"});
  EXPECT_THAT(train(quoted(versions), versions), testing::Not(HasSubstr("whole numbers")));
  const auto score = [&](const std::string& file) {
    Process scored("predictor", {"--model_dir=" + folder + "/out/model", "--input=" + file});
    EXPECT_EQ(scored.Wait(), 0) << scored.errors();
    return scored.errors();
  };
  EXPECT_THAT(score(floats), testing::Not(HasSubstr("whole numbers"))) << "words of the training";
  train(quoted(whole), whole);
  EXPECT_THAT(score(floats), HasSubstr(":3:9), and \"7\" (" + whole + ":2:9) where the training began"));
  EXPECT_THAT(score(whole), testing::Not(HasSubstr("whole numbers")));
  const std::string of_floats = train(quoted(floats), floats);
  EXPECT_EQ(CountOf(of_floats, "its words are \"7.0\" (" + floats + ":3:9), not \"7\""), 1) << of_floats;
  EXPECT_THAT(score(floats), testing::Not(HasSubstr("whole numbers")));
  EXPECT_THAT(score(whole), HasSubstr("holds whole numbers: its words are \"7\" (" + whole + ":2:9), and \"7.0\""));
}

TEST(FeaturesJob, AKeyThatSomeLinesHaveIsNotToldOfPartsOfTheInput) {
  const TempDir folder = TempDir::Create("millrace_json").value();
  const std::string job = "--trainer_desc=" + JsonJob(folder.path());
  // A bad first line, of which nobody knows what it would have named.
  ASSERT_TRUE(WriteFileAtomically(folder.path() + "/part-1.jsonl",
                                  "{\"click\": [[1]], \"agee\": 3}\n{\"click\": 1, \"agee\": 3}\n")
                  .ok());
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--set=dist={ update: SYNC micro_batches: 2 }", "--set=thread_num=1"},
                                             {"--set=dist={ update: SYNC micro_batches: 2 }", "--set=thread_num=1",
                                              "--set=dataset.class_name=InMemoryDataset"},
                                             {"--set=thread_num=2"}}) {
    std::vector<std::string> arguments = {job, "--set=data_desc.feature[age].from=agee",
                                          "--set=data_desc.bad_lines={ action: SKIP max_lines: 9 }"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process trainer("trainer", arguments);
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("warning: none")));
    EXPECT_THAT(trainer.errors(), HasSubstr("warning: evaluation: none of 40 lines has the key \"agee\""));
  }
  Process failing("trainer", {job, "--set=filelist=\"" + folder.path() + "/part-1.jsonl\""});
  EXPECT_EQ(failing.Wait(), 3);
  EXPECT_THAT(failing.errors(), testing::Not(HasSubstr("has the key")));
}

TEST(FeaturesJob, JsonLinesWithoutTheLabelAreScoredWithoutAFlag) {
  const TempDir folder = TempDir::Create("millrace_json").value();
  TrainToTheEnd(JsonJob(folder.path()), folder.path() + "/out");
  const auto score = [&](const std::string& label, const std::string& before = "") {
    WriteJsonLines(folder.path() + "/new.jsonl", label, before);
    Process scored("predictor",
                   {"--model_dir=" + folder.path() + "/out/model", "--input=" + folder.path() + "/new.jsonl"});
    EXPECT_EQ(scored.Wait(), 0) << scored.errors();
    return std::pair(scored.output(), scored.errors());
  };
  const auto [whole, metrics] = score("\"click\": 1, ");
  EXPECT_THAT(metrics, HasSubstr("of 40 examples"));
  for (const char* label : {"", "\"click\": null, "}) {
    const auto [bare, errors] = score(label);
    EXPECT_EQ(bare, whole);
    EXPECT_EQ(errors,
              "note: the input's first line has no key \"click\", on which no score depends; without it there are no "
              "metrics\n");
  }
  EXPECT_THAT(score("", "\n").second, HasSubstr("note: the input's first line has no key \"click\""));
  EXPECT_EQ(score("", "\xEF\xBB\xBF").first, whole);
}

}  // namespace
}  // namespace millrace
