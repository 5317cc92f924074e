// Jobs that Paddle authored and trained, repeated here: every batch's numbers, the final parameters, the predictions.

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/file.h"
#include "data_feed.pb.h"
#include "ops/builtin_ops.h"
#include "program/program_files.h"
#include "runtime/frame.h"
#include "runtime/lod_tensor_codec.h"
#include "runtime/variable_files.h"
#include "shared_data.h"

namespace millrace {
namespace {

constexpr double kTolerance = 1e-4;

struct Job {
  std::string name;
  bool fuse;
};

std::vector<std::vector<std::string>> ReadTable(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    rows.push_back(cells);
  }
  return rows;
}

/// Fills batches of `size` from all part files in order, without the project's own parser.
std::vector<std::unique_ptr<SlotBatch>> ReadBatches(const std::string& folder, const SlotSchema& schema, int size) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::unique_ptr<SlotBatch>> batches;
  for (const std::string& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (batches.empty() || batches.back()->rows() == size) batches.push_back(std::make_unique<SlotBatch>(schema));
      SlotBatch& batch = *batches.back();
      std::istringstream stream(line);
      for (const SlotSpec& slot : schema.used()) {
        SlotColumn& column = batch.column(slot.id);
        int count = 0;
        stream >> count;
        for (int i = 0; i < count; ++i) {
          if (slot.type == SlotType::kFloat) {
            stream >> column.floats.emplace_back();
          } else {
            stream >> column.ids.emplace_back();
          }
        }
        if (!slot.is_dense) column.offsets.push_back(static_cast<uint32_t>(column.ids.size()));
      }
      EXPECT_TRUE(stream) << line;
      batch.set_rows(batch.rows() + 1);
    }
  }
  return batches;
}

double Relative(double got, double wanted) { return std::abs(got - wanted) / std::max(1e-3, std::abs(wanted)); }

double FirstValue(const Frame& frame, const std::string& name) {
  const Tensor& tensor = frame.Find(name)->Get<Tensor>();
  return tensor.dtype() == DType::kFloat64 ? tensor.data<double>()[0] : tensor.data<float>()[0];
}

class Interop : public ::testing::TestWithParam<Job> {};

TEST_P(Interop, TrainsToPaddlesNumbers) {
  MR_SHARED_OR_SKIP(shared);
  const std::string dir = shared + "/interop/" + GetParam().name;
  OpRegistry registry;
  RegisterBuiltinOps(registry);
  ASSERT_TRUE(registry.Seal().ok());
  auto program = ReadProgram(dir + "/main_program.bin");
  ASSERT_TRUE(program.ok()) << program.status().message();
  DataFeedDesc feed;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(*ReadFile(dir + "/data_feed.prototxt"), &feed));
  auto schema = SlotSchema::Create(feed);
  ASSERT_TRUE(schema.ok()) << schema.status().message();

  Scope root;
  const Status loaded = LoadVariables(*program, dir + "/init", root);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  CompileOptions options;
  options.fuse = GetParam().fuse;
  std::map<std::string, std::string> fetch_vars;
  for (const auto& row : ReadTable(dir + "/fetch_vars.tsv")) {
    fetch_vars[row[0]] = row[1];
    options.fetches.push_back(row[1]);
  }
  auto executable = Executable::Compile(*program, registry, options);
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  auto frame = Frame::Create(**executable, &*schema, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().message();

  const auto batches = ReadBatches(dir + "/data", *schema, feed.batch_size());
  const auto wanted = ReadTable(dir + "/fetch.tsv");
  ASSERT_EQ(batches.size() + 1, wanted.size());
  for (size_t b = 0; b < batches.size(); ++b) {
    RunContext context;
    context.batch = batches[b].get();
    context.rows = batches[b]->rows();
    context.step = static_cast<int64_t>(b);
    const Status run = (*frame)->Run(context);
    ASSERT_TRUE(run.ok()) << run.message();
    for (size_t column = 1; column < wanted[0].size(); ++column) {
      const double got = FirstValue(**frame, fetch_vars[wanted[0][column]]);
      EXPECT_LE(Relative(got, std::stod(wanted[b + 1][column])), kTolerance)
          << "batch " << b << " " << wanted[0][column] << ": " << got << ", Paddle " << wanted[b + 1][column];
    }
  }

  for (const std::string& name : PersistableTensors(*program)) {
    Tensor final_value;
    const std::string path = dir + "/final/" + name;
    ASSERT_TRUE(ReadLoDTensor(*ReadFile(path), path, &final_value).ok());
    if (final_value.dtype() != DType::kFloat32) continue;
    const Tensor& got = root.Find(name)->Get<Tensor>();
    ASSERT_EQ(got.dims(), final_value.dims()) << name;
    // One value may be off by more than it is worth: Adagrad and Adam magnify the rounding of gradients that nearly
    // cancel, and each processor's kernels round in their own way. So every value is held absolutely, all of them
    // together relatively.
    int64_t worst = 0;
    double error = 0, norm = 0;
    const auto distance = [&](int64_t i) {
      return std::abs(static_cast<double>(got.data<float>()[i]) - static_cast<double>(final_value.data<float>()[i]));
    };
    for (int64_t i = 0; i < got.numel(); ++i) {
      worst = distance(i) > distance(worst) ? i : worst;
      error += distance(i) * distance(i);
      norm += std::pow(static_cast<double>(final_value.data<float>()[i]), 2);
    }
    EXPECT_LE(distance(worst), kTolerance) << name << " at " << worst << ": " << got.data<float>()[worst] << ", Paddle "
                                           << final_value.data<float>()[worst];
    EXPECT_LE(std::sqrt(error), kTolerance * std::sqrt(norm)) << name;
  }

  CompileOptions predict_options;
  predict_options.forward_only = true;
  predict_options.fuse = GetParam().fuse;
  predict_options.fetches = {fetch_vars["predict"]};
  auto predict = Executable::Compile(*program, registry, predict_options);
  ASSERT_TRUE(predict.ok()) << predict.status().message();
  auto predict_frame = Frame::Create(**predict, &*schema, root, {});
  ASSERT_TRUE(predict_frame.ok()) << predict_frame.status().message();
  RunContext context;
  context.batch = batches[0].get();
  context.rows = batches[0]->rows();
  ASSERT_TRUE((*predict_frame)->Run(context).ok());
  const Tensor& scores = (*predict_frame)->Find(fetch_vars["predict"])->Get<Tensor>();
  const auto rows = ReadTable(dir + "/predict.tsv");
  ASSERT_EQ(scores.numel(), static_cast<int64_t>(rows.size() * rows[0].size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < rows[i].size(); ++j) {
      EXPECT_LE(Relative(scores.data<float>()[i * rows[i].size() + j], std::stod(rows[i][j])), kTolerance) << i;
    }
  }
}

// What gtest prints of a parameter.
void PrintTo(const Job& job, std::ostream* out) { *out << job.name << (job.fuse ? " fused" : " unfused"); }

INSTANTIATE_TEST_SUITE_P(Paddle, Interop,
                         ::testing::Values(Job{"lr_sgd", false}, Job{"wide_deep_adagrad", false},
                                           Job{"wide_deep_adam", false}, Job{"deepfm_adagrad", false},
                                           Job{"lr_sgd", true}, Job{"wide_deep_adagrad", true},
                                           Job{"wide_deep_adam", true}, Job{"deepfm_adagrad", true}),
                         [](const auto& job) { return job.param.name + (job.param.fuse ? "_fused" : "_unfused"); });

}  // namespace
}  // namespace millrace
