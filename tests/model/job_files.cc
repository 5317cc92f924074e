#include "job_files.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "data_feed.pb.h"
#include "ops/builtin_ops.h"
#include "paths.h"

namespace millrace {

const OpRegistry& BuiltinOps() {
  static const OpRegistry registry = [] {
    OpRegistry ops;
    RegisterBuiltinOps(ops);
    const Status status = ops.Seal();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return ops;
  }();
  return registry;
}

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TrainerDesc ReadJob(const std::string& name) {
  TrainerDesc job;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(FileText(SourceDir() + "/configs/" + name + ".prototxt"), &job))
      << name;
  return job;
}

SlotSchema ClickSlots() { return *SlotSchema::Create(ReadJob("wide_deep").data_desc()); }

Result<CompiledModel> CompileText(std::string_view model) {
  ModelDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(model), &desc)) << model;
  return CompileModel(desc, ClickSlots(), BuiltinOps());
}

}  // namespace millrace
