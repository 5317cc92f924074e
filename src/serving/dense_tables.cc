#include "serving/dense_tables.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "program/op_registry.h"
#include "program/var_meta.h"
#include "runtime/tensor.h"
#include "table/sparse_table.h"

namespace millrace {
namespace {

bool IsTable(const ProgramDesc& program, const std::string& name) {
  const VarDesc* var = FindVar(program, name);
  return var != nullptr && var->type().type() == VarType::SPARSE_TABLE;
}

uint64_t SaltOf(const OpDesc& lookup) {
  const OpDesc::Attr* salt = FindAttr(lookup, "slot_salt");
  if (salt == nullptr) return 0;
  return static_cast<uint64_t>(salt->type() == LONG ? salt->l() : salt->i());
}

std::string NoVocabulary(const std::set<std::string>& tables) {
  std::string names;
  for (const std::string& name : tables) names += (names.empty() ? "\"" : ", \"") + name + "\"";
  return "table " + names +
         " grows, but other runtimes hold tables as [vocabulary, dim]: set vocabulary in this export to one more than "
         "the largest id, or give the table a vocabulary of its own";
}

/// Copies rows of ids [0, vocabulary) to `out`; returns how many of them the table has.
Result<int64_t> CopyRows(SparseTable& table, uint64_t salt, int64_t vocabulary, const LongWork& work, float* out) {
  constexpr int64_t kChunk = 1 << 16;
  const auto dim = static_cast<size_t>(table.shape().dim);
  std::vector<uint64_t> keys;
  RowBatch pulled;
  int64_t found = 0;
  for (int64_t begin = 0; begin < vocabulary; begin += kChunk) {
    keys.clear();
    for (int64_t id = begin; id < std::min(begin + kChunk, vocabulary); ++id) {
      keys.push_back(SlotKey(static_cast<uint64_t>(id), salt));
    }
    MR_TRY(table.Pull(keys, PullMode::kReadOnly, &pulled));
    for (const float* row : pulled.weights()) out = std::copy_n(row, dim, out);
    found += static_cast<int64_t>(keys.size() - pulled.missing().size());
    MR_TRY(work.Done(0, "looking up the rows of an export"));
  }
  return found;
}

}  // namespace

Result<std::vector<DenseTable>> ReplaceTables(int64_t vocabulary, ProgramDesc& program) {
  std::map<std::string, DenseTable> made;
  std::map<std::string, VarDesc> declarations;
  std::set<std::string> replaced;
  for (OpDesc& op : *program.mutable_blocks(0)->mutable_ops()) {
    const std::vector<std::string> w = InputArguments(op, "W");
    if (w.size() != 1 || !IsTable(program, w[0])) continue;
    replaced.insert(w[0]);
    const uint64_t salt = SaltOf(op);
    DenseTable dense{salt == 0 ? w[0] : w[0] + "." + InputArguments(op, "Ids").at(0), w[0], salt};
    VarDesc var = *FindVar(program, w[0]);
    var.set_name(dense.parameter);
    var.clear_attrs();
    var.mutable_type()->set_type(VarType::LOD_TENSOR);
    var.mutable_type()->mutable_lod_tensor()->mutable_tensor()->set_dims(0, vocabulary);
    declarations[dense.parameter] = std::move(var);
    SetInput(op, "W", {dense.parameter});
    made[dense.parameter] = std::move(dense);
  }
  if (vocabulary == 0 && !replaced.empty()) return InvalidConfig(NoVocabulary(replaced));
  auto* vars = program.mutable_blocks(0)->mutable_vars();
  vars->erase(
      std::remove_if(vars->begin(), vars->end(), [&](const VarDesc& var) { return replaced.contains(var.name()); }),
      vars->end());
  for (auto& [name, var] : declarations) *vars->Add() = std::move(var);
  std::vector<DenseTable> tables;
  for (auto& [name, dense] : made) tables.push_back(std::move(dense));
  return tables;
}

Status FillDenseTables(const std::vector<DenseTable>& tables, int64_t vocabulary, const Scope& root, Scope& dense,
                       const LongWork& work) {
  std::map<std::string, int64_t> found;
  for (const DenseTable& entry : tables) {
    SparseTable& table = *root.Find(entry.table)->Get<std::unique_ptr<SparseTable>>();
    float* out = dense.Var(entry.parameter)->GetMutable<Tensor>()->Resize<float>({vocabulary, table.shape().dim});
    MR_ASSIGN(const int64_t rows, CopyRows(table, entry.salt, vocabulary, work, out));
    found[entry.table] += rows;
  }
  for (const auto& [name, rows] : found) {
    const int64_t all = root.Find(name)->Get<std::unique_ptr<SparseTable>>()->stats().rows;
    if (rows == all) continue;
    return InvalidConfig("table \"" + name + "\" has " + std::to_string(all) + " rows, and " +
                         std::to_string(all - rows) + " of them are of ids that are not below vocabulary " +
                         std::to_string(vocabulary) +
                         ": raise vocabulary in this export, or map ids into it before training");
  }
  return Status::Ok();
}

}  // namespace millrace
