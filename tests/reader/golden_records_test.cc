// Files that TensorFlow, OneFlow's messages and Paddle's save operator wrote (scripts/golden/records.py), value for
// value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "paths.h"
#include "reader/format_files.h"

namespace millrace {
namespace {

const TensorSpec kX = {DType::kFloat32, {-1, 2}, 0, "x"};
const TensorSpec kIds = {DType::kInt64, {-1, 1}, 1, "ids"};
const TensorSpec kPixels = {DType::kUint8, {-1, 3}, 0, "pixels"};

class GoldenRecords : public FormatFiles {
 protected:
  void ExpectRead(const std::string& name, const std::vector<TensorSpec>& shapes) const {
    const std::string path = SourceDir() + "/tests/golden/records/" + name;
    std::istringstream lines(ReadFile(path + ".txt").value());
    std::vector<std::string> expected;
    for (std::string line; std::getline(lines, line);) expected.push_back(line);
    ASSERT_GE(expected.size(), 9U);
    EXPECT_THAT(Records(path, shapes), testing::ElementsAreArray(expected));
  }
};

TEST_F(GoldenRecords, TensorFlowsExamplesHoldTheValuesThatTfDataFinds) {
  ExpectRead("features.tfrecord", {kX, kIds, kPixels});
}

TEST_F(GoldenRecords, SoDoThoseThatTensorFlowPacked) { ExpectRead("packed.tfrecord", {kX, kIds, kPixels}); }

TEST_F(GoldenRecords, OneFlowsRecordsHoldWhatWasPutIn) {
  ExpectRead("features.ofrecord",
             {kX, kIds, kPixels, {DType::kInt32, {-1, 1}, 0, "narrow"}, {DType::kFloat64, {-1, 1}, 0, "wide"}});
}

TEST_F(GoldenRecords, PaddlesTensorsHoldWhatWasSaved) { ExpectRead("tensors.recordio", {kX, kIds, kPixels}); }

}  // namespace
}  // namespace millrace
