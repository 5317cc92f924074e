#include "program/counters.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "program/block_builder.h"
#include "program/op_registry.h"

namespace millrace {
namespace {

double NumberOf(const OpDesc& op, std::string_view name, double otherwise) {
  const OpDesc::Attr* const attr = FindAttr(op, name);
  if (attr == nullptr) return otherwise;
  if (attr->has_f()) return attr->f();
  return attr->has_l() ? static_cast<double>(attr->l()) : attr->i();
}

/// What the output of an operator is a sum of, with other values; nothing where it is no sum.
std::vector<std::string> AddendsOf(const OpDesc& op) {
  const std::string& type = op.type();
  const bool is_shifted = type == "scale" && NumberOf(op, "scale", 1) == 1;
  const bool is_sum = type == "elementwise_add" || type == "sum";
  if (!is_sum && type != "elementwise_sub" && type != "increment" && !is_shifted) return {};
  std::vector<std::string> addends = InputArguments(op, "X");
  if (!is_sum) return addends;
  for (std::string& name : InputArguments(op, "Y")) addends.push_back(std::move(name));
  return addends;
}

bool Reads(const OpDesc& op, std::string_view name) {
  return std::any_of(op.inputs().begin(), op.inputs().end(), [&](const OpDesc::Var& input) {
    return std::find(input.arguments().begin(), input.arguments().end(), name) != input.arguments().end();
  });
}

/// The operators by which persistable variables are counted.
class CountingOps {
 public:
  explicit CountingOps(const ProgramDesc& program) {
    std::set<std::string> persistables;
    for (const BlockDesc& block : program.blocks()) {
      for (const VarDesc& var : block.vars()) {
        if (var.persistable() && var.name().find("@GRAD") == std::string::npos) persistables.insert(var.name());
      }
      for (const OpDesc& op : block.ops()) {
        // What an operator with a block lists is written by those of the block.
        if (FindAttr(op, "sub_block") == nullptr) ops_.push_back(&op);
      }
    }
    for (const OpDesc* op : ops_) {
      if (AddendsOf(*op).empty()) continue;
      for (std::string& name : OutputArguments(*op, "Out")) sums_[std::move(name)].push_back(op);
    }
    for (const OpDesc* op : ops_) {
      if (CountsAllBatches(*op)) {
        for (const char* states : {"StatPosOut", "StatNegOut"}) {
          for (const std::string& name : OutputArguments(*op, states)) steps_[name].insert(op);
        }
      }
      const bool is_assigned = op->type() == "assign";
      for (const std::string& name : OutputArguments(*op, "Out")) {
        if (!persistables.contains(name)) continue;
        for (const std::string& from : is_assigned ? InputArguments(*op, "X") : std::vector<std::string>{name}) {
          std::set<std::string> seen;
          std::set<const OpDesc*> chain;
          if (!AddsTo(name, from, &seen, &chain)) continue;
          steps_[name].merge(chain);
          steps_[name].insert(op);
        }
      }
    }
    // What is begun anew by another operator is no count of all batches.
    std::erase_if(steps_, [&](const auto& counted) {
      const std::string& name = counted.first;
      return !persistables.contains(name) || std::any_of(ops_.begin(), ops_.end(), [&](const OpDesc* op) {
        return !counted.second.contains(op) && Writes(*op, {name});
      });
    });
  }

  bool IsCounter(const std::string& name) const { return steps_.contains(name); }
  /// Whether authored operators count it, of nothing that gradients come to.
  bool IsOfForward(const std::string& counter) const {
    const std::set<const OpDesc*>& own = steps_.at(counter);
    if (!std::all_of(own.begin(), own.end(), [](const OpDesc* op) { return IsAuthored(*op); })) return false;
    std::set<std::string, std::less<>> needed = {counter};
    for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
      if (!Writes(**op, needed)) continue;
      for (const OpDesc::Var& input : (*op)->inputs()) {
        for (const std::string& name : input.arguments()) {
          if (name.find("@GRAD") != std::string::npos) return false;
          needed.insert(name);
        }
      }
    }
    return true;
  }
  /// Whether an operator that does not count it reads the variable, or the sum that is assigned to it.
  bool IsRead(const std::string& counter) const {
    const std::set<const OpDesc*>& own = steps_.at(counter);
    std::set<std::string> names = {counter};
    for (const OpDesc* op : own) {
      for (std::string& name : OutputArguments(*op, "Out")) names.insert(std::move(name));
    }
    return std::any_of(ops_.begin(), ops_.end(), [&](const OpDesc* op) {
      return !own.contains(op) &&
             std::any_of(names.begin(), names.end(), [&](const std::string& name) { return Reads(*op, name); });
    });
  }

 private:
  /// Whether `sum` is one of `counter` and others, through other sums, too; `chain` gets the operators that add.
  bool AddsTo(const std::string& counter, const std::string& sum, std::set<std::string>* seen,
              std::set<const OpDesc*>* chain) const {
    const auto writers = sums_.find(sum);
    if (writers == sums_.end() || !seen->insert(sum).second) return false;
    bool adds = false;
    for (const OpDesc* op : writers->second) {
      for (const std::string& addend : AddendsOf(*op)) {
        if (addend != counter && !AddsTo(counter, addend, seen, chain)) continue;
        chain->insert(op);
        adds = true;
      }
    }
    return adds;
  }

  std::vector<const OpDesc*> ops_;
  std::map<std::string, std::vector<const OpDesc*>> sums_;  ///< the sums, by what they write
  std::map<std::string, std::set<const OpDesc*>> steps_;    ///< by the variable that they count in
};

template <class Condition>
std::vector<std::string> CountersThat(const ProgramDesc& program, const Condition& fit) {
  const CountingOps ops(program);
  std::vector<std::string> counters;
  for (const BlockDesc& block : program.blocks()) {
    for (const VarDesc& var : block.vars()) {
      if (ops.IsCounter(var.name()) && fit(ops, var)) counters.push_back(var.name());
    }
  }
  return counters;
}

}  // namespace

bool CountsAllBatches(const OpDesc& op) { return op.type() == "auc" && NumberOf(op, "slide_steps", 1) == 0; }

std::vector<std::string> CountersOf(const ProgramDesc& program) {
  return CountersThat(program, [](const CountingOps&, const VarDesc&) { return true; });
}

std::vector<std::string> ForwardCountersOf(const ProgramDesc& program) {
  return CountersThat(program,
                      [](const CountingOps& ops, const VarDesc& counter) { return ops.IsOfForward(counter.name()); });
}

std::vector<std::string> UnreadCountersOf(const ProgramDesc& program) {
  return CountersThat(program, [](const CountingOps& ops, const VarDesc& counter) {
    const VarType::Type type = counter.type().lod_tensor().tensor().data_type();
    return (type == VarType::INT64 || type == VarType::FP32) && !ops.IsRead(counter.name());
  });
}

}  // namespace millrace
