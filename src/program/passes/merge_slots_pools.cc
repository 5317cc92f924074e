// Pools that a concat sets side by side become one that writes the whole row; dense slots in between are copied along.
// Their gradients become one, so that the ids of one table are merged once, and the sum over its parts goes.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "program/passes/op_graph.h"

namespace millrace {
namespace {

/// One input of the concat: a pool that can join others, a dense slot, or (neither) something else.
struct Element {
  int pool = -1;
  int pool_grad = -1;
  bool is_dense = false;
  std::string name;
};

/// The concat and its gradient.
struct Site {
  int concat = -1;
  int concat_grad = -1;
  std::vector<std::string> xs;
  std::vector<std::string> x_grads;  ///< empty without a gradient
};

bool IsFeed(const OpGraph& graph, const std::string& name) {
  const VarMeta* meta = graph.FindMeta(name);
  return meta != nullptr && !meta->persistable && meta->kind == VarType::LOD_TENSOR && meta->dtype == DType::kFloat32 &&
         meta->lod_level == 0 && meta->dims.rank() == 2 && meta->dims[1] > 0 && graph.Writers(name).empty();
}

Element Classify(const OpGraph& graph, const Site& site, size_t i) {
  Element element;
  element.name = site.xs[i];
  const std::string x_grad = site.x_grads.empty() ? std::string(kEmptyVar) : site.x_grads[i];
  if (x_grad == kEmptyVar && IsFeed(graph, element.name)) {
    element.is_dense = true;
    return element;
  }
  const int pool = graph.OnlyWriter(element.name);
  if (pool < 0 || graph.type(pool) != "fused_slots_pool") return element;
  if (!graph.IsPrivate(element.name, {site.concat, site.concat_grad})) return element;
  if (site.concat_grad >= 0) {
    element.pool_grad = graph.ReaderOfType(x_grad, "fused_slots_pool_grad");
    if (element.pool_grad < 0 || !graph.IsPrivate(x_grad, {element.pool_grad})) return element;
  }
  element.pool = pool;
  return element;
}

/// The names in the order of their first place.
std::vector<std::string> Distinct(const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  std::vector<std::string> distinct;
  for (const std::string& name : names) {
    if (seen.insert(name).second) distinct.push_back(name);
  }
  return distinct;
}

std::string HowItPools(const OpDesc& pool) {
  return StringAttr(pool, "pooltype", "") + " " + std::to_string(IntAttr(pool, "padding_idx", -1)) + " " +
         StringAttr(pool, "out_of_range", "") + (FindAttr(pool, "update_padding") == nullptr ? "" : " fixed");
}

std::vector<int64_t> Salts(const OpDesc& pool) {
  std::vector<int64_t> salts = IntsAttr(pool, "slot_salts");
  salts.resize(InputArguments(pool, "Ids").size());
  return salts;
}

/// Builds the joined pool element by element.
class Join {
 public:
  void AddDense(const OpGraph& graph, const std::string& name) {
    dense_.push_back(name);
    dense_at_.push_back(static_cast<int64_t>(ids_.size()));
    dense_widths_.push_back(graph.FindMeta(name)->dims[1]);
  }
  void AddPool(const OpGraph& graph, const OpDesc& pool) {
    const auto before = static_cast<int64_t>(ids_.size());
    const std::vector<std::string> dense = InputArguments(pool, "Dense");
    const std::vector<int64_t> dense_at = IntsAttr(pool, "dense_at");
    for (size_t i = 0; i < dense.size(); ++i) {
      dense_.push_back(dense[i]);
      dense_at_.push_back(before + dense_at[i]);
      dense_widths_.push_back(graph.FindMeta(dense[i])->dims[1]);
    }
    Append(ids_, InputArguments(pool, "Ids"));
    Append(tables_, InputArguments(pool, "W"));
    Append(salts_, Salts(pool));
    if (first_ == nullptr) first_ = &pool;
  }
  OpDesc Forward(const std::string& out, bool has_grad) const {
    OpDesc op = WithAttrs("fused_slots_pool");
    if (!dense_.empty()) SetInput(op, "Dense", dense_);
    SetOutput(op, "Out", {out});
    if (has_grad) SetOutput(op, "Rows", {RowsName(out)});
    return op;
  }
  OpDesc Backward(const std::string& out, const std::string& out_grad,
                  const std::vector<std::string>& table_grads) const {
    OpDesc op = WithAttrs("fused_slots_pool_grad");
    SetInput(op, "Rows", {RowsName(out)});
    SetInput(op, "Out@GRAD", {out_grad});
    SetOutput(op, "W@GRAD", table_grads);
    if (!dense_.empty()) SetAttr(op, "dense_widths", dense_widths_);
    return op;
  }
  /// Tables in the order of their first slot.
  std::vector<std::string> Tables() const { return Distinct(tables_); }

 private:
  template <class T>
  static void Append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }
  OpDesc WithAttrs(const std::string& type) const {
    OpDesc op;
    op.set_type(type);
    SetInput(op, "Ids", ids_);
    SetInput(op, "W", tables_);
    for (const char* name : {"pooltype", "padding_idx", "update_padding", "out_of_range"}) {
      if (const OpDesc::Attr* attr = FindAttr(*first_, name); attr != nullptr) *op.add_attrs() = *attr;
    }
    const bool salted = std::any_of(salts_.begin(), salts_.end(), [](int64_t salt) { return salt != 0; });
    if (salted) SetAttr(op, "slot_salts", salts_);
    if (!dense_.empty()) SetAttr(op, "dense_at", dense_at_);
    return op;
  }

  std::vector<std::string> ids_;
  std::vector<std::string> tables_;
  std::vector<int64_t> salts_;
  std::vector<std::string> dense_;
  std::vector<int64_t> dense_at_;
  std::vector<int64_t> dense_widths_;
  const OpDesc* first_ = nullptr;
};

/// The gradients of one table that joined pools wrote, and the sum that reads them (-1: there is only one part).
struct TableGrad {
  std::vector<std::string> parts;
  int sum = -1;
};

/// Finds, for each table, the parts that become one; nothing when a part is read by anything but the one sum.
std::optional<std::vector<TableGrad>> FindTableGrads(const OpGraph& graph, const std::vector<Element>& run,
                                                     const std::vector<std::string>& tables) {
  std::vector<TableGrad> grads(tables.size());
  std::map<std::string_view, size_t> place_of;
  for (size_t i = 0; i < tables.size(); ++i) place_of.emplace(tables[i], i);
  for (const Element& element : run) {
    if (graph.is_stopped()) return std::nullopt;
    if (element.pool_grad < 0) continue;
    const OpDesc& op = graph.op(element.pool_grad);
    const std::vector<std::string> written = OutputArguments(op, "W@GRAD");
    const std::vector<std::string> own = Distinct(InputArguments(op, "W"));
    if (own.size() != written.size()) return std::nullopt;
    for (size_t i = 0; i < own.size(); ++i) {
      grads[place_of.at(own[i])].parts.push_back(written[i]);
    }
  }
  for (TableGrad& grad : grads) {
    if (grad.parts.size() < 2) continue;
    grad.sum = graph.ReaderOfType(grad.parts[0], "sum");
    for (const std::string& part : grad.parts) {
      if (graph.is_stopped() || grad.sum < 0 || !graph.IsPrivate(part, {grad.sum})) return std::nullopt;
    }
  }
  return grads;
}

/// Takes all parts but the first out of the table's sum, which goes when nothing else is left in it. Returns the
/// variable that the joined gradient writes.
std::string ShrinkSum(OpGraph& graph, const TableGrad& grad) {
  if (grad.sum < 0) return grad.parts[0];
  OpDesc sum = graph.op(grad.sum);
  std::vector<std::string> terms = InputArguments(sum, "X");
  const std::set<std::string_view> gone(grad.parts.begin() + 1, grad.parts.end());
  std::erase_if(terms, [&](const std::string& term) { return term != grad.parts[0] && gone.contains(term); });
  if (terms.size() == 1) {
    std::string total = OnlyOutput(sum, "Out");
    graph.Remove(grad.sum);
    return total;
  }
  SetInput(sum, "X", terms);
  graph.Replace(grad.sum, std::move(sum));
  return grad.parts[0];
}

/// Joins inputs [begin, end) of the concat; false when nothing changed.
bool JoinRun(OpGraph& graph, Site& site, const std::vector<Element>& elements, size_t begin, size_t end) {
  const std::vector<Element> run(elements.begin() + static_cast<std::ptrdiff_t>(begin),
                                 elements.begin() + static_cast<std::ptrdiff_t>(end));
  Join join;
  for (const Element& element : run) {
    if (graph.is_stopped()) return false;
    if (element.is_dense) join.AddDense(graph, element.name);
    if (element.pool >= 0) join.AddPool(graph, graph.op(element.pool));
  }
  const std::optional<std::vector<TableGrad>> grads = FindTableGrads(graph, run, join.Tables());
  if (!grads) return false;

  const bool is_whole = run.size() == site.xs.size();
  const OpDesc concat = graph.op(site.concat);
  const std::string concat_out = OnlyOutput(concat, "Out");
  const std::string out = is_whole ? concat_out : concat_out + ".pool_" + std::to_string(begin);
  int last_pool = -1;
  int last_grad = -1;
  for (const Element& element : run) {
    last_pool = std::max(last_pool, element.pool);
    last_grad = std::max(last_grad, element.pool_grad);
  }
  const OpDesc forward = join.Forward(out, site.concat_grad >= 0);
  std::optional<OpDesc> backward;
  if (site.concat_grad >= 0) {
    std::vector<std::string> written;
    for (const TableGrad& grad : *grads) written.push_back(ShrinkSum(graph, grad));
    const std::string concat_grad_in = OnlyInput(graph.op(site.concat_grad), "Out@GRAD");
    backward = join.Backward(out, is_whole ? concat_grad_in : GradName(out), written);
  }
  for (const Element& element : run) {
    if (graph.is_stopped()) return false;
    if (element.pool >= 0) graph.Remove(element.pool);
    if (element.pool_grad >= 0) graph.Remove(element.pool_grad);
  }
  if (is_whole) {
    graph.Replace(site.concat, forward);
    if (backward) graph.Replace(site.concat_grad, *backward);
    return true;
  }
  graph.Replace(last_pool, forward);
  if (backward) graph.Replace(last_grad, *backward);
  const auto splice = [&](std::vector<std::string>& names, const std::string& name) {
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(begin), names.begin() + static_cast<std::ptrdiff_t>(end));
    names.insert(names.begin() + static_cast<std::ptrdiff_t>(begin), name);
  };
  splice(site.xs, out);
  OpDesc rest = concat;
  SetInput(rest, "X", site.xs);
  graph.Replace(site.concat, std::move(rest));
  if (site.concat_grad >= 0) {
    splice(site.x_grads, GradName(out));
    OpDesc rest_grad = graph.op(site.concat_grad);
    SetInput(rest_grad, "X", site.xs);
    SetOutput(rest_grad, "X@GRAD", site.x_grads);
    graph.Replace(site.concat_grad, std::move(rest_grad));
  }
  return true;
}

/// Describes the concat and its gradient; nothing when its axis is not that of the columns or a gradient is odd.
std::optional<Site> FindSite(const OpGraph& graph, int concat) {
  Site site;
  site.concat = concat;
  const OpDesc& op = graph.op(concat);
  site.xs = InputArguments(op, "X");
  const int64_t axis = IntAttr(op, "axis", 0);
  if ((axis != 1 && axis != -1) || !InputArguments(op, "AxisTensor").empty() || site.xs.empty()) return std::nullopt;
  const std::string out_grad = GradName(OnlyOutput(op, "Out"));
  site.concat_grad = graph.ReaderOfType(out_grad, "concat_grad");
  if (site.concat_grad >= 0) {
    const OpDesc& grad = graph.op(site.concat_grad);
    site.x_grads = OutputArguments(grad, "X@GRAD");
    if (InputArguments(grad, "X") != site.xs || site.x_grads.size() != site.xs.size()) return std::nullopt;
    if (OnlyInput(grad, "Out@GRAD").empty()) return std::nullopt;
  }
  return site;
}

/// The end of the longest run from `begin` that can be joined; `begin` when there is none worth it.
size_t RunEnd(const OpGraph& graph, const std::vector<Element>& elements, size_t begin) {
  size_t end = begin;
  int pools = 0;
  std::string signature;
  for (; end < elements.size(); ++end) {
    const Element& element = elements[end];
    if (element.is_dense) continue;
    if (element.pool < 0) break;
    const std::string own = HowItPools(graph.op(element.pool));
    if (pools > 0 && own != signature) break;
    signature = own;
    ++pools;
  }
  const bool worth = pools > 0 && (end - begin > 1 || elements.size() == 1);
  return worth ? end : begin;
}

void MergeAt(OpGraph& graph, int concat) {
  std::optional<Site> site = FindSite(graph, concat);
  if (!site) return;
  std::vector<Element> elements;
  for (size_t i = 0; i < site->xs.size() && !graph.is_stopped(); ++i) elements.push_back(Classify(graph, *site, i));
  // From the back, so that the positions of what is left to do stay as they are.
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t begin = 0; begin < elements.size();) {
    const size_t end = RunEnd(graph, elements, begin);
    if (end > begin) runs.emplace_back(begin, end);
    begin = std::max(end, begin + 1);
  }
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) JoinRun(graph, *site, elements, run->first, run->second);
}

/// A pool need not keep rows for a gradient that is not there.
void DropUnreadRows(OpGraph& graph, int pool) {
  const std::string rows = OnlyOutput(graph.op(pool), "Rows");
  if (rows.empty() || graph.IsKept(rows) || !graph.Readers(rows).empty()) return;
  OpDesc op = graph.op(pool);
  auto* outputs = op.mutable_outputs();
  outputs->erase(std::find_if(outputs->begin(), outputs->end(),
                              [](const OpDesc::Var& output) { return output.parameter() == "Rows"; }));
  graph.Replace(pool, std::move(op));
}

}  // namespace

void MergeSlotsPools(OpGraph& graph) {
  for (int i = 0; i < graph.size() && !graph.is_stopped(); ++i) {
    if (graph.type(i) == "concat") MergeAt(graph, i);
  }
  for (int i = 0; i < graph.size(); ++i) {
    if (graph.type(i) == "fused_slots_pool") DropUnreadRows(graph, i);
  }
}

}  // namespace millrace
