#include "runtime/frame.h"

#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "batch/row_of_value.h"
#include "runtime/batch_check.h"
#include "runtime/plugin_output_check.h"
#include "runtime/slot_cast.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

/// Persistable variables that an operator reads although nothing has set them: no startup program, no file, and no
/// earlier operator.
class UnmadeVariables {
 public:
  UnmadeVariables(const Executable& executable, const Scope& scope) : executable_(executable), scope_(scope) {
    LookAt(0);
  }
  /// Quoted and comma-separated.
  const std::string& names() const { return names_; }

 private:
  void LookAt(int block) {
    for (const OpDesc& op : executable_.ops(block)) {
      // Inputs of an operator that runs a block are read by that block's operators.
      if (BlockOf(op) >= 0) {
        LookAt(BlockOf(op));
      } else {
        for (const OpDesc::Var& input : op.inputs()) {
          for (const std::string& name : input.arguments()) LookAt(name);
        }
      }
      for (const OpDesc::Var& output : op.outputs()) {
        known_.insert(output.arguments().begin(), output.arguments().end());
      }
    }
  }
  void LookAt(const std::string& name) {
    const auto meta = executable_.vars().find(name);
    if (meta == executable_.vars().end() || !meta->second.persistable) return;
    if (!IsRead(meta->second.kind) || !known_.insert(name).second) return;
    const Variable* variable = scope_.Find(name);
    if (variable == nullptr) return;
    if (variable->empty() || (variable->Is<Tensor>() && variable->Get<Tensor>().empty())) {
      names_ += (names_.empty() ? "\"" : ", \"") + name + "\"";
    }
  }

  const Executable& executable_;
  const Scope& scope_;
  std::set<std::string, std::less<>> known_;  ///< written, or already checked
  std::string names_;
};

/// Paddle describes the sums of ctr_metric_bundle as [1, 1], but its startup program creates them as [1].
bool IsSameOneValue(const Variable& made, const VarMeta& meta) {
  const Tensor& tensor = made.Get<Tensor>();
  return tensor.dtype() == meta.dtype && tensor.numel() == 1 && meta.dims.numel() == 1;
}

/// Creates every variable used by an operator: local ones here; persistable ones must exist in the root.
Status MakeVariables(const Executable& executable, Scope& scope) {
  std::string missing;
  std::string missing_readers;
  std::string misfits;
  const auto make = [&](const std::string& name) {
    if (name == kEmptyVar) return;
    const auto it = executable.vars().find(name);
    const bool persistable = it != executable.vars().end() && it->second.persistable;
    const Variable* made = scope.Find(name);
    if (!persistable) {
      if (made == nullptr) scope.Var(name);
      return;
    }
    if (made == nullptr) {
      // Forward, backward and update operators repeat the name.
      const std::string quoted = "\"" + name + "\"";
      std::string& names = it->second.kind == VarType::READER ? missing_readers : missing;
      if (names.find(quoted) == std::string::npos) names += (names.empty() ? "" : ", ") + quoted;
    } else if (misfits.empty() && !FitsMeta(*made, it->second) && !IsSameOneValue(*made, it->second)) {
      const Tensor& tensor = made->Get<Tensor>();
      misfits = "parameter " + ShownMeta(name, it->second.dtype, it->second.dims) + " was made as " +
                ShownMeta(name, tensor.dtype(), tensor.dims());
    }
  };
  for (int block = 0; block < executable.block_count(); ++block) {
    for (const OpDesc& op : executable.ops(block)) {
      for (const OpDesc::Var& input : op.inputs()) {
        for (const std::string& name : input.arguments()) make(name);
      }
      for (const OpDesc::Var& output : op.outputs()) {
        for (const std::string& name : output.arguments()) make(name);
      }
    }
  }
  if (!misfits.empty()) return InvalidConfig(misfits);
  if (!missing_readers.empty()) {
    return InvalidConfig("readers that the startup program did not make: " + missing_readers +
                         "; their creation belongs there, and in both programs they are persistable variables");
  }
  if (!missing.empty()) {
    return InvalidConfig("parameters that the startup program (or the loaded model) did not make: " + missing);
  }
  const UnmadeVariables unmade(executable, scope);
  if (unmade.names().empty()) return Status::Ok();
  return InvalidConfig("parameters that are read and have no value: " + unmade.names() +
                       "; the startup program declares them, and none of its operators writes them");
}

/// Fills a tensor with zeros, with the type and sizes of `like`.
Status StartAtZero(const Tensor& like, Tensor* to) {
  Tensor zeros;
  const size_t bytes = BytesOf(like);
  std::memset(zeros.ResizeRaw(like.dtype(), like.dims()), 0, bytes);
  return CopyFromHost(zeros, to);
}

}  // namespace

Result<std::unique_ptr<Frame>> Frame::Create(const Executable& executable, const SlotSchema* schema, Scope& root,
                                             const FrameOptions& options) {
  if (&root.device() != &executable.device()) {
    return InvalidConfig("the program was compiled for device \"" + executable.device().name() +
                         "\", and its variables lie on \"" + root.device().name() + "\"");
  }
  std::unique_ptr<Frame> frame(new Frame(executable, root));
  for (const std::string& name : options.private_vars) {
    const Variable* shared = root.Find(name);
    if (shared == nullptr || !shared->Is<Tensor>()) {
      return InvalidConfig("stat_var_names: there is no persistable tensor \"" + name + "\"");
    }
    MR_TRY(StartAtZero(shared->Get<Tensor>(), frame->scope_.Var(name)->GetMutable<Tensor>()));
  }
  MR_TRY(MakeVariables(executable, frame->scope_));
  if (schema != nullptr) {
    MR_TRY(CheckBatchVariables(executable, schema));
    for (const SlotSpec& slot : schema->used()) {
      const auto variable = executable.vars().find(slot.name);
      if (variable == executable.vars().end()) continue;
      Binding binding;
      binding.slot = slot.id;
      binding.tensor = frame->scope_.Var(slot.name)->GetMutable<Tensor>();
      for (const int64_t dim : slot.shape) binding.dims.push_back(dim);
      binding.type = variable->second.dtype;
      if (!binding.tensor->is_on_host()) {
        binding.on_host = std::make_unique<Tensor>(executable.device().host_memory());
      }
      frame->bindings_.push_back(std::move(binding));
    }
  }
  MR_ASSIGN(frame->block_, BlockKernels::Create(executable, 0, frame->scope_, options));
  return frame;
}

Status Frame::BindColumn(const RunContext& context, Binding& binding) {
  const SlotBatch& batch = *context.batch;
  const SlotSpec& spec = batch.schema().used()[static_cast<size_t>(binding.slot)];
  Tensor* const column = binding.on_host == nullptr ? binding.tensor : binding.on_host.get();
  const bool is_float = spec.type == SlotType::kFloat;
  const DType type = is_float ? DType::kFloat32 : DType::kInt64;
  const void* data = is_float ? static_cast<const void*>(batch.floats(binding.slot).data())
                              : static_cast<const void*>(batch.ids(binding.slot).data());
  const size_t count = is_float ? batch.floats(binding.slot).size() : batch.ids(binding.slot).size();
  Dims dims = {static_cast<int64_t>(count), 1};
  if (spec.is_dense) {
    dims = binding.dims;
    for (int axis = 0; axis < dims.rank(); ++axis) {
      if (dims[axis] < 0) dims.set(axis, batch.rows());
    }
    if (static_cast<size_t>(dims.numel()) != count) {
      return BadData("slot \"" + spec.name + "\": " + std::to_string(count) + " values in a batch of shape " +
                     dims.ToString());
    }
  }
  if (binding.type == type || !CanFeed(spec.type, binding.type)) {
    column->View(type, dims, data);
  } else if (const int64_t at = CastSlot(batch, binding.slot, binding.type, dims, column); at >= 0) {
    return BadData("slot \"" + spec.name + "\", " +
                   context.DescribeRow(RowOfValue(batch, spec.id, static_cast<size_t>(at))) + ": " +
                   std::to_string(batch.ids(binding.slot)[static_cast<size_t>(at)]) +
                   " does not fit the variable, which is int32 in the program; declare it int64 there");
  }
  if (!spec.is_dense) column->set_lod(batch.offsets(binding.slot));
  return binding.on_host == nullptr ? Status::Ok() : CopyFromHost(*column, binding.tensor, stream_.get());
}

Status Frame::BindColumns(const RunContext& context) {
  for (Binding& binding : bindings_) MR_TRY(BindColumn(context, binding));
  return Status::Ok();
}

Status Frame::AfterDevice(Status queued) {
  if (stream_ == nullptr) return queued;
  Status done = stream_->Synchronize();
  return queued.ok() ? std::move(done) : std::move(queued);
}

Status Frame::Bind(const RunContext& context) { return AfterDevice(BindColumns(context)); }

Status Frame::RunOps(const RunContext& context, OpRange ops) {
  if (stream_ == nullptr) return block_->Run(context, ops);
  RunContext with_stream = context;
  with_stream.stream = stream_.get();
  return AfterDevice(block_->Run(with_stream, ops));
}

Status Frame::Run(const RunContext& context) {
  if (context.batch != nullptr) {
    if (Status bound = BindColumns(context); !bound.ok()) return AfterDevice(std::move(bound));
  }
  return RunOps(context, {0, executable_->ops().size()});
}

Status RunStartup(const ProgramDesc& program, const OpRegistry& registry, Scope& root, uint64_t seed,
                  const ReaderRegistry* readers, const TableFactory* tables, std::stop_token stop) {
  CompileOptions compile_options;
  compile_options.device = &root.device();
  compile_options.fuse = false;
  compile_options.stop = stop;
  MR_ASSIGN(const std::unique_ptr<const Executable> executable,
            Executable::Compile(program, registry, compile_options));
  MR_TRY(CheckBatchVariables(*executable, nullptr).Context("startup program"));
  for (const auto& [name, meta] : executable->vars()) {
    if (meta.persistable) root.Var(name);
  }
  FrameOptions options;
  options.seed = seed;
  options.readers = readers;
  options.tables = tables;
  MR_ASSIGN(const std::unique_ptr<Frame> frame, Frame::Create(*executable, nullptr, root, options));
  RunContext context;
  context.stop = std::move(stop);
  for (size_t i = 0; i < frame->op_count(); ++i) {
    if (context.stop.stop_requested()) return Cancelled("stopped while making the parameters");
    MR_TRY(frame->RunOps(context, {i, i + 1}));
  }
  return Status::Ok();
}

}  // namespace millrace
