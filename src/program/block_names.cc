#include "program/block_names.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "program/op_registry.h"

namespace millrace {
namespace {

class Renamer {
 public:
  explicit Renamer(ProgramDesc* program) : program_(program), names_(static_cast<size_t>(program->blocks_size())) {}

  void Run() {
    std::set<std::string> taken;
    for (int block = 0; block < program_->blocks_size(); ++block) {
      for (VarDesc& var : *program_->mutable_blocks(block)->mutable_vars()) {
        const std::string written = var.name();
        if (!taken.insert(written).second && block > 0) {
          var.set_name(written + "@block_" + std::to_string(block));
          taken.insert(var.name());
        }
        names_[static_cast<size_t>(block)].emplace(written, var.name());
      }
    }
    for (int block = 0; block < program_->blocks_size(); ++block) {
      for (OpDesc& op : *program_->mutable_blocks(block)->mutable_ops()) {
        if (op.type() == "conditional_block_grad") TellInner(op);
        for (OpDesc::Var& input : *op.mutable_inputs()) {
          if (input.parameter() != kInner) Rename(block, input);
        }
        for (OpDesc::Var& output : *op.mutable_outputs()) Rename(block, output);
      }
    }
  }

 private:
  static constexpr char kInner[] = "Inner@GRAD";

  void TellInner(OpDesc& op) {
    const int block = BlockOf(op);
    if (block < 0 || block >= program_->blocks_size()) return;
    const auto& names = names_[static_cast<size_t>(block)];
    std::vector<std::string> inner;
    for (const std::string& input : InputArguments(op, "Input")) {
      const auto it = names.find(GradName(input));
      inner.push_back(it == names.end() ? std::string(kEmptyVar) : it->second);
    }
    SetInput(op, kInner, inner);
  }

  /// The variable that a name in a block means; the name itself where no block declares it.
  std::string Meaning(int block, const std::string& name) const {
    // No program is nested deeper than it has blocks; one that says so runs in a circle.
    for (int depth = 0; depth < program_->blocks_size() && IsThere(block); ++depth) {
      const BlockDesc& desc = program_->blocks(block);
      for (const int number : {block, desc.forward_block_idx()}) {
        if (!IsThere(number)) continue;
        const auto& names = names_[static_cast<size_t>(number)];
        if (const auto it = names.find(name); it != names.end()) return it->second;
      }
      block = desc.parent_idx();
    }
    return name;
  }
  bool IsThere(int block) const { return block >= 0 && block < program_->blocks_size(); }

  void Rename(int block, OpDesc::Var& binding) const {
    for (std::string& name : *binding.mutable_arguments()) name = Meaning(block, name);
  }

  ProgramDesc* program_;
  std::vector<std::map<std::string, std::string>> names_;  ///< by block: as written, as it is now
};

}  // namespace

std::shared_ptr<const ProgramDesc> WithOwnNames(std::shared_ptr<const ProgramDesc> program) {
  if (program->blocks_size() < 2) return program;
  auto named = std::make_shared<ProgramDesc>(*program);
  Renamer(named.get()).Run();
  return named;
}

}  // namespace millrace
