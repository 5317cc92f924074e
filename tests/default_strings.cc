// Reads every default string of the schemas before a test begins. Protocol Buffers makes such a string when it is first
// read, under a lock in a library that TSan does not see into: ranks that are threads of one test would seem to race.
#include <gtest/gtest.h>

#include "model.pb.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

int CountDefaultStrings(const google::protobuf::Descriptor& message) {
  int count = 0;
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const bool is_string = field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
    if (is_string && field.has_default_value() && !field.default_value_string().empty()) ++count;
  }
  for (int i = 0; i < message.nested_type_count(); ++i) count += CountDefaultStrings(*message.nested_type(i));
  return count;
}

int CountDefaultStrings(const google::protobuf::FileDescriptor& file) {
  int count = 0;
  for (int i = 0; i < file.message_type_count(); ++i) count += CountDefaultStrings(*file.message_type(i));
  return count;
}

class DefaultStrings : public ::testing::Environment {
 public:
  void SetUp() override {
    const std::string* read[] = {
        &SparseCommonSGDRuleParameter::default_instance().name(),
        &TableAccessorParameter::default_instance().accessor_class(),
        &TableDesc::default_instance().class_name(),
        &DatasetDesc::default_instance().class_name(),
        &FeatureImportanceDesc::default_instance().metric(),
        &EvalDesc::EarlyStopping::default_instance().metric(),
        &TrainerDesc::default_instance().class_name(),
        &TrainerDesc::default_instance().device_worker_name(),
        &TrainerDesc::default_instance().dump_fields_mode(),
    };
    const int all =
        CountDefaultStrings(*TableDesc::descriptor()->file()) + CountDefaultStrings(*TrainerDesc::descriptor()->file());
    EXPECT_EQ(static_cast<int>(std::size(read)), all) << "tests/default_strings.cc lacks a default string of proto/";
  }
};

const ::testing::Environment* const default_strings = ::testing::AddGlobalTestEnvironment(new DefaultStrings);

}  // namespace
}  // namespace millrace
