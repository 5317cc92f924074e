#include <google/protobuf/text_format.h>
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include "model/lowering.h"
#include "model/program_author.h"
#include "program/text_proto.h"
#include "program/var_meta.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/tensor_array.h"
#include "runtime/executable.h"

namespace py = pybind11;

namespace millrace {
namespace {

using Names = std::vector<std::pair<std::string, std::vector<std::string>>>;

Dims DimsOf(const std::vector<int64_t>& shape) { return Dims(std::span<const int64_t>(shape)); }

py::object Plain(const AttrValue& value) {
  return std::visit([](const auto& held) -> py::object { return py::cast(held); }, value);
}

/// "a float", "a list of ints", ...
std::string Expected(const AttrValue& value) {
  constexpr std::array kNames = {"an int",         "a float",          "a bool",           "a str",
                                 "a list of ints", "a list of floats", "a list of strings"};
  return kNames[value.index()];
}

/// What a Python value is as the registered type of the attribute.
AttrValue ToAttr(const std::string& op, const std::string& name, const py::handle& given, const AttrValue& registered) {
  try {
    return std::visit(
        [&](const auto& held) -> AttrValue {
          using T = std::decay_t<decltype(held)>;
          // A bool is an int to Python, and an int no bool.
          if constexpr (std::is_same_v<T, bool>) {
            if (!py::isinstance<py::bool_>(given)) throw py::cast_error();
          } else if constexpr (std::is_same_v<T, int64_t>) {
            if (py::isinstance<py::float_>(given)) throw py::cast_error();
          }
          return given.cast<T>();
        },
        registered);
  } catch (const py::cast_error&) {
    throw StatusError(InvalidConfig(op + ": attribute \"" + name + "\" is " + Expected(registered) + ", not " +
                                    py::repr(given).cast<std::string>()));
  }
}

OpDesc MakeDesc(const OpRegistry& registry, const std::string& type, const Names& inputs, const Names& outputs,
                const py::dict& attrs) {
  OpDesc op;
  op.set_type(type);
  for (const auto& [parameter, names] : inputs) SetInput(op, parameter, names);
  for (const auto& [parameter, names] : outputs) SetOutput(op, parameter, names);
  const OpInfo* info = registry.Find(type);
  for (const auto& [key, value] : attrs) {
    const auto name = key.cast<std::string>();
    const AttrInfo* known = info == nullptr ? nullptr : info->FindAttr(name);
    // One that is not known is named, with the nearest name, by who checks the operator.
    SetAttr(op, name, known == nullptr ? AttrValue(int64_t{0}) : ToAttr(type, name, value, known->default_value));
  }
  return op;
}

template <class Message>
Message ParseText(const std::string& text, const std::string& origin) {
  Message message;
  ThrowUnlessOk(ParseTextProto(text, origin, &message));
  return message;
}

VarMeta MetaOf(const std::string& dtype, const std::vector<int64_t>& shape, int lod_level) {
  VarMeta meta;
  meta.dtype = DTypeNamed(dtype);
  meta.dims = DimsOf(shape);
  meta.lod_level = lod_level;
  return meta;
}

py::dict MetaDict(const VarMeta& meta) {
  const auto sizes = meta.dims.sizes();
  py::dict dict;
  dict["dtype"] = std::string(DTypeName(meta.dtype));
  dict["shape"] = py::tuple(py::cast(std::vector<int64_t>(sizes.begin(), sizes.end())));
  dict["lod_level"] = meta.lod_level;
  dict["persistable"] = meta.persistable;
  return dict;
}

/// A main program and its startup program while they are written.
class PyProgram {
 public:
  PyProgram() : author_(ValueOrThrow(ProgramAuthor::Create(SharedEnvironment().ops))) {}

  void AddData(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape, int lod_level) {
    ThrowUnlessOk(Author().AddData(name, MetaOf(dtype, shape, lod_level)));
  }
  void AddParameter(const std::string& name, const std::vector<int64_t>& shape, const std::string& init,
                    bool trainable) {
    const auto initializer = ParseText<Initializer>(init, "initializer");
    ThrowUnlessOk(Author().AddParameter(name, DimsOf(shape), initializer, trainable));
  }
  void SetInitialValues(const std::string& name, const py::array_t<float, py::array::c_style>& values) {
    ThrowUnlessOk(Author().SetInitialValues(name, {values.data(), values.data() + values.size()}));
  }
  void SetRule(const std::string& name, const std::string& rule) {
    ThrowUnlessOk(Author().SetRule(name, ParseText<ParameterRule>(rule, "rule")));
  }
  void AddState(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape, float value) {
    ThrowUnlessOk(Author().AddState(name, DTypeNamed(dtype), DimsOf(shape), value));
  }
  void AddTable(const std::string& text) { ThrowUnlessOk(Author().AddTable(ParseText<TableDesc>(text, "table"))); }
  bool Spread(const std::string& table, const std::string& optimizer) {
    return ValueOrThrow(Author().Spread(table, ParseText<OptimizerDesc>(optimizer, "optimizer")));
  }
  void LookUp(const std::string& ids, const std::string& table, const std::string& out) {
    ThrowUnlessOk(Author().LookUp(ids, table, out));
  }
  void AddVariable(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
                   int lod_level) {
    ThrowUnlessOk(Author().AddVariable(name, MetaOf(dtype, shape, lod_level)));
  }
  void AddReader(const std::string& type, const Names& inputs, const std::string& out, const py::dict& attrs) {
    ThrowUnlessOk(Author().AddReader(MakeDesc(Author().registry(), type, inputs, {{"Out", {out}}}, attrs)));
  }
  void Append(const std::string& type, const Names& inputs, const Names& outputs, const py::dict& attrs) {
    ThrowUnlessOk(Author().Append(MakeDesc(Author().registry(), type, inputs, outputs, attrs)));
  }
  void BeginBlock() { ThrowUnlessOk(Author().BeginBlock()); }
  void EndBlock(const std::string& type, const Names& inputs, const py::dict& attrs,
                const std::vector<std::string>& exports) {
    ThrowUnlessOk(Author().EndBlock(MakeDesc(Author().registry(), type, inputs, {}, attrs), exports));
  }
  void DropBlock() { ThrowUnlessOk(Author().DropBlock()); }
  void SetStopGradient(const std::string& name, bool stop) { ThrowUnlessOk(Author().SetStopGradient(name, stop)); }
  bool StopsGradient(const std::string& name) const { return ValueOrThrow(author_->StopsGradient(name)); }
  std::vector<std::pair<std::string, std::string>> Minimize(const std::string& loss, const std::string& optimizer,
                                                            std::vector<std::string> only,
                                                            std::vector<std::string> without,
                                                            std::function<std::string(const std::string&)> names) {
    const auto rule = ParseText<OptimizerDesc>(optimizer, "optimizer");
    const ProgramAuthor::Trained trained{std::move(only), std::move(without)};
    std::vector<std::pair<std::string, std::string>> pairs;
    Author().set_state_names(std::move(names));
    for (ParamGrad& made : ValueOrThrow(Author().Minimize(loss, rule, trained))) {
      pairs.emplace_back(std::move(made.param), std::move(made.grad));
    }
    return pairs;
  }
  py::dict Find(const std::string& name) const { return MetaDict(ValueOrThrow(author_->Find(name))); }
  bool Has(const std::string& name) { return author_->Has(name); }
  std::vector<std::string> Parameters() const { return author_->Parameters(); }
  py::bytes Main() const { return author_->main().SerializeAsString(); }
  py::bytes Startup() const { return author_->startup().SerializeAsString(); }
  /// Another one after all that changes the program, or has failed to.
  int64_t version() const { return version_; }

 private:
  /// To change the program, with the operators of plugins that were loaded after it was begun.
  ProgramAuthor& Author() {
    ++version_;
    author_->set_registry(SharedEnvironment().ops);
    return *author_;
  }

  std::unique_ptr<ProgramAuthor> author_;
  int64_t version_ = 0;
};

ProgramDesc ParseDesc(const std::string& bytes) {
  ProgramDesc program;
  if (!program.ParseFromString(bytes)) throw StatusError(BadData("these bytes are no serialized ProgramDesc"));
  return program;
}

/// The variables of a program's first block, by name, as Find has them.
py::dict ProgramVars(const std::string& bytes) {
  const ProgramDesc program = ParseDesc(bytes);
  py::dict vars;
  if (program.blocks_size() == 0) return vars;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.type().type() != VarType::LOD_TENSOR && var.type().type() != VarType::SPARSE_TABLE) continue;
    vars[py::str(var.name())] = MetaDict(ValueOrThrow(ToMeta(var)));
  }
  return vars;
}

py::dict OpInfoDict(const std::string& type) {
  const OpRegistry& registry = SharedEnvironment().ops;
  const OpInfo* info = registry.Find(type);
  if (info == nullptr) {
    throw StatusError(InvalidConfig("there is no operator \"" + type + "\"" + registry.Hint(type)));
  }
  const auto args = [](const std::vector<ArgInfo>& from) {
    py::list list;
    for (const ArgInfo& arg : from) list.append(py::make_tuple(arg.name, arg.doc, arg.duplicable, arg.optional));
    return list;
  };
  py::dict dict;
  dict["doc"] = info->doc;
  dict["inputs"] = args(info->inputs);
  dict["outputs"] = args(info->outputs);
  py::list attrs;
  for (const AttrInfo& attr : info->attrs) {
    attrs.append(py::make_tuple(attr.name, attr.doc, attr.required ? py::none() : Plain(attr.default_value)));
  }
  dict["attrs"] = attrs;
  return dict;
}

/// The forward part of a program as it is given, with dropout and its like off.
py::bytes ForTest(const std::string& bytes) { return CloneForTest(ParseDesc(bytes)).SerializeAsString(); }

/// A program with the tables of these names as `from` has them.
py::bytes WithTables(const std::string& bytes, const std::string& from, const std::vector<std::string>& names) {
  ProgramDesc program = ParseDesc(bytes);
  const ProgramDesc tables = ParseDesc(from);
  for (VarDesc& var : *program.mutable_blocks(0)->mutable_vars()) {
    if (std::find(names.begin(), names.end(), var.name()) == names.end()) continue;
    for (const VarDesc& table : tables.blocks(0).vars()) {
      if (table.name() == var.name()) var = table;
    }
  }
  return program.SerializeAsString();
}

std::vector<std::string> OpTypes() {
  std::vector<std::string> types;
  for (const OpInfo* info : SharedEnvironment().ops.all()) {
    if (!info->is_gradient && !info->is_optimizer && !info->is_fused) types.push_back(info->type);
  }
  return types;
}

std::string ProgramText(const std::string& bytes) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ParseDesc(bytes), &text);
  return text;
}

std::string ProgramOps(const std::string& bytes) {
  const ProgramDesc program = ParseDesc(bytes);
  if (program.blocks_size() == 0) return "";
  return PrintOps(std::vector<OpDesc>(program.blocks(0).ops().begin(), program.blocks(0).ops().end()));
}

}  // namespace

void BindProgram(py::module_& module) {
  py::class_<PyProgram>(module, "Program")
      .def(py::init<>())
      .def("add_data", &PyProgram::AddData)
      .def("add_parameter", &PyProgram::AddParameter)
      .def("set_initial_values", &PyProgram::SetInitialValues)
      .def("set_rule", &PyProgram::SetRule)
      .def("add_state", &PyProgram::AddState)
      .def("add_table", &PyProgram::AddTable)
      .def("spread", &PyProgram::Spread)
      .def("look_up", &PyProgram::LookUp)
      .def("add_variable", &PyProgram::AddVariable)
      .def("add_reader", &PyProgram::AddReader)
      .def("append", &PyProgram::Append)
      .def("begin_block", &PyProgram::BeginBlock)
      .def("end_block", &PyProgram::EndBlock)
      .def("drop_block", &PyProgram::DropBlock)
      .def("set_stop_gradient", &PyProgram::SetStopGradient)
      .def("stops_gradient", &PyProgram::StopsGradient)
      .def("minimize", &PyProgram::Minimize)
      .def("find", &PyProgram::Find)
      .def("has", &PyProgram::Has)
      .def("parameters", &PyProgram::Parameters)
      .def("main", &PyProgram::Main)
      .def("startup", &PyProgram::Startup)
      .def_property_readonly("version", &PyProgram::version);
  module.def("op_info", &OpInfoDict);
  module.def("op_types", &OpTypes);
  module.def("program_text", &ProgramText);
  module.def("program_ops", &ProgramOps);
  module.def("program_for_test", &ForTest);
  module.def("program_with_tables", &WithTables);
  module.def("program_vars", &ProgramVars);
}

}  // namespace millrace
