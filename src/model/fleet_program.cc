#include "model/fleet_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "model/lowering.h"
#include "program/backward.h"
#include "program/ctr_accessor.h"
#include "program/model_defaults.h"
#include "program/var_meta.h"

namespace millrace {
namespace {

using Ops = google::protobuf::RepeatedPtrField<OpDesc>;

constexpr std::string_view kLookup = "distributed_lookup_table";
constexpr std::string_view kPush = "distributed_push_sparse";
constexpr std::string_view kSend = "send";
constexpr std::string_view kServe = "listen_and_serv";
/// Behind the name of a variable: the same with the counts that the program does not see.
constexpr std::string_view kWithCounts = "@COUNTED";

/// What becomes of an operator in a process that is alone.
enum class Fate : uint8_t {
  kKept,
  kRewritten,
  kDropped,   ///< it waits for others, or fetches what is here
  kIdentity,  ///< its output is its input: a sum over one worker, a broadcast to nobody
  kRefused,
};

struct Known {
  std::string_view type;
  Fate fate;
  std::string_view why = {};  ///< of a refusal: what to do
};

constexpr std::string_view kRows = "rows of a server that only pslib has; write the embedding with sparse_embedding";
constexpr std::string_view kGpu = "it keeps rows in the memory of GPUs; author the job without use_ps_gpu";

// Operators of Paddle that are for more than one process. All others are kept.
constexpr std::array kKnown = {
    Known{kLookup, Fate::kRewritten},
    Known{kPush, Fate::kRewritten},
    Known{kSend, Fate::kRewritten},
    Known{"recv_save", Fate::kRewritten},
    // Of a transpiler that cuts large parameters in blocks for several servers.
    Known{"split_byref", Fate::kDropped},
    Known{"split_selected_rows", Fate::kDropped},
    Known{"fake_init", Fate::kDropped},
    Known{"recv", Fate::kDropped},
    Known{"send_barrier", Fate::kDropped},
    Known{"fetch_barrier", Fate::kDropped},
    Known{"barrier", Fate::kDropped},
    Known{"c_comm_init", Fate::kDropped},
    Known{"c_comm_init_all", Fate::kDropped},
    Known{"c_comm_init_multitrainer", Fate::kDropped},
    Known{"c_gen_nccl_id", Fate::kDropped},
    Known{"c_gen_bkcl_id", Fate::kDropped},
    Known{"c_gen_xccl_id", Fate::kDropped},
    Known{"gen_nccl_id", Fate::kDropped},
    Known{"c_sync_calc_stream", Fate::kIdentity},
    Known{"c_sync_comm_stream", Fate::kIdentity},
    Known{"c_wait_comm", Fate::kIdentity},
    Known{"c_wait_compute", Fate::kIdentity},
    Known{"c_allreduce_sum", Fate::kIdentity},
    Known{"c_allreduce_xsum", Fate::kIdentity},
    Known{"c_allreduce_max", Fate::kIdentity},
    Known{"c_allreduce_min", Fate::kIdentity},
    Known{"c_allreduce_prod", Fate::kIdentity},
    Known{"c_broadcast", Fate::kIdentity},
    Known{kServe, Fate::kRefused,
          "it is of a server, and here the trainer keeps what servers kept; give the program of a trainer"},
    Known{"heter_listen_and_serv", Fate::kRefused,
          "a program is not cut over unlike machines; author it without heter"},
    Known{"send_and_recv", Fate::kRefused, "a program is not cut over unlike machines; author it without heter"},
    Known{"checkpoint_notify", Fate::kRefused, "checkpoint { } of the job says when it is saved"},
    Known{"pull_sparse", Fate::kRefused, kRows},
    Known{"pull_sparse_v2", Fate::kRefused, kRows},
    Known{"push_sparse", Fate::kRefused, kRows},
    Known{"push_sparse_v2", Fate::kRefused, kRows},
    Known{"push_dense", Fate::kRefused, kRows},
    Known{"pull_box_sparse", Fate::kRefused, kGpu},
    Known{"push_box_sparse", Fate::kRefused, kGpu},
    Known{"pull_gpups_sparse", Fate::kRefused, kGpu},
    Known{"push_gpups_sparse", Fate::kRefused, kGpu},
    Known{"prefetch", Fate::kRefused, "write the embedding with paddle.static.nn.embedding of Paddle 2.x"},
    Known{"c_allgather", Fate::kRefused, "gradients of sparse rows are added up by dist { } here"},
    Known{"c_reducescatter", Fate::kRefused, "parameters are not sharded over workers; author it without sharding"},
};

Known FateOf(std::string_view type) {
  const auto* const known =
      std::find_if(kKnown.begin(), kKnown.end(), [type](const Known& k) { return k.type == type; });
  return known == kKnown.end() ? Known{type, Fate::kKept} : *known;
}

int64_t IntOf(const OpDesc& op, std::string_view name, int64_t otherwise) {
  const OpDesc::Attr* attr = FindAttr(op, name);
  if (attr == nullptr) return otherwise;
  return attr->has_l() ? attr->l() : attr->i();
}

bool IsLookup(const OpDesc& op) { return op.type() == "lookup_table" || op.type() == "lookup_table_v2"; }

std::string Argument(const std::vector<std::string>& names) { return names.empty() ? "" : names[0]; }

/// The names that operators read or write.
template <class Visit>
void ForEachName(const OpDesc& op, const Visit& visit) {
  ForEachArgument(op.inputs(), visit);
  ForEachArgument(op.outputs(), visit);
}

void RemoveVars(BlockDesc& block, const std::set<std::string>& names) {
  auto* vars = block.mutable_vars();
  vars->erase(std::remove_if(vars->begin(), vars->end(), [&](const VarDesc& v) { return names.contains(v.name()); }),
              vars->end());
}

std::set<std::string> Persistables(const BlockDesc& block) {
  std::set<std::string> names;
  for (const VarDesc& var : block.vars()) {
    if (var.persistable()) names.insert(var.name());
  }
  return names;
}

/// The parameter that a gradient is of.
std::string ParameterOf(const std::string& grad) { return grad.substr(0, grad.find("@GRAD")); }

/// Rewrites the first blocks of both programs. Made for one call of Run.
class Rewriter {
 public:
  Rewriter(const ModelDesc& model, const OpRegistry& registry, CompiledModel* program)
      : model_(model),
        registry_(registry),
        program_(*program),
        main_(*program->main.mutable_blocks(0)),
        startup_(*program->startup.mutable_blocks(0)) {}

  Status Run(const SlotSchema& schema, const ModelParts& parts, std::vector<ConfigMistake>* mistakes) {
    Look();
    const std::set<std::string> before = Persistables(main_);
    Ops ops;
    ops.Swap(main_.mutable_ops());
    ClearStartup();
    RemoveTables();
    MR_ASSIGN(BlockBuilder main, BlockBuilder::Create(main_, registry_));
    MR_ASSIGN(BlockBuilder startup, BlockBuilder::Create(startup_, registry_));
    Lowering lowering(model_, schema, parts, ModelForm::kPaddle, std::move(main), std::move(startup));
    lowering_ = &lowering;
    lowering.set_state_names([this](const std::string& stem) { return FreeName(*lowering_, stem); });
    DeclareTables();
    if (problems_.empty() && lowering.mistakes().empty()) {
      for (OpDesc& op : ops) Rewrite(op);
      JoinGradients();
      FindUnsent();
      CheckCounts(lowering, program_.main);
      Update();
    }
    RemoveUnused();
    *mistakes = lowering.mistakes();
    if (!problems_.empty()) return Failure();
    program_.tables = lowering.tables();
    for (const auto& [id, name] : names_of_ids_) {
      if (id >= 0) program_.server_tables.push_back({id, true, {name}});
    }
    for (const std::string& name : Persistables(main_)) {
      if (!before.contains(name) || tables_.contains(name)) program_.of_servers.push_back(name);
    }
    return Status::Ok();
  }

 private:
  /// A table of the model, and what the program has of it.
  struct Table {
    const TableDesc* desc = nullptr;
    std::string lookup;                          ///< the type of its lookups
    std::vector<std::string> gradients;          ///< of what distributed_push_sparse sends
    size_t pushes = 0;                           ///< how many there are
    std::string updated_by;                      ///< the gradient that an update of the program reads
    std::map<std::string, std::string> counted;  ///< by ids: the rows that were looked up, with counts that are hidden

    bool counts() const { return desc->has_accessor(); }
    /// A lookup of the program has less of a row than its table.
    bool hides_counts() const { return counts() && HidesCounts(desc->accessor()); }
    int width() const { return DimOf(*desc) - (hides_counts() ? 2 : 0); }
  };

  static std::string FreeName(Lowering& lowering, const std::string& stem) {
    for (int number = 0;; ++number) {
      std::string name = stem + "_" + std::to_string(number);
      if (!lowering.root().Has(name) && !lowering.startup().Has(name)) return name;
    }
  }

  void Problem(const OpDesc& op, const std::string& what) {
    std::string line = "operator " + op.type() + ": " + what;
    if (std::find(problems_.begin(), problems_.end(), line) == problems_.end()) problems_.push_back(std::move(line));
  }

  Status Failure() const {
    std::string text;
    for (const std::string& problem : problems_) text += (text.empty() ? "" : "\n") + problem;
    return InvalidConfig(text);
  }

  /// Finds what the operators say of tables, parameters and workers, and what is refused.
  void Look() {
    for (const TableDesc& table : model_.table()) tables_[table.name()].desc = &table;
    for (const ProgramDesc* program : {&program_.main, &program_.startup}) {
      for (const BlockDesc& block : program->blocks()) {
        for (const OpDesc& op : block.ops()) {
          const Known known = FateOf(op.type());
          if (known.fate == Fate::kRefused) {
            Problem(op, "is not run here: " + std::string(known.why));
          } else if (known.fate != Fate::kKept && block.idx() != 0) {
            Problem(op, "stands in a block of a loop or a condition, where its update would not be seen");
          }
        }
      }
    }
    for (const BlockDesc* block : {&main_, &startup_}) {
      for (const OpDesc& op : block->ops()) {
        if (op.type() != "recv") continue;
        for (const std::string& name : OutputArguments(op, "Out")) received_.insert(name);
      }
    }
    for (const OpDesc& op : main_.ops()) {
      if (op.type() == kLookup || IsLookup(op)) LookAtLookup(op);
      const OpInfo* info = registry_.Find(op.type());
      if (info != nullptr && info->is_optimizer) LookAtUpdate(op);
      sums_over_workers_ = sums_over_workers_ || op.type() == "c_allreduce_sum";
      if (IntOf(op, "op_role", 0) == static_cast<int64_t>(OpRole::kLossGradient)) {
        loss_gradient_ = Argument(OutputArguments(op, "Out"));
      }
    }
    for (const OpDesc& op : main_.ops()) {
      if (op.type() == kPush) LookAtPush(op);
      if (op.type() == "fill_constant") {
        const OpDesc::Attr* value = FindAttr(op, "value");
        constants_[Argument(OutputArguments(op, "Out"))] = value == nullptr ? 0.0F : value->f();
      }
    }
    for (const OpDesc& op : main_.ops()) {
      if (op.type() != kPush) ForEachArgument(op.inputs(), [this](const std::string& name) { counts_.erase(name); });
    }
  }

  void LookAtUpdate(const OpDesc& op) {
    const std::string param = Argument(InputArguments(op, "Param"));
    updated_.insert(param);
    if (!tables_.contains(param)) return;
    ForEachArgument(op.outputs(), [&](const std::string& name) {
      if (name != param) table_states_.insert(name);
    });
  }

  void LookAtPush(const OpDesc& op) {
    const auto id = names_of_ids_.find(IntOf(op, "table_id", -1));
    if (id != names_of_ids_.end()) tables_[id->second].pushes += InputArguments(op, "Ids").size();
    for (const char* counts : {"Shows", "Clicks"}) {
      for (const std::string& name : InputArguments(op, counts)) counts_.insert(name);
    }
  }

  void LookAtLookup(const OpDesc& op) {
    const std::string name = Argument(InputArguments(op, "W"));
    const auto found = tables_.find(name);
    if (op.type() != kLookup) {
      if (found != tables_.end()) NoteLookup(op, found->second, name, op.type());
      return;
    }
    if (found == tables_.end()) {
      Problem(op, "nothing says how the rows of \"" + name + "\" start and learn: add table { name: \"" + name +
                      "\" dim: ... optimizer { ... } } to the job's model beside program, or save the job by "
                      "export_from_paddle.py, which writes it");
      return;
    }
    names_of_ids_[IntOf(op, "table_id", -1)] = name;
    const OpDesc::Attr* version = FindAttr(op, "lookup_table_version");
    const std::string lookup = version == nullptr ? "lookup_table" : version->s();
    if (lookup != "lookup_table" && lookup != "lookup_table_v2") {
      return Problem(op, "lookup_table_version \"" + lookup + "\" is neither lookup_table nor lookup_table_v2");
    }
    NoteLookup(op, found->second, name, lookup);
  }

  void NoteLookup(const OpDesc& op, Table& table, const std::string& name, const std::string& lookup) {
    if (!table.lookup.empty() && table.lookup != lookup) {
      Problem(op, "\"" + name + "\" is looked up as a " + table.lookup + " and as a " + lookup + "; use one of them");
    }
    table.lookup = lookup;
    if (table.hides_counts() && op.type() != kLookup) {
      Problem(op, "\"" + name +
                      "\" has a SparseAccessor, which only rows that are looked up on servers have "
                      "(distributed_lookup_table); give its table an optimizer");
    }
    for (const VarDesc& var : main_.vars()) {
      if (var.name() != name) continue;
      const bool is_rows = var.type().type() == VarType::SELECTED_ROWS;
      const auto& dims = (is_rows ? var.type().selected_rows() : var.type().lod_tensor().tensor()).dims();
      if (dims.size() == 2 && dims[1] == table.width()) continue;
      const std::string says = table.counts() ? "the accessor of model.table says " : "model.table says dim: ";
      Problem(op, "\"" + name + "\" has rows of " + std::to_string(dims.empty() ? 0 : dims[dims.size() - 1]) +
                      " values, and " + says + std::to_string(table.width()));
    }
  }

  /// Leaves of the startup program what makes parameters of this process.
  void ClearStartup() {
    Ops kept;
    for (OpDesc& op : *startup_.mutable_ops()) {
      const Fate fate = FateOf(op.type()).fate;
      bool is_of_table = false;
      ForEachArgument(op.outputs(),
                      [&](const std::string& name) { is_of_table = is_of_table || IsStateOfTable(name); });
      if (fate == Fate::kIdentity && InputArguments(op, "X") != OutputArguments(op, "Out")) {
        Problem(op, "gives another variable than it takes in program.startup");
      } else if (fate == Fate::kKept && !is_of_table && !JoinsBlocks(op)) {
        *kept.Add() = std::move(op);
      } else {
        Unread(op);
      }
    }
    startup_.mutable_ops()->Swap(&kept);
  }

  /// Whether a variable is a table of the model, or what an update that goes with it keeps.
  bool IsStateOfTable(const std::string& name) const { return tables_.contains(name) || table_states_.contains(name); }

  /// Whether an operator joins blocks of a parameter that came from servers: here it was never cut.
  bool JoinsBlocks(const OpDesc& op) const {
    const std::vector<std::string> parts = InputArguments(op, "X");
    return op.type() == "concat" && !parts.empty() &&
           std::all_of(parts.begin(), parts.end(), [this](const std::string& name) {
             return received_.contains(name) && name.find(".block") != std::string::npos;
           });
  }

  void RemoveTables() {
    std::set<std::string> names;
    for (const auto& [name, table] : tables_) {
      names.insert(name);
      if (table.pushes > 0) names.insert(GradName(name));
    }
    for (BlockDesc* block : {&main_, &startup_}) RemoveVars(*block, names);
  }

  void DeclareTables() {
    CheckTables(*lowering_);
    for (int i = 0; i < model_.table_size(); ++i) {
      const std::string& name = model_.table(i).name();
      lowering_->Enter("model.table[" + std::to_string(i) + "]");
      if (tables_[name].lookup.empty()) {
        lowering_->Problem("table \"" + name + "\"", "name: no operator of program.main looks up rows of it");
      } else {
        lowering_->AddTable(model_.table(i));
      }
    }
  }

  void Keep(OpDesc& op) { *main_.add_ops() = std::move(op); }

  void Append(const OpDesc& of, OpDesc op, OpRole role) {
    const Status status = lowering_->main().Append(std::move(op), role);
    if (!status.ok()) Problem(of, status.message());
  }

  /// What an operator that goes named may be nobody's.
  void Unread(const OpDesc& op) {
    ForEachName(op, [this](const std::string& name) { maybe_unused_.insert(name); });
  }

  void Rewrite(OpDesc& op) {
    switch (FateOf(op.type()).fate) {
      case Fate::kRewritten: break;
      case Fate::kRefused: return;
      case Fate::kDropped: return Unread(op);
      case Fate::kIdentity: return Identity(op);
      case Fate::kKept: return Authored(op);
    }
    if (op.type() == kLookup) return Lookup(op);
    if (op.type() == "recv_save") return Save(op);
    op.type() == kPush ? Push(op) : Send(op);
    Unread(op);
  }

  void Identity(const OpDesc& op) {
    const std::vector<std::string> in = InputArguments(op, "X");
    const std::vector<std::string> out = OutputArguments(op, "Out");
    if (in.size() != out.size()) return Problem(op, "has not as many outputs as inputs");
    if (op.type() == "c_allreduce_sum") summed_.insert(out.begin(), out.end());
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i] != out[i]) Append(op, MakeOp("assign", {{"X", {in[i]}}}, {{"Out", {out[i]}}}), OpRole::kForward);
    }
  }

  /// An operator of the author's, or of the updates that stayed.
  void Authored(OpDesc& op) {
    const std::string out = Argument(OutputArguments(op, "Out"));
    if (DividesForWorkers(op, out) || JoinsBlocks(op)) return Unread(op);
    const auto pushed = tables_.find(ParameterOf(out));
    if (op.type() == "sum" && pushed != tables_.end() && pushed->second.pushes > 0 && out == GradName(pushed->first)) {
      return Unread(op);  // of gradients that were taken away
    }
    if (op.type() == "fill_constant" && counts_.contains(out)) return Unread(op);
    const auto param = tables_.find(Argument(InputArguments(op, "Param")));
    if (param == tables_.end()) {
      const std::string* const rows = PushedRowsReadBy(op);
      if (rows == nullptr) return Keep(op);
      Problem(op, "reads the gradient of \"" + *rows +
                      "\", whose rows learn on servers, by what each worker pushes: rows of servers cannot be clipped "
                      "or penalized; give their embedding ParamAttr(need_clip=False) and no regularizer");
      return Unread(op);
    }
    param->second.updated_by = Argument(InputArguments(op, "Grad"));
    Unread(op);
  }

  /// The rows that the program pushes to servers, and whose gradient an operator reads, as a clip by the norm of all
  /// gradients does; null: none.
  const std::string* PushedRowsReadBy(const OpDesc& op) const {
    const std::string* rows = nullptr;
    ForEachArgument(op.inputs(), [&](const std::string& name) {
      const auto table = tables_.find(ParameterOf(name));
      if (table != tables_.end() && table->second.pushes > 0 && name == GradName(table->first)) rows = &table->first;
    });
    return rows;
  }

  /// Whether an operator makes a mean of a sum over workers, before or behind it.
  bool DividesForWorkers(const OpDesc& op, const std::string& out) const {
    if (op.type() != "scale" || Argument(InputArguments(op, "X")) != out) return false;
    const OpDesc::Attr* factor = FindAttr(op, "scale");
    const OpDesc::Attr* bias = FindAttr(op, "bias");
    if (factor == nullptr || factor->f() >= 1 || (bias != nullptr && bias->f() != 0)) return false;
    return summed_.contains(out) || (sums_over_workers_ && !loss_gradient_.empty() && out == loss_gradient_);
  }

  /// A parameter's file, which servers would write.
  void Save(const OpDesc& op) {
    const OpDesc::Attr* path = FindAttr(op, "file_path");
    const std::string file = path == nullptr ? "" : path->s();
    const std::string name = file.substr(file.rfind('/') + 1);
    if (!lowering_->root().Has(name)) return Problem(op, "no variable of the program has the name of \"" + file + "\"");
    Append(op, MakeOp("save", {{"X", {name}}}, {}, {{"file_path", file}, {"overwrite", true}}), OpRole::kForward);
  }

  void Lookup(const OpDesc& op) {
    const std::string name = Argument(InputArguments(op, "W"));
    const std::vector<std::string> ids = InputArguments(op, "Ids");
    const std::vector<std::string> out = OutputArguments(op, "Outputs");
    if (ids.size() != out.size()) return Problem(op, "has not as many Outputs as Ids");
    Table& table = tables_[name];
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string rows = table.hides_counts() ? out[i] + std::string(kWithCounts) : out[i];
      Append(op,
             MakeOp(table.lookup, {{"Ids", {ids[i]}}, {"W", {name}}}, {{"Out", {rows}}},
                    {{"padding_idx", IntOf(op, "padding_idx", -1)}, {"is_sparse", true}}),
             OpRole::kForward);
      if (!table.hides_counts()) continue;
      table.counted[ids[i]] = rows;
      const auto looked_up = lowering_->root().vars().find(rows);
      if (looked_up == lowering_->root().vars().end()) continue;  // what is wrong with it was told
      // What cvm does without counts; Paddle's cvm, in a model that is exported, would want some.
      Append(op,
             MakeOp("slice", {{"Input", {rows}}}, {{"Out", {out[i]}}},
                    {{"axes", std::vector<int64_t>{looked_up->second.dims.rank() - 1}},
                     {"starts", std::vector<int64_t>{2}},
                     {"ends", std::vector<int64_t>{DimOf(*table.desc)}}}),
             OpRole::kForward);
    }
  }

  void Push(const OpDesc& op) {
    const auto found = names_of_ids_.find(IntOf(op, "table_id", -1));
    if (found == names_of_ids_.end()) return Problem(op, "no distributed_lookup_table has its table_id");
    const std::string& name = found->second;
    CheckShown(op, name);
    const std::vector<std::string> ids = InputArguments(op, "Ids");
    const std::vector<std::string> of = OutputArguments(op, "Outputs");
    if (ids.size() != of.size()) return Problem(op, "has not as many Outputs as Ids");
    Table& table = tables_[name];
    const std::string counts = table.hides_counts() && !ids.empty() ? CountsOf(op, ids[0]) : "";
    for (size_t i = 0; i < ids.size(); ++i) {
      std::string rows_grad = of[i];
      if (table.hides_counts()) {
        rows_grad += kWithCounts;
        Append(op,
               MakeOp("cvm_grad", {{"X", {table.counted[ids[i]]}}, {"CVM", {counts}}, {"Y@GRAD", {of[i]}}},
                      {{"X@GRAD", {rows_grad}}}, {{"use_cvm", false}}),
               OpRole::kBackward);
      }
      const std::string part = table.pushes > 1 ? "@PART@" + std::to_string(table.gradients.size()) : "";
      const std::string grad = GradName(name) + part;
      Append(op,
             MakeOp(table.lookup + "_grad", {{"Ids", {ids[i]}}, {"W", {name}}, {"Out@GRAD", {rows_grad}}},
                    {{"W@GRAD", {grad}}}, {{"padding_idx", IntOf(op, "padding_idx", -1)}, {"is_sparse", true}}),
             OpRole::kBackward);
      table.gradients.push_back(grad);
    }
  }

  /// Whether the rows of a table show counts, and whether a push counts, as the program takes it.
  void CheckShown(const OpDesc& op, const std::string& name) {
    const Table& table = tables_[name];
    const OpDesc::Attr* use_cvm = FindAttr(op, "use_cvm_op");
    const bool shows = use_cvm != nullptr && use_cvm->b();
    if (shows && (!table.counts() || table.hides_counts())) {
      Problem(op, "use_cvm_op: rows of \"" + name +
                      "\" show counts of shows and clicks to the program, and model.table none: give it accessor { "
                      "accessor_class: \"CtrCommonAccessor\" } in place of dim, init and optimizer");
    }
    if (table.counts()) return;
    for (const char* counts : {"Shows", "Clicks"}) {
      const std::string from = Argument(InputArguments(op, counts));
      if (from.empty() || constants_.contains(from)) continue;
      Problem(op, std::string(counts) + ": \"" + from + "\" counts for rows of \"" + name +
                      "\", and model.table counts nothing: give it accessor { accessor_class: \"SparseAccessor\" } in "
                      "place of dim, init and optimizer");
    }
  }

  /// Shows and clicks of each example, [batch, 2], as a push has them.
  std::string CountsOf(const OpDesc& op, const std::string& ids) {
    std::string counts = ids + "@COUNTS@" + std::to_string(IntOf(op, "table_id", 0));
    const std::vector<std::string> both = {CountOf(op, "Shows", ids, counts + "@SHOW"),
                                           CountOf(op, "Clicks", ids, counts + "@CLICK")};
    Append(op, MakeOp("concat", {{"X", both}}, {{"Out", {counts}}}, {{"axis", int64_t{1}}}), OpRole::kBackward);
    return counts;
  }

  /// One of them as floats [batch, 1]: a variable of the program, or what fill_constant would make for one example.
  std::string CountOf(const OpDesc& op, const char* which, const std::string& ids, const std::string& as) {
    std::string from = Argument(InputArguments(op, which));
    const auto type = static_cast<int64_t>(VarType::FP32);
    const auto constant = constants_.find(from);
    if (constant != constants_.end()) {
      Append(op,
             MakeOp("fill_constant_batch_size_like", {{"Input", {ids}}}, {{"Out", {as}}},
                    {{"shape", std::vector<int64_t>{-1, 1}}, {"dtype", type}, {"value", constant->second}}),
             OpRole::kBackward);
      return as;
    }
    const auto var = lowering_->root().vars().find(from);
    if (var == lowering_->root().vars().end()) {
      Problem(op, std::string(which) + ": the program has no variable \"" + from + "\"");
      return from;
    }
    if (var->second.dtype == DType::kFloat32) return from;
    const auto in = static_cast<int64_t>(ToVarType(var->second.dtype));
    Append(op, MakeOp("cast", {{"X", {from}}}, {{"Out", {as}}}, {{"in_dtype", in}, {"out_dtype", type}}),
           OpRole::kBackward);
    return as;
  }

  void Send(const OpDesc& op) {
    const std::vector<std::string> sent = InputArguments(op, "X");
    ServerTable table{IntOf(op, "table_id", -1), false, {}};
    if (sent.empty()) {
      Problem(op,
              "sends no variable: its server counts steps for a schedule of the learning rate; give the job's "
              "model.optimizer { schedule { ... } } and author it with a constant rate");
    }
    const VarMetas& vars = lowering_->root().vars();
    for (const std::string& name : sent) {
      const std::string param = ParameterOf(name);
      if (updated_.contains(param) || tables_.contains(param)) continue;
      // A transpiler sends large ones in blocks, for several servers.
      const std::string grad = GradName(param);
      const auto var = vars.find(param);
      if (var == vars.end() || !var->second.persistable || name == param || !vars.contains(grad)) {
        Problem(op, "\"" + name + "\" is not the gradient of a parameter of the program");
      } else if (sent_.insert(param).second) {
        gradients_.push_back({param, grad});
        table.variables.push_back(param);
      }
    }
    if (table.id >= 0 && !table.variables.empty()) program_.server_tables.push_back(std::move(table));
  }

  /// One gradient for each table.
  void JoinGradients() {
    const VarMetas& vars = lowering_->root().vars();
    for (auto& [name, table] : tables_) {
      if (table.gradients.empty()) {
        // Of pslib, whose workers push what the program leaves.
        const std::string grad = table.updated_by.empty() ? GradName(name) : table.updated_by;
        if (vars.contains(grad)) gradients_.push_back({name, grad});
        continue;
      }
      std::string grad = table.gradients[0];
      if (table.gradients.size() > 1) {
        grad = GradName(name);
        OpDesc sum = MakeOp("sum", {{"X", table.gradients}}, {{"Out", {grad}}});
        Append(sum, sum, OpRole::kBackward);
      }
      gradients_.push_back({name, grad});
    }
  }

  /// The dense parameters of a program of pslib, which has neither updates nor sends.
  void FindUnsent() {
    if (!model_.has_optimizer() || !updated_.empty() || !sent_.empty()) return;
    for (const VarDesc& var : main_.vars()) {
      const std::string grad = GradName(var.name());
      const bool is_dense = var.is_parameter() && !tables_.contains(var.name());
      if (is_dense && lowering_->root().Has(grad)) gradients_.push_back({var.name(), grad});
    }
  }

  void Update() {
    if (!gradients_.empty()) {
      CheckOptimizers(*lowering_);
      if (lowering_->mistakes().empty()) AppendUpdates(*lowering_, gradients_);
    } else if (model_.has_optimizer()) {
      lowering_->Enter("model.optimizer");
      lowering_->Problem("optimizer", "program.main leaves no update to servers; it has its own: leave optimizer out");
    }
  }

  /// Takes out variables that only operators named which are gone.
  void RemoveUnused() {
    for (BlockDesc* block : {&main_, &startup_}) {
      ProgramDesc& program = block == &main_ ? program_.main : program_.startup;
      std::set<std::string> unused = maybe_unused_;
      for (const BlockDesc& any : program.blocks()) {
        for (const OpDesc& op : any.ops()) {
          ForEachName(op, [&unused](const std::string& name) { unused.erase(name); });
        }
      }
      RemoveVars(*block, unused);
    }
  }

  const ModelDesc& model_;
  const OpRegistry& registry_;
  CompiledModel& program_;
  BlockDesc& main_;
  BlockDesc& startup_;
  Lowering* lowering_ = nullptr;
  std::vector<std::string> problems_;
  std::map<std::string, Table> tables_;
  std::map<int64_t, std::string> names_of_ids_;
  std::set<std::string> updated_;           ///< parameters with an update in the program
  std::set<std::string> table_states_;      ///< what updates of tables keep beside them
  std::set<std::string> counts_;            ///< of shows and clicks, which nothing else reads
  std::map<std::string, float> constants_;  ///< what fill_constant makes
  std::set<std::string> received_;          ///< from servers
  std::set<std::string> summed_;            ///< over workers, by operators that were met so far
  std::set<std::string> maybe_unused_;
  std::string loss_gradient_;
  bool sums_over_workers_ = false;
  std::set<std::string> sent_;
  std::vector<ParamGrad> gradients_;
};

}  // namespace

bool IsOfFleet(const ProgramDesc& program) {
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      if (FateOf(op.type()).fate != Fate::kKept) return true;
    }
  }
  return false;
}

bool IsOfServer(const ProgramDesc& program) {
  return program.blocks_size() > 0 && program.blocks(0).ops_size() == 1 && program.blocks(0).ops(0).type() == kServe;
}

Status TakeOverFromServers(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry,
                           const ModelParts& parts, CompiledModel* program, std::vector<ConfigMistake>* mistakes) {
  if (program->main.blocks().empty()) return Status::Ok();  // what it lacks is told when it is compiled
  if (program->startup.blocks().empty()) FirstBlock(program->startup);
  return Rewriter(model, registry, program).Run(schema, parts, mistakes);
}

}  // namespace millrace
