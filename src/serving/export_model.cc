#include "serving/export_model.h"

#include "core/edit_distance.h"
#include "core/replace_folder.h"
#include "framework/var_meta.h"
#include "serving/onnx_model.h"
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
  MR_ASSIGN(plan.tables_, ReplaceTables(desc.vocabulary(), plan.offline_.program));
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

Status ModelExport::Write(Scope& root) const {
  Scope parameters(&root);
  MR_TRY(FillDenseTables(tables_, desc_.vocabulary(), root, parameters));
  return WriteFolder(folder_, [&](const std::string& folder) { return WriteFiles(parameters, folder); });
}

Status ModelExport::WriteFiles(const Scope& parameters, const std::string& folder) const {
  if (desc_.format() == ExportDesc::ONNX) {
    MR_TRY(WriteOnnx(offline_, fetches_, *registry_, parameters, folder + "/offline.onnx"));
    return has_online_ ? WriteOnnx(online_, fetches_, *registry_, parameters, folder + "/online.onnx") : Status::Ok();
  }
  MR_TRY(WritePaddleModel(offline_, fetches_, parameters, folder, "model"));
  return has_online_ ? WritePaddleModel(online_, fetches_, parameters, folder, "online") : Status::Ok();
}

}  // namespace millrace
