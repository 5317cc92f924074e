#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "kernels/not_a_number.h"
#include "kernels/racy.h"
#include "ops/forward_product.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

enum class CellKind : uint8_t { kTanh, kRelu, kGru, kLstm };

/// What the attributes say, and the sizes of one batch: layers of cells that read [steps, rows, inputs].
struct RnnRule {
  CellKind kind = CellKind::kTanh;
  int64_t layers = 1;
  int64_t directions = 1;
  int64_t hidden = 0;

  static RnnRule Of(const OpView& op) {
    const std::string mode = op.String("mode");
    RnnRule rule;
    rule.kind = mode == "LSTM"       ? CellKind::kLstm
                : mode == "GRU"      ? CellKind::kGru
                : mode == "RNN_RELU" ? CellKind::kRelu
                                     : CellKind::kTanh;
    rule.layers = op.Int("num_layers");
    rule.directions = op.Bool("is_bidirec") ? 2 : 1;
    rule.hidden = op.Int("hidden_size");
    return rule;
  }
  int64_t cells() const { return layers * directions; }
  int64_t states() const { return kind == CellKind::kLstm ? 2 : 1; }
  int64_t gates() const { return kind == CellKind::kLstm ? 4 : kind == CellKind::kGru ? 3 : 1; }
  /// Sizes of WeightList[i] for inputs of this width.
  Dims WeightDims(size_t i, int64_t inputs) const {
    const int64_t at = static_cast<int64_t>(i);
    if (at >= 2 * cells()) return {gates() * hidden};
    const int64_t width = at / 2 < directions ? inputs : hidden * directions;
    return {gates() * hidden, at % 2 == 0 ? width : hidden};
  }
};

/// What a cell keeps of a batch for its gradient, at offsets in Reserve.
struct CellRoom {
  float* hidden;  ///< [steps, rows, hidden] after each step
  float* memory;  ///< of LSTM, likewise
  float* gates;   ///< [steps, rows, gates * hidden] after their activation
  float* inner;   ///< of GRU: what the reset gate multiplies, [steps, rows, hidden]
};

/// Reserve as its parts.
struct RnnRoom {
  RnnRule rule;
  int64_t steps, rows;
  float* base = nullptr;

  int64_t cell_size() const {
    const int64_t extra = rule.kind == CellKind::kLstm || rule.kind == CellKind::kGru ? 1 : 0;
    return steps * rows * rule.hidden * (1 + extra + rule.gates());
  }
  int64_t layer_size() const { return steps * rows * rule.hidden * rule.directions; }
  int64_t size() const { return rule.cells() * cell_size() + rule.layers * layer_size(); }
  CellRoom Cell(int64_t cell) const {
    float* at = base + cell * cell_size();
    const int64_t plane = steps * rows * rule.hidden;
    return {at, at + (1 + rule.gates()) * plane, at + plane, at + (1 + rule.gates()) * plane};
  }
  /// What a layer hands on: [steps, rows, directions * hidden].
  float* Layer(int64_t layer) const { return base + rule.cells() * cell_size() + layer * layer_size(); }
};

float RnnSigmoid(float x) { return 1 / (1 + std::exp(-x)); }

Status InferRnn(InferShapeContext& context) {
  const OpView& op = context.op();
  const std::string mode = op.String("mode");
  if (mode != "LSTM" && mode != "GRU" && mode != "RNN_TANH" && mode != "RNN_RELU") {
    return context.Error("mode is \"" + mode + "\"; supported are LSTM, GRU, RNN_TANH and RNN_RELU");
  }
  const RnnRule rule = RnnRule::Of(op);
  constexpr int64_t kMost = 1 << 20;  // so that no product of sizes overflows
  if (rule.layers < 1 || rule.hidden < 1 || rule.layers > kMost || rule.hidden > kMost) {
    return context.Error("num_layers and hidden_size must be from 1 to " + std::to_string(kMost));
  }
  if (op.Float("dropout_prob") > 0 && rule.layers > 1) {
    return context.Error(
        "dropout_prob between layers is not supported; set it to 0, or stack layers with dropout operators");
  }
  MR_ASSIGN(VarMeta x, context.Input("Input"));
  MR_TRY(ExpectDType(context, "Input", x, DType::kFloat32));
  if (x.dims.rank() != 3) return context.Error("Input " + x.dims.ToString() + " must be [steps, rows, inputs]");
  MR_ASSIGN(const std::vector<VarMeta> states, context.Inputs("PreState"));
  MR_ASSIGN(const std::vector<VarMeta> weights, context.Inputs("WeightList"));
  const auto cells = static_cast<size_t>(rule.cells());
  if (states.size() != static_cast<size_t>(rule.states()) ||
      (weights.size() != 4 * cells && weights.size() != 2 * cells)) {
    return context.Error("has " + std::to_string(states.size()) + " PreState and " + std::to_string(weights.size()) +
                         " WeightList; " + mode + " of these layers needs " + std::to_string(rule.states()) + " and " +
                         std::to_string(4 * cells) + " (" + std::to_string(2 * cells) + " without biases)");
  }
  for (const VarMeta& state : states) {
    if (MayEqual(state.dims, Dims{rule.cells(), x.dims[1], rule.hidden})) continue;
    return context.Error("PreState " + state.dims.ToString() + " must be [" + std::to_string(rule.cells()) +
                         ", rows, " + std::to_string(rule.hidden) + "]");
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    MR_TRY(ExpectDType(context, "WeightList", weights[i], DType::kFloat32));
    const Dims wanted = rule.WeightDims(i, x.dims[2]);
    if (MayEqual(weights[i].dims, wanted)) continue;
    return context.Error("WeightList[" + std::to_string(i) + "] " + weights[i].dims.ToString() + " must be " +
                         wanted.ToString());
  }
  if (context.OutputCount("State") != static_cast<int>(states.size())) {
    return context.Error("has " + std::to_string(context.OutputCount("State")) + " State for " +
                         std::to_string(states.size()) + " PreState");
  }
  for (size_t i = 0; i < states.size(); ++i) context.SetOutput("State", states[i], static_cast<int>(i));
  x.dims.set(2, rule.hidden * rule.directions);
  context.SetOutput("Out", x);
  VarMeta room = x;
  room.dims = Dims{-1};
  context.SetOutput("Reserve", room);
  room.dtype = DType::kUint8;
  context.SetOutput("DropoutState", room);
  return Status::Ok();
}

/// A parameter that other workers may be writing while the frame trains.
struct RnnWeight {
  const Tensor* shared = nullptr;
  bool is_constant = false;
  Tensor copy;

  const float* Read() {
    if (is_constant) return shared->data<float>();
    float* values = copy.Resize<float>(shared->dims());
    racy::CopyRow(shared->data<float>(), values, static_cast<size_t>(shared->numel()));
    return values;
  }
};

/// What both directions of the computation share.
struct RnnInputs {
  RnnRule rule;
  const Tensor* x = nullptr;
  std::vector<const Tensor*> first;  ///< states before the first step
  std::vector<RnnWeight> weights;
  const Tensor* lengths = nullptr;
  int64_t steps = 0, rows = 0;
  std::vector<int64_t> length;

  Status Bind(KernelContext& context) {
    rule = RnnRule::Of(context.op());
    MR_ASSIGN(x, context.Input("Input"));
    MR_ASSIGN(first, context.Inputs("PreState"));
    MR_ASSIGN(const std::vector<const Tensor*> parameters, context.Inputs("WeightList"));
    weights.resize(parameters.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i].shared = parameters[i];
      weights[i].is_constant = context.options().read_only;
    }
    MR_ASSIGN(lengths, context.OptionalInput("SequenceLength"));
    return Status::Ok();
  }
  Status Look() {
    steps = x->dims()[0];
    rows = x->dims()[1];
    for (const Tensor* state : first) {
      if (state->numel() == rule.cells() * rows * rule.hidden) continue;
      return BadData("PreState " + state->dims().ToString() + " does not fit Input " + x->dims().ToString());
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      const Tensor& weight = *weights[i].shared;
      if (weight.numel() == rule.WeightDims(i, x->dims()[2]).numel()) continue;
      return BadData("WeightList[" + std::to_string(i) + "] " + weight.dims().ToString() + " does not fit Input " +
                     x->dims().ToString());
    }
    length.assign(static_cast<size_t>(rows), steps);
    if (lengths == nullptr) return Status::Ok();
    if (lengths->numel() != rows)
      return BadData("SequenceLength " + lengths->dims().ToString() + " must have " + std::to_string(rows) +
                     " numbers");
    const auto take = [&](const auto* numbers) { std::copy_n(numbers, length.size(), length.begin()); };
    lengths->dtype() == DType::kInt64 ? take(lengths->data<int64_t>()) : take(lengths->data<int32_t>());
    for (size_t i = 0; i < length.size(); ++i) {
      if (length[i] < 0 || length[i] > steps) {
        return BadData("SequenceLength of row " + std::to_string(i) + " is " + std::to_string(length[i]) +
                       ", not from 0 to " + std::to_string(steps));
      }
    }
    return Status::Ok();
  }
  bool has_bias() const { return weights.size() == static_cast<size_t>(4 * rule.cells()); }
  RnnWeight& Weight(int64_t cell, int64_t which) { return weights[static_cast<size_t>(2 * cell + which)]; }
  RnnWeight& Bias(int64_t cell, int64_t which) {
    return weights[static_cast<size_t>(2 * rule.cells() + 2 * cell + which)];
  }
  int64_t WidthOf(int64_t layer) const { return layer == 0 ? x->dims()[2] : rule.hidden * rule.directions; }
  bool Backwards(int64_t cell) const { return cell % rule.directions == 1; }
  /// The k-th step of a cell.
  int64_t StepAt(int64_t cell, int64_t k) const { return Backwards(cell) ? steps - 1 - k : k; }
  /// The state from which a cell takes its k-th step.
  const float* Before(int64_t cell, int64_t k, const float* after, size_t state) const {
    const int64_t plane = rows * rule.hidden;
    return k == 0 ? first[state]->data<float>() + cell * plane : after + StepAt(cell, k - 1) * plane;
  }
};

class RnnKernel : public BoundKernel<RnnKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(in_.Bind(context));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(states_, context.Outputs("State"));
    MR_ASSIGN(reserve_, context.Output("Reserve"));
    MR_ASSIGN(dropout_state_, context.OptionalOutput("DropoutState"));
    for (int64_t i = 0; i < 2 * in_.rule.cells(); ++i) {
      products_.push_back(std::make_unique<Gemm>(ForwardProduct(context, "WeightList", {.transpose_b = true})));
    }
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(in_.Look());
    const RnnRule& rule = in_.rule;
    RnnRoom room{rule, in_.steps, in_.rows};
    room.base = reserve_->Resize<float>({room.size()});
    if (dropout_state_ != nullptr) dropout_state_->Resize<uint8_t>({0});  // Paddle's rnn_grad has it as an input
    const int64_t plane = in_.rows * rule.hidden;
    for (Tensor* state : states_) {
      if (state != nullptr) state->Resize<float>({rule.cells(), in_.rows, rule.hidden});
    }
    const float* x = in_.x->data<float>();
    for (int64_t cell = 0; cell < rule.cells(); ++cell) {
      const int64_t layer = cell / rule.directions;
      const CellRoom own = room.Cell(cell);
      MR_TRY(RunCell(cell, layer == 0 ? x : room.Layer(layer - 1), own));
      Emit(cell, own.hidden, room.Layer(layer));
      const int64_t last = in_.StepAt(cell, in_.steps - 1);
      const float* ends[] = {own.hidden, own.memory};
      for (size_t s = 0; s < states_.size(); ++s) {
        if (states_[s] == nullptr) continue;
        const float* end = in_.steps == 0 ? in_.first[s]->data<float>() + cell * plane : ends[s] + last * plane;
        std::copy_n(end, plane, states_[s]->mutable_data<float>() + cell * plane);
      }
    }
    float* out = out_->Resize<float>({in_.steps, in_.rows, rule.directions * rule.hidden});
    std::copy_n(room.Layer(rule.layers - 1), room.layer_size(), out);
    return Status::Ok();
  }

 private:
  /// All steps of a cell over its input.
  Status RunCell(int64_t cell, const float* x, const CellRoom& own) {
    const RnnRule& rule = in_.rule;
    const int64_t width = rule.gates() * rule.hidden;
    const int64_t inputs = in_.WidthOf(cell / rule.directions);
    Gemm& of_input = *products_[static_cast<size_t>(2 * cell)];
    Gemm& of_hidden = *products_[static_cast<size_t>(2 * cell + 1)];
    MR_TRY(of_input.Run(in_.steps * in_.rows, width, inputs, x, in_.Weight(cell, 0).Read(), nullptr, own.gates));
    const float* weight = in_.Weight(cell, 1).Read();
    const float* x_bias = in_.has_bias() ? in_.Bias(cell, 0).Read() : nullptr;
    const float* h_bias = in_.has_bias() ? in_.Bias(cell, 1).Read() : nullptr;
    float* from_hidden = from_hidden_.Resize<float>({in_.rows, width});
    for (int64_t k = 0; k < in_.steps; ++k) {
      const int64_t step = in_.StepAt(cell, k);
      const float* before = in_.Before(cell, k, own.hidden, 0);
      MR_TRY(of_hidden.Run(in_.rows, width, rule.hidden, before, weight, nullptr, from_hidden));
      const float* memory = rule.states() == 2 ? in_.Before(cell, k, own.memory, 1) : nullptr;
      for (int64_t row = 0; row < in_.rows; ++row) {
        float* gates = own.gates + (step * in_.rows + row) * width;
        float* hidden_gates = from_hidden + row * width;
        for (int64_t j = 0; x_bias != nullptr && j < width; ++j) {
          gates[j] += x_bias[j];
          hidden_gates[j] += h_bias[j];
        }
        StepRow(step * in_.rows + row, step < in_.length[static_cast<size_t>(row)], gates, hidden_gates,
                before + row * rule.hidden, memory == nullptr ? nullptr : memory + row * rule.hidden, own);
      }
    }
    return Status::Ok();
  }

  void StepRow(int64_t at, bool counts, float* gates, const float* from_hidden, const float* before,
               const float* memory, const CellRoom& own) const {
    const int64_t n = in_.rule.hidden;
    float* hidden = own.hidden + at * n;
    for (int64_t j = 0; j < n; ++j) {
      switch (in_.rule.kind) {
        case CellKind::kLstm: {
          const float in = RnnSigmoid(gates[j] + from_hidden[j]);
          const float forget = RnnSigmoid(gates[n + j] + from_hidden[n + j]);
          const float value = std::tanh(gates[2 * n + j] + from_hidden[2 * n + j]);
          const float out = RnnSigmoid(gates[3 * n + j] + from_hidden[3 * n + j]);
          const float next = forget * memory[j] + in * value;
          own.memory[at * n + j] = counts ? next : memory[j];
          hidden[j] = counts ? out * std::tanh(next) : before[j];
          gates[j] = in;
          gates[n + j] = forget;
          gates[2 * n + j] = value;
          gates[3 * n + j] = out;
          break;
        }
        case CellKind::kGru: {
          const float reset = RnnSigmoid(gates[j] + from_hidden[j]);
          const float keep = RnnSigmoid(gates[n + j] + from_hidden[n + j]);
          const float value = std::tanh(gates[2 * n + j] + reset * from_hidden[2 * n + j]);
          own.inner[at * n + j] = from_hidden[2 * n + j];
          hidden[j] = counts ? (before[j] - value) * keep + value : before[j];
          gates[j] = reset;
          gates[n + j] = keep;
          gates[2 * n + j] = value;
          break;
        }
        default: {
          const float sum = gates[j] + from_hidden[j];
          gates[j] = in_.rule.kind == CellKind::kRelu ? std::max(sum, 0.0F) : std::tanh(sum);
          hidden[j] = counts ? gates[j] : before[j];
        }
      }
    }
  }

  /// The cell's part of what its layer hands on; 0 behind the end of a row.
  void Emit(int64_t cell, const float* hidden, float* layer) const {
    const int64_t n = in_.rule.hidden;
    const int64_t width = n * in_.rule.directions;
    for (int64_t at = 0; at < in_.steps * in_.rows; ++at) {
      float* to = layer + at * width + (cell % in_.rule.directions) * n;
      if (at / in_.rows < in_.length[static_cast<size_t>(at % in_.rows)]) {
        std::copy_n(hidden + at * n, n, to);
      } else {
        std::fill_n(to, n, 0.0F);
      }
    }
  }

  RnnInputs in_;
  Tensor* out_ = nullptr;
  std::vector<Tensor*> states_;
  Tensor* reserve_ = nullptr;
  Tensor* dropout_state_ = nullptr;
  Tensor from_hidden_;
  std::vector<std::unique_ptr<Gemm>> products_;  ///< of each cell: by its input, by its state
};

class RnnGradKernel : public BoundKernel<RnnGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(in_.Bind(context));
    MR_ASSIGN(reserve_, GradInput::Bind(context, "Reserve"));
    MR_ASSIGN(out_grad_, GradInput::BindOptional(context, "Out@GRAD"));
    MR_ASSIGN(state_grads_, GradInput::BindAll(context, "State@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("Input@GRAD"));
    MR_ASSIGN(first_grads_, context.Outputs("PreState@GRAD"));
    MR_ASSIGN(weight_grads_, context.Outputs("WeightList@GRAD"));
    weight_grads_.resize(in_.weights.size());
    first_grads_.resize(in_.first.size());
    state_grads_.resize(in_.first.size());
    plain_ = std::make_unique<Gemm>(GemmSpec{.bf16 = context.options().bf16});
    across_ = std::make_unique<Gemm>(GemmSpec{.transpose_a = true, .bf16 = context.options().bf16});
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(in_.Look());
    const RnnRule& rule = in_.rule;
    RnnRoom room{rule, in_.steps, in_.rows};
    MR_ASSIGN(const float* kept, reserve_.Read(room.size()));
    room.base = const_cast<float*>(kept);
    const int64_t total = in_.steps * in_.rows;
    float* layer_grad = layer_grad_.Resize<float>({room.layer_size()});
    std::fill_n(layer_grad, room.layer_size(), 0.0F);
    if (out_grad_.bound()) {
      MR_ASSIGN(const float* out_grad, out_grad_.Read(room.layer_size()));
      std::copy_n(out_grad, room.layer_size(), layer_grad);
    }
    for (Tensor* grad : first_grads_) {
      if (grad != nullptr) grad->Resize<float>({rule.cells(), in_.rows, rule.hidden});
    }
    for (int64_t layer = rule.layers - 1; layer >= 0; --layer) {
      const int64_t inputs = in_.WidthOf(layer);
      float* below = below_.Resize<float>({total * inputs});
      std::fill_n(below, total * inputs, 0.0F);
      const float* x = layer == 0 ? in_.x->data<float>() : room.Layer(layer - 1);
      for (int64_t d = 0; d < rule.directions; ++d) {
        const int64_t cell = layer * rule.directions + d;
        MR_TRY(StepsBack(cell, room.Cell(cell), layer_grad));
        MR_TRY(WeightGrads(cell, room.Cell(cell), x, inputs));
        float* part = part_.Resize<float>({total, inputs});
        MR_TRY(plain_->Run(total, inputs, rule.gates() * rule.hidden, x_gates_.data<float>(),
                           in_.Weight(cell, 0).Read(), nullptr, part));
        for (int64_t i = 0; i < total * inputs; ++i) below[i] += part[i];
      }
      if (layer > 0) std::copy_n(below, total * inputs, layer_grad_.Resize<float>({total * inputs}));
    }
    if (x_grad_ != nullptr) std::copy_n(below_.data<float>(), in_.x->numel(), x_grad_->Resize<float>(in_.x->dims()));
    return Status::Ok();
  }

 private:
  /// Gradients of a cell's gates, and of the states it began with.
  Status StepsBack(int64_t cell, const CellRoom& own, const float* layer_grad) {
    const RnnRule& rule = in_.rule;
    const int64_t n = rule.hidden;
    const int64_t plane = in_.rows * n;
    const int64_t width = rule.gates() * n;
    x_gates_.Resize<float>({in_.steps * in_.rows, width});
    h_gates_.Resize<float>({in_.steps * in_.rows, width});
    float* grads[2] = {hidden_grad_.Resize<float>({plane}), memory_grad_.Resize<float>({plane})};
    for (size_t s = 0; s < in_.first.size(); ++s) {
      std::fill_n(grads[s], plane, 0.0F);
      if (!state_grads_[s].bound()) continue;
      MR_ASSIGN(const float* arrived, state_grads_[s].Read(rule.cells() * plane));
      std::copy_n(arrived + cell * plane, plane, grads[s]);
    }
    float* carried = carried_.Resize<float>({in_.rows, n});
    const float* weight = in_.Weight(cell, 1).Read();
    for (int64_t k = in_.steps - 1; k >= 0; --k) {
      const int64_t step = in_.StepAt(cell, k);
      const float* before = in_.Before(cell, k, own.hidden, 0);
      const float* memory = rule.states() == 2 ? in_.Before(cell, k, own.memory, 1) : nullptr;
      for (int64_t row = 0; row < in_.rows; ++row) {
        const int64_t at = step * in_.rows + row;
        const bool counts = step < in_.length[static_cast<size_t>(row)];
        const float* handed = layer_grad + at * n * rule.directions + (cell % rule.directions) * n;
        for (int64_t j = 0; counts && j < n; ++j) grads[0][row * n + j] += handed[j];
        RowBack(at, counts, before + row * n, memory == nullptr ? nullptr : memory + row * n, own, grads[0] + row * n,
                grads[1] + row * n);
      }
      const float* h_gates = h_gates_.data<float>() + step * in_.rows * width;
      MR_TRY(plain_->Run(in_.rows, n, width, h_gates, weight, nullptr, carried));
      for (int64_t i = 0; i < plane; ++i) grads[0][i] += carried[i];
    }
    for (size_t s = 0; s < in_.first.size(); ++s) {
      if (first_grads_[s] != nullptr)
        std::copy_n(grads[s], plane, first_grads_[s]->mutable_data<float>() + cell * plane);
    }
    return Status::Ok();
  }

  /// One row of one step: from the gradients of its states, those of its gates, and what passes by them to the states
  /// before.
  void RowBack(int64_t at, bool counts, const float* before, const float* memory, const CellRoom& own,
               float* hidden_grad, float* memory_grad) {
    const int64_t n = in_.rule.hidden;
    const int64_t width = in_.rule.gates() * n;
    const float* gates = own.gates + at * width;
    float* x_gates = x_gates_.mutable_data<float>() + at * width;
    float* h_gates = h_gates_.mutable_data<float>() + at * width;
    if (!counts) {
      std::fill_n(x_gates, width, 0.0F);
      std::fill_n(h_gates, width, 0.0F);
      return;
    }
    for (int64_t j = 0; j < n; ++j) {
      const float grad = hidden_grad[j];
      hidden_grad[j] = 0;
      switch (in_.rule.kind) {
        case CellKind::kLstm: {
          const float in = gates[j], forget = gates[n + j], value = gates[2 * n + j], out = gates[3 * n + j];
          const float t = std::tanh(own.memory[at * n + j]);
          const float inside = memory_grad[j] + grad * out * (1 - t * t);
          x_gates[j] = inside * value * in * (1 - in);
          x_gates[n + j] = inside * memory[j] * forget * (1 - forget);
          x_gates[2 * n + j] = inside * in * (1 - value * value);
          x_gates[3 * n + j] = grad * t * out * (1 - out);
          memory_grad[j] = inside * forget;
          break;
        }
        case CellKind::kGru: {
          const float reset = gates[j], keep = gates[n + j], value = gates[2 * n + j];
          const float inside = grad * (1 - keep) * (1 - value * value);
          hidden_grad[j] = grad * keep;
          x_gates[j] = inside * own.inner[at * n + j] * reset * (1 - reset);
          x_gates[n + j] = grad * (before[j] - value) * keep * (1 - keep);
          x_gates[2 * n + j] = inside;
          break;
        }
        case CellKind::kRelu: x_gates[j] = gates[j] > 0 ? grad : ZeroOrNan(gates[j]); break;
        case CellKind::kTanh: x_gates[j] = grad * (1 - gates[j] * gates[j]); break;
      }
    }
    std::copy_n(x_gates, width, h_gates);
    if (in_.rule.kind != CellKind::kGru) return;
    for (int64_t j = 0; j < n; ++j) h_gates[2 * n + j] *= gates[j];
  }

  Status WeightGrads(int64_t cell, const CellRoom& own, const float* x, int64_t inputs) {
    const int64_t n = in_.rule.hidden;
    const int64_t width = in_.rule.gates() * n;
    const int64_t total = in_.steps * in_.rows;
    Tensor* const* grads = weight_grads_.data() + 2 * cell;
    if (grads[0] != nullptr) {
      MR_TRY(across_->Run(width, inputs, total, x_gates_.data<float>(), x, nullptr,
                          grads[0]->Resize<float>({width, inputs})));
    }
    if (grads[1] != nullptr) {
      float* before = before_.Resize<float>({total, n});
      for (int64_t k = 0; k < in_.steps; ++k) {
        std::copy_n(in_.Before(cell, k, own.hidden, 0), in_.rows * n, before + in_.StepAt(cell, k) * in_.rows * n);
      }
      MR_TRY(
          across_->Run(width, n, total, h_gates_.data<float>(), before, nullptr, grads[1]->Resize<float>({width, n})));
    }
    if (!in_.has_bias()) return Status::Ok();
    const Tensor* gates[] = {&x_gates_, &h_gates_};
    for (int64_t which = 0; which < 2; ++which) {
      Tensor* grad = weight_grads_[static_cast<size_t>(2 * in_.rule.cells() + 2 * cell + which)];
      if (grad == nullptr) continue;
      float* sums = grad->Resize<float>({width});
      std::fill_n(sums, width, 0.0F);
      const float* values = gates[which]->data<float>();
      for (int64_t at = 0; at < total * width; ++at) sums[at % width] += values[at];
    }
    return Status::Ok();
  }

  RnnInputs in_;
  GradInput reserve_;
  GradInput out_grad_;
  std::vector<GradInput> state_grads_;
  Tensor* x_grad_ = nullptr;
  std::vector<Tensor*> first_grads_;
  std::vector<Tensor*> weight_grads_;
  Tensor layer_grad_, below_, part_, x_gates_, h_gates_, hidden_grad_, memory_grad_, carried_, before_;
  std::unique_ptr<Gemm> plain_;
  std::unique_ptr<Gemm> across_;
};

}  // namespace

void RegisterRnn(OpRegistry& registry) {
  registry.Add("rnn")
      .Doc("Recurrent layers over whole sequences.")
      .Input("Input", "[steps, rows, inputs]")
      .Inputs("PreState", "[layers * directions, rows, hidden_size]; of LSTM, its memory as well")
      .Inputs(
          "WeightList",
          "of each cell [gates * hidden_size, inputs] and [gates * hidden_size, hidden_size]; then two biases of each")
      .OptionalInput("SequenceLength", "[rows]: steps of each row; otherwise all")
      .Output("Out", "[steps, rows, directions * hidden_size]; 0 behind the end of a row")
      .Outputs("State", "as PreState, after the last step")
      .Output("Reserve", "what the gradient reads")
      .OptionalOutput("DropoutState", "no values")
      .Attr("mode", std::string("RNN_TANH"), "LSTM, GRU, RNN_TANH or RNN_RELU")
      .Attr("num_layers", int64_t{1}, "layers, each of which reads what the one below hands on")
      .Attr("is_bidirec", false, "a second cell in each layer reads from the last step to the first")
      .Attr("hidden_size", int64_t{100}, "width of a state")
      .Attr("input_size", int64_t{10}, "as Paddle writes it; changes nothing here")
      .Attr("dropout_prob", 0.0F, "between layers; only 0 is supported where there are several")
      .Attr("seed", int64_t{0}, "of the dropout")
      .InferShape(InferRnn)
      .Grad({.inputs = {"Input", "PreState", "WeightList", "SequenceLength"},
             .outputs = {"Reserve"},
             .of = {"Out", "State"},
             .to = {"Input", "PreState", "WeightList"}})
      .Kernel<RnnKernel>();
  registry.AddGradient("rnn")
      .UnreadInput("DropoutState", "of the forward operator")
      .UnreadInput("Out", "of the forward operator")
      .UnreadInputs("State", "of the forward operator")
      .Kernel<RnnGradKernel>();
}

}  // namespace millrace
