#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "ops/registry.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

VarMeta Described(Dims dims, DType type = DType::kFloat32) {
  VarMeta meta;
  meta.dims = dims;
  meta.dtype = type;
  return meta;
}

OpDesc FileOp(const std::string& type, const std::string& path, const std::vector<std::string>& names) {
  OpDesc op;
  op.set_type(type);
  type.starts_with("save") ? SetInput(op, "X", names) : SetOutput(op, "Out", names);
  SetAttr(op, "file_path", path);
  return op;
}

/// A session over "a" [2, 2] and "n" int64 [3], filled.
std::unique_ptr<OpSession> Session(const std::vector<OpDesc>& ops) {
  auto session = OpSession::Create(ops, {{"a", Described({2, 2})}, {"n", Described({3}, DType::kInt64)}}, AllOps());
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  float* a = (*session)->tensor("a")->Resize<float>({2, 2});
  for (int i = 0; i < 4; ++i) a[i] = 0.5F * static_cast<float>(i);
  int64_t* n = (*session)->tensor("n")->Resize<int64_t>({3});
  for (int i = 0; i < 3; ++i) n[i] = int64_t{1} << (20 * i);
  return std::move(*session);
}

TEST(SaveLoad, BringsVariablesBack) {
  const TempDir folder = TempDir::Create("save_load").value();
  const std::string one = folder.path() + "/one";
  const std::string both = folder.path() + "/both";
  ASSERT_TRUE(Session({FileOp("save", one, {"a"}), FileOp("save_combine", both, {"a", "n"})})->Run().ok());
  const auto session = Session({FileOp("load", one, {"a"}), FileOp("load_combine", both, {"a", "n"})});
  session->tensor("a")->mutable_data<float>()[3] = 9;
  session->tensor("n")->mutable_data<int64_t>()[2] = 9;
  const Status loaded = session->Run();
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
  EXPECT_EQ(session->tensor("a")->data<float>()[3], 1.5F);
  EXPECT_EQ(session->tensor("n")->data<int64_t>()[2], int64_t{1} << 40);
}

TEST(SaveLoad, SaysWhatAFileLacks) {
  const TempDir folder = TempDir::Create("save_load").value();
  const std::string path = folder.path() + "/a";
  ASSERT_TRUE(Session({FileOp("save", path, {"a"})})->Run().ok());
  EXPECT_THAT(Session({FileOp("load", path, {"n"})})->Run().ToString(),
              HasSubstr("variable \"n\" is float32 [2, 2] there, and int64 [3] in the program"));
  EXPECT_THAT(Session({FileOp("load_combine", path, {"a", "n"})})->Run().ToString(), HasSubstr(path));
  EXPECT_THAT(Session({FileOp("load", path + "x", {"a"})})->Run().ToString(), HasSubstr(path + "x"));
  ASSERT_TRUE(Session({FileOp("save_combine", path, {"a", "a"})})->Run().ok());
  EXPECT_THAT(Session({FileOp("load", path, {"a"})})->Run().ToString(),
              HasSubstr("bytes follow the last variable, \"a\""));
  OpDesc keep = FileOp("save", path, {"a"});
  SetAttr(keep, "overwrite", false);
  EXPECT_THAT(Session({keep})->Run().ToString(), HasSubstr("exists, and overwrite is false"));
  EXPECT_THAT(OpSession::Create({FileOp("load", "", {"a"})}, {{"a", Described({2, 2})}}, AllOps()).status().ToString(),
              HasSubstr("file_path is empty"));
}

}  // namespace
}  // namespace millrace
