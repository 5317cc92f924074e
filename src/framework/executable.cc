#include "framework/executable.h"

#include <algorithm>
#include <set>

#include "core/edit_distance.h"
#include "framework/gradient_check.h"
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

void CheckArguments(Place place, const OpDesc& op, const OpInfo& info, Problems& problems) {
  const auto check = [&](const auto& bindings, const std::vector<ArgInfo>& args, const char* kind) {
    for (const ArgInfo& arg : args) {
      const bool bound = std::any_of(bindings.begin(), bindings.end(), [&](const OpDesc::Var& binding) {
        return binding.parameter() == arg.name && binding.arguments_size() > 0;
      });
      if (!bound && !arg.optional) problems.Add(Where(place, op) + ": " + kind + " " + arg.name + " is not bound");
    }
    for (const OpDesc::Var& binding : bindings) {
      const auto it =
          std::find_if(args.begin(), args.end(), [&](const ArgInfo& arg) { return arg.name == binding.parameter(); });
      if (it != args.end() || binding.arguments_size() == 0) continue;
      std::vector<std::string_view> names;
      for (const ArgInfo& arg : args) names.push_back(arg.name);
      problems.Add(Where(place, op) + ": there is no " + kind + " \"" + binding.parameter() + "\"" +
                   DidYouMean(binding.parameter(), names));
    }
  };
  check(op.inputs(), info.inputs, "input");
  // Gradients of inputs that nobody wants stay unbound.
  if (!info.is_gradient) check(op.outputs(), info.outputs, "output");
}

void CheckVariables(Place place, const OpDesc& op, const VarMetas& vars, Problems& problems) {
  for (const OpDesc::Var& binding : op.inputs()) {
    for (const std::string& name : binding.arguments()) {
      if (name == kEmptyVar || vars.contains(name)) continue;
      std::vector<std::string_view> names;
      for (const auto& [known, meta] : vars) names.push_back(known);
      problems.Add(Where(place, op) + ": input " + binding.parameter() + ": there is no variable \"" + name + "\"" +
                   DidYouMean(name, names));
    }
  }
}

/// True when an attribute as written can be read as the type it is registered with.
bool FitsAttr(AttrType written, const AttrValue& registered) {
  const auto is = [&registered]<class... T>() { return (std::holds_alternative<T>(registered) || ...); };
  switch (written) {
    case INT:
    case LONG:
    case BLOCK: return is.operator()<int64_t, float, bool>();
    case BOOLEAN: return is.operator()<int64_t, bool>();
    case FLOAT:
    case FLOAT64: return is.operator()<float>();
    case STRING:
    case VAR: return is.operator()<std::string>();
    case INTS:
    case LONGS:
    case BLOCKS:
    case BOOLEANS: return is.operator()<std::vector<int64_t>>();
    case FLOATS:
    case FLOAT64S: return is.operator()<std::vector<float>>();
    case STRINGS:
    case VARS: return is.operator()<std::vector<std::string>>();
    default: return false;
  }
}

void CheckAttributes(Place place, const OpDesc& op, const OpInfo& info, const OpRegistry& registry,
                     Problems& problems) {
  // A gradient carries the attributes of its forward operator, which is checked itself.
  const bool has_forward = info.is_gradient && op.type().ends_with("_grad");
  const OpInfo* forward = has_forward ? registry.Find(op.type().substr(0, op.type().size() - 5)) : nullptr;
  for (const OpDesc::Attr& attr : op.attrs()) {
    const AttrInfo* known = info.FindAttr(attr.name());
    const std::string where = Where(place, op) + ": ";
    if (known == nullptr) {
      if (IsHintAttr(attr.name()) || (forward != nullptr && forward->FindAttr(attr.name()) != nullptr)) continue;
      std::vector<std::string_view> names;
      for (const AttrInfo& other : info.attrs) names.push_back(other.name);
      problems.Add(where + "attribute \"" + attr.name() + "\" is not supported" + DidYouMean(attr.name(), names));
    } else if (!FitsAttr(attr.type(), known->default_value)) {
      problems.Add(where + "attribute \"" + attr.name() + "\" must not be of type " + AttrType_Name(attr.type()));
    } else if (const AttrValue value = OpView(op, info).Value(attr.name());
               known->fixed && value != known->default_value) {
      problems.Add(where + "attribute \"" + attr.name() + "\" is " + ShowAttr(value) + "; only " +
                   ShowAttr(known->default_value) + " is supported");
    }
  }
}

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
        problems_.Add("block " + std::to_string(number) + " declares \"" + var.name() +
                      "\", which another block has already: give one of them another name");
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
    const OpInfo* info = registry_.Find(op.type());
    if (info == nullptr) {
      const std::string nearest = registry_.Nearest(op.type());
      problems_.Add(Where(place, op) + ": no such operator" +
                    (nearest.empty() ? "" : "; the nearest that is supported is \"" + nearest + "\""));
      return;
    }
    CheckArguments(place, op, *info, problems_);
    CheckVariables(place, op, vars, problems_);
    CheckAttributes(place, op, *info, registry_, problems_);
  }

  void InferBlock(int block) {
    for (size_t i = 0; i < Ops(block).size(); ++i) {
      const OpDesc& op = Ops(block)[i];
      const OpView view(op, *registry_.Find(op.type()));
      Status fits = millrace::InferShapes(view, vars);
      if (fits.ok() && view.info().is_gradient) fits = CheckGradient(op, registry_, vars);
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
  executable->program_ = program;
  executable->registry_ = &registry;
  BlockCompiler compiler(program, registry, options);
  MR_TRY(compiler.Check());
  MR_TRY(compiler.InferShapes());
  MR_TRY(compiler.CheckFetches());
  MR_TRY(compiler.Fuse(&executable->parts_));
  executable->blocks_ = std::move(compiler.blocks);
  executable->vars_ = std::move(compiler.vars);
  return std::unique_ptr<const Executable>(std::move(executable));
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
