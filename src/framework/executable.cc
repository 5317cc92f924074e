#include "framework/executable.h"

#include <algorithm>
#include <set>

#include "core/edit_distance.h"
#include "framework/block_names.h"
#include "framework/gradient_check.h"
#include "framework/op_check.h"
#include "framework/passes/fusion.h"
#include "framework/passes/section_fusion.h"
#include "framework/var_meta.h"

namespace millrace {
namespace {

/// One operator of a program, and how messages name its place.
struct Place {
  int block;
  size_t index;
};

std::string Where(Place place) {
  return "block " + std::to_string(place.block) + " op[" + std::to_string(place.index) + "]";
}

std::string Where(Place place, const OpDesc& op) { return Where(place) + " " + op.type(); }

/// Collects one message a line.
class Problems {
 public:
  void Add(const std::string& message) {
    if (!text_.empty()) text_ += '\n';
    text_ += message;
  }
  Status ToStatus() const { return text_.empty() ? Status::Ok() : InvalidConfig(text_); }

 private:
  std::string text_;
};

bool Writes(const OpDesc& op, const std::set<std::string, std::less<>>& names) {
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (names.contains(name)) return true;
    }
  }
  return false;
}

/// Keeps the operators that `fetches` need, but for gradients and optimizers.
std::vector<OpDesc> KeepForward(const std::vector<OpDesc>& ops, const OpRegistry& registry,
                                const std::vector<std::string>& fetches) {
  std::set<std::string, std::less<>> needed(fetches.begin(), fetches.end());
  std::vector<OpDesc> kept;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const OpInfo* info = registry.Find(op->type());
    if (info != nullptr && (info->is_gradient || info->is_optimizer)) continue;
    if (!Writes(*op, needed)) continue;
    for (const OpDesc::Var& input : op->inputs()) {
      needed.insert(input.arguments().begin(), input.arguments().end());
    }
    kept.push_back(*op);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

bool IsSkipped(const OpDesc& op, const std::vector<std::string>& skip_ops) {
  return std::any_of(skip_ops.begin(), skip_ops.end(),
                     [&](const std::string& part) { return op.type().find(part) != std::string::npos; });
}

/// Checks, describes and fuses block 0 and the blocks that its operators run, a step at a time over all of them.
class BlockCompiler {
 public:
  BlockCompiler(const ProgramDesc& program, const OpRegistry& registry, const CompileOptions& options)
      : program_(program), registry_(registry), options_(options) {
    blocks.resize(static_cast<size_t>(program.blocks_size()));
  }

  Status Check() {
    CollectBlock(0);
    for (const int block : order_) {
      for (size_t i = 0; i < Ops(block).size(); ++i) CheckOp({block, i}, Ops(block)[i]);
    }
    return problems_.ToStatus();
  }

  /// An operator that runs a block is described before the block: the block's operators see what it reads.
  Status InferShapes() {
    InferBlock(0);
    return problems_.ToStatus();
  }

  Status CheckFetches() {
    for (const std::string& fetch : options_.fetches) {
      if (vars.contains(fetch)) continue;
      std::vector<std::string_view> names;
      for (const auto& [known, meta] : vars) names.push_back(known);
      problems_.Add("there is no variable \"" + fetch + "\" to fetch" + DidYouMean(fetch, names));
    }
    return problems_.ToStatus();
  }

  Status Fuse(std::vector<OpRange>* parts) {
    for (const int block : order_) {
      if (block == 0 && !options_.parts.empty()) {
        SectionFusion sections(std::move(Ops(0)), options_.parts);
        if (options_.fuse) MR_TRY(sections.Run(vars, registry_, KeptBy(0)));
        Ops(0) = std::move(sections).Take(parts);
      } else if (options_.fuse) {
        MR_TRY(ApplyFusionPasses(Ops(block), vars, registry_, KeptBy(block)));
      }
    }
    return Status::Ok();
  }

  std::vector<std::vector<OpDesc>> blocks;
  VarMetas vars;

 private:
  std::vector<OpDesc>& Ops(int block) { return blocks[static_cast<size_t>(block)]; }

  void CollectBlock(int number) {
    order_.push_back(number);
    const BlockDesc& block = program_.blocks(number);
    for (const VarDesc& var : block.vars()) {
      Result<VarMeta> meta = ToMeta(var);
      if (!meta.ok()) {
        problems_.Add(meta.status().message());
      } else if (!vars.emplace(var.name(), *meta).second) {
        problems_.Add("block " + std::to_string(number) + " declares \"" + var.name() + "\" twice");
      }
    }
    std::vector<OpDesc>& ops = Ops(number);
    for (const OpDesc& op : block.ops()) {
      if (!IsSkipped(op, options_.skip_ops)) ops.push_back(op);
    }
    if (options_.forward_only) ops = number == 0 ? KeepForward(ops, registry_, options_.fetches) : DropUpdates(ops);
    for (size_t i = 0; i < ops.size(); ++i) CollectBlockOf({number, i}, ops[i]);
  }

  void CollectBlockOf(Place place, const OpDesc& op) {
    const int block = BlockOf(op);
    if (block < 0) return;
    if (block >= program_.blocks_size()) {
      problems_.Add(Where(place, op) + ": runs block " + std::to_string(block) + ", but the program has " +
                    std::to_string(program_.blocks_size()) + " blocks");
    } else if (std::find(order_.begin(), order_.end(), block) != order_.end()) {
      problems_.Add(Where(place, op) + ": runs block " + std::to_string(block) + ", which runs already");
    } else {
      CollectBlock(block);
    }
  }

  std::vector<OpDesc> DropUpdates(std::vector<OpDesc> ops) const {
    std::erase_if(ops, [this](const OpDesc& op) {
      const OpInfo* info = registry_.Find(op.type());
      return info != nullptr && (info->is_gradient || info->is_optimizer);
    });
    return ops;
  }

  void CheckOp(Place place, const OpDesc& op) {
    std::vector<std::string> found;
    millrace::CheckOp(Where(place, op), op, vars, registry_, &found);
    for (const std::string& problem : found) problems_.Add(problem);
  }

  void InferBlock(int block) {
    for (size_t i = 0; i < Ops(block).size(); ++i) {
      const OpDesc& op = Ops(block)[i];
      const OpView view(op, *registry_.Find(op.type()));
      Status fits = millrace::InferShapes(view, vars);
      if (fits.ok()) fits = CheckGradient(view, registry_, vars);
      if (!fits.ok()) problems_.Add(Where({block, i}) + " " + fits.message());
      if (BlockOf(op) >= 0) InferBlock(BlockOf(op));
    }
  }

  /// What fusion in a block must leave written: what somebody fetches, and what is not the block's alone.
  std::vector<std::string> KeptBy(int block) {
    std::vector<std::string> kept = options_.fetches;
    for (const int other : order_) {
      if (other == block) continue;
      for (const VarDesc& var : program_.blocks(other).vars()) kept.push_back(var.name());
      for (const OpDesc& op : Ops(other)) {
        for (const OpDesc::Var& input : op.inputs()) {
          kept.insert(kept.end(), input.arguments().begin(), input.arguments().end());
        }
      }
    }
    return kept;
  }

  const ProgramDesc& program_;
  const OpRegistry& registry_;
  const CompileOptions& options_;
  std::vector<int> order_;  ///< the blocks that run, each after the one that runs it
  Problems problems_;
};

}  // namespace

Result<std::unique_ptr<const Executable>> Executable::Compile(const ProgramDesc& program, const OpRegistry& registry,
                                                              const CompileOptions& options) {
  if (program.blocks_size() == 0) return InvalidConfig("the program has no blocks");
  std::unique_ptr<Executable> executable(new Executable);
  executable->program_ = WithOwnNames(program);
  executable->registry_ = &registry;
  BlockCompiler compiler(executable->program_, registry, options);
  MR_TRY(compiler.Check());
  MR_TRY(compiler.InferShapes());
  MR_TRY(compiler.CheckFetches());
  MR_TRY(compiler.Fuse(&executable->parts_));
  executable->blocks_ = std::move(compiler.blocks);
  executable->vars_ = std::move(compiler.vars);
  return std::unique_ptr<const Executable>(std::move(executable));
}

bool Executable::HoldsLoop(const OpDesc& op) const {
  if (BlockOf(op) < 0) return false;
  const std::vector<OpDesc>& inner = ops(BlockOf(op));
  return op.type() == "while" ||
         std::any_of(inner.begin(), inner.end(), [this](const OpDesc& o) { return HoldsLoop(o); });
}

bool Executable::WritesForGood(const OpDesc& op) const {
  if (registry_->Find(op.type())->is_optimizer) return true;
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (const auto it = vars_.find(name); it != vars_.end() && it->second.persistable) return true;
    }
  }
  if (BlockOf(op) < 0) return false;
  const std::vector<OpDesc>& inner = ops(BlockOf(op));
  return std::any_of(inner.begin(), inner.end(), [this](const OpDesc& o) { return WritesForGood(o); });
}

bool Executable::LeavesNoTrace(size_t count) const {
  const auto end = ops().begin() + static_cast<std::ptrdiff_t>(count);
  return std::none_of(ops().begin(), end, [this](const OpDesc& op) { return WritesForGood(op); });
}

bool Executable::StopsWithoutTrace() const {
  const auto last = std::find_if(ops().rbegin(), ops().rend(), [this](const OpDesc& op) { return HoldsLoop(op); });
  return LeavesNoTrace(static_cast<size_t>(ops().rend() - last));
}

int BlockOf(const OpDesc& op) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    if (attr.type() == BLOCK) return attr.block_idx();
  }
  return -1;
}

std::string PrintOps(const std::vector<OpDesc>& ops) {
  std::string text = "len(ops)=" + std::to_string(ops.size()) + "\n";
  for (size_t i = 0; i < ops.size(); ++i) text += "op[" + std::to_string(i) + "]->Type(): " + ops[i].type() + "\n";
  return text;
}

}  // namespace millrace
