#include "config/trainer_desc_reader.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "batch/slot_schema.h"
#include "config/diagnostics.h"
#include "config/field_positions.h"
#include "config/known_names_for_tests.h"
#include "config/print_config.h"
#include "config/text_file.h"
#include "config/text_parser.h"
#include "paths.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kJob[] = R"(
filelist: "part-0"
data_desc { multi_slot_desc {
  slots { name: "click" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
  slots { name: "x" type: "float" is_used: true is_dense: true shape: [-1, 2] } } }
model {
  layer { name: "y" fc { in: "x" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "click" }
  optimizer { sgd { lr: 0.1 } }
}
)";

class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() {
    std::string name = testing::TempDir() + "/config.XXXXXX";
    folder_ = mkdtemp(name.data());
    request_.known = KnownNamesForTests();
    request_.judge = JudgeForTests();
    request_.file = folder_ + "/job.prototxt";
  }
  ~ReaderTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  std::string Failure() {
    Result<LoadedConfig> loaded = LoadTrainerDesc(request_);
    EXPECT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.status().code(), StatusCode::kInvalidConfig);
    return loaded.status().message();
  }

  /// The job with rows that come once, and these fields.
  std::string FailureOfPipe(const std::string& fields) {
    Write("job.prototxt", std::string(kJob).replace(std::string(kJob).find("part-0"), 6, folder_ + "/pipe") + fields);
    return Failure();
  }

  std::string folder_;
  ConfigRequest request_;
};

TEST_F(ReaderTest, FilesThatTrainAndAreEvaluatedAreToldOnceASet) {
  for (const char* const file : {"part-0", "part-1", "part-2", "test"}) Write(file, "");
  const std::string trained = "\"" + folder_ + "/part-0\", \"" + folder_ + "/part-1\"";
  const auto warnings = [&](const std::string& eval) {
    std::string job = kJob;
    job.replace(job.find("\"part-0\""), 8, "[" + trained + "]");
    Write("job.prototxt", job + "eval { " + eval + " }\n");
    const Result<LoadedConfig> loaded = LoadTrainerDesc(request_);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return loaded.ok() ? loaded->warnings : "";
  };
  EXPECT_EQ(warnings("filelist: \"" + folder_ + "/part-2\" set { name: 'x' share: 0.1 }"), "");
  const std::string told = warnings("filelist: \"" + folder_ + "/./part-*\" set { name: 'x' filelist: \"" + folder_ +
                                    "/test\" filelist: \"" + folder_ + "/part-1\" }");
  EXPECT_THAT(told, HasSubstr("warning: \"" + folder_ + "/./part-0\" and 1 other file of eval.filelist also train: "));
  EXPECT_THAT(told, HasSubstr("warning: \"" + folder_ + "/part-1\" of the evaluation set \"x\" also trains: "));
  std::filesystem::create_symlink(folder_ + "/part-0", folder_ + "/link");
  std::filesystem::create_hard_link(folder_ + "/part-1", folder_ + "/twin");
  for (const char* const name : {"/link", "/twin"}) {
    EXPECT_THAT(warnings("filelist: \"" + folder_ + name + "\""),
                HasSubstr(folder_ + name + "\" of eval.filelist also trains: "));
  }
}

TEST_F(ReaderTest, RowsThatComeOnceMakeNoSecondEpoch) {
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  const std::string rows = "\"" + folder_ + "/pipe\" is no plain file, so that its rows come once, and ";
  EXPECT_THAT(FailureOfPipe("epochs: 2\n"),
              HasSubstr("job.prototxt:11:9: error: " + rows + "epochs: 2 reads them again"));
  const std::string eval = "eval { filelist: \"" + folder_ + "/pipe\" ";
  EXPECT_THAT(FailureOfPipe(eval + "every_steps: 5 }\n"), HasSubstr(rows + "eval.every_steps: 5 reads them again"));
  EXPECT_THAT(FailureOfPipe("dataset { class_name: \"QueueDataset\" }\nepochs: 2 " + eval + "}\n"),
              HasSubstr(rows + "an evaluation every 1 epochs reads them again"));

  const std::string once = std::string(kJob).replace(std::string(kJob).find("part-0"), 6, folder_ + "/pipe");
  for (const std::string more : {"", "epochs: 3 dataset { class_name: \"InMemoryDataset\" }"}) {
    Write("job.prototxt", once + more);
    EXPECT_TRUE(LoadTrainerDesc(request_).ok()) << LoadTrainerDesc(request_).status().ToString();
  }
}

TEST_F(ReaderTest, ANamedPipeIsReadOnceByTheWholeJob) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string twice = "/pipe\" is a named pipe, whose rows come once, and the job reads it twice: name a file";
  EXPECT_THAT(FailureOfPipe("filelist: \"" + pipe + "\"\n"), HasSubstr(twice));
  for (const std::string dataset : {"", "dataset { class_name: \"InMemoryDataset\" }\n"}) {
    EXPECT_THAT(FailureOfPipe("eval { filelist: \"" + pipe + "\" }\n" + dataset), HasSubstr(twice));
  }
  std::filesystem::create_symlink(pipe, folder_ + "/link");
  EXPECT_THAT(FailureOfPipe("eval { filelist: \"" + folder_ + "/link\" }\n"),
              HasSubstr("/link\" is a named pipe, whose rows come once, and the job reads it twice (as \"" + pipe +
                        "\", too): name a file"));
}

TEST_F(ReaderTest, ReadsAJobAndItsFiles) {
  Write("job.prototxt", kJob);
  Write("part-0", "1 0 2 1 2\n");
  request_.overrides = {"filelist=" + folder_ + "/part-*", "data_desc.batch_size=7"};
  Result<LoadedConfig> loaded = LoadTrainerDesc(request_);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->desc->data_desc().batch_size(), 7);
  EXPECT_THAT(loaded->files, ElementsAre(folder_ + "/part-0"));
  EXPECT_EQ(loaded->warnings, "");
}

TEST_F(ReaderTest, StepsThatFilesDoNotFillAreToldBeforeTraining) {
  Write("job.prototxt", std::string(kJob) + "dist { update: SYNC micro_batches: 4 }\n");
  for (const char* file : {"part-0", "part-1", "part-2"}) Write(file, "1 0 2 1 2\n");
  const auto warnings = [this](const std::string& files, const std::string& more) {
    request_.overrides = {"data_desc.batch_size=8", files, more};
    const Result<LoadedConfig> loaded = LoadTrainerDesc(request_);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return loaded.ok() ? loaded->warnings : "";
  };
  const std::string all = "filelist=" + folder_ + "/part-*";
  EXPECT_THAT(warnings(all, "thread_num=1"),
              HasSubstr("job.prototxt:11:36: warning: a step has 3 of its 4 batches, 24 of 32 examples, as each batch "
                        "is of files of its own (files: 3); split the input into 4 files, set micro_batches: 3, or"));
  EXPECT_EQ(warnings(all, "dist.micro_batches=3"), "");
  EXPECT_EQ(warnings(all, "dist={ update: ASYNC }"), "");
  EXPECT_EQ(warnings(all, "dataset={ class_name: \"InMemoryDataset\" global_shuffle: true }"), "");
  const std::string days = "incremental={ pass { name: \"1\" filelist: \"" + folder_ +
                           "/part-0\" } pass { name: \"2\" filelist: \"" + folder_ + "/part-*\" } }";
  EXPECT_THAT(warnings("filelist=[]", days),
              HasSubstr("a step has 1 of its 4 batches, 8 of 32 examples, as each batch is of files of its own (files "
                        "in the smallest pass: 1)"));
}

TEST_F(ReaderTest, AnInputThatIsNotThereIsNoMistakeOfTheConfiguration) {
  Write("job.prototxt", kJob);
  request_.overrides = {"filelist=" + folder_ + "/part-*"};
  Result<LoadedConfig> loaded = LoadTrainerDesc(request_);
  EXPECT_EQ(loaded.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(loaded.status().message(), HasSubstr("--set #1:1:10: error: \"" + folder_ + "/part-*\" matches no file"));
  request_.overrides.push_back("epochs=0");
  EXPECT_THAT(Failure(), HasSubstr("matches no file"));
}

TEST_F(ReaderTest, SaysWhatIsWrongWithAFileThatIsNone) {
  EXPECT_THAT(Failure(), HasSubstr("no file \"job.prototxt\""));
  Write("job.prototext", kJob);
  EXPECT_THAT(Failure(), HasSubstr("did you mean \"job.prototext\"?"));
  request_.file = folder_;
  EXPECT_THAT(Failure(), HasSubstr("is a folder"));
  request_.file = "";
  EXPECT_THAT(Failure(), StartsWith("--trainer_desc=FILE is missing"));
  Write("job.prototxt", std::string("x\n\0\1\2", 5));
  request_.file = folder_ + "/job.prototxt";
  EXPECT_THAT(Failure(), HasSubstr("is no text (there is a NUL byte in line 2)"));
  Write("job.prototxt", std::string("\xFF\xFE"
                                    "a\0",
                                    4));
  EXPECT_THAT(Failure(), HasSubstr("is UTF-16; save it as UTF-8"));
  std::filesystem::create_symlink("nowhere", folder_ + "/link");
  request_.file = folder_ + "/link";
  EXPECT_THAT(Failure(), HasSubstr("/link\" leads to \"nowhere\", which is not there"));
  request_.file = folder_ + "/job.prototxt";
  Write("job.prototxt", "");
  EXPECT_THAT(Failure(), HasSubstr("the text holds nothing"));
}

TEST_F(ReaderTest, ColumnsCountWithoutAByteOrderMark) {
  Write("job.prototxt", "\xEF\xBB\xBFthread_num: 0\r\nepochs: 0\r\n");
  const std::string report = Failure();
  EXPECT_THAT(report, HasSubstr("job.prototxt:1:13: error: thread_num must be at least 1, not 0\n"
                                "   1 | thread_num: 0\n     |             ^\n"));
  EXPECT_THAT(report, HasSubstr("job.prototxt:2:9: error: epochs must be at least 1, not 0"));
}

TEST_F(ReaderTest, AsksForDeeperMistakesWhereTheyMeanSomething) {
  int asked = 0;
  request_.find_deeper = [&asked](const TrainerDesc& desc) {
    ++asked;
    EXPECT_EQ(desc.data_desc().multi_slot_desc().slots_size(), 2);
    return std::vector<ConfigMistake>{{"model.loss[0].in", "too deep"}, {"fetch_config", "not there"}};
  };
  Write("part-0", "1 0 2 1 2\n");
  Write("job.prototxt", kJob);
  request_.overrides = {"filelist=" + folder_ + "/part-0"};
  ASSERT_TRUE(LoadTrainerDesc(request_).ok());
  EXPECT_EQ(asked, 0);
  Write("job.prototxt", std::string("epochs: 0\n") + kJob + "sed: 1 epoch: 0\n");
  EXPECT_THAT(Failure(), HasSubstr("job.prototxt:9:29: error: too deep"));
  EXPECT_EQ(asked, 1);
  for (const char* broken : {"data_desc.batch_size=0", "model.layer[y].fc.unit=3", "model.layer[0].name=3"}) {
    request_.overrides.emplace_back(broken);
    EXPECT_THAT(Failure(), testing::Not(HasSubstr("too deep"))) << broken;
    request_.overrides.pop_back();
  }
  EXPECT_EQ(asked, 1);
}

TEST_F(ReaderTest, ReportsSyntaxMeaningFilesAndAssignmentsTogether) {
  Write("job.prototxt", std::string(kJob) + "epoch: 0\n");
  request_.overrides = {"data_desc.batch_size=0", "thread=1"};
  const std::string report = Failure();
  EXPECT_THAT(report, HasSubstr("TrainerDesc has no field \"epoch\"; did you mean \"epochs\"?"));
  EXPECT_THAT(report, HasSubstr("epochs must be at least 1, not 0"));
  EXPECT_THAT(report, HasSubstr("--set #1:1:22: error: batch_size must be at least 1, not 0"));
  EXPECT_THAT(report,
              HasSubstr("--set #2:1:1: error: TrainerDesc has no field \"thread\"; did you mean \"thread_num\"?"));
  EXPECT_THAT(report, HasSubstr("job.prototxt:2:11: error: no file \"part-0\""));
  EXPECT_THAT(report, testing::EndsWith("5 errors"));
}

TEST_F(ReaderTest, AMessageMayComeFromAFile) {
  Write("job.prototxt",
        R"(filelist: "x:y" program { main: ")" + folder_ + R"(/main.bin" init_dir: ")" + folder_ + "\" }");
  Write("main.bin", "");
  Write("feed.prototxt", "batch: 64 multi_slot_desc { slots { name: 'a' type: 'uint64' use: true } }");
  request_.overrides = {"data_desc=@" + folder_ + "/feed.prototxt"};
  Result<LoadedConfig> loaded = LoadTrainerDesc(request_);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->desc->data_desc().batch_size(), 64);

  Write("feed.prototxt", "batch: 64\nmulti_slot_desc { slots { name: 'a' type: 'uint' use: true } }");
  EXPECT_THAT(Failure(), HasSubstr("/feed.prototxt:2:43: error: the type of a slot is"));
}

TEST_F(ReaderTest, EveryConfigurationOfTheRepositoryIsSound) {
  request_.check_files = false;
  int jobs = 0;
  for (const char* folder : {"/configs", "/examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(SourceDir() + std::string(folder))) {
      if (entry.path().extension() != ".prototxt") continue;
      request_.file = entry.path().string();
      Result<LoadedConfig> loaded = LoadTrainerDesc(request_);
      ASSERT_TRUE(loaded.ok()) << loaded.status().message();
      EXPECT_EQ(loaded->warnings, "");
      ++jobs;
    }
  }
  EXPECT_GE(jobs, 5);
}

/// The first block of a page that starts with `fence`, behind `from`.
std::string Block(const std::string& page, const std::string& fence, size_t from, size_t* end) {
  const size_t begin = page.find("\n" + fence + "\n", from) + fence.size() + 2;
  *end = page.find("```\n", begin);
  return page.substr(begin, *end - begin);
}

TEST_F(ReaderTest, TheGuideShowsWhatItsBrokenFileGives) {
  Result<std::string> page = ReadTextFile(SourceDir() + "/docs/configuration.md");
  ASSERT_TRUE(page.ok());
  size_t end = 0;
  const std::string job = Block(*page, "```prototxt", 0, &end);
  const std::string report = Block(*page, "```text", end, &end);
  request_.check_files = false;
  Result<LoadedConfig> loaded = LoadTrainerDescText("job.prototxt", job, request_);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().message() + "\n", report);
}

TEST_F(ReaderTest, AModelIsNeededOnlyToTrain) {
  Write("job.prototxt",
        "filelist: 'x:y' data_desc { multi_slot_desc { slots { name: 'a' type: 'uint64' is_used: true } } }");
  EXPECT_THAT(Failure(), HasSubstr("model is missing"));
  request_.needs_model = false;
  EXPECT_TRUE(LoadTrainerDesc(request_).ok());
}

/// Sets random fields of a message, and of the messages below it.
void Fill(google::protobuf::Message* message, std::mt19937_64* random, int depth) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message->GetReflection();
  const auto draw = [&](uint64_t n) { return (*random)() % n; };
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (draw(3) != 0) continue;
    const int count = field->is_repeated() ? static_cast<int>(draw(3)) : 1;
    for (int k = 0; k < count; ++k) {
      std::string text;
      for (uint64_t n = draw(6); n > 0; --n) text += static_cast<char>(draw(256));
      const auto number = static_cast<int64_t>((*random)()) >> draw(64);
      const double real =
          draw(4) == 0 ? static_cast<double>(number) : std::ldexp(static_cast<double>(draw(1 << 24)), -30);
      const auto put = [&](auto add, auto set, auto value) {
        if (field->is_repeated()) {
          (reflection->*add)(message, field, value);
        } else {
          (reflection->*set)(message, field, value);
        }
      };
      using R = google::protobuf::Reflection;
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_INT32: put(&R::AddInt32, &R::SetInt32, static_cast<int32_t>(number)); break;
        case FieldDescriptor::CPPTYPE_INT64: put(&R::AddInt64, &R::SetInt64, number); break;
        case FieldDescriptor::CPPTYPE_UINT64: put(&R::AddUInt64, &R::SetUInt64, static_cast<uint64_t>(number)); break;
        case FieldDescriptor::CPPTYPE_FLOAT: put(&R::AddFloat, &R::SetFloat, static_cast<float>(real)); break;
        case FieldDescriptor::CPPTYPE_DOUBLE: put(&R::AddDouble, &R::SetDouble, real); break;
        case FieldDescriptor::CPPTYPE_BOOL: put(&R::AddBool, &R::SetBool, draw(2) == 1); break;
        case FieldDescriptor::CPPTYPE_ENUM: {
          const int value = static_cast<int>(draw(static_cast<uint64_t>(field->enum_type()->value_count())));
          put(&R::AddEnum, &R::SetEnum, field->enum_type()->value(value));
          break;
        }
        case FieldDescriptor::CPPTYPE_STRING: put(&R::AddString, &R::SetString, text); break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          if (depth == 0) break;
          Fill(field->is_repeated() ? reflection->AddMessage(message, field)
                                    : reflection->MutableMessage(message, field),
               random, depth - 1);
          break;
        case FieldDescriptor::CPPTYPE_UINT32: break;
      }
    }
  }
}

TEST(PrintConfig, ReadsBackToTheSameMessage) {
  std::mt19937_64 random(20240229);
  for (int round = 0; round < 300; ++round) {
    TrainerDesc desc;
    Fill(&desc, &random, 5);
    ExpandSlotRanges(&desc);
    const std::string printed = PrintConfig(desc);
    Diagnostics diagnostics;
    FieldPositions positions;
    TrainerDesc back;
    ParseText(diagnostics.AddSource("printed", printed), "", &back, &diagnostics, &positions);
    ASSERT_EQ(diagnostics.errors(), 0) << "round " << round << "\n" << diagnostics.Render() << printed;
    ASSERT_TRUE(google::protobuf::util::MessageDifferencer::Equals(desc, back)) << "round " << round << "\n" << printed;
    ASSERT_EQ(PrintConfig(back), printed);
  }
}

TEST(ModelJudgement, IsGivenOfAnyModel) {
  std::mt19937_64 random(20261130);
  const ModelJudge judge = JudgeForTests();
  const auto has_text = [](const ConfigMistake& mistake) { return !mistake.path.empty() && !mistake.message.empty(); };
  for (const auto& entry : std::filesystem::directory_iterator(SourceDir() + "/configs")) {
    if (entry.path().extension() != ".prototxt") continue;
    ConfigRequest request;
    request.file = entry.path().string();
    request.check_files = false;
    const Result<LoadedConfig> job = LoadTrainerDesc(request);
    ASSERT_TRUE(job.ok()) << job.status().message();
    const SlotSchema slots = *SlotSchema::Create(job->desc->data_desc());
    EXPECT_EQ(judge(job->desc->model(), slots, false).mistakes.size(), 0U) << request.file;
    for (int round = 0; round < 20; ++round) {
      // Random fields on top of those of a sound model: names that nothing has, numbers that nothing can be.
      ModelDesc model = job->desc->model();
      Fill(&model, &random, 3);
      for (LayerDesc& layer : *model.mutable_layer()) {
        Fill(&layer, &random, 1);
        if (layer.cross().layers() > 9) layer.mutable_cross()->set_layers(9);
      }
      for (const bool is_of_program : {false, true}) {
        const std::vector<ConfigMistake> mistakes = judge(model, slots, is_of_program).mistakes;
        EXPECT_TRUE(std::all_of(mistakes.begin(), mistakes.end(), has_text)) << model.DebugString();
      }
    }
  }
}

}  // namespace
}  // namespace millrace
