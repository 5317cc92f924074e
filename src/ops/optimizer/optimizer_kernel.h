#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "kernels/flush_tiny.h"
#include "kernels/lane_sums.h"
#include "kernels/racy.h"
#include "kernels/racy_pieces.h"
#include "kernels/row_locks.h"
#include "ops/float_input.h"
#include "ops/kernel.h"
#include "ops/row_merger.h"
#include "ops/scalar_input.h"

namespace millrace {

/// Checks an optimizer's lists at compile time: as many gradients and states as parameters, of their shapes, outputs
/// bound to the variables of their inputs, one learning rate. Declares the outputs.
Status InferOptimizer(InferShapeContext& context, std::span<const StateInfo> states,
                      std::span<const StateInfo> scalars);

/// The first values of a parameter's states, as many as its rule has; the others are null.
using StateValues = std::array<float*, 3>;

/// What one optimizer operator updates: a parameter, its state and its gradient.
struct UpdateTarget {
  std::string name;
  Tensor* param = nullptr;
  const Tensor* dense_grad = nullptr;         ///< or
  const SelectedRows* sparse_grad = nullptr;  ///< this one
  std::array<Tensor*, 3> states{};            ///< of the shape of param
  std::array<Tensor*, 2> scalars{};           ///< [1]
};

/// Resolves every target of an operator; lists are as long as `Param`.
Result<std::vector<UpdateTarget>> BindTargets(const KernelContext& context, std::span<const StateInfo> states,
                                              std::span<const StateInfo> scalars);

/// kBadData when the gradient of this batch, or what the rule keeps, does not fit the parameter.
Status CheckTarget(const UpdateTarget& target);

/// The states from a place on.
inline StateValues StatesAt(const StateValues& states, int64_t offset) {
  StateValues at{};
  for (size_t i = 0; i < states.size(); ++i) at[i] = states[i] == nullptr ? nullptr : states[i] + offset;
  return at;
}

using racy::UpdateInPieces;

/// Updates rows one by one.
template <class R, class Step>
void UpdateRowsByRow(const racy::Kernels& kernels, const Step& step, const uint64_t* ids, const float* grads,
                     size_t count, size_t dim, float* w, const StateValues& states) {
  for (size_t i = 0; i < count; ++i) {
    const size_t at = ids[i] * dim;
    R::Row(kernels, step, grads + i * dim, w + at, StatesAt(states, static_cast<int64_t>(at)), dim);
  }
}

/// Runs the rule R on one or many parameters, through kernels/racy.h, which every write to a shared parameter goes
/// through.
///
/// R has kStates and kScalars (StateInfo arrays), a constructor from OpView, StepFor(lr, scalars, is_sparse),
/// DecaysAllRows() (rows without a gradient change as well) and Row(kernels, step, grad, w, states, n). It may have
/// Rows(kernels, step, ids, grads, count, dim, w, states), which is faster than row by row, and Finish(scalars). With
/// ScaledByNorms(step, weights, gradients) it sees the lengths of both vectors before a step over a whole parameter.
/// With Direct(kernels, step, grad, weights, states, n, direction) it moves its states first and says which way to go;
/// what it says takes the place of the gradient, for the lengths and for Row. With kRateWhenMissing, LearningRate may
/// be left out. With IdleStep(step), rows without a gradient take another step. With kTensors (names of inputs of one
/// value) and SetTensors(values) it takes numbers from tensors, anew each batch; an operator whose Updates(values) is
/// false leaves everything as it is.
template <class R>
class OptimizerKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    std::unique_ptr<OptimizerKernel> kernel(new OptimizerKernel(context.op()));
    MR_ASSIGN(kernel->targets_, BindTargets(context, R::kStates, R::kScalars));
    if constexpr (requires { R::kRateWhenMissing; }) {
      MR_ASSIGN(kernel->rate_, FloatInput::BindOptional(context, "LearningRate"));
    } else {
      MR_ASSIGN(kernel->rate_, FloatInput::Bind(context, "LearningRate"));
    }
    if constexpr (requires { R::kTensors; }) {
      for (const char* name : R::kTensors) {
        MR_ASSIGN(ScalarInput told, ScalarInput::Bind(context, name, std::nan("")));
        kernel->told_.push_back(told);
      }
    }
    if (context.options().update_mode == UpdateMode::kRowLock) kernel->locks_ = context.options().row_locks;
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }

  Status Run(const RunContext&) override {
    MR_TRY(rate_.Expect(1));
    const FlushTiny flush;
    const float lr = Rate();
    if constexpr (requires { R::kTensors; }) {
      std::array<double, R::kTensors.size()> values{};
      for (size_t i = 0; i < values.size(); ++i) {
        MR_ASSIGN(values[i], told_[i].Read());
      }
      if (!R::Updates(values)) return Status::Ok();
      rule_.SetTensors(values);
    }
    for (const UpdateTarget& target : targets_) {
      MR_TRY(CheckTarget(target));
      const auto step = rule_.StepFor(lr, target.scalars, target.sparse_grad != nullptr);
      if (target.sparse_grad == nullptr) {
        UpdateAll(step, target, target.dense_grad->data<float>());
      } else if (rule_.DecaysAllRows()) {
        const float* grad = Spread(target);
        if constexpr (requires { rule_.IdleStep(step); }) {
          UpdateAllRows(step, rule_.IdleStep(step), target, grad);
        } else {
          UpdateAll(step, target, grad);
        }
      } else {
        MR_TRY(UpdateRows(step, target));
      }
      if constexpr (requires { rule_.Finish(target.scalars); }) rule_.Finish(target.scalars);
    }
    return Status::Ok();
  }

 private:
  explicit OptimizerKernel(const OpView& op) : rule_(op) {}

  float Rate() {
    if constexpr (requires { R::kRateWhenMissing; }) {
      if (!rate_.bound()) return R::kRateWhenMissing;
    }
    return *rate_.Read();
  }

  static StateValues Values(const UpdateTarget& target) {
    StateValues values{};
    for (size_t i = 0; i < R::kStates.size(); ++i) values[i] = target.states[i]->template mutable_data<float>();
    return values;
  }

  template <class Step>
  void UpdateAll(Step step, const UpdateTarget& target, const float* grad) {
    const int64_t count = target.param->numel();
    float* w = target.param->mutable_data<float>();
    const StateValues states = Values(target);
    if constexpr (requires { rule_.ScaledByNorms(step, 0.0, 0.0); }) {
      const float* weights = Copy(target);
      if constexpr (requires { &R::Direct; }) grad = Directed(step, target, grad, weights, states);
      step = rule_.ScaledByNorms(step, Length(weights, count), Length(grad, count));
    }
    if (locks_ == nullptr) {
      R::Row(racy::Best(), step, grad, w, states, static_cast<size_t>(count));
      return;
    }
    const int64_t width = LockedRowWidth(target.param->dims());
    for (int64_t at = 0; at < count; at += width) {
      const RowGuard guard(*locks_, w + at);
      R::Row(racy::Checked(), step, grad + at, w + at, StatesAt(states, at), static_cast<size_t>(width));
    }
  }

  /// Rows of the sparse gradient take `step`, the others `idle`.
  template <class Step>
  void UpdateAllRows(const Step& step, const Step& idle, const UpdateTarget& target, const float* grad) {
    const int64_t height = target.param->dims()[0];
    const int64_t width = LockedRowWidth(target.param->dims());
    float* w = target.param->mutable_data<float>();
    const StateValues states = Values(target);
    has_gradient_.assign(static_cast<size_t>(height), false);
    for (const uint64_t row : target.sparse_grad->rows) {
      if (row < static_cast<uint64_t>(height)) has_gradient_[row] = true;
    }
    for (int64_t row = 0, end = 0; row < height; row = end) {
      const bool has_gradient = has_gradient_[static_cast<size_t>(row)];
      do {
        ++end;
      } while (locks_ == nullptr && end < height && has_gradient_[static_cast<size_t>(end)] == has_gradient);
      const int64_t at = row * width;
      const auto count = static_cast<size_t>((end - row) * width);
      const auto update = [&](const racy::Kernels& kernels) {
        R::Row(kernels, has_gradient ? step : idle, grad + at, w + at, StatesAt(states, at), count);
      };
      if (locks_ == nullptr) {
        update(racy::Best());
      } else {
        const RowGuard guard(*locks_, w + at);
        update(racy::Checked());
      }
    }
  }

  /// The way that the rule goes from a gradient.
  template <class Step>
  const float* Directed(const Step& step, const UpdateTarget& target, const float* grad, const float* weights,
                        const StateValues& states) {
    const int64_t count = target.param->numel();
    float* direction = direction_.Resize<float>(target.param->dims());
    if (locks_ == nullptr) {
      R::Direct(racy::Best(), step, grad, weights, states, static_cast<size_t>(count), direction);
      return direction;
    }
    const float* w = target.param->template data<float>();
    const int64_t width = LockedRowWidth(target.param->dims());
    for (int64_t at = 0; at < count; at += width) {
      const RowGuard guard(*locks_, w + at);
      R::Direct(racy::Checked(), step, grad + at, weights + at, StatesAt(states, at), static_cast<size_t>(width),
                direction + at);
    }
    return direction;
  }

  /// The parameter, out of the way of other workers.
  const float* Copy(const UpdateTarget& target) {
    const int64_t count = target.param->numel();
    const float* w = target.param->template data<float>();
    float* copy = copy_.Resize<float>(target.param->dims());
    if (locks_ == nullptr) {
      racy::Best().copy_row(w, copy, static_cast<size_t>(count));
      return copy;
    }
    const int64_t width = LockedRowWidth(target.param->dims());
    for (int64_t at = 0; at < count; at += width) {
      const RowGuard guard(*locks_, w + at);
      racy::Checked().copy_row(w + at, copy + at, static_cast<size_t>(width));
    }
    return copy;
  }

  static double Length(const float* values, int64_t count) { return std::sqrt(LaneSums().squares(values, count, 0)); }

  template <class Step>
  Status UpdateRows(const Step& step, const UpdateTarget& target) {
    const SelectedRows& grad = merger_.Merge(*target.sparse_grad);
    const auto height = static_cast<uint64_t>(target.param->dims()[0]);
    for (const uint64_t row : grad.rows) {
      if (row < height) continue;
      return BadData("row " + std::to_string(row) + " of a gradient is not in parameter " +
                     Shown(target.name, target.param->dims()));
    }
    if (grad.rows.empty()) return Status::Ok();
    const int64_t width = LockedRowWidth(target.param->dims());
    float* w = target.param->mutable_data<float>();
    const StateValues states = Values(target);
    const float* values = grad.values.data<float>();
    if (locks_ == nullptr) {
      const auto dim = static_cast<size_t>(width);
      if constexpr (requires { &R::Rows; }) {
        R::Rows(racy::Best(), step, grad.rows.data(), values, grad.rows.size(), dim, w, states);
      } else {
        UpdateRowsByRow<R>(racy::Best(), step, grad.rows.data(), values, grad.rows.size(), dim, w, states);
      }
      return Status::Ok();
    }
    for (const uint64_t row : grad.rows) {
      const int64_t at = static_cast<int64_t>(row) * width;
      const RowGuard guard(*locks_, w + at);
      R::Row(racy::Checked(), step, values, w + at, StatesAt(states, at), static_cast<size_t>(width));
      values += width;
    }
    return Status::Ok();
  }

  /// The sparse gradient with zeros for the other rows.
  const float* Spread(const UpdateTarget& target) {
    const int64_t width = LockedRowWidth(target.param->dims());
    float* all = spread_.Resize<float>(target.param->dims());
    std::fill_n(all, target.param->numel(), 0.0F);
    const SelectedRows& grad = *target.sparse_grad;
    const float* values = grad.rows.empty() ? nullptr : grad.values.data<float>();
    for (const uint64_t row : grad.rows) {
      if (row < static_cast<uint64_t>(target.param->dims()[0])) {
        for (int64_t j = 0; j < width; ++j) all[static_cast<int64_t>(row) * width + j] += values[j];
      }
      values += width;
    }
    return all;
  }

  R rule_;
  std::vector<UpdateTarget> targets_;
  FloatInput rate_;
  std::vector<ScalarInput> told_;  ///< of R::kTensors; not a number where nothing is bound
  RowLocks* locks_ = nullptr;
  RowMerger merger_;
  Tensor spread_;
  std::vector<bool> has_gradient_;  ///< rows of the parameter
  Tensor copy_;
  Tensor direction_;
};

using AddAttrsFn = void (*)(OpBuilder&);

/// Adds the operator of rule R for one parameter, or for any number of them with dense gradients.
template <class R, bool kMany>
void AddOptimizer(OpRegistry& registry, const std::string& type, const std::string& doc, AddAttrsFn add_attrs) {
  OpBuilder op = registry.Add(type);
  const auto input = [&](const char* name, const char* what) { kMany ? op.Inputs(name, what) : op.Input(name, what); };
  const auto output = [&](const char* name, const char* what) {
    kMany ? op.Outputs(name, what) : op.Output(name, what);
  };
  op.Doc(doc + (kMany ? " For any number of parameters." : ""));
  input("Param", "parameter");
  input("Grad", kMany ? "dense gradient" : "gradient, dense or sparse (equal rows are added up first)");
  if constexpr (requires { R::kRateWhenMissing; }) {
    op.OptionalInput("LearningRate", "[1]; without it the rate is 1, as in Paddle 1");
  } else {
    op.Input("LearningRate", "[1]");
  }
  for (const StateInfo& state : R::kStates) input(state.in, state.doc);
  for (const StateInfo& scalar : R::kScalars) input(scalar.in, scalar.doc);
  output("ParamOut", "the variable of Param");
  if constexpr (!kMany && requires { R::kTensors; }) {
    for (const char* name : R::kTensors) op.OptionalInput(name, "[1], what an attribute says otherwise");
  }
  for (const StateInfo& state : R::kStates) output(state.out, "the variable of the input");
  for (const StateInfo& scalar : R::kScalars) {
    const char* const what = "the variable of the input";
    kMany ? op.OptionalOutputs(scalar.out, what) : op.OptionalOutput(scalar.out, what);
  }
  op.InferShape([](InferShapeContext& context) { return InferOptimizer(context, R::kStates, R::kScalars); });
  op.Attr("multi_precision", false, "of parameters of 16 bits; changes nothing here");
  op.Optimizer(R::kStates, R::kScalars).template Kernel<OptimizerKernel<R>>();
  add_attrs(op);
  if (kMany) op.Fused();
}

/// Registers TYPE, and fused_TYPE which fusion makes of many.
template <class R>
void RegisterOptimizer(OpRegistry& registry, const std::string& type, const std::string& doc, AddAttrsFn add_attrs) {
  AddOptimizer<R, false>(registry, type, doc, add_attrs);
  AddOptimizer<R, true>(registry, "fused_" + type, doc, add_attrs);
}

}  // namespace millrace
