// create_py_array_reader: a queue of the scope becomes a reader, once.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "ops/registry.h"
#include "reader/array_queue.h"
#include "reader/reader_holder.h"
#include "runtime/frame.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

ProgramDesc MakesReaderOf(const std::string& queue) {
  ProgramDesc program;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "blocks { idx: 0 parent_idx: -1 vars { name: \"r\" persistable: true type { type: READER } } ops { type: "
      "\"create_py_array_reader\" outputs { parameter: \"Out\" arguments: \"r\" } attrs { name: \"feeder_name\" type: "
      "STRING s: \"" +
          queue + "\" } } }",
      &program));
  return program;
}

HeldArrays OneFloat(const float* value) {
  HeldArrays arrays(1);
  arrays[0].dims = {1};
  arrays[0].data = value;
  return arrays;
}

TEST(PyArrayReaderOp, ReadsTheQueueThatTheScopeHolds) {
  Scope root;
  auto* holder = root.Var("queue")->GetMutable<PyArrayFeedQueueHolder>();
  EXPECT_THAT(RunStartup(MakesReaderOf("queue"), AllOps(), root, 1).message(),
              HasSubstr("the holder has no queue yet: call its init_once"));
  ASSERT_TRUE(holder->InitOnce(2, {{DType::kFloat32, {1}, 0}}).ok());
  ASSERT_TRUE(RunStartup(MakesReaderOf("queue"), AllOps(), root, 1).ok());
  ASSERT_TRUE(RunStartup(MakesReaderOf("queue"), AllOps(), root, 1).ok()) << "creation runs once";
  const float value = 0.5F;
  ASSERT_TRUE(holder->feeder()->Push(OneFloat(&value), {}).ok());
  holder->feeder()->Close(Status::Ok());
  auto* reader = root.Var("r")->GetMutable<ReaderHolder>();
  std::vector<LoDTensor> item;
  ASSERT_TRUE(reader->ReadNext(&item, EndOfData::kError, {}).ok());
  EXPECT_EQ(item[0].values.data<float>()[0], 0.5F);
  EXPECT_FALSE(*reader->HasNext({}));
  EXPECT_THAT(reader->ReInit().message(), ::testing::StartsWith("PyArrayReader does not support ReInit(): "));
}

TEST(PyArrayReaderOp, NamesAQueueThatIsNotThere) {
  Scope root;
  EXPECT_THAT(RunStartup(MakesReaderOf("queu"), AllOps(), root, 1).message(),
              HasSubstr("attribute \"feeder_name\": the scope has no queue \"queu\"; make its PyArrayFeedQueueHolder "
                        "there before the startup program runs"));
}

}  // namespace
}  // namespace millrace
