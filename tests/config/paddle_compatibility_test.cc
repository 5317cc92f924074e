#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/field_positions.h"
#include "config/text_file.h"
#include "config/text_parser.h"
#include "framework.pb.h"
#include "paths.h"
#include "shared_data.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string TypeName(const FieldDescriptor& field) {
  std::string name = field.type_name();
  if (field.message_type() != nullptr) name = field.message_type()->full_name();
  if (field.enum_type() != nullptr) name = field.enum_type()->full_name();
  constexpr std::string_view kPackage = "millrace.";
  return name.starts_with(kPackage) ? name.substr(kPackage.size()) : name;
}

std::string Default(const FieldDescriptor& field) {
  std::ostringstream out;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: out << field.default_value_int32(); break;
    case FieldDescriptor::CPPTYPE_INT64: out << field.default_value_int64(); break;
    case FieldDescriptor::CPPTYPE_FLOAT: out << field.default_value_float(); break;
    case FieldDescriptor::CPPTYPE_BOOL: out << (field.default_value_bool() ? "true" : "false"); break;
    case FieldDescriptor::CPPTYPE_STRING: out << field.default_value_string(); break;
    case FieldDescriptor::CPPTYPE_ENUM: out << field.default_value_enum()->name(); break;
    default: out << "?";
  }
  return out.str();
}

TEST(PaddleCompatibility, FieldsKeepNumbersTypesAndDefaults) {
  std::ifstream golden(SourceDir() + "/tests/golden/proto/paddle_fields.txt");
  const Descriptor* message = nullptr;
  int fields = 0;
  for (std::string line; std::getline(golden, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    int number = 0;
    if (!(words >> number)) {
      message = TrainerDesc::descriptor()->file()->pool()->FindMessageTypeByName("millrace." + line);
      ASSERT_NE(message, nullptr) << line;
      continue;
    }
    ++fields;
    std::string name;
    std::string type;
    words >> name;
    const bool repeated = name == "r";
    if (repeated) words >> name;
    words >> type;
    const FieldDescriptor* field = message->FindFieldByNumber(number);
    ASSERT_NE(field, nullptr) << message->name() << " has no field " << number << " (" << name << ")";
    EXPECT_EQ(field->name(), name) << message->name();
    EXPECT_EQ(field->is_repeated(), repeated) << field->full_name();
    EXPECT_EQ(TypeName(*field), type) << field->full_name();
    std::string value;
    if (words >> value) {
      if (value.starts_with("ours:")) value = value.substr(5);
      EXPECT_EQ(Default(*field), value) << field->full_name();
    } else {
      EXPECT_FALSE(field->has_default_value()) << field->full_name();
    }
  }
  EXPECT_EQ(fields, 158);
}

TEST(PaddleCompatibility, OurFieldsStartAt1001) {
  for (const Descriptor* message : {TrainerDesc::descriptor(), DataFeedDesc::descriptor(), Slot::descriptor()}) {
    for (int i = 0; i < message->field_count(); ++i) {
      const int number = message->field(i)->number();
      EXPECT_TRUE(number <= 201 || number >= 1001) << message->field(i)->full_name();
    }
  }
}

TEST(PaddleCompatibility, FilesThatPaddleWroteLoad) {
  MR_SHARED_OR_SKIP(shared);
  int jobs = 0;
  for (const char* job : {"wide_deep_adagrad", "wide_deep_adam", "deepfm_adagrad", "lr_sgd"}) {
    const std::string folder = shared + "/interop/" + job;
    const auto read = [&](const std::string& name, google::protobuf::Message* message) {
      Result<std::string> text = ReadTextFile(folder + "/" + name);
      ASSERT_TRUE(text.ok()) << text.status().ToString();
      Diagnostics diagnostics;
      FieldPositions positions;
      ParseText(diagnostics.AddSource(name, *text), "", message, &diagnostics, &positions);
      EXPECT_TRUE(diagnostics.empty()) << diagnostics.Render();
    };
    TrainerDesc trainer;
    read("trainer_desc.prototxt", &trainer);
    EXPECT_EQ(trainer.class_name(), "MultiTrainer");
    EXPECT_EQ(trainer.fetch_config().fetch_var_names_size(), 4);
    DataFeedDesc feed;
    read("data_feed.prototxt", &feed);
    EXPECT_EQ(feed.batch_size(), 64);
    EXPECT_EQ(feed.multi_slot_desc().slots_size(), 8);
    for (const char* name : {"main_program.bin", "startup_program.bin"}) {
      ProgramDesc program;
      std::ifstream bytes(folder + "/" + name, std::ios::binary);
      EXPECT_TRUE(program.ParseFromIstream(&bytes)) << name;
      EXPECT_GT(program.blocks(0).ops_size(), 10) << name;
      EXPECT_EQ(program.GetReflection()->GetUnknownFields(program).field_count(), 0) << name;
    }
    ++jobs;
  }
  EXPECT_EQ(jobs, 4);
}

}  // namespace
}  // namespace millrace
