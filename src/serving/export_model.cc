#include "serving/export_model.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "batch/row_of_value.h"
#include "core/edit_distance.h"
#include "program/var_meta.h"
#include "serving/onnx_model.h"
#include "serving/onnx_ops.h"
#include "serving/paddle_model.h"
#include "serving/prune.h"

namespace millrace {
namespace {

std::vector<std::string> Chosen(const google::protobuf::RepeatedPtrField<std::string>& named,
                                const std::vector<std::string>& otherwise) {
  return named.empty() ? otherwise : std::vector<std::string>(named.begin(), named.end());
}

Status CheckDeclared(const ProgramDesc& program, const char* field, const std::vector<std::string>& names) {
  std::string problems;
  for (const std::string& name : names) {
    if (FindVar(program, name) != nullptr) continue;
    std::vector<std::string_view> known;
    for (const VarDesc& var : program.blocks(0).vars()) known.push_back(var.name());
    problems += (problems.empty() ? "" : "\n") + std::string(field) + ": there is no variable \"" + name + "\"" +
                DidYouMean(name, known);
  }
  return problems.empty() ? Status::Ok() : InvalidConfig(problems);
}

/// The slots that are looked up in `tables`.
std::vector<std::string> SlotsOf(const std::vector<DenseTable>& tables, const ProgramDesc& program) {
  std::vector<std::string> slots;
  for (const OpDesc& op : program.blocks(0).ops()) {
    const std::vector<std::string> w = InputArguments(op, "W");
    const bool is_lookup = w.size() == 1 && std::any_of(tables.begin(), tables.end(), [&](const DenseTable& table) {
                             return table.parameter == w[0];
                           });
    if (!is_lookup) continue;
    for (std::string& name : InputArguments(op, "Ids")) slots.push_back(std::move(name));
  }
  return slots;
}

/// Operators specific to Millrace among those that predictions use.
constexpr std::array<std::string_view, 3> kOfMillrace = {"calibration", "gated_recurrence", "history_window"};

/// Fails for operators unknown to other runtimes: those specific to Millrace, and those of plugins.
Status CheckOwnOperators(const ProgramDesc& program, const OpRegistry& registry, ExportDesc::Format format) {
  std::string problems;
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      const OpInfo* info = registry.Find(op.type());
      const bool has_form = format == ExportDesc::ONNX && HasOnnxForm(op.type());
      const bool is_own =
          !has_form && std::find(kOfMillrace.begin(), kOfMillrace.end(), op.type()) != kOfMillrace.end();
      if (info == nullptr || (info->plugin.empty() && !is_own)) continue;
      problems += (problems.empty() ? "" : "\n") + ("operator \"" + op.type() + "\" is of ") +
                  (is_own ? "Millrace" : "plugin \"" + info->plugin + "\"") +
                  ", which other runtimes do not have: leave it out of what is predicted, or serve with predictor";
    }
  }
  return problems.empty() ? Status::Ok() : InvalidConfig(problems);
}

}  // namespace

Result<ModelExport> ModelExport::Plan(const ExportSource& source, const ExportDesc& desc, std::string folder) {
  ModelExport plan;
  plan.desc_ = desc;
  plan.folder_ = std::move(folder);
  plan.registry_ = source.registry;
  plan.fetches_ = Chosen(desc.fetch_vars(), source.predictions);
  if (plan.fetches_.empty()) {
    return InvalidConfig("fetch_vars is missing: which variables of the program are its predictions?");
  }
  const std::vector<std::string> pooled = Chosen(desc.feed_vars(), source.pooled);
  MR_TRY(CheckDeclared(*source.program, "fetch_vars", plan.fetches_));
  MR_TRY(CheckDeclared(*source.program, "feed_vars", pooled));
  const ProgramDesc forward = ForwardProgram(*source.program, *source.registry);
  MR_ASSIGN(plan.offline_, OfflineFeed(forward, plan.fetches_, *source.data_desc));
  MR_TRY(CheckOwnOperators(plan.offline_.program, *source.registry, desc.format()));
  MR_ASSIGN(plan.tables_, ReplaceTables(desc.vocabulary(), plan.offline_.program));
  plan.table_slots_ = SlotsOf(plan.tables_, plan.offline_.program);
  plan.has_online_ = !pooled.empty();
  if (plan.has_online_) {
    MR_ASSIGN(plan.online_, OnlineFeed(forward, plan.fetches_, pooled, *source.data_desc));
    MR_TRY(ReplaceTables(desc.vocabulary(), plan.online_.program).status());
  }
  if (desc.format() == ExportDesc::ONNX) {
    MR_TRY(CheckOnnx(plan.offline_, *source.registry));
    if (plan.has_online_) MR_TRY(CheckOnnx(plan.online_, *source.registry));
  }
  return plan;
}

std::string ModelExport::FindIdBeyond(const SlotBatch& batch, int* row) const {
  const auto vocabulary = static_cast<uint64_t>(desc_.vocabulary());
  for (const std::string& name : table_slots_) {
    const SlotId slot = batch.schema().Find(name);
    if (slot < 0) continue;
    const std::span<const uint64_t> ids = batch.ids(slot);
    const auto beyond = std::find_if(ids.begin(), ids.end(), [&](uint64_t id) { return id >= vocabulary; });
    if (beyond == ids.end()) continue;
    *row = RowOfValue(batch, slot, static_cast<size_t>(beyond - ids.begin()));
    return "id " + std::to_string(*beyond) + " of slot \"" + name + "\" is not below vocabulary " +
           std::to_string(vocabulary) + " of the export to " + folder_ +
           ", which holds rows by id: raise vocabulary, map ids into it (hashed ids: id % vocabulary), or leave the "
           "export out";
  }
  return "";
}

Status ModelExport::Write(Scope& root, const LongWork& work) const {
  Scope parameters(&root, Cpu());
  MR_TRY(FillDenseTables(tables_, desc_.vocabulary(), root, parameters, work));
  return WriteFolder(folder_, kExportFolder,
                     [&](const std::string& folder) { return WriteFiles(parameters, folder, work); });
}

std::set<std::string> FilesOfExport(const std::string& /*folder*/) {
  return {"offline.onnx",
          "online.onnx",
          "model.pdmodel",
          "model.pdiparams",
          "model.data_feed.prototxt",
          "online.pdmodel",
          "online.pdiparams",
          "online.data_feed.prototxt"};
}

Status ModelExport::WriteFiles(const Scope& parameters, const std::string& folder, const LongWork& work) const {
  if (desc_.format() == ExportDesc::ONNX) {
    MR_TRY(WriteOnnx(offline_, fetches_, *registry_, parameters, folder + "/offline.onnx", work));
    if (!has_online_) return Status::Ok();
    return WriteOnnx(online_, fetches_, *registry_, parameters, folder + "/online.onnx", work);
  }
  MR_TRY(WritePaddleModel(offline_, fetches_, parameters, folder, "model", work));
  return has_online_ ? WritePaddleModel(online_, fetches_, parameters, folder, "online", work) : Status::Ok();
}

}  // namespace millrace
