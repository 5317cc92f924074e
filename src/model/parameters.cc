#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <utility>

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
/// `path`: of the field that says so, for messages.
std::optional<OpDesc> InitOp(Lowering& lowering, std::string_view where, const std::string& path,
                             const std::string& name, const Dims& dims, const Initializer& init) {
  const InitializerRegistry& kinds = lowering.parts().initializers;
  if (!init.has_custom()) {
    const google::protobuf::OneofDescriptor* oneof = Initializer::descriptor()->FindOneofByName("kind");
    const auto* field = init.GetReflection()->GetOneofFieldDescriptor(init, oneof);
    const InitializerKind* kind = kinds.Find(field == nullptr ? "xavier" : field->name());
    CHECK(kind != nullptr) << field->name() << " is not registered";
    return kind->make({name, dims, init, PartAttrs({})});
  }
  const std::string& custom = init.custom().class_name();
  const InitializerKind* kind =
      FindClass<Initializer>(lowering, where, "initializer", kinds, custom, path + ".custom.class_name");
  if (kind == nullptr) return std::nullopt;
  const std::optional<PartAttrs> attrs =
      ReadPartAttrs(lowering, where, init.custom().attrs(), kind->attrs, custom, path + ".custom.attrs");
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
  for (const AccessorProblem& problem : FindAccessorProblems(table.accessor())) {
    lowering.Problem(where, "accessor." + problem.path + ": " + problem.what);
  }
  if (table.has_dim() && table.dim() != DimOf(table)) {
    lowering.Problem(where, "dim: rows of the accessor have embedx_dim + 3 floats, " + std::to_string(DimOf(table)) +
                                ", not " + std::to_string(table.dim()) + "; leave dim out");
  }
  if (table.has_vocabulary()) {
    lowering.Problem(where, "accessor: accessor is for tables that grow; leave out it or vocabulary");
  }
  if (table.has_init()) {
    lowering.Problem(where, "init: rows of an accessor start by initial_range of its rules; leave init out");
  }
  if (table.has_optimizer()) {
    lowering.Problem(where,
                     "optimizer: rows of an accessor learn by its embed_sgd_param and embedx_sgd_param; leave "
                     "optimizer out");
  }
}

/// Notes what a table has that is not for one with a vocabulary, or not for one without.
void CheckVocabulary(Lowering& lowering, const std::string& where, const TableDesc& table) {
  if (table.has_vocabulary()) {
    if (table.padding_idx() >= table.vocabulary()) {
      lowering.Problem(where, "padding_idx: padding_idx " + std::to_string(table.padding_idx()) +
                                  " lies outside of the table; its ids are 0 to " +
                                  std::to_string(table.vocabulary() - 1));
    }
    if (table.key() == TableDesc::SLOT_AND_ID) {
      lowering.Problem(where,
                       "key: SLOT_AND_ID is for tables that grow; leave out vocabulary, or give each slot a table");
    }
    if (table.has_class_name()) {
      lowering.Problem(where, "class_name: class_name is for tables that grow; leave out it or vocabulary");
    }
    return;
  }
  if (table.has_out_of_range()) {
    lowering.Problem(where, "out_of_range: a table without a vocabulary takes every id; none is out of range");
  }
  const auto init = table.init().kind_case();
  if (init == Initializer::kXavier || init == Initializer::kXavierNormal) {
    lowering.Problem(where, "init: xavier needs a vocabulary: a table that grows has no size; use uniform or normal");
  }
  if (init == Initializer::kCustom) {
    lowering.Problem(where,
                     "init: custom needs a vocabulary: rows of a table that grows start one by one; use uniform or "
                     "normal");
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
  const bool is_bias =
      !is_weight && part_ != nullptr && part_->GetDescriptor()->FindFieldByName("bias_init") != nullptr;
  std::optional<OpDesc> op = InitOp(*this, where, is_bias ? "bias_init" : "init", name, dims, init);
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
  known_.tables.push_back(WithDefaults(table, *model_));
  // What is wrong with a table stands in the table, whichever layer uses it first.
  std::string path = path_;
  const google::protobuf::Message* const part = std::exchange(part_, nullptr);
  for (int i = 0; i < model_->table_size(); ++i) {
    if (model_->table(i).name() == table.name()) path_ = "model.table[" + std::to_string(i) + "]";
  }
  DeclareTable(known_.tables.back());
  path_ = std::move(path);
  part_ = part;
}

void Lowering::DeclareTable(const TableDesc& full) {
  const std::string where = "table \"" + full.name() + "\"";
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

void CheckInit(Lowering& lowering, std::string_view where, const std::string& path, const Initializer& init) {
  const auto refuse = [&](const std::string& field) {
    lowering.Problem(where,
                     path + "." + field + ": " + field + ": false says not how to start; choose another initializer");
  };
  if (init.kind_case() == Initializer::KIND_NOT_SET) {
    lowering.Missing(where, path + ".kind: an initializer needs " + OneofNames<Initializer>("kind"));
  }
  if (init.has_xavier() && !init.xavier()) refuse("xavier");
  if (init.has_xavier_normal() && !init.xavier_normal()) refuse("xavier_normal");
}

void CheckTables(Lowering& lowering) {
  std::map<std::string, std::string> seen;
  for (int i = 0; i < lowering.model().table_size(); ++i) {
    const TableDesc& table = lowering.model().table(i);
    const std::string where = "table \"" + table.name() + "\"";
    const std::string path = "model.table[" + std::to_string(i) + "]";
    lowering.Enter(path);
    TableDesc own = table;
    own.clear_optimizer();
    if (!lowering.CheckRanges(where, "", own) || DimOf(table) < 1) lowering.LayerBroken(table.name());
    if (table.name().empty()) {
      lowering.Missing("table", "name: a table needs a name");
    } else if (const auto [earlier, is_new] = seen.emplace(table.name(), path + ".name"); !is_new) {
      lowering.Taken(where, "name: table \"" + table.name() + "\" is there already", earlier->second);
    }
    if (table.has_accessor()) CheckAccessor(lowering, where, table);
    if (!table.has_accessor() && !table.has_dim()) {
      lowering.Missing(where, "dim: a table needs a dim, the floats in a row: dim: 16");
    }
    if (table.has_init()) CheckInit(lowering, where, "init", table.init());
    CheckVocabulary(lowering, where, table);
  }
  lowering.Enter("model");
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
