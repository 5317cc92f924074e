#include "runtime/variable_files.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/file.h"
#include "program/program_files.h"
#include "runtime/persistables.h"
#include "runtime/tensor.h"
#include "runtime/variable_store.h"
#include "shared_data.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kText[] = R"(# two parameters
blocks { idx: 0
  vars { name: "b" persistable: true type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: 2 } } } }
  vars { name: "a" persistable: true type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: 3 } } } }
  vars { name: "feed" persistable: true type { type: FEED_MINIBATCH } } }
)";

class ProgramFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::Create("program_files");
    ASSERT_TRUE(dir.ok());
    dir_ = std::make_unique<TempDir>(std::move(*dir));
  }
  std::string Path(const std::string& name) const { return dir_->path() + "/" + name; }
  std::string Write(const std::string& name, const std::string& content) const {
    EXPECT_TRUE(WriteFileAtomically(Path(name), content).ok());
    return Path(name);
  }
  std::unique_ptr<TempDir> dir_;
};

void Fill(Scope& root, const std::string& name, int count, float first) {
  float* values = root.Var(name)->GetMutable<Tensor>()->Resize<float>({count});
  for (int i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
}

TEST_F(ProgramFiles, TextAndSerializedProgramsAreTheSame) {
  auto text = ReadProgram(Write("p.prototxt", kText));
  ASSERT_TRUE(text.ok()) << text.status().message();
  auto binary = ReadProgram(Write("p.bin", text->SerializeAsString()));
  ASSERT_TRUE(binary.ok()) << binary.status().message();
  EXPECT_EQ(binary->SerializeAsString(), text->SerializeAsString());
  EXPECT_EQ(PersistableTensors(*text), (std::vector<std::string>{"a", "b"}));
}

TEST_F(ProgramFiles, ABrokenTextProgramIsNamedWithLineAndColumn) {
  const std::string path = Write("p.prototxt", "blocks {\n  idx: zero\n}\n");
  EXPECT_THAT(ReadProgram(path).status().message(), HasSubstr(path + ":2:8: "));
}

TEST_F(ProgramFiles, GarbageIsNeither) {
  EXPECT_THAT(ReadProgram(Write("p.bin", "\xff\xfe garbage")).status().message(),
              HasSubstr("neither a serialized ProgramDesc nor its text form"));
}

TEST_F(ProgramFiles, VariablesRoundTripOneByOneAndCombined) {
  auto program = ReadProgram(Write("p.prototxt", kText));
  Scope root;
  Fill(root, "a", 3, 1);
  Fill(root, "b", 2, 10);
  ASSERT_TRUE(SavePersistables(*program, Path("vars"), root, {}, ManifestFor::kTables, {}, 1).ok());
  EXPECT_FALSE(std::filesystem::exists(Path("vars/MANIFEST"))) << "Paddle's folders hold the variables alone";
  ASSERT_TRUE(SaveCombined(*program, Path("all"), root).ok());
  Scope one;
  ASSERT_TRUE(LoadVariables(*program, Path("vars"), one).ok());
  Scope combined;
  ASSERT_TRUE(LoadCombined(*program, Path("all"), combined).ok());
  for (Scope* scope : {&one, &combined}) {
    EXPECT_EQ(scope->Find("a")->Get<Tensor>().data<float>()[2], 3.f);
    EXPECT_EQ(scope->Find("b")->Get<Tensor>().data<float>()[0], 10.f);
  }
}

TEST_F(ProgramFiles, EveryMissingOrUnfitFileIsReported) {
  auto program = ReadProgram(Write("p.prototxt", kText));
  Scope root;
  Fill(root, "a", 3, 1);
  Fill(root, "b", 2, 1);
  ASSERT_TRUE(SavePersistables(*program, Path("vars"), root, {}, ManifestFor::kTables, {}, 1).ok());
  Scope other;
  Fill(other, "a", 5, 1);
  ASSERT_TRUE(SavePersistables(*ReadProgram(Write("q.prototxt", R"(blocks { idx: 0
    vars { name: "a" persistable: true type { type: LOD_TENSOR } } })")),
                               Path("vars"), other, {}, ManifestFor::kTables, {}, 1)
                  .ok());
  std::filesystem::remove(Path("vars/b"));
  Scope back;
  const Status status = LoadVariables(*program, Path("vars"), back);
  EXPECT_THAT(status.message(), HasSubstr("variable \"a\" is float32 [3] in the program and float32 [5] in the file"));
  EXPECT_THAT(status.message(), HasSubstr(Path("vars/b")));
}

TEST_F(ProgramFiles, APipeInPlaceOfAVariableIsNotWaitedFor) {
  auto program = ReadProgram(Write("p.prototxt", kText));
  Scope root;
  Fill(root, "a", 3, 1);
  Fill(root, "b", 2, 1);
  ASSERT_TRUE(SavePersistables(*program, Path("vars"), root, {}, ManifestFor::kTables, {}, 1).ok());
  std::filesystem::remove(Path("vars/b"));
  ASSERT_EQ(mkfifo(Path("vars/b").c_str(), 0600), 0);
  Scope back;
  const Status status = LoadVariables(*program, Path("vars"), back);
  EXPECT_EQ(status.code(), StatusCode::kBadData);
  EXPECT_EQ(status.message(), "\"" + Path("vars/b") + "\" is no plain file, and that of variable \"b\" belongs there");
}

TEST_F(ProgramFiles, PicklesOfPaddleAreNamedWithWhatToDo) {
  auto program = ReadProgram(Write("p.prototxt", kText));
  std::filesystem::create_directories(Path("saved"));
  Write("saved/model.pdparams", "\x80\x04");
  Scope root;
  for (const char* name : {"saved", "saved/model.pdparams"}) {
    const Status status = LoadVariables(*program, Path(name), root);
    EXPECT_THAT(status.message(), HasSubstr("\"" + Path("saved/model") + ".pdparams\" is of paddle.static.save"));
    EXPECT_THAT(status.message(),
                HasSubstr("paddle.static.load(main_program, \"" + Path("saved/model") + "\", executor)"));
  }
  EXPECT_THAT(LoadVariables(*program, Path("nothing"), root).message(), Not(HasSubstr("paddle.static")));
}

TEST(StoredVariables, OfOneValueFitWhateverAxesPaddleDeclares) {
  ProgramDesc program;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(blocks { idx: 0
    vars { name: "sum" persistable: true
           type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: 1 dims: 1 } } } } })",
                                                            &program));
  StoredVariable stored;
  stored.set_name("sum");
  stored.set_dtype("float32");
  stored.add_dims(1);
  EXPECT_EQ(CompareVariables(program, {stored}, {}).message(), "");
  stored.set_dims(0, 2);
  EXPECT_THAT(CompareVariables(program, {stored}, {}).message(),
              HasSubstr("was float32 [2] and is now float32 [1, 1]"));
}

}  // namespace
}  // namespace millrace
