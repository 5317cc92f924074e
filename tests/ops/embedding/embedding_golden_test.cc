#include <fstream>
#include <map>
#include <sstream>

#include "ops/embedding/op_runner.h"
#include "paths.h"
#include "rows_in_memory.h"

namespace millrace {
namespace {

struct Array {
  std::vector<int64_t> sizes;
  std::vector<double> values;
  std::vector<float> floats() const { return {values.begin(), values.end()}; }
  std::vector<uint64_t> ids() const { return {values.begin(), values.end()}; }
  std::vector<uint32_t> lod() const { return {values.begin(), values.end()}; }
};

std::map<std::string, Array> ReadGolden() {
  std::ifstream file(SourceDir() + "/tests/golden/embedding.txt");
  EXPECT_TRUE(file) << "tests/golden/embedding.txt is missing";
  std::map<std::string, Array> arrays;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name;
    size_t rank = 0;
    words >> name >> rank;
    Array& array = arrays[name];
    array.sizes.resize(rank);
    for (int64_t& size : array.sizes) words >> size;
    for (double value; words >> value;) array.values.push_back(value);
  }
  return arrays;
}

void ExpectNear(const std::vector<float>& got, const Array& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.values.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want.values[i], 2e-6) << what << " at " << i;
  }
}

constexpr int kDim = 5;
constexpr int kSteps = 4;

struct Case {
  std::string name;
  std::string pooltype;
  std::string optimizer;  ///< as a table's description has it
  float lr;
  int64_t padding;
};

// The same steps on hash tables: rows are given PyTorch's start by writing to them.
void TrainTables(const Case& c, const std::map<std::string, Array>& golden) {
  const auto at = [&](const std::string& name) -> const Array& { return golden.at(c.name + "." + name); };
  OpRunner runner;
  std::map<std::string, std::vector<float*>> rows;
  for (const std::string m : {"a", "b"}) {
    SparseTable* table = runner.MakeTable(m, kDim, c.optimizer);
    const std::vector<float> start = at(m + ".start").floats();
    std::vector<uint64_t> keys(start.size() / kDim);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    RowBatch pulled;
    ASSERT_TRUE(table->Pull(keys, PullMode::kInsert, &pulled).ok());
    rows[m] = RowsInMemory(pulled);
    for (size_t i = 0; i < keys.size(); ++i) std::copy_n(start.data() + i * kDim, kDim, rows[m][i]);
  }
  runner.SetFloats("lr", {1}, {c.lr});
  OpDesc pool = MakeOp("fused_slots_pool", {{"Ids", {"x", "y", "z"}}, {"W", {"a", "b", "b"}}},
                       {{"Out", {"out"}}, {"Rows", {"rows"}}});
  OpDesc grad = MakeOp("fused_slots_pool_grad",
                       {{"Ids", {"x", "y", "z"}}, {"W", {"a", "b", "b"}}, {"Rows", {"rows"}}, {"Out@GRAD", {"g"}}},
                       {{"W@GRAD", {"a@GRAD", "b@GRAD"}}});
  for (OpDesc* op : {&pool, &grad}) {
    SetAttr(*op, "pooltype", c.pooltype);
    SetAttr(*op, "padding_idx", c.padding);
  }
  for (int step = 0; step < kSteps; ++step) {
    const std::string prefix = std::to_string(step) + ".";
    std::map<std::string, std::pair<std::vector<uint64_t>, std::vector<uint32_t>>> ids;
    for (const std::string slot : {"x", "y", "z"}) {
      ids[slot] = {at(prefix + slot + ".ids").ids(), at(prefix + slot + ".lod").lod()};
      runner.SetIds(slot, ids[slot].first, ids[slot].second);
    }
    ASSERT_TRUE(runner.Run(pool).ok());
    ExpectNear(runner.values("out"), at(prefix + "out"), c.name + " out of step " + prefix);
    const Array& gradient = at(prefix + "gradient");
    runner.SetFloats("g", {gradient.sizes[0], gradient.sizes[1]}, gradient.floats());
    ASSERT_TRUE(runner.Run(grad).ok());
    for (const std::string m : {"a", "b"}) {
      ASSERT_TRUE(
          runner
              .Run(MakeOp("sparse_table_push", {{"Table", {m}}, {"Grad", {GradName(m)}}, {"LearningRate", {"lr"}}},
                          {{"TableOut", {m}}}))
              .ok());
    }
  }
  for (const std::string m : {"a", "b"}) {
    std::vector<float> end;
    for (const float* row : rows[m]) end.insert(end.end(), row, row + kDim);
    ExpectNear(end, at(m + ".end"), c.name + " " + m);
  }
}

TEST(EmbeddingGolden, TablesTrainAsPyTorchsEmbeddingBags) {
  const std::map<std::string, Array> golden = ReadGolden();
  const std::vector<Case> cases = {{"sum_adagrad", "SUM", "adagrad { epsilon: 1e-6 }", 0.1F, -1},
                                   {"mean_adagrad", "AVERAGE", "adagrad { epsilon: 1e-6 }", 0.1F, -1},
                                   {"padding_adagrad", "SUM", "adagrad { epsilon: 1e-6 }", 0.1F, 3},
                                   {"mean_adam", "AVERAGE", "adam { epsilon: 1e-14 }", 0.01F, -1},
                                   {"sum_sgd", "SUM", "sgd { }", 0.1F, -1}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TrainTables(c, golden);
  }
}

// Matrices with a moment beside them, as Paddle's dense parameters are.
TEST(EmbeddingGolden, MatricesTrainAsPyTorchsEmbeddingBags) {
  const std::map<std::string, Array> golden = ReadGolden();
  const auto at = [&](const std::string& name) -> const Array& { return golden.at("mean_adagrad." + name); };
  OpRunner runner;
  std::map<std::string, std::vector<float>> moments;
  for (const std::string m : {"a", "b"}) {
    const Array& start = at(m + ".start");
    runner.SetFloats(m, {start.sizes[0], start.sizes[1]}, start.floats());
    moments[m].assign(start.values.size(), 0.0F);
  }
  OpDesc pool = MakeOp("fused_slots_pool", {{"Ids", {"x", "y", "z"}}, {"W", {"a", "b", "b"}}},
                       {{"Out", {"out"}}, {"Rows", {"rows"}}});
  OpDesc grad = MakeOp("fused_slots_pool_grad",
                       {{"Ids", {"x", "y", "z"}}, {"W", {"a", "b", "b"}}, {"Rows", {"rows"}}, {"Out@GRAD", {"g"}}},
                       {{"W@GRAD", {"a@GRAD", "b@GRAD"}}});
  SetAttr(pool, "pooltype", std::string("AVERAGE"));
  SetAttr(grad, "pooltype", std::string("AVERAGE"));
  for (int step = 0; step < kSteps; ++step) {
    const std::string prefix = std::to_string(step) + ".";
    std::map<std::string, std::pair<std::vector<uint64_t>, std::vector<uint32_t>>> ids;
    for (const std::string slot : {"x", "y", "z"}) {
      ids[slot] = {at(prefix + slot + ".ids").ids(), at(prefix + slot + ".lod").lod()};
      runner.SetIds(slot, ids[slot].first, ids[slot].second);
    }
    ASSERT_TRUE(runner.Run(pool).ok());
    ExpectNear(runner.values("out"), at(prefix + "out"), "out of step " + prefix);
    const Array& gradient = at(prefix + "gradient");
    runner.SetFloats("g", {gradient.sizes[0], gradient.sizes[1]}, gradient.floats());
    ASSERT_TRUE(runner.Run(grad).ok());
    for (const std::string m : {"a", "b"}) {
      const SelectedRows& g = *runner.rows(GradName(m));
      racy::Best().adagrad_matrix_rows({0.1F, 1e-6F}, g.rows.data(), g.values.data<float>(), g.rows.size(), kDim,
                                       runner.tensor(m)->mutable_data<float>(), moments[m].data(), nullptr);
    }
  }
  for (const std::string m : {"a", "b"}) ExpectNear(runner.values(m), at(m + ".end"), m);
}

}  // namespace
}  // namespace millrace
