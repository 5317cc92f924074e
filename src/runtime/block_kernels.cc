#include "runtime/block_kernels.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/elapsed.h"
#include "core/harmless_text.h"
#include "runtime/executable.h"

namespace millrace {
namespace {

std::string FirstOutput(const OpDesc& op) {
  for (const OpDesc::Var& output : op.outputs()) {
    if (output.arguments_size() > 0) return " (" + output.parameter() + ": \"" + output.arguments(0) + "\")";
  }
  return "";
}

/// "op[3]" in the main block, "block 1 op[3]" in an inner block.
std::string Where(int block, size_t index) {
  return (block == 0 ? "" : "block " + std::to_string(block) + " ") + "op[" + std::to_string(index) + "]";
}

/// Tensors and variables throw if accessed as another type, which only a faulty program causes.
Status OfAnotherKind(const std::invalid_argument& error) {
  return InvalidConfig("the program hands it a variable that it does not take: " + std::string(error.what()));
}

Result<std::unique_ptr<OpKernel>> MakeKernel(KernelFactory create, KernelContext& context) {
  const OpInfo& op = context.op().info();
  try {
    return create(context);
  } catch (const std::bad_alloc&) {
    return Unavailable("no memory for its kernel").Context(op.type);
  } catch (const std::invalid_argument& error) {
    return op.plugin.empty() ? OfAnotherKind(error).Context(op.type) : OperatorThrew(op);
  } catch (...) {
    return op.plugin.empty() ? OperatorThrew(op).Context(op.type) : OperatorThrew(op);
  }
}

/// Adds the plugin's name to a failure of its operator. kCancelled without a stop request is a failure; otherwise the
/// run would end successfully with data left.
Status ByPlugin(const Status& failure, const std::string& plugin, bool is_stopping) {
  const std::string who = "plugin \"" + plugin + "\"";
  Status s = Harmless(failure);
  if (s.code() == StatusCode::kCancelled && !is_stopping) {
    return InvalidConfig(who + " ends its work as if it had been asked to stop, and nobody has asked: " + s.message());
  }
  return s.message().starts_with(who) ? std::move(s) : std::move(s).Context(who);
}

// Runs a kernel. Ours, and containers in them, throw only if memory runs out; those of plugins can throw anything.
template <class Run>
Status RunKernel(const Run& run, const Executable& executable, int block, size_t index) {
  try {
    return run();
  } catch (const NoMemory& error) {
    return Unavailable(error.what());
  } catch (const std::bad_alloc&) {
    return Unavailable("no memory for what the operator keeps beside its variables");
  } catch (const std::invalid_argument& error) {
    const OpInfo& op = *executable.registry().Find(executable.ops(block)[index].type());
    return op.plugin.empty() ? OfAnotherKind(error) : OperatorThrew(op);
  } catch (...) {
    return OperatorThrew(*executable.registry().Find(executable.ops(block)[index].type()));
  }
}

}  // namespace

Result<std::unique_ptr<BlockKernels>> BlockKernels::Create(const Executable& executable, int block, Scope& scope,
                                                           const FrameOptions& options) {
  std::unique_ptr<BlockKernels> made(new BlockKernels(executable, block));
  const OpList& ops = executable.ops(block);
  made->kernels_.reserve(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpView view(ops[i], *executable.registry().Find(ops[i].type()));
    KernelContext context(view, scope, options, &executable);
    Result<std::unique_ptr<OpKernel>> kernel = MakeKernel(executable.kernel(block, i), context);
    if (const std::string& plugin = view.info().plugin; !plugin.empty() && (!kernel.ok() || *kernel == nullptr)) {
      const Status failure =
          kernel.ok() ? InvalidConfig("plugin \"" + plugin + "\" made no kernel") : std::move(kernel).status();
      return ByPlugin(failure, plugin, false).Context(Where(block, i) + " " + ops[i].type() + FirstOutput(ops[i]));
    }
    if (!kernel.ok()) return std::move(kernel).Context(Where(block, i)).status();
    if (*kernel == nullptr) return InvalidConfig(Where(block, i) + ": " + ops[i].type() + ": it made no kernel");
    made->kernels_.push_back(std::move(*kernel));
    made->awaited_.emplace_back(view, scope);
    made->output_checks_.emplace_back(view, scope, executable.vars());
  }
  return made;
}

Status BlockKernels::Run(const RunContext& context, OpRange ops) {
  for (size_t i = ops.begin; i < ops.end; ++i) {
    const int64_t start = nanoseconds_.empty() ? 0 : SteadyNanoseconds();
    const auto run = [&]() -> Status {
      if (!awaited_[i].empty()) MR_TRY(awaited_[i].Check(*executable_));
      MR_TRY(kernels_[i]->Run(context));
      return output_checks_[i].empty() ? Status::Ok() : output_checks_[i].Check(context.rows);
    };
    Status s = RunKernel(run, *executable_, block_, i);
    if (!s.ok()) {
      failed_op_ = i;
      const OpDesc& op = executable_->ops(block_)[i];
      const std::string& plugin = executable_->registry().Find(op.type())->plugin;
      if (!plugin.empty()) s = ByPlugin(s, plugin, context.stop.stop_requested());
      return std::move(s).Context(Where(block_, i) + " " + op.type() + FirstOutput(op));
    }
    if (!nanoseconds_.empty()) nanoseconds_[i] += SteadyNanoseconds() - start;
  }
  return Status::Ok();
}

void BlockKernels::CollectStates(std::vector<NamedKernelState>* states) const {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    OpKernel* const kernel = kernels_[i].get();
    if (const auto* runner = dynamic_cast<const BlockRunner*>(kernel)) runner->block().CollectStates(states);
    auto* const state = dynamic_cast<KernelState*>(kernel);
    if (state == nullptr) continue;
    const OpDesc& op = executable_->ops(block_)[i];
    NamedKernelState named{op.type(), "", &op, executable_->registry().Find(op.type()), state};
    for (const OpDesc::Var& output : op.outputs()) {
      if (named.output.empty() && output.arguments_size() > 0) named.output = output.arguments(0);
    }
    const auto before = std::count_if(states->begin(), states->end(), [&](const NamedKernelState& other) {
      return other.info == named.info && other.output == named.output;
    });
    named.name += " \"" + named.output + "\"" + (before == 0 ? "" : " " + std::to_string(before + 1));
    states->push_back(std::move(named));
  }
}

void BlockKernels::EnableProfile() { nanoseconds_.assign(kernels_.size(), 0); }

}  // namespace millrace
