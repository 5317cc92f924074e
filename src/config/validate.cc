#include "config/validate.h"

#include <algorithm>
#include <map>
#include <set>

#include "batch/slot_schema.h"
#include "config/checker.h"
#include "config/feed_names.h"
#include "config/grouping.h"
#include "config/paddle_fields.h"
#include "core/lower_case.h"
#include "features/time_text.h"
#include "program/model_defaults.h"
#include "program/var_meta.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// Whether the job's model is one of what stands beside a program: metrics, and the tables and updates that Paddle's
/// servers had.
bool StandsBesideProgram(const TrainerDesc& desc) {
  if (!desc.has_program() || desc.model().ByteSizeLong() == 0) return false;
  ModelDesc rest = desc.model();
  rest.clear_metric();
  rest.clear_table();
  rest.clear_optimizer();
  return rest.ByteSizeLong() == 0;
}

/// Checks that a metric is one that an evaluation of the model gives.
void CheckMetricName(const TrainerDesc& desc, const std::string& path, const std::string& name, Checker& check) {
  std::vector<std::string> known = {"loss"};
  for (const MetricOfLoss& metric : MetricsOf(desc.model())) {
    if (metric.name == name) return;
    known.push_back(metric.name);
  }
  if (desc.model().loss_size() > 1 && name != "loss") {
    return CheckKnown(check, path, "metric", name, known);
  }
  known = {"loss"};
  for (const std::string& metric : check.known().metrics) known.push_back(LowerCase(metric));
  if (known.size() == 1) return;
  if (std::find(known.begin(), known.end(), name) == known.end()) return CheckKnown(check, path, "metric", name, known);
  if (!desc.has_model() || name == "loss") return;
  MetricDesc::Kind own;
  std::string field;
  for (const std::string& metric : check.known().metrics) {
    if (LowerCase(metric) != name) continue;
    field = MetricDesc::Kind_Parse(metric, &own) ? "kind: " + metric : "class_name: \"" + metric + "\"";
  }
  std::string others = "name one that it has, ";
  for (const MetricOfLoss& metric : MetricsOf(desc.model())) others += "\"" + metric.name + "\", ";
  others += "\"loss\", or ";
  const bool is_of_classes =
      desc.model().loss_size() == 1 && ClassesRead(desc.model(), desc.model().loss(0)) > kClickClasses;
  // Of classes there are two.
  if (is_of_classes && name != "accuracy" && name != "logloss") field = "kind: ACCURACY";
  check.Error(path, "the model does not compute \"" + name + "\"; " + (desc.model().metric_size() > 0 ? others : "") +
                        "add metric { " + field + " } to it" + (is_of_classes ? ", and say metric: \"accuracy\"" : ""));
}

/// What examples cannot be left out of one by one.
void CheckDownsample(const TrainerDesc& desc, Checker& check) {
  const DataFeedDesc& feed = desc.data_desc();
  std::string field;
  if (desc.dataset().class_name() == "FileInstantDataset") field = "dataset.class_name";
  if (desc.dataset().merge_by_lineid()) field = "dataset.merge_by_lineid";
  if (desc.dataset().enable_pv_merge()) field = "dataset.enable_pv_merge";
  if (feed.input_type() != 0) field = "data_desc.input_type";
  if (feed.parse_ins_id()) field = "data_desc.parse_ins_id";
  if (feed.parse_content()) field = "data_desc.parse_content";
  if (feed.parse_logkey()) field = "data_desc.parse_logkey";
  if (field.empty()) return;
  check.Error(field,
              "model.downsample leaves out examples as their lines are parsed, which does not go with this: leave one "
              "of them out, or drop the examples in pipe_command and say correction: WEIGHT by a sample_weight");
}

/// Merged lines, page views, and batches that are lines.
void CheckGrouping(const TrainerDesc& desc, Checker& check) {
  const DatasetDesc& dataset = desc.dataset();
  const DataFeedDesc& feed = desc.data_desc();
  const auto& phases = dataset.phases();
  const bool joins = std::find(phases.begin(), phases.end(), DatasetDesc::JOIN) != phases.end();
  const Grouping grouping{dataset.merge_by_lineid(), dataset.enable_pv_merge(), joins};
  for (const RefusedField& refused : RefusedByGrouping(feed, grouping)) check.Error(refused.field, refused.why);
  DataFeedDesc rule = feed;
  ResolveZeros(dataset.class_name(), &rule);
  const auto& slots = feed.multi_slot_desc().slots();
  const bool has_lists =
      std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.is_used() && !slot.is_dense(); });
  const bool is_always_there = rule.zeros() == DataFeedDesc::KEEP && feed.empty_slot() == DataFeedDesc::ERROR;
  const bool has_names = feed.parse_ins_id() || feed.parse_logkey();
  if (dataset.merge_by_lineid() && has_names && dataset.merge_size() != 1 && has_lists && is_always_there &&
      dataset.class_name() == "InMemoryDataset" && feed.input_type() == 0) {
    check.Error(
        "dataset.merge_by_lineid",
        "every line has a value in every sparse slot, so that no two merge: for lines that say \"1 0\" where they "
        "have none set data_desc.zeros: DROP, for lines that say \"0\" data_desc.empty_slot: ALLOW");
  }
  if (dataset.has_merge_size() && !dataset.merge_by_lineid()) {
    check.Error("dataset.merge_size", "merge_size says nothing without merge_by_lineid: true");
  }
  // Paddle writes the default of 32 into every file.
  if (feed.pv_batch_size() != 32 && !joins) {
    check.Error("data_desc.pv_batch_size", "page views are handed out in the phase JOIN: dataset { phases: JOIN }");
  }
  if (dataset.shuffle_by_uid() && feed.multi_slot_desc().uid_slot().empty()) {
    check.Error("dataset.shuffle_by_uid", "shuffle_by_uid needs data_desc.multi_slot_desc.uid_slot");
  }
  if (feed.parse_logkey() && feed.parse_ins_id()) {
    check.Warning("data_desc.parse_logkey", "the log key names the example; what parse_ins_id reads is dropped");
  }
  if (feed.input_type() != 1) return;
  if (dataset.class_name() != "InMemoryDataset") {
    check.Error("data_desc.input_type",
                "lines that are whole batches need dataset { class_name: \"InMemoryDataset\" }");
  }
  if (feed.zeros() == DataFeedDesc::DROP) {
    check.Error("data_desc.zeros",
                "values of a line that is a whole batch are told apart by their places, so zeros stay");
  }
}

/// A table whose rows count shows and clicks; null: none does.
const TableDesc* FirstWithAccessor(const TrainerDesc& desc) {
  const auto& tables = desc.model().table();
  const auto counts = [](const TableDesc& table) { return table.has_accessor(); };
  const auto first = std::find_if(tables.begin(), tables.end(), counts);
  return first == tables.end() ? nullptr : &*first;
}

void CheckGlobalShuffle(const TrainerDesc& desc, Checker& check) {
  const DatasetDesc& dataset = desc.dataset();
  const auto needs_shuffle = [&](bool is_set, const std::string& field) {
    if (is_set && !dataset.global_shuffle()) {
      check.Error("dataset." + field, field + " says nothing without global_shuffle: true");
    }
  };
  needs_shuffle(dataset.has_fleet_send_batch_size(), "fleet_send_batch_size");
  needs_shuffle(dataset.has_fleet_send_sleep_seconds(), "fleet_send_sleep_seconds");
  if (!desc.has_dist() || !dataset.shuffle_by_uid()) return;
  // One process takes it as it is, as all rows of a user are there.
  needs_shuffle(true, "shuffle_by_uid");
  if (dataset.merge_by_lineid()) {
    check.Error("dataset.shuffle_by_uid",
                "a row goes to one rank: by its user, or by its name, where lines of a name merge (merge_by_lineid); "
                "leave one of them out");
  }
  if (desc.data_desc().input_type() == 1) {
    check.Error("dataset.shuffle_by_uid", "a line that is a whole batch (data_desc.input_type) has many users");
  }
}

void CheckDataset(const TrainerDesc& desc, Checker& check) {
  const DatasetDesc& dataset = desc.dataset();
  CheckKnown(check, "dataset.class_name", "dataset", dataset.class_name(), check.known().datasets);
  const bool is_binary = dataset.class_name() == "FileInstantDataset";
  if (is_binary && dataset.has_prefetch_batches()) {
    check.Error("dataset.prefetch_batches",
                "prefetch_batches needs class_name: \"QueueDataset\"; the workers of a "
                "FileInstantDataset read for themselves");
  }
  CheckGrouping(desc, check);
  if (desc.model().has_downsample()) CheckDownsample(desc, check);
  CheckGlobalShuffle(desc, check);
  if (dataset.class_name() != "QueueDataset" && !is_binary) return;
  const auto needs_memory = [&](bool is_set, const std::string& field) {
    if (!is_set) return;
    check.Error("dataset." + field, field.substr(0, field.find('[')) + " needs class_name: \"InMemoryDataset\"; a " +
                                        dataset.class_name() +
                                        (is_binary ? " reads its files in order" : " streams its files"));
  };
  needs_memory(dataset.local_shuffle(), "local_shuffle");
  needs_memory(dataset.preload(), "preload");
  needs_memory(dataset.has_queue_num(), "queue_num");
  needs_memory(dataset.merge_by_lineid(), "merge_by_lineid");
  needs_memory(dataset.enable_pv_merge(), "enable_pv_merge");
  needs_memory(dataset.phases_size() > 0, "phases[0]");
  needs_memory(dataset.global_shuffle(), "global_shuffle");
  needs_memory(dataset.shuffle_by_uid(), "shuffle_by_uid");
  needs_memory(dataset.has_sample_rate(), "sample_rate");
}

void CheckFetch(const FetchConfig& fetch, Checker& check) {
  const int names = fetch.fetch_var_names_size();
  const int formats = fetch.fetch_var_str_format_size();
  if (formats > 0 && formats != names) {
    check.Error("fetch_config.fetch_var_str_format[0]", "fetch_var_str_format names " + std::to_string(formats) +
                                                            ", but fetch_var_names " + std::to_string(names) +
                                                            "; there is one for each, or none");
  }
  for (int i = 0; i < names; ++i) {
    if (fetch.fetch_var_names(i).empty()) {
      check.Error("fetch_config.fetch_var_names[" + std::to_string(i) + "]", "the name of a variable is empty");
    }
  }
}

/// What rows cannot be held back from one by one.
std::string WhyNoShare(const TrainerDesc& desc) {
  if (desc.has_incremental()) return "incremental, whose passes have files of their own: give the set files";
  const std::string& dataset = desc.dataset().class_name();
  if (dataset != "QueueDataset" && dataset != "InMemoryDataset") return "a " + dataset + ", which hands out all rows";
  if (desc.dataset().merge_by_lineid()) return "dataset.merge_by_lineid: lines of a name belong together";
  if (desc.dataset().enable_pv_merge()) return "dataset.enable_pv_merge: lines of a page view belong together";
  if (desc.data_desc().input_type() != 0) return "data_desc.input_type 1: a line is a whole batch";
  return "";
}

void CheckSince(const TrainerDesc& desc, int number, Checker& check) {
  const auto& sets = desc.eval().set();
  const EvalDesc::Since& since = sets[number].since();
  const std::string path = ElementPath("eval.set", number) + ".since";
  if (const std::string why = WhyNoShare(desc); !why.empty()) check.Error(path, "not supported with " + why);
  if (desc.data_desc().feature_size() == 0) {
    check.Error(path,
                "a moment stands in a column with a name, as the rows of a job with features have them "
                "(data_desc.feature); give the set files");
  }
  if (since.column().empty()) check.Missing(path, "column", "which column says when a row was? column: \"time\"");
  int64_t at = 0;
  int64_t until = 0;
  const std::string expected = "expected " + std::string(ExpectedTime(DatePartStep::ISO_8601)) + ", found \"";
  if (!ReadTime(since.at(), {}, &at)) {
    check.Error(since.has_at() ? path + ".at" : path, "at: " + expected + since.at() + "\"");
  }
  if (since.has_until() && !ReadTime(since.until(), {}, &until)) {
    check.Error(path + ".until", expected + since.until() + "\"");
  } else if (since.has_until() && until <= at) {
    check.Error(path + ".until", "it is not behind at, \"" + since.at() + "\"");
  }
  if (since.has_utc_offset_minutes() && since.format() == DatePartStep::ISO_8601) {
    check.Error(path + ".utc_offset_minutes",
                "a time of ISO 8601 is taken as the clock says it; the offset is for times since 1970");
  }
  const auto first = std::find_if(sets.begin(), sets.end(), [](const auto& set) { return set.has_since(); });
  const EvalDesc::Since& other = first->since();
  if (other.column() != since.column() || other.format() != since.format() ||
      other.utc_offset_minutes() != since.utc_offset_minutes()) {
    check.Error(path, "sets go by one column: set \"" + first->name() + "\" has column: \"" + other.column() +
                          "\", format: " + DatePartStep::Format_Name(other.format()) + " and utc_offset_minutes: " +
                          std::to_string(other.utc_offset_minutes()) + "; say the same here");
  }
}

void CheckSets(const TrainerDesc& desc, Checker& check) {
  const EvalDesc& eval = desc.eval();
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  std::vector<std::string> names;
  double shares = 0;
  for (int i = 0; i < eval.set_size(); ++i) {
    const EvalDesc::Set& set = eval.set(i);
    const std::string path = ElementPath("eval.set", i);
    if (set.name().empty()) {
      check.Missing(path, set.has_name() ? "" : "name", "a set needs a name, by which its metrics are called");
    } else if (set.name().find_first_not_of(kOfNames) != std::string::npos) {
      check.Error(path + ".name", "a name of a set has letters, digits, '_', '-' and '.'");
    } else if (std::find(names.begin(), names.end(), set.name()) != names.end()) {
      check.Error(path + ".name", "an earlier set has this name; choose another");
    }
    names.push_back(set.name());
    const int kinds = (set.filelist_size() > 0 ? 1 : 0) + (set.has_share() ? 1 : 0) + (set.has_since() ? 1 : 0);
    if (kinds != 1) {
      check.Error(path, kinds > 1
                            ? "a set has files, or a share of the rows that are trained, or those since a moment; "
                              "leave the others out"
                            : "of which rows is the set? filelist: \"data/test-*\", or of those of the training "
                              "share: 0.1, or since { column: \"time\" at: \"2026-11-26\" }");
    }
    if (set.has_since()) CheckSince(desc, i, check);
    if (!set.has_share()) continue;
    shares += set.share();
    if (const std::string why = WhyNoShare(desc); !why.empty()) {
      check.Error(path + ".share", "not supported with " + why);
    } else if (shares >= 1) {
      check.Error(path + ".share", "no row is left to train on: shares come to " + Checker::Number(shares));
    }
  }
  if (eval.has_watch()) CheckKnown(check, "eval.watch", "set", eval.watch(), names);
  for (int i = 0; i < eval.calibration_size(); ++i) {
    if (!eval.calibration(i).has_set()) continue;
    CheckKnown(check, ElementPath("eval.calibration", i) + ".set", "set", eval.calibration(i).set(), names);
  }
}

void CheckCalibration(const TrainerDesc& desc, Checker& check) {
  const std::string path = "eval.calibration[0]";
  if (desc.has_program()) {
    check.Error(path,
                "not supported yet: the predictions of a program; write the job as a model, or calibrate what it "
                "predicts behind it");
  }
  const int models = desc.incremental().save_interval();
  const int evaluations = desc.eval().every_epochs();
  if (desc.has_incremental() && models > 0 && (evaluations == 0 || models % evaluations != 0)) {
    check.Error(path, "each model of incremental (every " + std::to_string(models) +
                          " passes) is calibrated by an evaluation of its own: let every_epochs be 1, or divide "
                          "save_interval");
  }
}

void CheckEval(const TrainerDesc& desc, Checker& check) {
  if (!desc.has_eval()) return;
  const EvalDesc& eval = desc.eval();
  const bool has_no_metric = !desc.has_model() || (StandsBesideProgram(desc) && desc.model().metric_size() == 0);
  if (desc.has_program() && has_no_metric && !FeedsItself(desc)) {
    check.Error(
        "eval",
        "a program names no metric that an evaluation could compute: say beside it model { metric { kind: AUC "
        "in: \"its prediction\" label: \"the label's slot\" } }. What fetch_config prints of it is computed over "
        "other files by a run of its own, behind the training: --set infer=true --resume=auto --set filelist=...");
  }
  if (eval.filelist_size() + eval.set_size() == 0) {
    check.Missing("eval", "filelist", "eval has no filelist: which files are to be evaluated?");
  }
  CheckSets(desc, check);
  if (eval.calibration_size() > 0) CheckCalibration(desc, check);
  if (!eval.has_early_stopping()) return;
  const EvalDesc::EarlyStopping& stopping = eval.early_stopping();
  CheckMetricName(desc, "eval.early_stopping.metric", stopping.metric(), check);
  if (eval.every_steps() == 0 && eval.every_epochs() == 0) {
    check.Error("eval.early_stopping",
                "without every_steps and every_epochs there is one evaluation, at the end: too late "
                "to stop early");
  }
}

void CheckCheckpoint(const TrainerDesc& desc, Checker& check) {
  const CheckpointDesc& checkpoint = desc.checkpoint();
  if (checkpoint.keep_best().empty()) return;
  CheckMetricName(desc, "checkpoint.keep_best", checkpoint.keep_best(), check);
  if (!desc.has_eval()) {
    check.Error("checkpoint.keep_best", "the best is found by evaluation: add eval { filelist: \"...\" }");
  }
  const std::string& stopping = desc.eval().early_stopping().metric();
  if (desc.eval().has_early_stopping() && checkpoint.keep_best() != stopping) {
    check.Error("checkpoint.keep_best", "keep_best is \"" + checkpoint.keep_best() + "\" and early_stopping (line " +
                                            std::to_string(check.Line("eval.early_stopping")) + ") goes by \"" +
                                            stopping + "\": one run watches one metric");
  }
}

void CheckImportance(const TrainerDesc& desc, const std::vector<DefinedSlot>& slots, Checker& check) {
  if (!desc.has_feature_importance()) return;
  const FeatureImportanceDesc& importance = desc.feature_importance();
  const std::string path = "feature_importance";
  if (!desc.has_eval())
    check.Error(path, "importance is measured on the evaluation set: add eval { filelist: \"...\" }");
  if (importance.slots_size() + importance.group_size() == 0) {
    check.Missing(path, "slots", "which slots? feature_importance { slots: \"C1..C26\" }");
  }
  CheckMetricName(desc, path + ".metric", importance.metric(), check);
  std::vector<std::string> names;
  for (const DefinedSlot& slot : slots) {
    if (slot.is_used) names.push_back(slot.name);
  }
  const auto check_slots = [&](const auto& ranges, const std::string& list) {
    for (int i = 0; i < ranges.size(); ++i) {
      const std::string at = ElementPath(list, i);
      const Result<std::vector<std::string>> expanded = ExpandSlotRange(ranges[i]);
      if (!expanded.ok()) check.Error(at, expanded.status().message());
      if (!expanded.ok()) continue;
      for (const std::string& name : *expanded) CheckKnown(check, at, "used slot", name, names);
    }
  };
  check_slots(importance.slots(), path + ".slots");
  for (int i = 0; i < importance.group_size(); ++i) {
    const std::string group = path + ".group[" + std::to_string(i) + "]";
    if (importance.group(i).name().empty()) check.Missing(group, "name", "a group needs a name for the report");
    if (importance.group(i).slots_size() == 0) check.Missing(group, "slots", "a group needs slots");
    check_slots(importance.group(i).slots(), group + ".slots");
  }
  if (desc.dataset().class_name() == "FileInstantDataset") {
    check.Error(path,
                "importance holds the evaluation's rows in memory, which binary files cannot be loaded into: ask " +
                    std::string("it of the job of their text, with --resume and this job's checkpoint"));
  }
  if (desc.data_desc().input_type() == 1) {
    check.Error(path, "slots of lines that are whole batches (input_type 1) are not shuffled");
  }
}

void CheckIncremental(const TrainerDesc& desc, Checker& check) {
  if (!desc.has_incremental()) return;
  const IncrementalDesc& incremental = desc.incremental();
  if (desc.filelist_size() > 0 && !desc.infer()) {
    check.Error("filelist[0]", "filelist and incremental (line " + std::to_string(check.Line("incremental")) +
                                   ") exclude each other: a pass of incremental names its files");
  }
  if (desc.has_epochs() && desc.epochs() != 1) {
    check.Error("epochs", "incremental trains each of its passes once; for more, give a further pass the same files");
  }
  if (incremental.pass_size() == 0) {
    check.Missing("incremental", "pass", "incremental needs passes: pass { name: \"day1\" filelist: \"data/day1/*\" }");
  }
  std::map<std::string, int> names;
  for (int i = 0; i < incremental.pass_size(); ++i) {
    const auto& pass = incremental.pass(i);
    const std::string path = "incremental.pass[" + std::to_string(i) + "]";
    if (pass.filelist_size() == 0) check.Missing(path, "filelist", "a pass needs a filelist");
    if (pass.name().empty()) {
      check.Missing(path, pass.has_name() ? "" : "name", "a pass needs a name, which its model is called");
      continue;
    }
    if (pass.name().find('/') != std::string::npos || pass.name().starts_with('.')) {
      check.Error(path + ".name", "the name of a pass is that of a folder: no slash, no dot at its start");
    }
    const auto [earlier, is_new] = names.insert({pass.name(), i});
    if (!is_new) {
      check.Error(path + ".name",
                  "there is a pass \"" + pass.name() + "\" already, on line " +
                      std::to_string(check.Line("incremental.pass[" + std::to_string(earlier->second) + "].name")));
    }
  }
  if (FirstWithAccessor(desc) == nullptr) {
    if (incremental.shrink()) {
      check.Error("incremental.shrink", "no table has an accessor, whose rows could be shrunk; leave shrink out");
    }
    if (incremental.save_mode() != IncrementalDesc::ALL) {
      check.Error("incremental.save_mode",
                  "no table has an accessor, of whose rows a part could be saved; leave save_mode out");
    }
  } else if (desc.has_program() && incremental.save_mode() != IncrementalDesc::ALL) {
    check.Error("incremental.save_mode",
                "not supported yet: beside program, of which a pass leaves all variables with their state; leave "
                "save_mode out");
  }
  if (incremental.save_interval() == 0 && !incremental.save_command().empty()) {
    check.Error("incremental.save_command", "with save_interval: 0 no model is saved that a command could be run on");
  }
  if (desc.dataset().preload()) {
    check.Warning("dataset.preload", "incremental preloads every pass while the one before is trained");
  }
}

void CheckOutput(const OutputDesc& output, Checker& check) {
  if (output.has_dir() && output.dir().empty()) check.Error("output.dir", "the name of the folder is empty");
  for (int i = 0; i < output.export__size(); ++i) {
    const std::string where = "output.export[" + std::to_string(i) + "]";
    const ExportDesc& wanted = output.export_(i);
    if (!wanted.has_format()) check.Missing(where, "format", "an export needs a format: PADDLE or ONNX");
    if (wanted.has_dir() && wanted.dir().empty()) check.Error(where + ".dir", "the name of the folder is empty");
  }
}

void CheckDump(const TrainerDesc& desc, Checker& check) {
  const bool has_fields = desc.dump_fields_size() > 0 || desc.dump_param_size() > 0;
  const std::string& folder = desc.dump_fields_path();
  if (has_fields && folder.empty()) {
    check.Missing("", "dump_fields_path", "dump_fields_path is missing: where is the dump to go?");
  }
  if (!has_fields && !folder.empty()) {
    check.Error("dump_fields_path", "nothing is dumped without dump_fields or dump_param: which variables?");
  }
  if (folder.starts_with("hdfs:") || folder.starts_with("afs:")) {
    check.Error("dump_fields_path", "dumps are written on this machine; upload the folder after the run");
  }
  if (desc.dump_fields_mode() != "w" && desc.dump_fields_mode() != "a") {
    check.Error("dump_fields_mode",
                "dump_fields_mode is \"w\" (anew) or \"a\" (append), not \"" + desc.dump_fields_mode() + "\"");
  }
  if (desc.user_define_dump_filename().find('/') != std::string::npos) {
    check.Error("user_define_dump_filename", "a part of a file's name has no \"/\"; dump_fields_path is the folder");
  }
  if (desc.enable_random_dump() && desc.random_with_lineid() && !desc.data_desc().parse_ins_id()) {
    check.Error("random_with_lineid", "examples have no names to choose by: set data_desc.parse_ins_id");
  }
}

void CheckSection(const TrainerDesc& desc, int number, std::set<std::string>* handed_on, Checker& check) {
  const SectionWorkerParameter& param = desc.section_param();
  const SectionConfig& section = param.section_config(number);
  const std::string path = "section_param.section_config[" + std::to_string(number) + "]";
  if (section.place() != SectionConfig::CPUPlace) check.Error(path + ".place", "sections run on processors: CPUPlace");
  if (section.has_program_desc()) {
    check.Error(path + ".program_desc",
                "not supported yet: program_desc; give the whole program, which section_out_var_names cut");
  }
  for (int i = 0; i < section.section_in_var_names_size(); ++i) {
    const std::string& name = section.section_in_var_names(i);
    if (handed_on->contains(name)) continue;
    check.Error(path + ".section_in_var_names[" + std::to_string(i) + "]",
                "no earlier section hands on \"" + name + "\", and no slot has this name");
  }
  const bool is_last = number + 1 == param.section_config_size();
  if (!is_last && section.section_out_var_names_size() == 0) {
    check.Missing(path, "section_out_var_names",
                  "section_out_var_names is missing: which variables end this section and begin the next?");
  }
  if (is_last && section.section_out_var_names_size() > 0) {
    check.Error(path + ".section_out_var_names[0]", "the last section hands nothing on: there is none behind it");
  }
  handed_on->insert(section.section_out_var_names().begin(), section.section_out_var_names().end());
}

void CheckPipeline(const TrainerDesc& desc, const std::vector<DefinedSlot>& slots, Checker& check) {
  const SectionWorkerParameter& param = desc.section_param();
  const bool is_pipeline = desc.class_name() == "PipelineTrainer";
  if ((desc.device_worker_name() == "SectionWorker") != is_pipeline && !check.known().trainers.empty()) {
    check.Error(is_pipeline ? "class_name" : "device_worker_name",
                "a PipelineTrainer has SectionWorkers, and no other trainer has: class_name: \"PipelineTrainer\" "
                "device_worker_name: \"SectionWorker\"");
  }
  if (!is_pipeline) {
    if (desc.has_section_param()) {
      check.Error("section_param", "section_param is for class_name: \"PipelineTrainer\"; this job has no sections");
    }
    return;
  }
  if (param.section_config_size() == 0) {
    check.Missing("section_param", "section_config", "section_param has no section_config: where is the program cut?");
  }
  std::set<std::string> handed_on;
  for (const DefinedSlot& slot : slots) handed_on.insert(slot.name);
  for (int i = 0; i < param.section_config_size(); ++i) CheckSection(desc, i, &handed_on, check);
  if (param.schedule_mode() != 0 && param.schedule_mode() != 1) {
    check.Error("section_param.schedule_mode",
                "schedule_mode is 0 (F-then-B) or 1 (1F1B), not " + std::to_string(param.schedule_mode()));
  }
  if (param.num_pipeline_stages() != 1 && param.num_pipeline_stages() != param.section_config_size()) {
    check.Error("section_param.num_pipeline_stages", "there are " + std::to_string(param.section_config_size()) +
                                                         " sections, all in this process; leave it out");
  }
  if (param.has_pipeline_stage() && param.pipeline_stage() != 1) {
    check.Error("section_param.pipeline_stage", "all sections run in this process; leave pipeline_stage out");
  }
  if (param.param_need_sync_size() > 0 && desc.thread_num() > 1) {
    check.Error("section_param.param_need_sync[0]",
                "pipelines share their parameters: there are no copies to average; leave param_need_sync out");
  }
  const std::string only = "; use class_name: \"MultiTrainer\" for it";
  if (desc.infer()) check.Error("infer", "a pipeline trains" + only);
  if (desc.output().trace()) check.Error("output.trace", "a pipeline is not traced" + only);
  if (desc.has_hogwild_param()) check.Error("hogwild_param", "these settings are a HogwildWorker's" + only);
}

void CheckDist(const TrainerDesc& desc, Checker& check) {
  if (!desc.has_dist()) return;
  const DistDesc& dist = desc.dist();
  const bool in_step = dist.update() == DistDesc::SYNC;
  const std::string update = "update: " + DistDesc::Update_Name(dist.update());
  const auto only_of = [&](bool is_set, DistDesc::Update other, const std::string& name) {
    if (is_set && dist.update() != other) {
      check.Error("dist." + name, name + " is a setting of update: " + DistDesc::Update_Name(other) +
                                      "; leave it out, as the job has " + update);
    }
  };
  only_of(dist.has_micro_batches(), DistDesc::SYNC, "micro_batches");
  only_of(dist.has_staleness(), DistDesc::SSP, "staleness");
  only_of(dist.has_geo_steps(), DistDesc::GEO, "geo_steps");
  if (in_step && !dist.has_micro_batches()) {
    check.Missing("dist", "micro_batches",
                  "dist.micro_batches is missing: how many batches make a step, over all ranks? micro_batches: 8");
  }
  if (dist.update() == DistDesc::SSP && !dist.has_staleness()) {
    check.Missing("dist", "staleness",
                  "dist.staleness is missing: how many batches may a rank be ahead of the slowest one? staleness: 4");
  }
  if (dist.update() == DistDesc::GEO && !dist.has_geo_steps()) {
    check.Missing("dist", "geo_steps",
                  "dist.geo_steps is missing: how many batches does a rank train between two exchanges? geo_steps: 16");
  }
  if (in_step && dist.wire() != DistDesc::FP32) {
    check.Error("dist.wire",
                "wire: BF16 cuts off bits at every rank, so that update: SYNC would not come to the same "
                "for any number of ranks; leave wire out");
  }
  const bool is_split = dist.mode() == DistDesc::SPLIT;
  if (is_split && !dist.has_servers()) {
    check.Missing(
        "dist", "servers",
        "dist.servers is missing: how many of the ranks have the rows of tables, and train nothing? servers: 1");
  }
  if (!is_split && dist.has_servers()) {
    check.Error("dist.servers", "servers is a setting of mode: SPLIT; leave it out, or set mode: SPLIT");
  }
  const auto refuse = [&](bool is_set, const std::string& path, const std::string& why) {
    if (is_set) check.Error(path, "dist: not supported yet: " + why);
  };
  refuse(!in_step && desc.update_mode() != TrainerDesc::HOGWILD && !desc.infer(), "update_mode",
         "update_mode: " + TrainerDesc::UpdateMode_Name(desc.update_mode()) + "; with " + update +
             " the updates of other ranks come between those of this one: leave update_mode out");
  refuse(FeedsItself(desc), "dist",
         "a program that feeds itself, as each rank would read all that its readers read; train it in one process, or "
         "give it a dataset, whose files ranks share out");
  // Paddle's names for trainers and workers with servers are names of these.
  const bool is_multi = desc.class_name() == "MultiTrainer" || desc.class_name() == "DistMultiTrainer";
  const std::string& worker = desc.device_worker_name();
  refuse(!is_multi, "class_name", "another class_name than MultiTrainer; leave it out, or train in one process");
  refuse(in_step && worker != "HogwildWorker" && !worker.starts_with("Downpour"), "device_worker_name",
         "another worker than that of ranks in step; leave it out, or use update: ASYNC");
  if (in_step && desc.thread_num() > 1 && !desc.infer()) {
    check.Error("thread_num",
                "dist: with update: SYNC a rank trains with one thread: set thread_num: 1, and start a rank for each "
                "processor");
  }
  const DatasetDesc& dataset = desc.dataset();
  refuse(dataset.class_name() != "QueueDataset" && dataset.class_name() != "InMemoryDataset" &&
             dataset.class_name() != "FileInstantDataset",
         "dataset.class_name",
         "dataset.class_name \"" + dataset.class_name() +
             "\"; ranks have a QueueDataset, an InMemoryDataset or a FileInstantDataset");
  refuse(dataset.merge_by_lineid() && !dataset.global_shuffle(), "dataset.merge_by_lineid",
         "merge_by_lineid, whose lines may lie on several ranks; lines of a name meet with global_shuffle: true");
  refuse(dataset.enable_pv_merge(), "dataset.enable_pv_merge",
         "enable_pv_merge, as the rows of a page view may lie on several ranks; train in one process, or leave it out "
         "and train the rows one by one");
}

/// Rules of tables whose rows ranks cannot train copies of.
void CheckCopies(const TrainerDesc& desc, Checker& check) {
  if (desc.dist().update() != DistDesc::GEO) return;
  for (int i = 0; i < desc.model().table_size(); ++i) {
    const TableDesc& table = desc.model().table(i);
    const std::string of = "dist.update: GEO: table \"" + table.name() + "\": ";
    const std::string path = ElementPath("model.table", i);
    if (table.has_accessor()) {
      check.Error(path + ".accessor", of + "rows that count shows and clicks are not copied; use update: ASYNC");
      continue;
    }
    const bool has_own = table.optimizer().rule_case() != OptimizerDesc::RULE_NOT_SET;
    const OptimizerDesc& rule = has_own ? table.optimizer() : desc.model().optimizer();
    switch (rule.rule_case()) {
      case OptimizerDesc::kSgd:
      case OptimizerDesc::kAdagrad:
      case OptimizerDesc::kFtrl:
      case OptimizerDesc::RULE_NOT_SET: break;
      default:
        check.Error(
            has_own ? path + ".optimizer" : "model.optimizer",
            of + "what ranks learn apart adds up with sgd, adagrad and ftrl alone; give the table one of these, or "
                 "use update: ASYNC");
    }
  }
}

/// Where rows that count shows and clicks cannot be trained yet.
void CheckAccessors(const TrainerDesc& desc, Checker& check) {
  for (int i = 0; i < desc.model().table_size(); ++i) {
    if (!desc.model().table(i).has_accessor()) continue;
    const std::string path = ElementPath("model.table", i) + ".accessor";
    if (desc.class_name() == "PipelineTrainer") {
      check.Error(
          path,
          "not supported yet: a table with an accessor in a pipeline, which takes the mean of micro-batches, shows "
          "and clicks too; use class_name: \"MultiTrainer\"");
    }
  }
  const TableDesc* const first = FirstWithAccessor(desc);
  if (first == nullptr || desc.scale_sparse_gradient_with_batch_size()) return;
  check.Error("scale_sparse_gradient_with_batch_size",
              "not supported: table \"" + first->name() +
                  "\" has an accessor, whose gradients are always those of the batch's sum; leave it out");
}

void CheckProgram(const ProgramFiles& program, Checker& check) {
  if (program.main().empty()) {
    check.Missing("program", "main", "program needs main, the file with the ProgramDesc: main: \"main_program.bin\"");
  }
  if (program.startup().empty() && program.init_dir().empty()) {
    check.Error("program", "program needs startup or init_dir: where do the parameters start?");
  }
  const auto check_folder = [&check](bool is_set, const std::string& folder, const char* path) {
    if (is_set && folder.empty()) check.Error(path, "the name of the folder is empty");
  };
  check_folder(program.has_save_dir(), program.save_dir(), "program.save_dir");
  check_folder(program.has_server_dir(), program.server_dir(), "program.server_dir");
  check_folder(program.has_save_server_dir(), program.save_server_dir(), "program.save_server_dir");
}

/// What goes with a dataset does not go with a program that reads for itself.
void CheckReaderProgram(const TrainerDesc& desc, Checker& check) {
  const std::string why = ": the program has no data_desc, so it reads its data itself, ";
  if (desc.program().startup().empty()) {
    check.Missing("program", "startup", "program needs startup" + why + "and readers are made by the startup program");
  }
  const auto refuse = [&](bool is_set, const std::string& path) {
    if (is_set) check.Error(path, path + why + "and there is no dataset that " + path + " could use");
  };
  if (desc.has_eval()) {
    check.Error("eval",
                "eval" + why +
                    "and eval would have no readers to read other files with: measure by a job of its own, of a "
                    "program that reads those and updates nothing, with program.init_dir where this one has "
                    "program.save_dir");
  }
  refuse(desc.has_feature_importance(), "feature_importance");
  refuse(desc.infer(), "infer");
  refuse(desc.device_worker_name() != "HogwildWorker", "device_worker_name");
  refuse(desc.class_name() == "PipelineTrainer", "class_name");
  refuse(desc.dump_fields_size() > 0, "dump_fields[0]");
  refuse(desc.dump_param_size() > 0, "dump_param[0]");
  refuse(desc.output().trace(), "output.trace");
  refuse(desc.output().export__size() > 0, "output.export[0]");
}

/// Slots that are dumped, checked, printed or grouped by have a reader, though no layer has them.
std::set<std::string> SlotsReadOutsideTheModel(const TrainerDesc& desc) {
  std::set<std::string> names(desc.dump_fields().begin(), desc.dump_fields().end());
  names.insert(desc.check_nan_var_names().begin(), desc.check_nan_var_names().end());
  names.insert(desc.fetch_config().fetch_var_names().begin(), desc.fetch_config().fetch_var_names().end());
  names.insert(desc.data_desc().multi_slot_desc().uid_slot());
  return names;
}

}  // namespace

bool FeedsItself(const TrainerDesc& desc) {
  return desc.has_program() && !desc.has_model() && !desc.has_data_desc() && !desc.has_dataset() &&
         !desc.has_incremental() && desc.filelist_size() == 0;
}

void CheckOutputFolder(const TrainerDesc& desc, const FieldPositions& positions, Diagnostics* diagnostics) {
  if (!desc.output().dir().empty() || desc.infer()) return;
  const auto writes = [&](bool wanted, const std::string& path) {
    if (!wanted || !positions.Has(path)) return;
    diagnostics->Error(positions.Find(path), Checker::Field(path) +
                                                 " is written to the output folder, and there is none: give "
                                                 "--output_dir=DIR or output { dir: \"...\" }");
  };
  writes(true, "checkpoint");
  writes(desc.output().tensorboard(), "output.tensorboard");
  writes(desc.output().trace(), "output.trace");
  writes(desc.output().save_inference_model(), "output.save_inference_model");
  if (desc.eval().has_early_stopping()) {
    diagnostics->Warning(positions.Find("eval.early_stopping"),
                         "early_stopping ends the training, but the best model is kept in the output folder alone, and "
                         "there is none: at the end the model is that of the last evaluation; give --output_dir=DIR or "
                         "output { dir: \"...\" }");
  }
}

void ValidateTrainerDesc(const TrainerDesc& desc, const KnownNames& known, bool needs_model, const ModelJudge& judge,
                         const FieldPositions& positions, Diagnostics* diagnostics) {
  Checker check(known, positions, diagnostics);
  check.Ranges(desc);
  CheckKnown(check, "class_name", "trainer", desc.class_name(), known.trainers);
  CheckKnown(check, "device_worker_name", "device worker", desc.device_worker_name(), known.device_workers);
  CheckIncremental(desc, check);
  const bool feeds_itself = FeedsItself(desc);
  if (feeds_itself) CheckReaderProgram(desc, check);
  if (desc.filelist_size() == 0 && (!desc.has_incremental() || desc.infer()) && !feeds_itself) {
    check.Missing("", "filelist", "filelist is missing: which files are to be read? filelist: \"data/part-*\"");
  }
  const std::vector<DefinedSlot> slots = feeds_itself ? std::vector<DefinedSlot>() : CheckDataFeed(desc, check);
  if (!feeds_itself) CheckDataset(desc, check);
  if (desc.has_model() && desc.has_program() && !StandsBesideProgram(desc)) {
    check.Error(
        "program",
        "program and model (line " + std::to_string(check.Line("model")) +
            ") exclude each other: one says what is trained; beside a program, a model has metrics, and the tables "
            "and the optimizer of a program that Paddle's fleet wrote");
  } else if (desc.has_program()) {
    CheckProgram(desc.program(), check);
  } else if (needs_model && !desc.has_model() && !positions.Has("program")) {
    check.Missing("", "model", "model is missing (or program, for one that was written elsewhere): what is trained?");
  }
  if (desc.has_model()) {
    CheckModel(desc.model(), slots, desc.data_desc().feature_size() > 0, SlotsReadOutsideTheModel(desc),
               StandsBesideProgram(desc), judge, check);
  }
  CheckFetch(desc.fetch_config(), check);
  CheckEval(desc, check);
  CheckCheckpoint(desc, check);
  CheckOutput(desc.output(), check);
  CheckImportance(desc, slots, check);
  CheckDump(desc, check);
  CheckPipeline(desc, slots, check);
  CheckDist(desc, check);
  CheckAccessors(desc, check);
  CheckCopies(desc, check);
  RejectUnsupportedFields(desc, positions, diagnostics);
}

}  // namespace millrace
