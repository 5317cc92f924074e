#include "python/prepared_program.h"

#include <algorithm>
#include <set>
#include <utility>

#include "program/program_files.h"
#include "python/bindings.h"
#include "python/interruptible.h"
#include "python/tensor_array.h"

namespace py = pybind11;

namespace millrace {
namespace {

int64_t RowsOfOne(const FedArray& fed) {
  const auto& [name, values, offsets] = fed;
  if (!offsets.is_none()) return offsets.cast<py::array>().size() - 1;
  return values.ndim() == 0 ? 1 : values.shape(0);
}

Dims DimsOfArray(const py::array& array) {
  const std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  return Dims(std::span<const int64_t>(shape));
}

/// Kernels rely on what the program says of a slot.
void CheckFed(const std::string& name, const py::array& values, bool has_lod, const VarMeta& meta) {
  const Dims dims = DimsOfArray(values);
  bool fits = dims.rank() == meta.dims.rank() && DTypeOfArray(values, "feed \"" + name + "\"") == meta.dtype &&
              has_lod == (meta.lod_level > 0);
  for (int axis = 0; fits && axis < dims.rank(); ++axis) fits = meta.dims[axis] < 0 || meta.dims[axis] == dims[axis];
  if (fits) return;
  throw StatusError(InvalidConfig("feed \"" + name + "\" is " + py::str(values.dtype()).cast<std::string>() + " " +
                                  dims.ToString() + (has_lod ? " with lengths" : "") + ", but the variable is " +
                                  std::string(DTypeName(meta.dtype)) + " " + meta.dims.ToString() +
                                  (meta.lod_level > 0 ? " of lod_level 1" : "")));
}

}  // namespace

int RowsOf(const std::vector<FedArray>& feeds) {
  int64_t rows = 0;
  for (const FedArray& fed : feeds) rows = std::max(rows, RowsOfOne(fed));
  return static_cast<int>(rows);
}

PreparedProgram::PreparedProgram(Key key, int max_rows, Scope& root) : key_(std::move(key)), max_rows_(max_rows) {
  const OpRegistry& registry = SharedEnvironment().ops;
  CompileOptions options;
  options.fetches = key_.fetches;
  const ProgramDesc program = ValueOrThrow(ParseProgram(key_.program, "program"));
  executable_ = ValueOrThrow(Executable::Compile(program, registry, options));
  std::set<std::string> read;
  for (const OpDesc& op : executable_->ops()) {
    const OpInfo* info = registry.Find(op.type());
    updates_ = updates_ || (info != nullptr && info->is_optimizer);
    for (const OpDesc::Var& input : op.inputs()) read.insert(input.arguments().begin(), input.arguments().end());
  }
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.need_check_feed() && read.contains(var.name())) slots_.push_back(var.name());
  }
  FrameOptions frame_options;
  frame_options.seed = key_.seed;
  frame_options.max_rows = max_rows_;
  frame_options.readers = &SharedEnvironment().readers;
  frame_ = ValueOrThrow(Frame::Create(*executable_, nullptr, root, frame_options));
}

int PreparedProgram::BindFeeds(const std::vector<FedArray>& feeds) {
  const int rows = RowsOf(feeds);
  for (const std::string& slot : slots_) {
    const bool is_fed =
        std::any_of(feeds.begin(), feeds.end(), [&](const FedArray& fed) { return std::get<0>(fed) == slot; });
    if (!is_fed) throw StatusError(InvalidConfig("feed: the program reads \"" + slot + "\", which is not fed"));
  }
  kept_.clear();
  lods_.clear();
  lods_.reserve(feeds.size());
  for (const FedArray& fed : feeds) {
    const auto& [name, values, offsets] = fed;
    const auto known = executable_->vars().find(name);
    if (known == executable_->vars().end()) continue;  // nothing reads it
    kept_.push_back(py::array::ensure(values, py::array::c_style));
    const py::array& array = kept_.back();
    CheckFed(name, array, !offsets.is_none(), known->second);
    const bool has_batch = known->second.lod_level > 0 || known->second.dims[0] < 0;
    if (has_batch && RowsOfOne(fed) != rows) {
      throw StatusError(InvalidConfig("feed \"" + name + "\" has " + std::to_string(RowsOfOne(fed)) +
                                      " rows, but another one has " + std::to_string(rows)));
    }
    auto* tensor = frame_->scope().Var(name)->GetMutable<Tensor>();
    tensor->View(known->second.dtype, DimsOfArray(array), array.data());
    if (offsets.is_none()) continue;
    lods_.push_back(offsets.cast<std::vector<uint32_t>>());
    tensor->set_lod(lods_.back());
  }
  return rows;
}

void PreparedProgram::ForgetFeeds(const std::vector<FedArray>& feeds) {
  for (const auto& [name, values, offsets] : feeds) {
    if (!executable_->vars().contains(name)) continue;
    auto* tensor = frame_->scope().Var(name)->GetMutable<Tensor>();
    tensor->View(tensor->dtype(), Dims{0}, nullptr);
    tensor->set_lod({});
  }
  kept_.clear();
  lods_.clear();
}

py::list PreparedProgram::Run(const std::vector<FedArray>& feeds, int64_t step) {
  RunContext context;
  context.rows = BindFeeds(feeds);
  context.step = step;
  RunInterruptibly<bool>([&](std::stop_token stop) -> Result<bool> {
    context.stop = std::move(stop);
    MR_TRY(frame_->Run(context));
    return true;
  });
  py::list results;
  for (const std::string& name : key_.fetches) {
    const Variable* variable = frame_->Find(name);
    if (variable == nullptr || !variable->Is<Tensor>()) {
      throw StatusError(InvalidConfig("fetch_list: \"" + name + "\" holds no tensor"));
    }
    results.append(ToArray(variable->Get<Tensor>()));
  }
  ForgetFeeds(feeds);
  return results;
}

}  // namespace millrace
