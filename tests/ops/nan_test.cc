#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "ops/golden_file.h"
#include "ops/op_case_inputs.h"

namespace millrace {
namespace {

/// An input through which NaN does not reach all that depends on it, and why that is right.
struct Exception {
  std::string op;
  std::string input;  ///< by parameter
  std::string reason;
};

const std::vector<Exception>& Exceptions() {
  static const std::string routes = "X says where a gradient goes, and goes on as NaN itself";
  static const std::string orders = "NaN goes to its place in the order, as the largest, and is NaN there";
  static const std::vector<Exception> all = {
      {"argsort", "X", orders},
      {"top_k", "X", orders},
      {"top_k_v2", "X", orders},
      {"argsort_grad", "X", routes},
      {"top_k_grad", "X", routes},
      {"top_k_v2_grad", "X", routes},
      {"pool2d_grad", "X", routes},
      {"sequence_pool_grad", "X", routes},
      {"nce", "CustomDistAliasProbs", "says which class is drawn; the number of a class is never NaN"},
      {"data_norm", "X", "a count of shows says whether a slot is there; NaN does, and is NaN in its own column"},
      {"sigmoid_cross_entropy_with_logits", "Label",
       "a label says whether it counts, for the number that all are divided by; the loss of its own row is NaN"},
  };
  return all;
}

/// Operators whose floats depend on none of their float inputs.
const std::set<std::string>& ReadShapesAlone() {
  static const std::set<std::string> all = {
      "accuracy",   // counts; a NaN beside them is looked at on its own, in small_ops_test.cc
      "arg_max",    // numbers of places
      "arg_min",    // numbers of places
      "cast",       // of floats to whole numbers, which have no NaN
      "ceil_grad",  // 0
      "fill_any_like",
      "fill_constant_batch_size_like",
      "fill_zeros_like",  // shapes
      "floor_grad",       // 0
      "less_than",        // true or false
      "round_grad",       // 0
      "shape",
      "size",         // shapes
      "sign_grad",    // 0
      "where_index",  // places; NaN is not 0
  };
  return all;
}

/// Some operators over variables that can be filled again and again with the same values.
struct Subject {
  std::string op;
  std::unique_ptr<OpSession> session;
  std::function<void()> fill;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< parameter and variable
  std::set<std::string> outputs;                            ///< variables that hold floats

  Tensor* Values(const std::string& name) const {
    return session->is_rows(name) ? &session->rows(name)->values : session->tensor(name);
  }
  bool HoldsFloats(const std::string& name) const {
    if (!session->is_rows(name) && !session->is_tensor(name)) return false;
    const Tensor* values = Values(name);
    return !values->empty() && values->dtype() == DType::kFloat32;
  }
};

using Answer = std::map<std::string, std::vector<float>>;

/// What the operators make of their inputs, with value `at` of `input` moved. Nothing when they refuse it.
std::optional<Answer> RunWith(const Subject& subject, const std::string& input, int64_t at,
                              const std::function<float(float)>& move) {
  subject.fill();
  float& value = subject.Values(input)->mutable_data<float>()[at];
  value = move(value);
  if (!subject.session->Run().ok()) return std::nullopt;
  Answer answer;
  for (const std::string& name : subject.outputs) {
    if (!subject.HoldsFloats(name)) continue;
    const Tensor& tensor = *subject.Values(name);
    answer[name] = {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
  }
  return answer;
}

bool Differ(float a, float b) { return std::isnan(a) != std::isnan(b) || (!std::isnan(a) && a != b); }

/// For each input, whether anything depends on it, and where a NaN was lost on its way.
struct Findings {
  bool depends = false;
  std::string lost;
};

void Probe(const Subject& subject, const std::string& input, int64_t at, Findings* findings) {
  const auto same = [](float x) { return x; };
  const std::optional<Answer> before = RunWith(subject, input, at, same);
  ASSERT_TRUE(before.has_value()) << subject.op << " refuses its own case";
  std::map<std::string, std::vector<bool>> depends;
  for (const auto& [name, values] : *before) depends[name].resize(values.size());
  const std::function<float(float)> moves[] = {
      [](float x) { return x + 0.25F; }, [](float x) { return x - 0.25F; },  [](float x) { return -x; },
      [](float x) { return 4 * x + 3; }, [](float x) { return -4 * x - 3; },
  };
  for (const auto& move : moves) {
    const std::optional<Answer> after = RunWith(subject, input, at, move);
    if (!after) continue;
    for (auto& [name, mine] : depends) {
      const auto found = after->find(name);
      if (found == after->end() || found->second.size() != mine.size()) continue;
      for (size_t i = 0; i < mine.size(); ++i) {
        if (Differ(before->at(name)[i], found->second[i])) mine[i] = true;
      }
    }
  }
  const std::optional<Answer> nan =
      RunWith(subject, input, at, [](float) { return std::numeric_limits<float>::quiet_NaN(); });
  for (const auto& [name, mine] : depends) {
    if (std::find(mine.begin(), mine.end(), true) == mine.end()) continue;
    findings->depends = true;
    if (!nan) continue;  // it was refused, which is no silence
    const auto found = nan->find(name);
    for (size_t i = 0; i < mine.size(); ++i) {
      if (!mine[i] || !findings->lost.empty()) continue;
      if (found != nan->end() && i < found->second.size() && std::isnan(found->second[i])) continue;
      findings->lost =
          input + "[" + std::to_string(at) + "] = nan gives " + name + "[" + std::to_string(i) +
          "] = " + (found == nan->end() || i >= found->second.size() ? "nothing" : std::to_string(found->second[i])) +
          ", and " + std::to_string(before->at(name)[i]) + " before";
    }
  }
}

/// Findings by parameter.
std::map<std::string, Findings> ProbeAll(const Subject& subject) {
  std::map<std::string, Findings> all;
  for (const auto& [parameter, name] : subject.inputs) {
    subject.fill();
    if (!subject.HoldsFloats(name)) continue;
    Findings& findings = all[parameter];
    const int64_t count = subject.Values(name)->numel();
    EXPECT_GT(count, 0) << name << " holds nothing to look at";
    const int64_t probes = std::min<int64_t>(count, 8);
    for (int64_t k = 0; k < probes; ++k) Probe(subject, name, k * count / probes, &findings);
  }
  return all;
}

std::unique_ptr<Subject> SubjectOf(const GoldenCase& c) {
  auto subject = std::make_unique<Subject>();
  subject->op = c.op.type();
  VarMetas inputs;
  for (const GoldenValue& value : c.steps[0]) {
    inputs[value.name] = value.meta;
    subject->inputs.emplace_back(value.parameter, value.name);
  }
  auto session = OpSession::Create({c.op}, inputs, AllOps());
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  subject->session = std::move(*session);
  for (const OpDesc::Var& output : c.op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (name != kEmptyVar) subject->outputs.insert(name);
    }
  }
  subject->fill = [s = subject->session.get(), &c] {
    for (const GoldenValue& value : c.steps[0]) Put(value, *s);
  };
  return subject;
}

/// The gradient's operators behind the forward one, which gives them what they read of it.
std::unique_ptr<Subject> GradientSubjectOf(const OpCase& c) {
  constexpr int64_t kRows = 5;
  auto subject = std::make_unique<Subject>();
  subject->op = c.op + "_grad";
  std::vector<OpDesc> ops = GradientOps(c);
  for (const OpDesc& op : ops) {
    for (const OpDesc::Var& output : op.outputs()) {
      for (const std::string& name : output.arguments()) {
        if (name != kEmptyVar) subject->outputs.insert(name);
      }
    }
  }
  VarMetas metas = InputMetas(c);
  auto forward = OpSession::Create({ForwardOp(c)}, metas, AllOps());
  EXPECT_TRUE(forward.ok()) << forward.status().ToString();
  const auto fill_inputs = [&c](OpSession* session) {
    Rng rng(7);
    for (const CaseInput& input : c.inputs) Fill(input, kRows, rng, {session});
  };
  fill_inputs(forward->get());
  EXPECT_TRUE((*forward)->Run().ok());
  struct Gradient {
    std::string name;
    Dims dims;
    std::vector<uint32_t> lod;
  };
  std::vector<Gradient> gradients;
  for (const std::string& name : c.objective) {
    const Tensor& out = *(*forward)->tensor(name);
    gradients.push_back({GradName(name), out.dims(), {out.lod().begin(), out.lod().end()}});
    VarMeta& meta = metas[GradName(name)];
    meta.dims = out.dims();
    meta.dims.set(0, -1);
    meta.lod_level = out.has_lod() ? 1 : 0;
    subject->inputs.emplace_back("gradient", GradName(name));
  }
  for (const CaseInput& input : c.inputs) subject->inputs.emplace_back(input.parameter, input.name);
  ops.insert(ops.begin(), ForwardOp(c));
  auto both = OpSession::Create(ops, metas, AllOps());
  EXPECT_TRUE(both.ok()) << both.status().ToString();
  subject->session = std::move(*both);
  subject->fill = [s = subject->session.get(), fill_inputs, gradients] {
    fill_inputs(s);
    Rng rng(11);
    for (const Gradient& gradient : gradients) {
      float* values = s->tensor(gradient.name)->Resize<float>(gradient.dims);
      for (int64_t i = 0; i < gradient.dims.numel(); ++i) values[i] = DrawFloat(Draw::kOffZero, rng);
      if (!gradient.lod.empty()) s->SetLod(gradient.name, gradient.lod);
    }
  };
  return subject;
}

/// What the cases of an operator showed, compared with what is expected of it.
class NanTest : public testing::TestWithParam<std::string> {
 protected:
  void Look(const Subject& subject, const std::string& title) {
    for (const auto& [parameter, findings] : ProbeAll(subject)) {
      Findings& all = found_[parameter];
      all.depends = all.depends || findings.depends;
      if (all.lost.empty() && !findings.lost.empty()) all.lost = "case \"" + title + "\": " + findings.lost;
    }
  }
  void Judge(const std::string& op) {
    bool depends = false;
    for (const auto& [parameter, findings] : found_) {
      depends = depends || findings.depends;
      const bool excepted =
          std::any_of(Exceptions().begin(), Exceptions().end(),
                      [&, &input = parameter](const Exception& e) { return e.op == op && e.input == input; });
      if (excepted) {
        EXPECT_FALSE(findings.lost.empty()) << op << " loses no NaN of " << parameter << ": take it off the list";
      } else {
        EXPECT_TRUE(findings.lost.empty()) << op << " loses a NaN of " << parameter << ": " << findings.lost;
      }
    }
    if (found_.empty()) return;
    EXPECT_EQ(!depends, ReadShapesAlone().contains(op)) << op;
  }

 private:
  std::map<std::string, Findings> found_;
};

class NanOfOperator : public NanTest {};

/// Each float that changes with an input is NaN when that is; of every operator that has cases.
TEST_P(NanOfOperator, ReachesWhatDependsOnIt) {
  const std::vector<GoldenCase> cases = ReadGolden(GetParam());
  for (const GoldenCase& c : cases) Look(*SubjectOf(c), c.title);
  Judge(GetParam());
}

class NanOfGradient : public NanTest {};

TEST_P(NanOfGradient, ReachesWhatDependsOnIt) {
  for (const OpCase& c : OpCases()) {
    if (c.op == GetParam()) Look(*GradientSubjectOf(c), c.title);
  }
  Judge(GetParam() + "_grad");
}

std::vector<std::string> ProbedGradients() {
  std::set<std::string> ops;
  for (const OpCase& c : OpCases()) ops.insert(c.op);
  return {ops.begin(), ops.end()};
}

const auto kProbedName = [](const auto& test) { return test.param; };
INSTANTIATE_TEST_SUITE_P(Ops, NanOfOperator, testing::ValuesIn(OpsWithGolden()), kProbedName);
INSTANTIATE_TEST_SUITE_P(Ops, NanOfGradient, testing::ValuesIn(ProbedGradients()), kProbedName);

}  // namespace
}  // namespace millrace
