#pragma once

#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/name_numbers.h"
#include "program/op_list.h"
#include "program/op_registry.h"

namespace millrace {

/// A list of operators with an index of who reads and who writes each variable, for passes that rewrite the list.
///
/// Numbers of operators stay valid while the list changes: a pass replaces one operator of what it matched by the new
/// one and removes the others. One thread.
class OpGraph {
 public:
  /// `vars` must outlive the graph; `fetches` and persistable variables are kept. After a stop request the graph is of
  /// no use.
  OpGraph(OpList ops, const VarMetas& vars, const std::vector<std::string>& fetches, std::stop_token stop = {});

  /// For a pass to look at for each operator, and to end.
  bool is_stopped() const { return stop_.stop_requested(); }
  int size() const { return static_cast<int>(ops_.size()); }
  /// One that was removed has no type and no arguments.
  const OpDesc& op(int i) const { return *ops_[static_cast<size_t>(i)]; }
  /// The operator's type; empty when it was removed.
  std::string_view type(int i) const { return op(i).type(); }
  const VarMetas& vars() const { return *vars_; }
  const VarMeta* FindMeta(std::string_view name) const;

  /// Operators that read (write) the variable, ascending; an operator that names it twice stands there twice.
  std::vector<int> Readers(std::string_view name) const;
  std::vector<int> Writers(std::string_view name) const;
  /// The only operator that writes it; -1 when there is none or several.
  int OnlyWriter(std::string_view name) const;
  /// The one reader of this type; -1 when there is none or several.
  int ReaderOfType(std::string_view name, std::string_view type) const;
  /// True when somebody outside the list may look at the variable.
  bool IsKept(std::string_view name) const;
  /// True when the variable can go once `readers` are gone: not kept, one writer, and exactly these readers.
  bool IsPrivate(std::string_view name, std::vector<int> readers) const;

  void Replace(int i, OpDesc op);
  void Remove(int i);
  /// The list without what was removed.
  OpList Take() &&;

 private:
  /// Operators that name a variable, one as often as it does. A table may be read by every operator: who was dropped is
  /// taken out when somebody looks, of many at once.
  struct Users {
    std::vector<int> all;
    std::vector<int> dropped;
    bool is_ascending = true;
  };
  /// By the number of the variable's name.
  using Index = std::vector<Users>;

  const std::vector<int>& UsersIn(Index& index, std::string_view name) const;
  void AddToIndex(int i);
  void DropFromIndex(int i);

  std::vector<OpList::Shared> ops_;
  const VarMetas* vars_;
  std::set<std::string, std::less<>> fetches_;
  std::stop_token stop_;
  NameNumbers names_;
  mutable Index readers_;
  mutable Index writers_;
};

/// The only variable bound to a parameter; empty when there is none, several, or "@EMPTY@".
std::string OnlyInput(const OpDesc& op, std::string_view parameter);
std::string OnlyOutput(const OpDesc& op, std::string_view parameter);
/// Attributes of the operator as it stands, without the registration's defaults.
int64_t IntAttr(const OpDesc& op, std::string_view name, int64_t otherwise);
std::string StringAttr(const OpDesc& op, std::string_view name, std::string_view otherwise);
std::vector<int64_t> IntsAttr(const OpDesc& op, std::string_view name);
float FloatAttr(const OpDesc& op, std::string_view name, float otherwise);

/// The variable by which a fused_slots_pool with output `out` hands rows to its gradient.
std::string RowsName(std::string_view out);

// The passes; see fusion.h.
void FuseSlotsPool(OpGraph& graph);
void MergeSlotsPools(OpGraph& graph);
void FuseSoftmaxLoss(OpGraph& graph);
void FuseFc(OpGraph& graph);
void FuseOptimizers(OpGraph& graph, const OpRegistry& registry);

}  // namespace millrace
