// Runs bin/inspect as a user does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "paths.h"

namespace millrace {
namespace {

using testing::HasSubstr;

struct Outcome {
  int exit_code;
  std::string output;
  std::string errors;
};

class InspectMain : public testing::Test {
 protected:
  InspectMain() {
    std::string pattern = testing::TempDir() + "inspectXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~InspectMain() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }

  // A job over "part-0": label (dense), a, skipped (not used), dense (2 floats); batches of 2.
  void WriteJob(const std::string& more) {
    Write("job.prototxt", "filelist: \"" + folder_ + "/part-0\"\n" + more + R"(
      data_desc { batch_size: 2 multi_slot_desc {
        slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
        slots { name: "a" type: "uint64" is_used: true }
        slots { name: "skipped" type: "uint64" is_used: false }
        slots { name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 2] } } })");
  }

  Outcome Run(const std::string& arguments) {
    const std::string command = BinDir() + "/inspect " + arguments + " --trainer_desc=" + folder_ + "/job.prototxt >" +
                                folder_ + "/out 2>" + folder_ + "/err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("out"), Read("err")};
  }

  std::string Read(const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
};

constexpr char kThreeRows[] =
    "1 1 2 0 18446744073709551615 1 77 2 0.5 -1\n"
    "1 0 1 5 2 8 9 2 1e-7 3\n"
    "1 1 3 1 2 3 1 6 2 0 0\n";

TEST_F(InspectMain, HeadPrintsABatchALine) {
  Write("part-0", kThreeRows);
  WriteJob("");
  const Outcome outcome = Run("head --batches=5 --format=jsonl");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output,
            R"({"batch":0,"rows":2,"slots":{"label":{"shape":[2,1],"values":[1,0]},)"
            R"("a":{"shape":[3,1],"lod":[0,2,3],"values":[0,18446744073709551615,5]},)"
            R"("dense":{"shape":[2,2],"values":[0.5,-1,1e-07,3]}}})"
            "\n"
            R"({"batch":1,"rows":1,"slots":{"label":{"shape":[1,1],"values":[1]},)"
            R"("a":{"shape":[3,1],"lod":[0,3],"values":[1,2,3]},"dense":{"shape":[1,2],"values":[0,0]}}})"
            "\n");
}

TEST_F(InspectMain, HeadStopsAfterItsBatches) {
  Write("part-0", kThreeRows);
  WriteJob("");
  const Outcome outcome = Run("head --batches=1 --format=jsonl");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1);
}

TEST_F(InspectMain, ZerosFollowTheJob) {
  Write("part-0", kThreeRows);
  WriteJob("dataset { class_name: \"InMemoryDataset\" }");
  EXPECT_THAT(Run("head --batches=1 --format=jsonl").output,
              HasSubstr(R"("a":{"shape":[3,1],"lod":[0,2,3],"values":[0,18446744073709551615,5]})"));
  const Outcome outcome = Run("head --batches=1 --format=jsonl --set data_desc.zeros=FEED_DEFAULT");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr(R"("a":{"shape":[2,1],"lod":[0,1,2],"values":[18446744073709551615,5]})"));
}

TEST_F(InspectMain, NamesOfInstancesAreShown) {
  Write("part-0", "1 first 1 1 1 4 1 1 2 0 0\n1 second 1 0 1 5 1 1 2 0 0\n");
  WriteJob("");
  const Outcome outcome = Run("head --format=jsonl --set data_desc.parse_ins_id=true");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr(R"(,"ins_ids":["first","second"]})"));
}

TEST_F(InspectMain, TablesAreForPeople) {
  Write("part-0", kThreeRows);
  WriteJob("");
  EXPECT_THAT(Run("head").output, HasSubstr("batch 0: 2 rows\n  row 0\n    label  1\n"));
}

TEST_F(InspectMain, StatsReadTheWholeInput) {
  Write("part-0", kThreeRows);
  WriteJob("");
  const Outcome outcome = Run("stats --format=jsonl --top=1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr(R"({"rows":3,"label":"label","label_rate":0.6666666666666666,)"));
  EXPECT_THAT(outcome.output,
              HasSubstr(R"("a":{"type":"uint64","coverage":1,"values":6,"zeros":1,"lengths":{"1":1,"2":1,"3":1},)"
                        R"("cardinality":6,"cardinality_exact":true)"));
  EXPECT_THAT(Run("stats").output, HasSubstr("3 rows, label rate 0.6667 (label)"));
}

TEST_F(InspectMain, ABadLineIsExitCode3) {
  Write("part-0", "1 1 2 7 x 1 77 2 0.5 -1\n");
  WriteJob("");
  const Outcome outcome = Run("head");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr("part-0:1:9"));
}

TEST_F(InspectMain, ABadJobIsExitCode2) {
  Write("part-0", kThreeRows);
  WriteJob("thread_nun: 2");
  const Outcome outcome = Run("head");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("thread_num"));
}

TEST_F(InspectMain, AConvertedJobHasTheBatchesOfItsText) {
  Write("part-0", kThreeRows);
  Write("test-0", "1 0 1 5 1 1 2 4 5\n");
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    WriteJob("dataset { class_name: \"" + dataset + "\" } eval { filelist: \"" + folder_ + "/test-0\" }\n");
    const std::string zeros = " --set data_desc.zeros=FEED_DEFAULT";
    const std::string batches = Run("head --batches=5 --format=jsonl" + zeros).output;
    const std::string binary = folder_ + "/" + dataset;
    const Outcome converted = Run("convert --output_dir=" + binary + zeros);
    EXPECT_EQ(converted.exit_code, 0) << converted.errors;
    const std::string bytes = dataset == "QueueDataset" ? "162" : "154";  // a zero less
    EXPECT_THAT(converted.errors, HasSubstr("/part-*: 3 rows, " + bytes + " bytes in 1 files\n"));
    EXPECT_THAT(converted.errors, HasSubstr("/eval-*: 1 rows, 46 bytes in 1 files\n"));
    EXPECT_THAT(converted.errors, HasSubstr("train from them: trainer --trainer_desc=" + binary + "/job.prototxt\n"));
    // The job that was written names both, and reads as the text does.
    std::filesystem::copy_file(binary + "/job.prototxt", folder_ + "/job.prototxt",
                               std::filesystem::copy_options::overwrite_existing);
    const Outcome read = Run("head --batches=5 --format=jsonl");
    EXPECT_EQ(read.exit_code, 0) << read.errors;
    EXPECT_EQ(read.output, batches);
    EXPECT_EQ(Run("convert --output_dir=" + folder_ + "/again").exit_code, 2) << "binary already";
  }
}

TEST_F(InspectMain, AConvertedJobOfFeaturesTrainsRowsThatLackValues) {
  Write("part-0", "y,city\n1,Wien\n0,\n1,Graz\n");
  std::ofstream(folder_ + "/job.prototxt")
      << "filelist: \"" << folder_
      << "/part-0\"\ndata_desc { name: \"csv\" feature { name: \"label\" from: \"y\" id {} "
      << "is_dense: true } feature { name: \"city\" hash {} } }\n";
  const std::string batches = Run("head --format=jsonl").output;
  EXPECT_EQ(Run("convert --output_dir=" + folder_ + "/binary").exit_code, 0);
  std::filesystem::copy_file(folder_ + "/binary/job.prototxt", folder_ + "/job.prototxt",
                             std::filesystem::copy_options::overwrite_existing);
  const Outcome read = Run("head --format=jsonl");
  EXPECT_EQ(read.exit_code, 0) << read.errors;
  EXPECT_EQ(read.output, batches);
}

TEST_F(InspectMain, ABadLineLeavesNoHalfFile) {
  Write("part-0", std::string(kThreeRows) + "1 1 2 7 x 1 77 2 0.5 -1\n");
  WriteJob("");
  const Outcome outcome = Run("convert --output_dir=" + folder_ + "/binary");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr("part-0:4:9"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/binary"));
}

TEST_F(InspectMain, FilesThatAreReadAreNotWrittenOver) {
  Write("train.txt", kThreeRows);
  WriteJob("filelist: \"" + folder_ + "/train.txt\"\n");
  Write("part-0", kThreeRows);
  const std::string job = Read("job.prototxt");
  const Outcome outcome = Run("convert --output_dir=" + folder_ + "/.");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("which is the job to convert: name another folder"));
  EXPECT_EQ(Read("job.prototxt"), job);
  std::filesystem::create_directories(folder_ + "/text");
  std::filesystem::create_hard_link(folder_ + "/job.prototxt", folder_ + "/text/text_feed.prototxt");
  const Outcome text_feed = Run("convert --output_dir=" + folder_ + "/text");
  EXPECT_EQ(text_feed.exit_code, 2);
  EXPECT_THAT(text_feed.errors, HasSubstr("text_feed.prototxt\", which is the job to convert: name another folder"));
  EXPECT_EQ(Read("job.prototxt"), job);
  Write("points.csv", "1,2\n");
  const Outcome records =
      Run("records --outputs=float32[2] --records=" + folder_ + "/points.csv csv:" + folder_ + "/points.csv");
  EXPECT_EQ(records.exit_code, 2);
  EXPECT_THAT(records.errors, HasSubstr("is one of the files to read, and would be written over"));
  EXPECT_EQ(Read("points.csv"), "1,2\n");
}

TEST_F(InspectMain, BadFlagsAreExitCode2) {
  EXPECT_EQ(Run("convert").exit_code, 2);
  EXPECT_EQ(Run("convert --output_dir=x --part_mib=0").exit_code, 2);
  EXPECT_EQ(Run("tail").exit_code, 2);
  EXPECT_EQ(Run("head --format=xml").exit_code, 2);
  EXPECT_EQ(Run("head --batches=-1").exit_code, 2);
}

}  // namespace
}  // namespace millrace
