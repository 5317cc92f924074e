// Programs that were valid until somebody changed them. Whatever is changed: the program is refused, or it runs a
// batch, or a kernel refuses the batch; each for a reason of the user's, with the operator's name.
//
// The program is one operator with its gradients, of those that are checked against finite differences
// (tests/ops/op_cases.cc), an update of its first parameter, and a branch. The first two bytes choose it, one more says
// how many changes are made; the rest, four bytes a draw, decides on these and seeds the values of the batch.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "fuzz/demand.h"
#include "ops/builtin_ops.h"
#include "ops/op_cases.h"
#include "program/var_meta.h"
#include "runtime/frame.h"

namespace millrace {
namespace {

constexpr int kRows = 4;
constexpr int64_t kMostValues = 1 << 16;

const OpRegistry& Operators() {
  static const OpRegistry registry = [] {
    OpRegistry all;
    RegisterBuiltinOps(all);
    Demand(all.Seal().ok(), "the registry does not seal");
    return all;
  }();
  return registry;
}

/// Bytes as numbers; after the last byte, numbers drawn from what was there.
class Draws {
 public:
  Draws(const uint8_t* data, size_t size) : data_(data), size_(size), rest_(size) {}
  size_t Below(size_t bound) {
    if (bound == 0) return 0;
    if (size_ < 4) return rest_.Below(bound);
    uint32_t value = 0;
    std::memcpy(&value, data_, sizeof value);
    data_ += 4;
    size_ -= 4;
    rest_ = Rng(rest_.Next() ^ value);
    return value % bound;
  }
  bool OneIn(size_t chances) { return Below(chances) == 0; }
  template <class List>
  auto& Of(List& list) {
    return list[static_cast<int>(Below(static_cast<size_t>(list.size())))];
  }

 private:
  const uint8_t* data_;
  size_t size_;
  Rng rest_;
};

VarDesc* Declare(ProgramDesc& program, const std::string& name, DType type, const std::vector<int64_t>& shape) {
  VarDesc* var = program.mutable_blocks(0)->add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(VarType::LOD_TENSOR);
  auto* tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
  tensor->set_data_type(ToVarType(type));
  for (const int64_t size : shape) tensor->add_dims(size);
  return var;
}

OpDesc ForwardOp(const OpCase& c) {
  OpDesc op;
  op.set_type(c.op);
  const auto add = [](std::vector<std::string> names, const std::string& name) {
    names.push_back(name);
    return names;
  };
  for (const CaseInput& input : c.inputs) {
    SetInput(op, input.parameter, add(InputArguments(op, input.parameter), input.name));
  }
  for (const auto& [parameter, name] : c.outputs) {
    SetOutput(op, parameter, add(OutputArguments(op, parameter), name));
  }
  for (const auto& [name, value] : c.attrs) SetAttr(op, name, value);
  return op;
}

DType TypeOf(Draw draw) {
  return draw == Draw::kClass ? DType::kInt64 : draw == Draw::kTruth ? DType::kBool : DType::kFloat32;
}

/// The operator, what the gradients of its outputs start from, and its gradients.
void AddCase(const OpCase& c, ProgramDesc& program) {
  BlockDesc& block = *program.mutable_blocks(0);
  NameNumbers wanted;
  NameNumbers have;
  for (const CaseInput& input : c.inputs) {
    if (FindVar(program, input.name) != nullptr) continue;
    VarDesc* var = Declare(program, input.name, TypeOf(input.draw), input.shape);
    var->mutable_type()->mutable_lod_tensor()->set_lod_level(input.lod ? 1 : 0);
    var->set_persistable(std::all_of(input.shape.begin(), input.shape.end(), [](int64_t size) { return size >= 0; }));
    if (input.differentiable && TypeOf(input.draw) == DType::kFloat32) wanted.Add(input.name);
  }
  const OpDesc forward = ForwardOp(c);
  for (const auto& [parameter, name] : c.outputs) {
    if (FindVar(program, name) == nullptr) Declare(program, name, DType::kFloat32, {});
  }
  *block.add_ops() = forward;
  const OpInfo* info = Operators().Find(c.op);
  if (info == nullptr || info->grad == nullptr) return;
  for (const std::string& name : c.objective) {
    have.Add(name);
    // As a loss begins: ones of the shape of the output.
    OpDesc ones;
    ones.set_type("fill_any_like");
    SetInput(ones, "X", {name});
    SetOutput(ones, "Out", {GradName(name)});
    SetAttr(ones, "value", 1.0F);
    *block.add_ops() = ones;
  }
  for (const OpDesc& gradient : info->grad(GradContext(OpView(forward, *info), wanted, have))) {
    *block.add_ops() = gradient;
  }
}

/// sgd on the first parameter that has a gradient.
void AddUpdate(const OpCase& c, ProgramDesc& program) {
  for (const CaseInput& input : c.inputs) {
    const VarDesc* var = FindVar(program, input.name);
    if (!var->persistable() || !input.differentiable) continue;
    Declare(program, "rate", DType::kFloat32, {1})->set_persistable(true);
    OpDesc sgd;
    sgd.set_type("sgd");
    SetInput(sgd, "Param", {input.name});
    SetInput(sgd, "Grad", {GradName(input.name)});
    SetInput(sgd, "LearningRate", {"rate"});
    SetOutput(sgd, "ParamOut", {input.name});
    *program.mutable_blocks(0)->add_ops() = sgd;
    return;
  }
}

/// Scales the first output in a block of its own.
void AddBranch(const OpCase& c, ProgramDesc& program) {
  Declare(program, "branch_condition", DType::kBool, {1})->set_persistable(true);
  OpDesc scale;
  scale.set_type("scale");
  SetInput(scale, "X", {c.outputs[0].second});
  SetOutput(scale, "Out", {"scaled"});
  Declare(program, "scaled", DType::kFloat32, {});
  BlockDesc* block = program.add_blocks();
  block->set_idx(1);
  block->set_parent_idx(0);
  *block->add_ops() = scale;
  OpDesc branch;
  branch.set_type("conditional_block");
  SetInput(branch, "Cond", {"branch_condition"});
  SetInput(branch, "Input", {c.outputs[0].second});
  SetOutput(branch, "Out", {"scaled"});
  SetAttr(branch, "is_scalar_condition", true);
  OpDesc::Attr* sub_block = branch.add_attrs();
  sub_block->set_name("sub_block");
  sub_block->set_type(BLOCK);
  sub_block->set_block_idx(1);
  *program.mutable_blocks(0)->add_ops() = branch;
}

ProgramDesc ValidProgram(const OpCase& c) {
  ProgramDesc program;
  BlockDesc* block = program.add_blocks();
  block->set_idx(0);
  block->set_parent_idx(-1);
  AddCase(c, program);
  AddUpdate(c, program);
  AddBranch(c, program);
  for (const OpDesc& op : program.blocks(0).ops()) {
    for (const OpDesc::Var& output : op.outputs()) {
      for (const std::string& name : output.arguments()) {
        if (name != kEmptyVar && FindVar(program, name) == nullptr) Declare(program, name, DType::kFloat32, {});
      }
    }
  }
  return program;
}

/// Changes one thing of a program.
class Mutator {
 public:
  Mutator(ProgramDesc* program, Draws* draws) : program_(program), draws_(draws) {}

  void Change() {
    BlockDesc& block = draws_->Of(*program_->mutable_blocks());
    if (block.ops_size() == 0 || draws_->OneIn(4)) return ChangeVariable(*program_->mutable_blocks(0));
    switch (draws_->Below(8)) {
      case 0: return ChangeOrder(block);
      case 1: return ChangeType(draws_->Of(*block.mutable_ops()));
      case 2:
      case 3:
      case 4: return ChangeAttribute(draws_->Of(*block.mutable_ops()));
      default: return ChangeBinding(draws_->Of(*block.mutable_ops()));
    }
  }

 private:
  void ChangeVariable(BlockDesc& block) {
    VarDesc& var = draws_->Of(*block.mutable_vars());
    auto* dims = var.mutable_type()->mutable_lod_tensor()->mutable_tensor()->mutable_dims();
    switch (draws_->Below(7)) {
      case 0:
        if (dims->size() > 0)
          *dims->Mutable(static_cast<int>(draws_->Below(static_cast<size_t>(dims->size())))) = Size();
        break;
      case 1: dims->Add(Size()); break;
      case 2:
        if (dims->size() > 0) dims->RemoveLast();
        break;
      case 3: {
        static constexpr VarType::Type kTypes[] = {VarType::FP32, VarType::INT64, VarType::INT32, VarType::BOOL,
                                                   VarType::FP64, VarType::UINT8, VarType::FP16};
        var.mutable_type()->mutable_lod_tensor()->mutable_tensor()->set_data_type(kTypes[draws_->Below(7)]);
        break;
      }
      case 4: {
        static constexpr VarType::Type kKinds[] = {VarType::SELECTED_ROWS, VarType::SPARSE_TABLE, VarType::READER,
                                                   VarType::RAW, VarType::STEP_SCOPES};
        var.mutable_type()->set_type(kKinds[draws_->Below(5)]);
        break;
      }
      case 5: var.mutable_type()->mutable_lod_tensor()->set_lod_level(1 - var.type().lod_tensor().lod_level()); break;
      default: var.set_persistable(!var.persistable());
    }
  }

  void ChangeOrder(BlockDesc& block) {
    const int i = static_cast<int>(draws_->Below(static_cast<size_t>(block.ops_size())));
    const int j = static_cast<int>(draws_->Below(static_cast<size_t>(block.ops_size())));
    switch (draws_->Below(3)) {
      case 0: block.mutable_ops()->SwapElements(i, j); break;
      case 1: block.mutable_ops()->DeleteSubrange(i, 1); break;
      default: {
        const OpDesc copy = block.ops(i);
        *block.add_ops() = copy;
      }
    }
  }

  /// Another operator; none that would touch files.
  void ChangeType(OpDesc& op) {
    static const std::vector<const OpInfo*> all = Operators().all();
    const OpInfo* info = all[draws_->Below(all.size())];
    if (info->effect.empty()) op.set_type(info->type);
  }

  void ChangeBinding(OpDesc& op) {
    auto* bindings = draws_->OneIn(2) ? op.mutable_inputs() : op.mutable_outputs();
    if (bindings->empty()) return;
    OpDesc::Var& binding = draws_->Of(*bindings);
    auto* names = binding.mutable_arguments();
    switch (draws_->Below(6)) {
      case 0:
        if (!names->empty()) draws_->Of(*names) = Name();
        break;
      case 1: *names->Add() = Name(); break;
      case 2:
        if (!names->empty()) names->RemoveLast();
        break;
      case 3: binding.set_parameter(Parameter(op)); break;
      case 4: {
        const OpDesc::Var copy = binding;
        *bindings->Add() = copy;
        break;
      }
      default: {
        OpDesc::Var* added = bindings->Add();
        added->set_parameter(Parameter(op));
        added->add_arguments(Name());
      }
    }
  }

  void ChangeAttribute(OpDesc& op) {
    const OpInfo* info = Operators().Find(op.type());
    if (info == nullptr || info->attrs.empty()) return;
    const AttrInfo& attr = info->attrs[draws_->Below(info->attrs.size())];
    if (attr.is_block) {
      for (OpDesc::Attr& given : *op.mutable_attrs()) {
        if (given.type() == BLOCK) given.set_block_idx(static_cast<int>(draws_->Below(5)) - 2);
      }
      return;
    }
    AttrValue value = OpView(op, *info).Value(attr.name);
    std::visit([this](auto& v) { ChangeValue(v); }, value);
    SetAttr(op, attr.name, value);
  }
  void ChangeValue(int64_t& value) { value = Number(); }
  void ChangeValue(float& value) {
    static constexpr float kValues[] = {0.0F, -1.0F, 1.0F, 0.5F, 1e30F, -1e30F};
    value = draws_->OneIn(8) ? static_cast<float>(Number()) : kValues[draws_->Below(6)];
  }
  void ChangeValue(bool& value) { value = !value; }
  void ChangeValue(std::string& value) {
    static constexpr const char* kValues[] = {"", "SUM", "MAX", "->", "ij,jk->ik", "NHWC", "VALID", "x"};
    value = kValues[draws_->Below(8)];
  }
  template <class T>
  void ChangeValue(std::vector<T>& values) {
    if (values.empty() || draws_->OneIn(3)) {
      values.emplace_back();
    } else if (draws_->OneIn(3)) {
      values.pop_back();
      return;
    }
    ChangeValue(values[draws_->Below(values.size())]);
  }

  int64_t Number() {
    static constexpr int64_t kOdd[] = {INT64_MIN, INT64_MAX, INT32_MIN, -9, 100};
    return draws_->OneIn(8) ? kOdd[draws_->Below(5)] : static_cast<int64_t>(draws_->Below(10)) - 3;
  }
  int64_t Size() {
    static constexpr int64_t kSizes[] = {-1, 0, 1, 2, 3, 4, 7, -2, INT64_MAX};
    return kSizes[draws_->Below(9)];
  }
  std::string Name() {
    if (draws_->OneIn(8)) return std::string(kEmptyVar);
    const auto& vars = program_->blocks(0).vars();
    return vars[static_cast<int>(draws_->Below(static_cast<size_t>(vars.size())))].name();
  }
  std::string Parameter(const OpDesc& op) {
    const OpInfo* info = Operators().Find(op.type());
    if (info == nullptr || draws_->OneIn(8)) return "Xs";
    const auto& args = draws_->OneIn(2) ? info->inputs : info->outputs;
    return args.empty() ? "Out" : args[draws_->Below(args.size())].name;
  }

  ProgramDesc* program_;
  Draws* draws_;
};

/// The batch, and parameters: each as the program declares it.
class Values {
 public:
  explicit Values(uint64_t seed) : rng_(seed) {}

  /// False for sizes that a test has no room for.
  static bool AreSmall(const Executable& executable) {
    return std::all_of(executable.vars().begin(), executable.vars().end(), [](const auto& var) {
      double values = 1;
      for (const int64_t size : var.second.dims.sizes()) values *= size < 0 ? 16.0 : static_cast<double>(size);
      return values <= static_cast<double>(kMostValues);
    });
  }

  void Fill(const VarMeta& meta, Tensor* tensor) {
    Dims dims = meta.dims;
    std::vector<uint32_t> lod;
    if (meta.lod_level > 0) {
      lod.push_back(0);
      for (int row = 0; row < kRows; ++row) lod.push_back(lod.back() + static_cast<uint32_t>(rng_.Below(4)));
    }
    for (int axis = 0; axis < dims.rank(); ++axis) {
      if (dims[axis] < 0) dims.set(axis, lod.empty() ? kRows : static_cast<int64_t>(lod.back()));
    }
    const bool cuts = dims.rank() > 0 && !lod.empty() && dims[0] == static_cast<int64_t>(lod.back());
    tensor->ResizeRaw(meta.dtype, dims);
    const int64_t count = dims.numel();
    for (int64_t i = 0; i < count; ++i) Draw(tensor, i);
    if (!cuts) return;
    lods_.push_back(std::move(lod));
    tensor->set_lod(lods_.back());
  }

 private:
  void Draw(Tensor* tensor, int64_t i) {
    const uint64_t odd = rng_.Below(64);
    const auto small = static_cast<int64_t>(rng_.Below(3));
    switch (tensor->dtype()) {
      case DType::kFloat32: tensor->mutable_data<float>()[i] = static_cast<float>(2 * rng_.Uniform() - 1); break;
      case DType::kFloat64: tensor->mutable_data<double>()[i] = rng_.Uniform(); break;
      case DType::kInt64: tensor->mutable_data<int64_t>()[i] = odd == 0 ? -1 : odd == 1 ? INT64_MAX : small; break;
      case DType::kInt32: tensor->mutable_data<int32_t>()[i] = odd == 0 ? -1 : static_cast<int32_t>(small); break;
      case DType::kBool: tensor->mutable_data<bool>()[i] = small != 0; break;
      default:
        std::memset(const_cast<char*>(static_cast<const char*>(tensor->raw_data())), 0,
                    static_cast<size_t>(tensor->numel()) * SizeOf(tensor->dtype()));
    }
  }

  Rng rng_;
  std::vector<std::vector<uint32_t>> lods_;
};

void DemandReason(const Status& status, const ProgramDesc& program) {
  if (status.ok() || status.code() == StatusCode::kInvalidConfig || status.code() == StatusCode::kBadData ||
      status.code() == StatusCode::kUnavailable) {
    return;
  }
  Demand(false, "another failure", status.ToString() + "\n" + program.DebugString());
}

struct Trial {
  bool fuse = false;
  bool changed = false;
  uint64_t seed = 0;
};

void Run(const ProgramDesc& program, const OpCase& c, const Trial& trial) {
  CompileOptions options;
  options.fuse = trial.fuse;
  const auto executable = Executable::Compile(program, Operators(), options);
  Demand(executable.ok() || trial.changed, "a valid program is refused", executable.status().message());
  if (!executable.ok()) return DemandReason(executable.status(), program);
  if (!Values::AreSmall(**executable)) return;
  Scope root;
  Values values(trial.seed);
  for (const auto& [name, meta] : (*executable)->vars()) {
    if (meta.persistable && meta.kind == VarType::LOD_TENSOR) values.Fill(meta, root.Var(name)->GetMutable<Tensor>());
    if (meta.persistable && meta.kind == VarType::SELECTED_ROWS) root.Var(name)->GetMutable<SelectedRows>();
  }
  FrameOptions frame_options;
  frame_options.max_rows = kRows;
  const auto frame = Frame::Create(**executable, nullptr, root, frame_options);
  if (!frame.ok()) return DemandReason(frame.status(), program);
  for (const CaseInput& input : c.inputs) {
    const VarMeta& meta = (*executable)->vars().at(input.name);
    Variable* variable = (*frame)->scope().Find(input.name);
    if (variable == nullptr || meta.persistable) continue;
    if (variable->empty() || variable->Is<Tensor>()) values.Fill(meta, variable->GetMutable<Tensor>());
  }
  RunContext context;
  context.rows = kRows;
  for (int batch = 0; batch < 2; ++batch) {
    const Status ran = (*frame)->Run(context);
    Demand(trial.changed || ran.code() != StatusCode::kInvalidConfig, "a valid program does not run", ran.message());
    DemandReason(ran, program);
  }
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  if (size < 4) return 0;
  const std::vector<OpCase>& cases = OpCases();
  const OpCase& chosen = cases[(data[0] + size_t{256} * data[1]) % cases.size()];
  ProgramDesc program = ValidProgram(chosen);
  Draws draws(data + 4, size - 4);
  Mutator mutator(&program, &draws);
  const int changes = data[2] % 4;
  for (int i = 0; i < changes; ++i) mutator.Change();
  Run(program, chosen, {data[3] % 2 == 1, changes > 0, draws.Below(1 << 20)});
  return 0;
}
