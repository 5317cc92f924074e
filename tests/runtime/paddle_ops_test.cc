// Every operator on random shapes and LoDs, forward and backward, against Paddle's own answers.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/file.h"
#include "ops/builtin_ops.h"
#include "paths.h"
#include "program/program_files.h"
#include "runtime/frame.h"
#include "runtime/lod_tensor_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// A line of case.txt: a variable, and its LoD or the rows of a sparse one.
struct CaseVar {
  std::string name;
  bool is_rows = false;
  int64_t height = 0;
  std::vector<uint64_t> rows;
  std::vector<uint32_t> lod;
};

struct PaddleCase {
  std::string folder;
  std::string op;
  std::vector<CaseVar> inputs;
  std::vector<CaseVar> outputs;
};

template <class T>
std::vector<T> Rest(std::istringstream& words) {
  std::vector<T> numbers;
  for (T number; words >> number;) numbers.push_back(number);
  return numbers;
}

PaddleCase ReadCase(const std::string& folder) {
  PaddleCase c;
  c.folder = folder;
  std::ifstream file(folder + "/case.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    CaseVar var;
    words >> word >> var.name;
    if (word == "op") {
      c.op = var.name;
    } else if (word == "rows") {
      var.is_rows = true;
      words >> var.height;
      var.rows = Rest<uint64_t>(words);
      c.inputs.push_back(var);
    } else {
      var.lod = Rest<uint32_t>(words);
      (word == "in" ? c.inputs : c.outputs).push_back(var);
    }
  }
  return c;
}

void Load(const std::string& path, Tensor* tensor) {
  const Result<std::string> bytes = ReadFile(path);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const Result<size_t> taken = ReadLoDTensor(*bytes, path, tensor);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
}

std::vector<double> ValuesOf(const Tensor& tensor) {
  const auto read = [&](auto sample) {
    const auto* from = tensor.data<decltype(sample)>();
    return std::vector<double>(from, from + tensor.numel());
  };
  switch (tensor.dtype()) {
    case DType::kInt64: return read(int64_t{});
    case DType::kInt32: return read(int32_t{});
    case DType::kBool: return read(bool{});
    case DType::kUint8: return read(uint8_t{});
    case DType::kFloat64: return read(double{});
    default: return read(float{});
  }
}

/// The rows of a sparse gradient, equal ones added up, at their places in zeros.
std::vector<double> Spread(const SelectedRows& rows, size_t count) {
  std::vector<double> values(count);
  const auto width =
      static_cast<size_t>(rows.rows.empty() ? 0 : rows.values.numel()) / std::max<size_t>(rows.rows.size(), 1);
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    for (size_t j = 0; j < width; ++j) {
      values[rows.rows[i] * width + j] += static_cast<double>(rows.values.data<float>()[i * width + j]);
    }
  }
  return values;
}

/// Runs a case's program and holds every output against the file of Paddle's answer.
class CaseRun {
 public:
  explicit CaseRun(const PaddleCase& c, const OpRegistry& registry) : case_(c), registry_(registry) {}

  void Run() {
    const auto program = ReadProgram(case_.folder + "/program.bin");
    ASSERT_TRUE(program.ok()) << program.status().message();
    for (const CaseVar& input : case_.inputs) ASSERT_NO_FATAL_FAILURE(LoadInput(input));
    CompileOptions options;
    options.fuse = false;
    const auto executable = Executable::Compile(*program, registry_, options);
    ASSERT_TRUE(executable.ok()) << executable.status().message();
    const auto frame = Frame::Create(**executable, nullptr, root_, {});
    ASSERT_TRUE(frame.ok()) << frame.status().message();
    const Status run = (*frame)->Run(RunContext{});
    ASSERT_TRUE(run.ok()) << run.message();
    for (const CaseVar& output : case_.outputs) Compare(output, *(*frame)->Find(output.name));
  }

 private:
  void LoadInput(const CaseVar& input) {
    const std::string path = case_.folder + "/in." + input.name;
    if (input.is_rows) {
      auto* rows = root_.Var(input.name)->GetMutable<SelectedRows>();
      rows->height = input.height;
      rows->rows = input.rows;
      Load(path, &rows->values);
      return;
    }
    auto* tensor = root_.Var(input.name)->GetMutable<Tensor>();
    Load(path, tensor);
    if (!input.lod.empty()) tensor->set_lod(input.lod);
  }

  void Compare(const CaseVar& output, const Variable& variable) {
    Tensor wanted;
    ASSERT_NO_FATAL_FAILURE(Load(case_.folder + "/out." + output.name, &wanted));
    const std::vector<double> expected = ValuesOf(wanted);
    std::vector<double> values;
    if (variable.Is<SelectedRows>()) {
      values = Spread(variable.Get<SelectedRows>(), expected.size());
    } else {
      const Tensor& got = variable.Get<Tensor>();
      values = ValuesOf(got);
      // Of one value Paddle 2.6 says [], Paddle 1 and we [1].
      EXPECT_TRUE(got.numel() == 1 || got.dims() == wanted.dims())
          << output.name << " " << got.dims().ToString() << ", Paddle " << wanted.dims().ToString();
      // Paddle's AUC is a double, ours a float.
      EXPECT_TRUE(got.dtype() == wanted.dtype() || case_.op == "auc") << output.name << " " << DTypeName(got.dtype());
      const std::vector<uint32_t> lod(got.lod().begin(), got.lod().end());
      EXPECT_TRUE(output.lod.empty() || lod == output.lod) << output.name << ": LoD " << testing::PrintToString(lod)
                                                           << ", Paddle " << testing::PrintToString(output.lod);
    }
    ASSERT_EQ(values.size(), expected.size()) << output.name;
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(expected[i]) && std::isnan(values[i])) continue;
      ASSERT_NEAR(values[i], expected[i], 2e-5 * std::max(1.0, std::abs(expected[i])))
          << output.name << "[" << i << "]";
    }
  }

  const PaddleCase& case_;
  const OpRegistry& registry_;
  Scope root_;
};

/// Operators that are ours alone, random, or held against Paddle by other tests.
const std::set<std::string>& NotCompared() {
  static const std::set<std::string> ops = {
      "feed",
      "fetch",
      "print",  // tests/ops/small_ops_test.cc
      "uniform_random",
      "gaussian_random",
      "truncated_gaussian_random",  // tests/ops/tensor/random_test.cc
      "one_hot",
      "unsqueeze",
      "squeeze",
      "flatten",  // of Paddle 1; golden_test.cc
      "load",
      "load_combine",
      "save",
      "save_combine",  // tests/ops/control/save_load_test.cc
      "while",
      "conditional_block",
      "select_output",  // tests/ops/control/control_flow_test.cc
      "open_files",
      "create_batch_reader",
      "create_double_buffer_reader",
      "create_multi_pass_reader",
      "create_py_array_reader",
      "create_random_data_generator",
      "create_recordio_file_reader",
      "create_shuffle_reader",
      "read",
      "has_next",
      "reset",  // Paddle 2 has them no more; tests/ops/reader/reader_ops_test.cc, tests/e2e/reader_program_test.cc
      "square_error_cost",  // Paddle 2 writes it as two operators
      "create_sparse_table",
      "sparse_table_push",
      "learning_rate_schedule",  // not Paddle's, as those that follow
      "example_weights",         // tests/model/several_tasks_test.cc
      "calibration",             // tests/ops/small_ops_test.cc
      "gated_recurrence",        // tests/model/layer_kinds_test.cc, as the next one
      "history_window",
  };
  return ops;
}

std::string EnvironmentOr(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

TEST(PaddleOps, AnswerAsPaddlesOnRandomShapes) {
  const std::string python = EnvironmentOr("PADDLE_PYTHON", "");
  if (python.empty())
    GTEST_SKIP() << "set PADDLE_PYTHON to a Python that has paddlepaddle 2.6 (scripts/golden/README.md)";
  const std::string out = testing::TempDir() + "paddle_ops." + std::to_string(getpid());
  fs::remove_all(out);
  OpRegistry registry;
  RegisterBuiltinOps(registry);
  std::string ops;
  for (const OpInfo* info : registry.all()) ops += (ops.empty() ? "" : "|") + info->type;
  const std::string command = python + " " + SourceDir() + "/scripts/golden/random_ops.py --out " + out + " --seed " +
                              EnvironmentOr("PADDLE_OPS_SEED", "1") + " --each " +
                              EnvironmentOr("PADDLE_OPS_EACH", "4") + " --ops '" + ops + "' 2> " + out + ".errors";
  ASSERT_EQ(std::system(command.c_str()), 0) << *ReadFile(out + ".errors");
  std::set<std::string> compared = NotCompared();
  for (const auto& entry : fs::directory_iterator(out)) {
    const PaddleCase c = ReadCase(entry.path());
    SCOPED_TRACE(entry.path().filename().string());
    compared.insert(c.op);
    CaseRun(c, registry).Run();
  }
  for (const OpInfo* info : registry.all()) {
    const bool users = !info->is_gradient && !info->is_fused;
    EXPECT_TRUE(!users || compared.contains(info->type))
        << info->type << " is not compared: add it to scripts/golden/random_ops.py";
  }
  if (HasFailure()) return;
  fs::remove_all(out);
  fs::remove(out + ".errors");
}

}  // namespace
}  // namespace millrace
