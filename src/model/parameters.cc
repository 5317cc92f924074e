#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include <cmath>

#include "model/lowering.h"
#include "program/ctr_accessor.h"
#include "program/field_traits.h"
#include "program/model_defaults.h"
#include "program/var_meta.h"

namespace millrace {
namespace {

std::vector<int64_t> ToVector(const Dims& dims) { return {dims.sizes().begin(), dims.sizes().end()}; }

OpDesc FillConstant(const std::string& name, const Dims& dims, float value, DType dtype = DType::kFloat32) {
  return MakeOp("fill_constant", {}, {{"Out", {name}}},
                {{"shape", ToVector(dims)}, {"dtype", static_cast<int64_t>(ToVarType(dtype))}, {"value", value}});
}

OpDesc Uniform(const std::string& name, const Dims& dims, float limit) {
  return MakeOp("uniform_random", {}, {{"Out", {name}}},
                {{"shape", ToVector(dims)},
                 {"dtype", static_cast<int64_t>(VarType::FP32)},
                 {"min", -limit},
                 {"max", limit},
                 {"seed", int64_t{0}}});
}

OpDesc Normal(const std::string& name, const Dims& dims, float deviation) {
  return MakeOp("gaussian_random", {}, {{"Out", {name}}},
                {{"shape", ToVector(dims)},
                 {"dtype", static_cast<int64_t>(VarType::FP32)},
                 {"mean", 0.0f},
                 {"std", deviation},
                 {"seed", int64_t{0}}});
}

/// Inputs and outputs of a unit, as Paddle and PyTorch count them for a [in, out] matrix.
double FanSum(const Dims& dims) { return static_cast<double>(dims[0] + (dims.rank() > 1 ? dims[1] : 0)); }

/// The operator that gives a parameter its first values; nullopt, with the mistake noted, when there is none.
std::optional<OpDesc> InitOp(Lowering& lowering, std::string_view where, const std::string& name, const Dims& dims,
                             const Initializer& init) {
  const InitializerRegistry& kinds = lowering.parts().initializers;
  if (!init.has_custom()) {
    const google::protobuf::OneofDescriptor* oneof = Initializer::descriptor()->FindOneofByName("kind");
    const auto* field = init.GetReflection()->GetOneofFieldDescriptor(init, oneof);
    const InitializerKind* kind = kinds.Find(field == nullptr ? "xavier" : field->name());
    CHECK(kind != nullptr) << field->name() << " is not registered";
    return kind->make({name, dims, init, PartAttrs({})});
  }
  const std::string& custom = init.custom().class_name();
  const InitializerKind* kind = FindClass<Initializer>(lowering, where, kinds, custom);
  if (kind == nullptr) return std::nullopt;
  const std::optional<PartAttrs> attrs = ReadPartAttrs(lowering, where, init.custom().attrs(), kind->attrs, custom);
  if (!attrs) return std::nullopt;
  OpDesc op;
  const std::string who = "initializer of the class \"" + custom + "\"";
  const bool is_made = LowerClass(lowering, where, who, [&] {
    op = kind->make({name, dims, init, *attrs});
    return true;
  });
  if (!is_made) return std::nullopt;
  const bool writes =
      op.outputs_size() == 1 && op.outputs(0).arguments_size() == 1 && op.outputs(0).arguments(0) == name;
  if (writes && op.inputs().empty()) return op;
  lowering.Problem(where, "the " + who + " gave an operator that does not write \"" + name + "\" alone, of no inputs");
  return std::nullopt;
}

void CheckAccessor(Lowering& lowering, const std::string& where, const TableDesc& table) {
  for (const OutOfRange& wrong : FindOutOfRange(table.accessor())) {
    lowering.Problem(where, "accessor: " + wrong.Where() + ": " + wrong.what);
  }
  for (const AccessorProblem& problem : FindAccessorProblems(table.accessor())) {
    lowering.Problem(where, "accessor: " + problem.path + ": " + problem.what);
  }
  if (table.has_dim() && table.dim() != DimOf(table)) {
    lowering.Problem(where, "dim: rows of its accessor have embedx_dim + 3 floats, " + std::to_string(DimOf(table)) +
                                ", not " + std::to_string(table.dim()));
  }
  if (table.has_vocabulary()) {
    lowering.Problem(where, "accessor: it is for tables that grow; leave out it or the vocabulary");
  }
  if (table.has_init()) lowering.Problem(where, "init: rows of an accessor start by initial_range of its rules");
  if (table.has_optimizer()) {
    lowering.Problem(where, "optimizer: rows of an accessor learn by its embed_sgd_param and embedx_sgd_param");
  }
}

VarMeta Persistable(const Dims& dims, DType dtype = DType::kFloat32) {
  VarMeta meta;
  meta.dtype = dtype;
  meta.dims = dims;
  meta.persistable = true;
  return meta;
}

}  // namespace

std::string TableText(const TableDesc& table) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(table, &text);
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

void Lowering::AddParameter(std::string_view where, const std::string& name, const Dims& dims, const Initializer& init,
                            bool is_weight) {
  if (main().Has(name)) {
    Problem(where, "its parameter \"" + name + "\" has the name of another variable; rename the layer");
    return;
  }
  constexpr double kMostValues = 1LL << 44;
  double values = 1;
  for (const int64_t size : dims.sizes()) values *= static_cast<double>(size);
  if (values > kMostValues) {
    Problem(where, "no machine holds its parameter \"" + name + "\" of " + dims.ToString());
    return;
  }
  main_.Declare(name, Persistable(dims)).set_is_parameter(true);
  startup_.Declare(name, Persistable(dims)).set_is_parameter(true);
  if (block_ != nullptr) block_->See(main_.vars());
  if (is_weight) known_.weights.push_back(name);
  std::optional<OpDesc> op = InitOp(*this, where, name, dims, init);
  if (!op) return;
  if (const Status s = startup_.Append(*std::move(op), OpRole::kForward); !s.ok()) {
    Problem(where, s.message());
  }
}

void Lowering::AddState(std::string_view where, const std::string& name, const Dims& dims, float value, DType dtype) {
  if (main().Has(name)) {
    Problem(where, "its state \"" + name + "\" has the name of another variable; rename the layer");
    return;
  }
  main_.Declare(name, Persistable(dims, dtype)).set_stop_gradient(true);
  startup_.Declare(name, Persistable(dims, dtype)).set_stop_gradient(true);
  if (block_ != nullptr) block_->See(main_.vars());
  if (const Status s = startup_.Append(FillConstant(name, dims, value, dtype), OpRole::kForward); !s.ok()) {
    Problem(where, s.message());
  }
}

void Lowering::AddTable(const TableDesc& table) {
  for (const TableDesc& known : known_.tables) {
    if (known.name() == table.name()) return;
  }
  const std::string where = "table \"" + table.name() + "\"";
  known_.tables.push_back(WithDefaults(table, *model_));
  const TableDesc& full = known_.tables.back();
  if (full.has_vocabulary()) {
    AddParameter(where, full.name(), {full.vocabulary(), full.dim()}, full.init(), false);
    return;
  }
  if (main().Has(full.name())) {
    Problem(where, "has the name of another variable; rename it");
    return;
  }
  VarMeta meta = Persistable({-1, full.dim()});
  meta.kind = VarType::SPARSE_TABLE;
  const std::string text = TableText(full);
  for (BlockBuilder* block : {&main_, &startup_}) {
    VarDesc& var = block->Declare(full.name(), meta);
    var.set_is_parameter(true);
    VarDesc::Attr* attr = var.add_attrs();
    attr->set_name("table");
    attr->set_type(STRING);
    attr->set_s(text);
  }
  if (block_ != nullptr) block_->See(main_.vars());
  if (const Status s = startup_.Append(MakeOp("create_sparse_table", {}, {{"Out", {full.name()}}}, {{"table", text}}),
                                       OpRole::kForward);
      !s.ok()) {
    Problem(where, s.message());
  }
}

TableDesc WithDefaults(const TableDesc& table, const ModelDesc& model) {
  TableDesc full = table;
  if (table.has_accessor()) {
    full.set_dim(DimOf(table));
    return full;
  }
  *full.mutable_init() = InitOf(table);
  if (full.optimizer().rule_case() == OptimizerDesc::RULE_NOT_SET) *full.mutable_optimizer() = model.optimizer();
  return full;
}

void CheckTables(Lowering& lowering) {
  std::set<std::string> seen;
  for (int i = 0; i < lowering.model().table_size(); ++i) {
    const TableDesc& table = lowering.model().table(i);
    const std::string where = "table \"" + table.name() + "\"";
    lowering.Enter("model.table[" + std::to_string(i) + "]");
    if (table.name().empty()) lowering.Problem("table", "name: missing");
    if (!seen.insert(table.name()).second) lowering.Problem(where, "name: there are two tables of this name");
    if (table.has_accessor()) CheckAccessor(lowering, where, table);
    if (!table.has_accessor() && table.dim() < 1) {
      lowering.Problem(where, "dim: must be at least 1; " +
                                  (table.has_dim() ? std::to_string(table.dim()) : std::string("it is missing")));
    }
    if (table.has_vocabulary() && table.vocabulary() < 1) {
      lowering.Problem(where, "vocabulary: must be at least 1; " + std::to_string(table.vocabulary()));
    }
    const auto init = table.init().kind_case();
    if (!table.has_vocabulary() && (init == Initializer::kXavier || init == Initializer::kXavierNormal)) {
      lowering.Problem(where, "init: xavier needs a vocabulary, a hash table has no size; use uniform or normal");
    }
    if (!table.has_vocabulary() && init == Initializer::kCustom) {
      lowering.Problem(where,
                       "init: custom needs a vocabulary: rows of a hash table start one by one; use uniform or "
                       "normal");
    }
    if (table.has_vocabulary() && table.padding_idx() >= table.vocabulary()) {
      lowering.Problem(where, "padding_idx: must be below the vocabulary " + std::to_string(table.vocabulary()) + "; " +
                                  std::to_string(table.padding_idx()));
    }
    if (table.has_vocabulary() && table.key() == TableDesc::SLOT_AND_ID) {
      lowering.Problem(where,
                       "key: SLOT_AND_ID is for hash tables; leave the vocabulary out, or give each slot a table");
    }
    if (table.has_vocabulary() && table.has_class_name()) {
      lowering.Problem(where, "class_name: it is for hash tables; leave out it or the vocabulary");
    }
    if (!table.has_vocabulary() && table.has_out_of_range()) {
      lowering.Problem(where, "out_of_range: a hash table takes every id; it is for tables with a vocabulary");
    }
  }
}

void RegisterBuiltinInitializers(InitializerRegistry* initializers) {
  using Part = InitializerPart;
  const auto add = [initializers](const char* name, const char* doc, OpDesc (*make)(const Part&)) {
    CHECK(initializers->Add(name, doc, {make}).ok()) << name;
  };
  add("constant", "every value the same",
      [](const Part& p) { return FillConstant(p.name, p.dims, p.desc.constant()); });
  add("uniform", "uniform around 0", [](const Part& p) { return Uniform(p.name, p.dims, p.desc.uniform()); });
  add("normal", "normal around 0", [](const Part& p) { return Normal(p.name, p.dims, p.desc.normal()); });
  add("xavier", "uniform, by inputs and outputs",
      [](const Part& p) { return Uniform(p.name, p.dims, static_cast<float>(std::sqrt(6 / FanSum(p.dims)))); });
  add("xavier_normal", "normal, by inputs and outputs",
      [](const Part& p) { return Normal(p.name, p.dims, static_cast<float>(std::sqrt(2 / FanSum(p.dims)))); });
}

ModelParts ModelParts::Builtin() {
  ModelParts parts;
  RegisterBuiltinLayers(&parts.layers);
  RegisterBuiltinLosses(&parts.losses);
  RegisterBuiltinInitializers(&parts.initializers);
  return parts;
}

}  // namespace millrace
