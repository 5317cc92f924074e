// A job of three classes from its file to the probabilities of a saved model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "e2e/process.h"

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Rows of a word that says the class, but of one in ten another.
class ClassesJob {
 public:
  ClassesJob() : folder_(TempDir::Create("classes").value()) {
    std::ofstream rows(path("rows.csv"));
    rows << "class,word,weight\n";
    for (int i = 0; i < 600; ++i) {
      const int said = i % 3;
      rows << (i % 10 == 0 ? (said + 1) % 3 : said) << ",w" << said << "," << 1 + i % 2 << "\n";
    }
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::string Write(const std::string& loss, const std::string& metrics, const std::string& more = "") const {
    std::ofstream(path("job.prototxt"))
        << "epochs: 6\nfilelist: '" << path("rows.csv")
        << "'\ndata_desc {\n  name: 'csv' batch_size: 32\n  feature { name: 'class' id {} is_dense: true }\n"
           "  feature { name: 'word' hash {} }\n  feature { name: 'weight' }\n}\n"
           "model {\n  table { name: 't' dim: 4 }\n  layer { name: 'e' embedding { slots: 'word' table: 't' } }\n"
        << loss << metrics << "  optimizer { adagrad { lr: 0.1 } }\n}\n"
        << more;
    return path("job.prototxt");
  }

 private:
  TempDir folder_;
};

constexpr char kLogits[] =
    "  layer { name: 'y' fc { in: 'e' units: 3 } }\n"
    "  loss { kind: SOFTMAX_CROSS_ENTROPY in: 'y' label: 'class' }\n";

std::vector<std::vector<double>> RowsOfFile(const std::string& file) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(ReadFile(file).value());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    std::vector<double>& row = rows.emplace_back();
    for (double number = 0; numbers >> number;) row.push_back(number);
  }
  return rows;
}

TEST(ClassesJob, AreMeasuredByTheLikeliestAndScoredEach) {
  for (const std::string loss : {kLogits,
                                 "  layer { name: 'y' fc { in: 'e' units: 3 act: SOFTMAX } }\n"
                                 "  loss { kind: CROSS_ENTROPY in: 'y' label: 'class' }\n"}) {
    const ClassesJob job;
    const std::string out = job.path("out");
    Process trainer("trainer",
                    {"--trainer_desc=" + job.Write(loss, "  metric { kind: ACCURACY }\n  metric { kind: LOGLOSS }\n",
                                                   "eval { filelist: '" + job.path("rows.csv") + "' }\n"),
                     "--output_dir=" + out});
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
    const std::string run = ReadFile(out + "/run.json").value();
    const double accuracy = NumberBehind(run, "\"accuracy\": ", "\"eval\":");
    const double logloss = NumberBehind(run, "\"logloss\": ", "\"eval\":");
    EXPECT_NEAR(accuracy, 0.9, 1e-6);
    EXPECT_NEAR(logloss, NumberBehind(run, "\"loss\": ", "\"eval\":"), 1e-4);

    Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + job.path("rows.csv"),
                                    "--output=" + job.path("scores")});
    ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
    EXPECT_THAT(predictor.errors(), HasSubstr("[0]\t"));
    EXPECT_THAT(predictor.errors(), Not(HasSubstr("auc")));
    EXPECT_NEAR(NumberBehind(predictor.errors(), "accuracy "), accuracy, 1e-6);
    EXPECT_NEAR(NumberBehind(predictor.errors(), "logloss "), logloss, 1e-5);
    const std::vector<std::vector<double>> rows = RowsOfFile(job.path("scores"));
    ASSERT_EQ(rows.size(), 600U);
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].size(), 3U);
      EXPECT_NEAR(rows[i][0] + rows[i][1] + rows[i][2], 1, 1e-5);
      EXPECT_GT(rows[i][i % 3], 0.6);
    }
  }
}

TEST(ClassesJob, WeightsCountInTheirMetrics) {
  const ClassesJob job;
  const std::string weighted =
      "  layer { name: 'y' fc { in: 'e' units: 3 } }\n"
      "  loss { kind: SOFTMAX_CROSS_ENTROPY in: 'y' label: 'class' sample_weight: 'weight' }\n";
  Process trainer("trainer", {"--trainer_desc=" + job.Write(weighted, "  metric { kind: ACCURACY }\n"),
                              "--output_dir=" + job.path("out")});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  Process predictor("predictor", {"--model_dir=" + job.path("out/model"), "--input=" + job.path("rows.csv")});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  // Every tenth row, of weight 1 where others have 1 or 2, is of another class than its word says.
  EXPECT_NEAR(NumberBehind(predictor.errors(), "accuracy "), 1 - 60.0 / 900, 1e-6);
}

TEST(ClassesJob, ALabelThatIsNoClassIsNamedByPredictor) {
  const ClassesJob job;
  Process trainer("trainer", {"--trainer_desc=" + job.Write(kLogits, "  metric { kind: ACCURACY }\n"),
                              "--output_dir=" + job.path("out")});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  std::ofstream(job.path("odd.csv")) << "class,word,weight\n1,w1,1\n7,w2,1\n";
  Process predictor("predictor", {"--model_dir=" + job.path("out/model"), "--input=" + job.path("odd.csv")});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  EXPECT_THAT(predictor.errors(), HasSubstr("a label is 7, so nothing is measured; they are classes from 0 to 2"));
}

TEST(ClassesJob, MetricsOfOneValueAreRefusedByName) {
  const ClassesJob job;
  Process trainer("trainer",
                  {"--trainer_desc=" + job.Write(kLogits, "  metric { kind: AUC }\n  metric { kind: CALIBRATION }\n"),
                   "--validate_only"});
  EXPECT_EQ(trainer.Wait(), 2);
  const std::string said = trainer.errors();
  EXPECT_THAT(said,
              HasSubstr("AUC is of one value an example, and \"prediction\" has 3 classes: leave it out, or measure "
                        "ACCURACY or LOGLOSS, which are of all"));
  EXPECT_THAT(said, HasSubstr("CALIBRATION is of one value an example"));
}

}  // namespace
}  // namespace millrace
