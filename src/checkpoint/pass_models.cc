#include "checkpoint/pass_models.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/delayed_stop.h"
#include "core/replace_folder.h"
#include "job/job_mistakes.h"
#include "report/save_progress.h"
#include "runtime/persistables.h"
#include "runtime/variable_store.h"
#include "serving/inference_model.h"
#include "table/counted_table.h"

namespace millrace {

namespace {

TableContent ContentOf(IncrementalDesc::SaveMode mode) {
  switch (mode) {
    case IncrementalDesc::BASE: return TableContent::kBase;
    case IncrementalDesc::DELTA: return TableContent::kDelta;
    case IncrementalDesc::ALL: break;
  }
  return TableContent::kWeights;
}

/// As MODEL has them.
std::vector<ModelCalibration> SavedCalibrations(const Calibrations& calibrations) {
  std::vector<ModelCalibration> all;
  for (const TaskCalibration& task : calibrations.tasks) {
    if (!task.failure.empty()) continue;
    ModelCalibration& saved = all.emplace_back();
    if (!task.loss.empty()) saved.set_loss(task.loss);
    saved.set_kind(task.is_isotonic ? "ISOTONIC" : "PLATT");
    if (task.is_isotonic) {
      saved.set_points(static_cast<int64_t>(task.fit.points.size()));
    } else {
      saved.set_slope(task.fit.slope);
      saved.set_intercept(static_cast<float>(task.fit.intercept_at_0()));
    }
    saved.set_examples(task.examples);
    saved.set_logloss_before(task.fit.before.logloss);
    saved.set_logloss_after(task.fit.after.logloss);
    saved.set_calibration_before(task.fit.before.calibration);
    saved.set_calibration_after(task.fit.after.calibration);
  }
  return all;
}

}  // namespace

const Calibrations* CalibrationsOf(const JobSession& session, int64_t step) {
  const Calibrations* const last = session.calibrations().get();
  return last != nullptr && last->step == step ? last : nullptr;
}

std::string UncalibratedText(const JobSession& session, int64_t step) {
  if (session.job().calibrations().empty()) return "";
  const Calibrations* const found = CalibrationsOf(session, step);
  if (found == nullptr) return "it was not evaluated as it is";
  std::string text;
  for (const TaskCalibration& task : found->tasks) {
    if (task.failure.empty()) continue;
    text += (text.empty() ? "" : "\n") + (task.loss.empty() ? "" : "loss \"" + task.loss + "\": ") +
            "of the evaluation's examples " + task.failure;
  }
  return text;
}

Status SaveProgramVariables(const JobSession& session, const RunState& state, const std::string& folder,
                            const std::function<void(uint64_t bytes)>& on_done) {
  const CompiledJob& job = session.job();
  return SavePersistables(job.model().main, folder, session.root(), {state.step, state.examples, job.desc().seed()},
                          ManifestFor::kTables, job.model().startup, job.workers(), on_done);
}

Status SaveJobModel(const JobSession& session, const RunState& state, TableContent content, const std::string& folder,
                    const LongWork& work) {
  const CompiledJob& job = session.job();
  if (job.model().prediction.empty()) return SaveProgramVariables(session, state, folder, work.on_done);
  MR_ASSIGN(std::shared_ptr<const CompiledModel> model, job.PaddleModel(work.stop));
  InferenceSource source;
  if (const Calibrations* const calibrations = CalibrationsOf(session, state.step); calibrations != nullptr) {
    MR_ASSIGN(model, CalibratedModel(*model, calibrations->tasks, job.environment().ops));
    source.calibrations = SavedCalibrations(*calibrations);
  }
  source.test = &model->test;
  source.startup = &job.model().startup;
  source.root = &session.root();
  source.content = content;
  DataFeedDesc data_desc = job.desc().data_desc();
  if (!session.trained_times().empty()) *data_desc.mutable_feature_states()->mutable_time() = session.trained_times();
  source.data_desc = &data_desc;
  source.prediction = model->prediction;
  source.label = model->label;
  const auto has_weights = [](const CompiledTask& task) {
    return !task.sample_weight.empty() || !task.mask.empty() || !task.class_weight.empty();
  };
  if (model->tasks.size() > 1 || std::any_of(model->tasks.begin(), model->tasks.end(), has_weights)) {
    for (const CompiledTask& task : model->tasks) {
      ModelTask& saved = source.tasks.emplace_back();
      saved.set_name(task.name);
      saved.set_prediction(task.prediction);
      saved.set_label(task.label);
      if (!task.sample_weight.empty()) saved.set_sample_weight(task.sample_weight);
      if (!task.mask.empty()) saved.set_mask(task.mask);
      saved.mutable_class_weight()->Assign(task.class_weight.begin(), task.class_weight.end());
    }
  }
  source.slot_shares = session.first_slot_shares();
  source.pooled = PooledOf(job.desc().model());
  source.seed = job.desc().seed();
  source.ops = &job.environment().ops;
  source.feeds = &job.environment().feeds;
  source.threads = job.workers();
  source.work = work;
  return SaveInferenceModel(source, folder);
}

Result<std::unique_ptr<PassModels>> PassModels::Create(const JobSession& session, std::FILE* terminal) {
  std::unique_ptr<ChildGuard> guard;
  if (!session.job().desc().incremental().save_command().empty()) {
    MR_ASSIGN(guard, ChildGuard::Create());
  }
  return std::unique_ptr<PassModels>(new PassModels(session, std::move(guard), terminal));
}

Status PassModels::SavePass(bool is_last, std::stop_token stop, RunState* state) {
  const int64_t pass = state->epoch - 1;
  const int64_t interval = job_->desc().incremental().save_interval();
  if (interval == 0 || !(is_last || (pass + 1) % interval == 0)) return Status::Ok();
  const std::string& name = job_->PassName(pass);
  const std::string models = job_->output_dir() + "/models";
  MR_TRY(MakeFolder(models));
  const std::string folder = FolderOf(name);
  {
    const GraceStop give_up(stop, kMayTakeAtStop);
    SaveProgress line("the model of pass \"" + name + "\" is being written",
                      BytesToStore(job_->model().main, session_->root()), stop, terminal_);
    MR_TRY(SaveJobModel(*session_, *state, ContentOf(job_->desc().incremental().save_mode()), folder,
                        {give_up.token(), [&line](uint64_t bytes) { line.Add(bytes); }}));
  }
  std::fprintf(terminal_, "model of pass \"%s\": %s\n", name.c_str(), folder.c_str());
  if (const std::string why = UncalibratedText(*session_, state->step); !why.empty())
    std::fprintf(terminal_, "warning: the model of pass \"%s\" is not calibrated: %s\n", name.c_str(), why.c_str());
  if (guard_ != nullptr) {
    MR_ASSIGN(std::optional<SaveFailure> failed, TryCommand(name, stop));
    if (failed.has_value()) state->save_failures.push_back(*std::move(failed));
  }
  return TellTables();
}

Status PassModels::TellTables() const {
  const TableContent content = ContentOf(job_->desc().incremental().save_mode());
  if (content == TableContent::kWeights) return Status::Ok();
  for (const TableDesc& desc : job_->model().tables) {
    if (!desc.has_accessor()) continue;
    const Variable* variable = session_->root().Find(desc.name());
    CountedTable* const table = AsCounted(variable->Get<std::unique_ptr<SparseTable>>().get());
    if (table == nullptr) {
      return InvalidConfig("incremental.save_mode: table \"" + desc.name() + "\" is of class_name \"" +
                           desc.class_name() +
                           "\", which does not know what was saved; leave class_name or save_mode out");
    }
    MR_TRY(table->WasSaved(content));
  }
  return Status::Ok();
}

Status PassModels::Retry(std::vector<SaveFailure>* failures, std::stop_token stop) {
  if (guard_ == nullptr) {
    // A job without the command asks for it no more.
    failures->clear();
    return Status::Ok();
  }
  std::vector<SaveFailure> left;
  for (size_t i = 0; i < failures->size(); ++i) {
    const std::string& name = (*failures)[i].pass;
    if (!IsPass(name)) {
      return BadData("the checkpoint tells of a failed save_command of pass \"" + name +
                     "\", which the job does not have");
    }
    std::error_code unknown;
    if (!std::filesystem::is_directory(FolderOf(name), unknown)) {
      left.push_back(
          {name, "save_command of pass \"" + name + "\": its model is no longer in \"" + FolderOf(name) + "\""});
      continue;
    }
    std::fprintf(terminal_, "save_command of pass \"%s\", which failed before: running it again\n", name.c_str());
    Result<std::optional<SaveFailure>> failed = TryCommand(name, stop);
    if (!failed.ok()) {
      left.insert(left.end(), failures->begin() + static_cast<std::ptrdiff_t>(i), failures->end());
      break;
    }
    if (failed->has_value()) left.push_back(**failed);
  }
  *failures = std::move(left);
  return Status::Ok();
}

bool PassModels::IsPass(const std::string& name) const {
  for (int64_t pass = 0; pass < job_->passes(); ++pass) {
    if (job_->PassName(pass) == name) return true;
  }
  return false;
}

Result<std::optional<SaveFailure>> PassModels::TryCommand(const std::string& name, const std::stop_token& stop) const {
  const Status done = RunCommand(FolderOf(name), name, stop);
  if (done.ok()) return std::optional<SaveFailure>();
  if (stop.stop_requested()) {
    std::fprintf(terminal_, "save_command of pass \"%s\" was stopped: the run that goes on runs it again\n",
                 name.c_str());
    return Cancelled("stopped within save_command of pass \"" + name + "\"");
  }
  SaveFailure failure{name, "save_command of pass \"" + name + "\": " + done.message()};
  std::fprintf(terminal_, "warning: %s\n", failure.message.c_str());
  return std::optional<SaveFailure>(std::move(failure));
}

Status PassModels::RunCommand(const std::string& folder, const std::string& name, const std::stop_token& stop) const {
  SubprocessOptions options;
  options.argv = ShellArgv(job_->desc().incremental().save_command(), {folder, name});
  options.label = "save_command";
  MR_ASSIGN(const std::unique_ptr<ByteSource> output, StartSubprocess(std::move(options), *guard_));
  char bytes[4096];
  while (true) {
    MR_ASSIGN(const size_t count, output->Read(bytes, stop));
    if (count == 0) return Status::Ok();
    std::fwrite(bytes, 1, count, terminal_);
  }
}

}  // namespace millrace
