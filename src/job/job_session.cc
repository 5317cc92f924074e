#include "job/job_session.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/caught.h"
#include "datafeed/bad_lines.h"
#include "dataset/incremental_dataset.h"
#include "job/job_mistakes.h"
#include "job/run_hooks.h"
#include "job/server_tables.h"
#include "model.pb.h"
#include "program/program_files.h"
#include "runtime/persistables.h"
#include "table/table_factory.h"

namespace millrace {
namespace {

UpdateMode ToUpdateMode(TrainerDesc::UpdateMode mode) {
  switch (mode) {
    case TrainerDesc::HOGWILD: return UpdateMode::kHogwild;
    case TrainerDesc::ROW_LOCK: return UpdateMode::kRowLock;
    case TrainerDesc::SERIAL: return UpdateMode::kSerial;
  }
  return UpdateMode::kSerial;
}

/// One worker has nobody to lock rows against, but for the sections of a pipeline.
bool LocksRows(const CompiledJob& job) {
  return job.desc().update_mode() == TrainerDesc::ROW_LOCK && (job.workers() > 1 || job.pipeline() != nullptr);
}

/// Variables that are to be kept, and that no operator of the job ever gives a value: a checkpoint could not be
/// written.
Status CheckKept(const ProgramDesc& program, const Scope& root) {
  const std::set<std::string> written = WrittenPersistables(program);
  std::string unmade;
  for (const VarDesc& var : program.blocks(0).vars()) {
    const VarType::Type kind = var.type().type();
    const bool kept = var.persistable() && (kind == VarType::LOD_TENSOR || kind == VarType::SPARSE_TABLE);
    if (!kept || written.contains(var.name())) continue;
    const Variable* variable = root.Find(var.name());
    const bool has_value =
        variable != nullptr && !variable->empty() && !(variable->Is<Tensor>() && variable->Get<Tensor>().empty());
    if (!has_value) unmade += (unmade.empty() ? "\"" : ", \"") + var.name() + "\"";
  }
  if (unmade.empty()) return Status::Ok();
  return InvalidConfig("persistable variables that nothing gives a value: " + unmade +
                       "; the startup program is to write them, or program.main not to declare them persistable");
}

/// A dataset of a plugin says itself which slots its batches have; the job was compiled for those of data_desc.
Status CheckSlots(const SlotSchema& compiled, const SlotSchema& given) {
  const auto is_same = [](const SlotSpec& a, const SlotSpec& b) {
    return a.name == b.name && a.type == b.type && a.is_dense == b.is_dense && a.width == b.width;
  };
  if (std::equal(compiled.used().begin(), compiled.used().end(), given.used().begin(), given.used().end(), is_same)) {
    return Status::Ok();
  }
  return InvalidConfig(
      "dataset.class_name: the dataset's batches have other slots than data_desc says; a dataset makes its schema by "
      "SlotSchema::Create of the data_desc that it is given");
}

/// How ranks shuffle the rows of all (DatasetDesc.global_shuffle).
Result<RowShuffle> ShuffleOf(const CompiledJob& job, int streams, RankGroup& ranks) {
  const TrainerDesc& desc = job.desc();
  const DatasetDesc& dataset = desc.dataset();
  RowShuffle shuffle;
  shuffle.ranks = &ranks;
  shuffle.targets.seed = desc.seed();
  shuffle.targets.streams = streams;
  shuffle.most_rows = dataset.fleet_send_batch_size();
  shuffle.pause_of_rounds = std::chrono::seconds(dataset.fleet_send_sleep_seconds());
  if (dataset.merge_by_lineid()) shuffle.targets.by = RowTargets::By::kName;
  if (!dataset.shuffle_by_uid()) return shuffle;
  const std::string& uid = desc.data_desc().multi_slot_desc().uid_slot();
  const SlotId slot = job.schema().Find(uid);
  if (slot < 0 || job.schema().used()[static_cast<size_t>(slot)].type != SlotType::kUint64) {
    return InvalidConfig(
        "data_desc.multi_slot_desc.uid_slot: ranks that shuffle by users read them from a slot of ids "
        "that is used; slot \"" +
        uid + "\" is none: is_used: true type: \"uint64\"");
  }
  shuffle.targets.by = RowTargets::By::kUid;
  shuffle.targets.uid_slot = slot;
  return shuffle;
}

/// A program's variables but these: a folder that Paddle wrote has none of them.
ProgramDesc WithoutVariables(const ProgramDesc& program, const std::vector<std::string>& names) {
  ProgramDesc rest;
  BlockDesc& block = *rest.add_blocks();
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (std::find(names.begin(), names.end(), var.name()) == names.end()) *block.add_vars() = var;
  }
  return rest;
}

/// The labels that the model's losses read; of a program none.
std::vector<std::string> LabelsOf(const TrainerDesc& desc) {
  std::vector<std::string> labels;
  if (desc.has_program()) return labels;
  for (const LossDesc& loss : desc.model().loss()) labels.push_back(loss.label());
  return labels;
}

}  // namespace

Result<std::unique_ptr<JobSession>> JobSession::Create(std::shared_ptr<const CompiledJob> job,
                                                       const SessionInputs& inputs, const std::stop_token& stop) {
  std::unique_ptr<JobSession> session(new JobSession(std::move(job), inputs));
  if (session->job().is_dist()) {
    if (inputs.dataset != nullptr && session->job().trains_in_step()) {
      return InvalidConfig(
          "dist.update: SYNC: not supported yet: an InMemoryDataset that was loaded before, whose rows are in no "
          "streams; "
          "train it with update: ASYNC, or a QueueDataset in step");
    }
    MR_TRY(session->JoinRanks());
  }
  if (session->job().feeds_itself()) return session;
  MR_TRY(session->BuildDatasets(stop));
  MR_TRY(Caught("the slots of the dataset",
                [&] { return CheckSlots(session->job().schema(), session->dataset().schema()); }));
  return session;
}

JobSession::JobSession(std::shared_ptr<const CompiledJob> job, const SessionInputs& inputs)
    : job_(std::move(job)),
      fetch_handler_(inputs.fetch_handler),
      label_monitor_(LabelsOf(job_->desc())),
      trained_times_(job_->desc().data_desc().feature_states().time()),
      row_locks_(LocksRows(*job_) ? std::make_unique<RowLocks>() : nullptr),
      spans_(job_->desc().output().trace() && !job_->feeds_itself() ? std::make_unique<SpanLog>() : nullptr),
      own_ranks_(inputs.ranks == nullptr ? RankGroup::Solo() : nullptr),
      ranks_(own_ranks_ == nullptr ? inputs.ranks : own_ranks_.get()),
      tables_(job_->environment().tables),
      root_(inputs.root),
      dataset_(inputs.dataset) {}

Status JobSession::SetServers() {
  const int servers = job_->rank_servers(ranks_->size());
  if (servers >= ranks_->size()) {
    return InvalidConfig("dist.servers: " + std::to_string(servers) + " of " + std::to_string(ranks_->size()) +
                         " ranks serve, and none trains; start more ranks, or make servers less");
  }
  if (servers > 0 && root_ != nullptr) {
    return InvalidConfig(
        "dist.mode: not supported yet: SPLIT with parameters that were made before the job; leave it out");
  }
  return ranks_->tables().SetServers(servers);
}

Status CheckRanksOfStep(const TrainerDesc& desc, int ranks) {
  const int trainers = ranks - RankServers(desc, ranks);
  const int batches = MicroBatches(desc);
  if (!TrainsInStep(desc) || trainers <= batches) return Status::Ok();
  return InvalidConfig("dist.micro_batches: a step of " + std::to_string(batches) + " batches has none for some of " +
                       std::to_string(trainers) + " ranks that train; start at most " + std::to_string(batches) +
                       ", or make micro_batches a multiple of the ranks");
}

Status JobSession::JoinRanks() {
  MR_TRY(SetServers());
  MR_TRY(CheckRanksOfStep(job_->desc(), ranks_->size()));
  rank_files_ = std::make_unique<RankFileQueue>(ranks_->calls(), ranks_->trainers());
  const RankTableOptions options{job_->wire_float(), static_cast<size_t>(job_->workers()), job_->geo_steps()};
  tables_ = RankTableFactory(tables_, ranks_->tables(), options);
  if (root_ == nullptr || ranks_->size() == 1) return Status::Ok();
  for (const VarDesc& var : job_->model().main.blocks(0).vars()) {
    Variable* const holder = var.type().type() == VarType::SPARSE_TABLE ? root_->Find(var.name()) : nullptr;
    if (holder == nullptr || !holder->Is<std::unique_ptr<SparseTable>>()) continue;
    MR_ASSIGN(const bool is_of_ranks, SetRankTableOptions(*holder->Get<std::unique_ptr<SparseTable>>(), options));
    if (is_of_ranks) continue;
    return InvalidConfig("table \"" + var.name() +
                         "\" has all its rows on each rank, as tables of a loaded model do; ranks train one that the "
                         "startup program made, or load_persistables");
  }
  return Status::Ok();
}

int JobSession::sources() const {
  return job_->trains_in_step() ? ranks_->ShareOf(job_->rank_micro_batches()).second : job_->workers();
}

int JobSession::InputStreams(int64_t pass) const {
  if (job_->trains_in_step()) return job_->rank_micro_batches();
  const bool is_set = input_streams_ > 0 && (pass_of_streams_ == kAnyPass || pass == pass_of_streams_);
  return is_set ? input_streams_ : ranks_->trainers();
}

Status JobSession::SetInputStreams(int64_t pass, int streams) {
  if (own_dataset_ == nullptr || streams == InputStreams(pass)) return Status::Ok();
  input_streams_ = streams;
  pass_of_streams_ = job_->is_incremental() ? pass : kAnyPass;
  MR_ASSIGN(own_dataset_, MakeDataset(SettingsOfDataset()));
  dataset_ = own_dataset_.get();
  return Status::Ok();
}

int JobSession::EvalStreams() const {
  if (!job_->trains_in_step() || ranks_->serves()) return 0;
  return job_->desc().dataset().merge_by_lineid() ? (ranks_->leads() ? 1 : 0) : OwnStreams(kAnyPass).count;
}

bool JobSession::TakesFiles() const {
  return job_->is_dist() && !job_->trains_in_step() && job_->desc().dataset().class_name() == "QueueDataset";
}

StreamShare JobSession::OwnStreams(int64_t pass) const {
  StreamShare share;
  share.streams = InputStreams(pass);
  std::tie(share.first, share.count) = ranks_->ShareOf(share.streams);
  share.workers = job_->trains_in_step() ? 0 : job_->workers();
  share.in_memory = job_->desc().dataset().class_name() == "InMemoryDataset";
  return share;
}

Result<std::unique_ptr<Dataset>> JobSession::MakeDataset(const DatasetSettings& settings) const {
  const CompiledJob& job = *job_;
  const auto make = [this, settings](int64_t pass, std::vector<std::string> files) {
    return MakeDatasetOfPass(pass, std::move(files), settings);
  };
  if (!job.is_incremental()) return make(kAnyPass, job.config().files);
  // Whatever the desc has wrong is known before anything is trained.
  MR_TRY(make(job.FirstPass(), job.FilesOfPass(job.FirstPass())).status());
  std::vector<DatasetPass> passes;
  for (int64_t pass = 0; pass < job.passes(); ++pass) passes.push_back({job.PassName(pass), job.FilesOfPass(pass)});
  return std::unique_ptr<Dataset>(std::make_unique<IncrementalDataset>(job.schema(), std::move(passes), make));
}

Result<std::unique_ptr<Dataset>> JobSession::MakeDatasetOfPass(int64_t pass, std::vector<std::string> files,
                                                               const DatasetSettings& settings) const {
  DataFeedDesc feed = job_->desc().data_desc();
  ChooseTrainedRows(job_->desc(), &feed);
  if (!job_->is_dist()) return MakeDatasetOf(std::move(files), feed, settings, {});
  DatasetSettings own = settings;
  if (TakesFiles()) {
    own.shared_files = [this, count = files.size()](int64_t epoch) -> std::unique_ptr<FileQueue> {
      if (ranks_->serves()) return std::make_unique<NoFiles>();
      return rank_files_->OfPass(epoch, count);
    };
  }
  StreamShare share = OwnStreams(pass);
  if (job_->desc().dataset().global_shuffle()) {
    MR_ASSIGN(share.shuffle, ShuffleOf(*job_, share.streams, *ranks_));
    own.rows.are_exchanged = true;
  }
  return MakeDatasetOf(std::move(files), feed, own, share);
}

Result<std::unique_ptr<Dataset>> JobSession::MakeEvalDataset(size_t set, const DatasetSettings& settings) const {
  // Evaluation streams its files in whatever order: no shuffle, every row.
  DataFeedDesc feed = job_->desc().data_desc();
  feed.set_drop_last(false);
  const std::vector<EvalSet>& sets = job_->config().eval_sets;
  ChooseRowsOfSet(job_->desc(), sets[set].number, &feed);
  DatasetSettings own = settings.ForEvaluation(job_->desc(), sets[set].number);
  if (!job_->is_dist()) return MakeDatasetOf(sets[set].files, std::move(feed), own, {});
  if (TakesFiles()) {
    own.shared_files = [this, count = sets[set].files.size(), number = static_cast<int64_t>(set),
                        step = static_cast<int64_t>(sets.size())](int64_t) mutable -> std::unique_ptr<FileQueue> {
      return rank_files_->OfEvaluation(std::exchange(number, number + step), count);
    };
  }
  StreamShare share = OwnStreams(kAnyPass);
  if (job_->desc().dataset().merge_by_lineid()) {
    // Lines of a name may lie in any files, and no shuffle brings these together.
    share.streams = 1;
    share.first = 0;
    share.count = ranks_->leads() ? 1 : 0;
  }
  return MakeDatasetOf(sets[set].files, std::move(feed), own, share);
}

std::vector<Dataset*> JobSession::eval_datasets() const {
  std::vector<Dataset*> all;
  for (const std::unique_ptr<Dataset>& dataset : eval_datasets_) all.push_back(dataset.get());
  return all;
}

Result<std::unique_ptr<Dataset>> JobSession::MakeDatasetOf(std::vector<std::string> files, DataFeedDesc feed,
                                                           const DatasetSettings& settings,
                                                           const StreamShare& share) const {
  if (feed.bad_lines().action() == BadLinePolicy::QUARANTINE && !ranks_->leads()) {
    const std::string path = QuarantinePath(feed.bad_lines(), job_->output_dir());
    if (!path.empty()) feed.mutable_bad_lines()->set_quarantine_path(QuarantineOfRank(path, ranks_->rank()));
  }
  DatasetSettings own = settings;
  const auto make = [&](std::vector<std::string> some) {
    return job_->environment().datasets.Create(job_->desc().dataset().class_name(), feed, std::move(some),
                                               job_->environment().feeds, own);
  };
  if (!job_->is_dist() || TakesFiles()) return make(std::move(files));
  // Streams with files come in their order, before those without.
  int number = share.first;
  const auto make_stream = [&](std::vector<std::string> some) {
    own.traced_as = "stream " + std::to_string(number++) + " ";
    return make(std::move(some));
  };
  return StreamDataset::Create(job_->schema(), std::move(files), share, make_stream);
}

DatasetSettings JobSession::SettingsOfDataset() const {
  const CompiledJob& job = *job_;
  const TrainerDesc& desc = job.desc();
  DatasetSettings settings = DatasetSettings::FromDesc(desc, draws_lines_as_before_);
  settings.threads = job.workers();
  if (job.has_sections() && !desc.dataset().has_prefetch_batches()) {
    settings.prefetch_batches = 2 * job.micro_batches() * job.workers();
  }
  settings.output_dir = job.output_dir();
  settings.spans = spans_.get();
  return settings;
}

Status JobSession::BuildDatasets(const std::stop_token& stop) {
  DatasetSettings settings = SettingsOfDataset();
  settings.stop = stop;
  if (dataset_ == nullptr) {
    MR_ASSIGN(own_dataset_, MakeDataset(settings));
  }
  if (dataset_ == nullptr) dataset_ = own_dataset_.get();
  for (size_t set = 0; set < job_->config().eval_sets.size() && !job_->desc().infer(); ++set) {
    MR_ASSIGN(eval_datasets_.emplace_back(), MakeEvalDataset(set, settings));
  }
  return Status::Ok();
}

Status JobSession::DrawLinesAsBefore(const std::stop_token& stop) {
  draws_lines_as_before_ = true;
  if (own_dataset_ != nullptr) dataset_ = nullptr;
  eval_datasets_.clear();
  return BuildDatasets(stop);
}

void JobSession::SetCalibrations(const EvalReport& report) {
  calibrations_.reset();
  if (job_->calibrations().empty()) return;
  auto all = std::make_shared<Calibrations>();
  all->step = report.step;
  all->tasks = report.calibrations;
  for (const EvalReport& other : report.others) {
    all->tasks.insert(all->tasks.end(), other.calibrations.begin(), other.calibrations.end());
  }
  std::sort(all->tasks.begin(), all->tasks.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
  calibrations_ = std::move(all);
}

void JobSession::SetSlotShares(const EvalReport& report) {
  first_slot_shares_ = report.shares;
  slot_shares_[report.set] = report.shares;
  for (const EvalReport& other : report.others) slot_shares_[other.set] = other.shares;
}

void JobSession::AddTrainedZones(const ValueNames& trained) {
  const int known = trained_times_.size();
  for (const auto& [column, zones] : trained.zones) {
    for (const auto& [zone, first] : zones) {
      FeatureStates::ColumnTime time;
      for (int i = 0; i < known; ++i) {
        if (trained_times_[i].column() != column) continue;
        time = trained_times_[i];
        if (time.zone() == zone) break;
      }
      // Of a column that is not known nothing is compared.
      if (time.column().empty() || time.zone() == zone) continue;
      time.set_place(first.place);
      time.clear_zone();
      if (!zone.empty()) time.set_zone(zone);
      *trained_times_.Add() = std::move(time);
    }
  }
}

const SlotShares* JobSession::SlotSharesOf(const std::string& set) const {
  const auto found = slot_shares_.find(set);
  if (found != slot_shares_.end()) return &found->second;
  return set.empty() && !slot_shares_.empty() ? &first_slot_shares_ : nullptr;
}

Status JobSession::InitParameters(const std::stop_token& stop) {
  const TrainerDesc& desc = job_->desc();
  const CompiledModel& model = job_->model();
  const Environment& environment = job_->environment();
  own_root_ = std::make_unique<Scope>(*environment.device);
  root_ = own_root_.get();
  MR_TRY(CheckFitsMemory(model.main));
  const bool loads = desc.has_program() && desc.program().has_init_dir();
  // Readers, and what Paddle's servers had, are made by the startup program, wherever the parameters start.
  if (!loads || job_->feeds_itself() || !model.of_servers.empty()) {
    Status started =
        RunStartup(model.startup, environment.ops, *root_, desc.seed(), &environment.readers, &tables_, stop);
    if (!started.ok() && desc.program().has_startup()) {
      return std::move(started).Context(desc.program().startup());
    }
    MR_TRY(std::move(started));
  }
  if (loads) {
    const std::string& folder = desc.program().init_dir();
    const bool has_all = model.of_servers.empty() || HasManifest(folder);
    const ProgramDesc rest = has_all ? ProgramDesc() : WithoutVariables(model.main, model.of_servers);
    MR_TRY(LoadPersistables(has_all ? model.main : rest, folder, *root_, tables_, job_->workers(), stop).status());
  }
  if (desc.program().has_server_dir()) {
    // A rank asks nobody here: the others may not have come so far.
    const ShardRange shards = ranks_->tables().ShardsOf(ranks_->rank());
    MR_TRY(LoadServerTables(model, desc.program().server_dir(), shards, *root_, stop));
  }
  return desc.infer() ? Status::Ok() : CheckKept(model.main, *root_);
}

Status JobSession::EmptyTables() {
  for (const VarDesc& var : job_->model().main.blocks(0).vars()) {
    if (var.type().type() != VarType::SPARSE_TABLE) continue;
    Variable* holder = root_->Find(var.name());
    if (holder == nullptr || !holder->Is<std::unique_ptr<SparseTable>>()) continue;
    if (holder->Get<std::unique_ptr<SparseTable>>()->IsEmptyHere()) continue;
    TableDesc desc;
    for (const VarDesc::Attr& attr : var.attrs()) {
      if (attr.name() != kTableAttr) continue;
      if (!google::protobuf::TextFormat::ParseFromString(attr.s(), &desc))
        return Internal(var.name() + ": no TableDesc");
    }
    MR_ASSIGN(std::unique_ptr<SparseTable> table, tables_.Create(desc, job_->desc().seed()));
    holder->Set(std::move(table));
  }
  return Status::Ok();
}

NanCheckRule JobSession::nan_check_rule() {
  const auto& names = job_->desc().check_nan_var_names();
  NanCheckRule rule;
  rule.names = {names.begin(), names.end()};
  rule.folder = job_->output_dir();
  rule.is_of_features = job_->desc().data_desc().feature_size() > 0;
  // What does not train spoils nothing: its metrics say nan.
  if (!job_->desc().infer()) rule.loss = job_->loss();
  if (job_->desc().allow_non_finite()) rule.passed = &non_finite_losses_;
  return rule;
}

FrameOptions JobSession::frame_options(int index, bool read_only) {
  const TrainerDesc& desc = job_->desc();
  FrameOptions options;
  options.worker = index;
  options.workers = job_->workers();
  options.max_rows = desc.data_desc().batch_size();
  options.seed = desc.seed();
  options.update_mode = ToUpdateMode(desc.update_mode());
  options.bf16 = desc.precision() == TrainerDesc::BF16;
  options.read_only = read_only;
  if (read_only) options.packed_weights = &packed_weights_;
  options.row_locks = row_locks_.get();
  options.label_monitor = &label_monitor_;
  options.is_program = desc.has_program();
  if (job_->pipeline() != nullptr)
    options.worker = 0;  // random operators are those of one worker, whatever the sections
  options.readers = &job_->environment().readers;
  options.tables = &tables_;
  const auto& private_vars = desc.hogwild_param().stat_var_names();
  if (index > 0) options.private_vars = {private_vars.begin(), private_vars.end()};
  return options;
}

}  // namespace millrace
