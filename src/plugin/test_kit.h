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

/// A float tensor of a test's inputs or expected results.
struct TestTensor {
  std::vector<int64_t> dims;
  std::vector<float> values;
};

/// Tests the contents of a plugin. A test is itself a plugin, run with `inspect plugin TEST.so`: exit code 0, or 2 with
/// the first difference.
///
///     MILLRACE_PLUGIN(Registries&) {
///       MR_ASSIGN(const TestKit kit, TestKit::Create({"soft_clip.so"}));
///       const OpDesc clip = MakeOp("soft_clip", {{"X", {"x"}}}, {{"Out", {"out"}}});
///       MR_TRY(kit.ExpectValues({clip}, {{"x", {{1, 2}, {0, 1}}}}, "out", {{1, 2}, {0, 0.7616F}}, 1e-4));
///       return kit.ExpectGradients({clip}, {{"x", {{1, 2}, {0, 1}}}}, {"x"}, "out");
///     }
///
/// Values are compared as in Millrace's golden files: the absolute difference must not exceed `tolerance` times max(1,
/// |expected|); NaN equals NaN. All functions fail with kBadData for a difference, with the variable, the index and
/// both values; kInvalidConfig for a faulty test; otherwise with the failure of running it. One thread; each call
/// creates a frame.
class TestKit {
 public:
  /// Contains everything built in, and these plugins. Fails like LoadPlugin.
  static Result<TestKit> Create(const std::vector<std::string>& plugins);

  using Tensors = std::map<std::string, TestTensor>;

  /// Runs operators on `inputs` and compares `variable` with `expected`.
  Status ExpectValues(const std::vector<OpDesc>& ops, const Tensors& inputs, const std::string& variable,
                      const TestTensor& expected, double tolerance = 1e-5) const;
  /// Compares the gradients of `of` (weighted, summed) with respect to each of `by` with central differences of step
  /// 1e-2. Keep inputs farther than that from kinks.
  Status ExpectGradients(const std::vector<OpDesc>& ops, const Tensors& inputs, const std::vector<std::string>& by,
                         const std::string& of, double tolerance = 5e-3) const;
  /// The operators of a loss with a numeric label, for the functions above. It reads the `inputs` named by `loss.in`
  /// and `loss.label`; its mean is "loss", and its other variables have the names that the loss gives them. Fails with
  /// kInvalidConfig if the loss cannot be built.
  Result<std::vector<OpDesc>> LossOps(const LossDesc& loss, const Tensors& inputs) const;
  /// The rows that a data feed makes of lines, as shown by `inspect head --format=jsonl`. `data_desc` is in text
  /// format. A bad line fails with kBadData and the line number.
  Result<std::string> FeedRows(const std::string& data_desc, const std::vector<std::string>& lines) const;

  const Registries& registries() const { return *registries_; }

 private:
  explicit TestKit(std::unique_ptr<Registries> registries) : registries_(std::move(registries)) {}

  std::unique_ptr<Registries> registries_;
};

}  // namespace millrace
