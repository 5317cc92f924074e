// The jobs of configs/, trained by one worker for 100 batches of 64 rows of a click log: fused and unfused programs
// give the same losses, and both give those of PyTorch from the same start (tests/golden/loss_curves, written by
// scripts/golden/loss_curves.py from what DumpForPyTorch leaves).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "click_batches.h"
#include "model_run.h"
#include "paths.h"
#include "table/sparse_table.h"

namespace millrace {
namespace {

constexpr int kBatch = 64;
constexpr int kSteps = 100;
constexpr const char* kJobs[] = {"lr", "fm", "deepfm", "dcn", "wide_deep"};

// The job's model with Adagrad's sums of squares starting at 0.1. From 0 its first step is the rate times the sign of
// the gradient, whatever its size: the last bit of a gradient near 0 decides, and no two programs agree for 100 steps.
ModelDesc CurveModel(const std::string& job) {
  ModelDesc model = ReadJob(job).model();
  const auto start = [](OptimizerDesc* optimizer) {
    if (optimizer->has_adagrad()) optimizer->mutable_adagrad()->set_initial_accumulator(0.1F);
  };
  start(model.mutable_optimizer());
  for (TableDesc& table : *model.mutable_table()) {
    if (table.has_optimizer()) start(table.mutable_optimizer());
  }
  return model;
}

class LossCurveTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<float> Curve(bool fuse) const {
    const SlotSchema schema = ClickSlots();
    CompileOptions options;
    options.fuse = fuse;
    ModelRun run(CurveModel(GetParam()), schema, options);
    std::vector<float> losses;
    for (const auto& batch : ParseBatches(schema, ClickText(kBatch * kSteps), kBatch))
      losses.push_back(run.Train(*batch));
    return losses;
  }
};

TEST_P(LossCurveTest, FusedEqualsUnfused) {
  const std::vector<float> fused = Curve(true);
  const std::vector<float> plain = Curve(false);
  ASSERT_EQ(fused.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(plain.size(), fused.size());
  for (size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-5) << "step " << i;
}

TEST_P(LossCurveTest, EqualsPyTorch) {
  const std::vector<float> losses = Curve(true);
  std::ifstream golden(SourceDir() + "/tests/golden/loss_curves/" + GetParam() + ".tsv");
  ASSERT_TRUE(golden.good());
  std::string line;
  std::getline(golden, line);  // versions
  std::vector<double> wanted;
  double loss = 0;
  while (golden >> loss) wanted.push_back(loss);
  ASSERT_EQ(wanted.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], wanted[i], 1e-5) << "step " << i;
  double first = 0;
  double last = 0;
  for (size_t i = 0; i < 10; ++i) {
    first += wanted[i];
    last += wanted[wanted.size() - 1 - i];
  }
  EXPECT_LT(last, first) << "a curve that does not fall proves little";
}

INSTANTIATE_TEST_SUITE_P(Configs, LossCurveTest, ::testing::ValuesIn(kJobs),
                         [](const auto& c) { return std::string(c.param); });

// Rows of a table as "slot id v0 v1 ..." lines, for every id of the log in every slot that an embedding layer looks up.
void DumpTable(ModelRun& run, const std::string& table, const std::vector<std::unique_ptr<SlotBatch>>& batches,
               std::ostream& out) {
  auto& rows = *run.root().Find(table)->Get<std::unique_ptr<SparseTable>>();
  out.precision(9);
  for (const OpDesc& op : run.model().main.blocks(0).ops()) {
    if (op.type() != "lookup_table" || InputArguments(op, "W")[0] != table) continue;
    const std::string slot = InputArguments(op, "Ids")[0];
    const OpDesc::Attr* salt = FindAttr(op, "slot_salt");
    std::set<uint64_t> ids;
    for (const auto& batch : batches) {
      for (const uint64_t id : batch->ids(batch->schema().Find(slot))) ids.insert(id);
    }
    for (const uint64_t id : ids) {
      const uint64_t key = SlotKey(id, salt == nullptr ? 0 : static_cast<uint64_t>(salt->l()));
      RowBatch pulled;
      ASSERT_TRUE(rows.Pull(std::span(&key, 1), PullMode::kReadOnly, &pulled).ok());
      out << slot << ' ' << id;
      for (int j = 0; j < rows.shape().dim; ++j) out << ' ' << pulled.weights()[0][j];
      out << '\n';
    }
  }
}

// Writes the log and the start of every model to $MILLRACE_DUMP_DIR.
TEST(LossCurveDumpTest, DumpForPyTorch) {
  const char* folder = std::getenv("MILLRACE_DUMP_DIR");
  if (folder == nullptr) GTEST_SKIP() << "set MILLRACE_DUMP_DIR to make goldens";
  const SlotSchema schema = ClickSlots();
  const std::string text = ClickText(kBatch * kSteps);
  std::filesystem::create_directories(folder);
  std::ofstream(std::string(folder) + "/log.txt") << text;
  const auto batches = ParseBatches(schema, text, kBatch);
  for (const char* job : kJobs) {
    const std::string to = std::string(folder) + "/" + job;
    std::filesystem::create_directories(to);
    ModelRun run(CurveModel(job), schema, CompileOptions());
    for (const std::string& name : run.root().Names()) {
      const Variable& variable = *run.root().Find(name);
      std::ofstream out(to + "/" + name);
      if (!variable.Is<Tensor>()) {
        DumpTable(run, name, batches, out);
        continue;
      }
      const auto& tensor = variable.Get<Tensor>();
      out.precision(9);
      for (int axis = 0; axis < tensor.dims().rank(); ++axis) out << tensor.dims()[axis] << ' ';
      out << '\n';
      for (int64_t i = 0; i < tensor.numel(); ++i) out << tensor.data<float>()[i] << '\n';
    }
  }
}

}  // namespace
}  // namespace millrace
