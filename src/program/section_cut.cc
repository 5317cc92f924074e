#include "program/section_cut.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/edit_distance.h"
#include "program/block_builder.h"

namespace millrace {
namespace {

enum class Phase : uint8_t { kForward, kBackward, kUpdate };

constexpr int64_t kLearningRateRole = 16;

/// The variable that a name is the gradient of, or a part of its gradient; empty when it is none.
std::string BaseOf(const std::string& name) {
  const size_t at = name.find("@GRAD");
  return at == std::string::npos ? "" : name.substr(0, at);
}

class Cutter {
 public:
  Cutter(const BlockDesc& block, const OpRegistry& registry, int sections)
      : block_(&block), registry_(&registry), sections_(sections) {
    const auto ops = static_cast<size_t>(block.ops_size());
    phases_.resize(ops, Phase::kForward);
    section_.resize(ops, -1);
  }

  void FindPhases() {
    for (int i = 0; i < block_->ops_size(); ++i) phases_[At(i)] = PhaseOf(block_->ops(i));
    // What only updates read (a learning rate's schedule) belongs to them.
    std::map<std::string, bool> read_by_others;
    for (int i = block_->ops_size() - 1; i >= 0; --i) {
      const OpDesc& op = block_->ops(i);
      bool any = false;
      bool only_updates = true;
      ForEachArgument(op.outputs(), [&](const std::string& name) {
        const auto it = read_by_others.find(name);
        any = any || it != read_by_others.end();
        only_updates = only_updates && (it == read_by_others.end() || !it->second);
      });
      if (phases_[At(i)] == Phase::kForward && any && only_updates) phases_[At(i)] = Phase::kUpdate;
      const bool other = phases_[At(i)] != Phase::kUpdate;
      ForEachArgument(op.inputs(),
                      [&](const std::string& name) { read_by_others[name] = read_by_others[name] || other; });
    }
  }

  void CutForward(const std::vector<std::vector<std::string>>& cuts) {
    std::map<std::string, int> writer;
    for (int i = 0; i < block_->ops_size(); ++i) {
      if (phases_[At(i)] != Phase::kForward) continue;
      ForEachArgument(block_->ops(i).outputs(), [&](const std::string& name) { writer.emplace(name, i); });
    }
    for (size_t s = 0; s < cuts.size(); ++s) {
      std::set<std::string> needed;
      for (const std::string& name : cuts[s]) {
        needed.insert(name);
        if (writer.contains(name)) continue;
        std::vector<std::string_view> known;
        for (const auto& [var, op] : writer) known.push_back(var);
        Problem(s, "section_out_var_names: no operator of the forward part computes \"" + name + "\"" +
                       DidYouMean(name, known));
      }
      for (int i = block_->ops_size() - 1; i >= 0; --i) {
        if (phases_[At(i)] != Phase::kForward || !Writes(i, needed)) continue;
        if (section_[At(i)] < 0) section_[At(i)] = static_cast<int>(s);
        ForEachArgument(block_->ops(i).inputs(), [&](const std::string& name) { needed.insert(name); });
      }
    }
    std::vector<int> count(At(sections_));
    for (int i = 0; i < block_->ops_size(); ++i) {
      if (phases_[At(i)] != Phase::kForward) continue;
      if (section_[At(i)] < 0) section_[At(i)] = sections_ - 1;
      ++count[At(section_[At(i)])];
      ForEachArgument(block_->ops(i).outputs(), [&](const std::string& name) { home_[name] = section_[At(i)]; });
    }
    // A parameter is at home where it is first read: what belongs to it alone (a regularizer) goes there.
    for (int i = 0; i < block_->ops_size(); ++i) {
      if (phases_[At(i)] != Phase::kForward) continue;
      ForEachArgument(block_->ops(i).inputs(), [&](const std::string& name) { home_.emplace(name, section_[At(i)]); });
    }
    for (size_t s = 0; problems_.empty() && s < count.size(); ++s) {
      if (count[s] == 0) Problem(s, "no operator is left for it: earlier sections compute all that it hands on");
    }
  }

  void PlaceBackward() {
    std::map<std::string, int> writer_section;
    for (int i = 0; i < block_->ops_size(); ++i) {
      if (phases_[At(i)] != Phase::kBackward) continue;
      const OpDesc& op = block_->ops(i);
      int section = HomeOfGradient(op.inputs());
      if (section < 0) section = HomeOfGradient(op.outputs());
      if (section < 0) section = sections_ - 1;
      ForEachArgument(op.inputs(), [&](const std::string& name) {
        const auto it = writer_section.find(name);
        if (it != writer_section.end()) section = std::min(section, it->second);
      });
      section_[At(i)] = section;
      ForEachArgument(op.outputs(), [&](const std::string& name) { writer_section[name] = section; });
    }
    backward_writer_ = std::move(writer_section);
  }

  void PlaceUpdates() {
    gradients_.resize(At(sections_));
    std::set<std::string> seen;
    std::map<std::string, int> writer_section;
    for (int i = 0; i < block_->ops_size(); ++i) {
      if (phases_[At(i)] != Phase::kUpdate) continue;
      const OpDesc& op = block_->ops(i);
      int section = sections_ - 1;
      ForEachArgument(op.inputs(), [&](const std::string& name) {
        if (const auto it = writer_section.find(name); it != writer_section.end()) {
          section = std::min(section, it->second);
          return;
        }
        const auto it = backward_writer_.find(name);
        if (it == backward_writer_.end()) return CheckUpdateInput(i, name);
        section = std::min(section, it->second);
        if (seen.insert(name).second) gradients_[At(it->second)].push_back(name);
      });
      section_[At(i)] = section;
      ForEachArgument(op.outputs(), [&](const std::string& name) { writer_section[name] = section; });
    }
  }

  Status Problems() const { return problems_.empty() ? Status::Ok() : InvalidConfig(problems_); }

  SectionCut Take(const ProgramDesc& program) {
    SectionCut cut;
    cut.step = WithoutOps(program);
    cut.update = cut.step;
    for (int s = 0; s < sections_; ++s) Append(Phase::kForward, s, &cut.step, &cut.step_parts);
    for (int s = sections_ - 1; s >= 0; --s) Append(Phase::kBackward, s, &cut.step, &cut.step_parts);
    for (int s = sections_ - 1; s >= 0; --s) Append(Phase::kUpdate, s, &cut.update, &cut.update_parts);
    cut.gradients = std::move(gradients_);
    return cut;
  }

 private:
  static size_t At(int i) { return static_cast<size_t>(i); }

  static ProgramDesc WithoutOps(const ProgramDesc& program) {
    ProgramDesc copy = program;
    copy.mutable_blocks(0)->clear_ops();
    return copy;
  }

  void Problem(size_t section, const std::string& message) {
    problems_ += (problems_.empty() ? "" : "\n") + ("section_config[" + std::to_string(section) + "]: ") + message;
  }

  Phase PhaseOf(const OpDesc& op) const {
    const OpInfo* info = registry_->Find(op.type());
    int64_t role = 0;
    for (const OpDesc::Attr& attr : op.attrs()) {
      if (attr.name() == "op_role") role = attr.has_l() ? attr.l() : attr.i();
    }
    const bool updates = (role & (static_cast<int64_t>(OpRole::kOptimize) | kLearningRateRole)) != 0;
    if (updates || (info != nullptr && info->is_optimizer)) return Phase::kUpdate;
    const bool backward = (role & static_cast<int64_t>(OpRole::kBackward)) != 0;
    return backward || (info != nullptr && info->is_gradient) ? Phase::kBackward : Phase::kForward;
  }

  bool Writes(int i, const std::set<std::string>& names) const {
    bool writes = false;
    ForEachArgument(block_->ops(i).outputs(),
                    [&](const std::string& name) { writes = writes || names.contains(name); });
    return writes;
  }

  int HomeOfGradient(const google::protobuf::RepeatedPtrField<OpDesc::Var>& bindings) const {
    int section = -1;
    ForEachArgument(bindings, [&](const std::string& name) {
      const auto it = home_.find(BaseOf(name));
      if (it != home_.end()) section = std::max(section, it->second);
    });
    return section;
  }

  void CheckUpdateInput(int i, const std::string& name) {
    for (const VarDesc& var : block_->vars()) {
      if (var.name() == name && var.persistable()) return;
    }
    problems_ += (problems_.empty() ? "" : "\n") + ("section_param: block 0 op[" + std::to_string(i) + "] ") +
                 block_->ops(i).type() + " reads \"" + name +
                 "\", which is neither a gradient nor a parameter; micro-batches have one each, an update has none";
  }

  void Append(Phase phase, int section, ProgramDesc* program, std::vector<SectionPart>* parts) const {
    SectionPart part{section, 0};
    for (int i = 0; i < block_->ops_size(); ++i) {
      if (phases_[At(i)] != phase || section_[At(i)] != section) continue;
      *program->mutable_blocks(0)->add_ops() = block_->ops(i);
      ++part.ops;
    }
    parts->push_back(part);
  }

  const BlockDesc* block_;
  const OpRegistry* registry_;
  int sections_;
  std::vector<Phase> phases_;
  std::vector<int> section_;
  std::map<std::string, int> home_;  ///< of forward variables, and of parameters
  std::map<std::string, int> backward_writer_;
  std::vector<std::vector<std::string>> gradients_;
  std::string problems_;
};

}  // namespace

Result<SectionCut> CutIntoSections(const ProgramDesc& program, const OpRegistry& registry,
                                   const std::vector<std::vector<std::string>>& cuts) {
  if (program.blocks_size() == 0) return InvalidConfig("the program has no blocks");
  Cutter cutter(program.blocks(0), registry, static_cast<int>(cuts.size()) + 1);
  cutter.FindPhases();
  cutter.CutForward(cuts);
  MR_TRY(cutter.Problems());
  cutter.PlaceBackward();
  cutter.PlaceUpdates();
  MR_TRY(cutter.Problems());
  return cutter.Take(program);
}

}  // namespace millrace
