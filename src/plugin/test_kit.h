#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "framework.pb.h"
#include "job/environment.h"
#include "model.pb.h"

namespace millrace {

/// A tensor of floats that a test gives or expects.
struct TestTensor {
  std::vector<int64_t> dims;
  std::vector<float> values;
};

/// Checks what a plugin brings. A test is itself a plugin, which `inspect plugin TEST.so` runs by loading it: exit code
/// 0, or 2 with the first difference.
///
///     MILLRACE_PLUGIN(Registries&) {
///       MR_ASSIGN(const TestKit kit, TestKit::Create({"soft_clip.so"}));
///       const OpDesc clip = MakeOp("soft_clip", {{"X", {"x"}}}, {{"Out", {"out"}}});
///       MR_TRY(kit.ExpectValues({clip}, {{"x", {{1, 2}, {0, 1}}}}, "out", {{1, 2}, {0, 0.7616F}}, 1e-4));
///       return kit.ExpectGradients({clip}, {{"x", {{1, 2}, {0, 1}}}}, {"x"}, "out");
///     }
///
/// Values are compared as in a golden file of Millrace: an absolute difference of `tolerance` times the larger of 1 and
/// what is expected; NaN equals NaN. A difference is kBadData, with the variable, the index and both values; what
/// cannot run says why. One thread; a frame is made for each call.
class TestKit {
 public:
  /// Everything that Millrace has, and these plugins: LoadPlugin's errors.
  static Result<TestKit> Create(const std::vector<std::string>& plugins);

  using Tensors = std::map<std::string, TestTensor>;

  /// Runs operators over `inputs`; `variable` is then to be `expected`.
  Status ExpectValues(const std::vector<OpDesc>& ops, const Tensors& inputs, const std::string& variable,
                      const TestTensor& expected, double tolerance = 1e-5) const;
  /// Compares the gradients that operators give of `of` (weighted, summed) by each of `by` to central differences of
  /// step 1e-2. Keep inputs off kinks by more than that.
  Status ExpectGradients(const std::vector<OpDesc>& ops, const Tensors& inputs, const std::vector<std::string>& by,
                         const std::string& of, double tolerance = 5e-3) const;
  /// The operators of a loss whose label is a number, which reads `inputs` by the names of `loss.in` and `loss.label`,
  /// for the two above; its mean is "loss", and what it is made of has the names that the loss gives.
  Result<std::vector<OpDesc>> LossOps(const LossDesc& loss, const Tensors& inputs) const;
  /// What a data feed makes of lines, as `inspect head --format=jsonl` shows it. `data_desc` is the text of a job's.
  /// kBadData with the line's number for a bad line.
  Result<std::string> FeedRows(const std::string& data_desc, const std::vector<std::string>& lines) const;

  const Registries& registries() const { return *registries_; }

 private:
  explicit TestKit(std::unique_ptr<Registries> registries) : registries_(std::move(registries)) {}

  std::unique_ptr<Registries> registries_;
};

}  // namespace millrace
