#pragma once

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/field_positions.h"
#include "config/known_names.h"
#include "config/model_judge.h"
#include "config/plugin_host.h"
#include "core/status.h"

namespace millrace {

class EvalDesc;
class EvalDesc_Set;
class TrainerDesc;

/// What to read, and how strictly.
struct ConfigRequest {
  /// A prototxt with a TrainerDesc.
  std::string file;
  /// Assignments after the file, in order: "data_desc.batch_size=64" (overrides.h has the grammar).
  std::vector<std::string> overrides;
  /// Several ranks train the job: without `dist` it has dist { update: ASYNC }.
  bool of_ranks = false;
  KnownNames known;
  /// Loads the job's plugins and then says what is known, in place of `known`. Null: plugins are not loaded, and the
  /// names that they might bring are not checked.
  PluginHost* plugins = nullptr;
  /// Expands file lists and demands that their files exist.
  bool check_files = true;
  /// Rows may come from memory: of a job with features, a filelist that names no files is that of kTrainedRows, and
  /// then an eval.filelist that names none that of kEvaluatedRows, and those of eval.set likewise.
  bool may_lack_files = false;
  /// How many passes at the head of `incremental` are trained already, of the configuration as it was overridden: their
  /// files may be gone, and `pass_files` then has none of them. Empty: none is.
  std::function<int64_t(const TrainerDesc&)> trained_passes = nullptr;
  /// Demands a model or a program; not for what only reads data.
  bool needs_model = true;
  /// What is to be written has a folder, by output.dir or otherwise; without one, asking for a checkpoint is a mistake,
  /// and early stopping, which keeps the best model there, gets a warning.
  bool has_output_folder = true;
  /// Ends the looks at those files, of which there may be many: kCancelled.
  std::stop_token stop = {};
  /// Judges the model, also one beside a program. Empty: the model is checked for ranges, classes and labels only.
  ModelJudge judge = nullptr;
  /// Finds what only the compiled program shows, such as variables that no operator makes. Asked when something else is
  /// wrong, so that one report has both. Not asked when `data_desc` or `model`, which it compiles, is wrong. Not asked
  /// of a sound configuration either: its compiler meets these mistakes. Empty: not asked.
  std::function<std::vector<ConfigMistake>(const TrainerDesc&)> find_deeper = nullptr;
};

/// Whether a set of eval.set is of the rows of the training files.
bool IsSplit(const EvalDesc_Set& set);
/// The number in eval.set of the set that is watched: that of eval.watch, or the first one. -1: that of eval.filelist.
int WatchedSet(const EvalDesc& eval);

/// A set of rows that evaluations measure.
struct EvalSet {
  std::string name;                ///< empty: that of eval.filelist
  int number = -1;                 ///< in eval.set; -1: that of eval.filelist
  std::vector<std::string> files;  ///< of a part of the training files these
  bool is_split = false;           ///< IsSplit
};

/// A configuration that has been read, overridden and found sound.
struct LoadedConfig {
  std::unique_ptr<TrainerDesc> desc;
  /// `desc.filelist` written out: what the dataset reads, in order. Empty without check_files.
  std::vector<std::string> files;
  /// Those of `files` whose rows come once: named pipes, sockets and devices.
  std::set<std::string> files_read_once;
  /// The sets of `desc.eval`, the one that is watched first. Empty without check_files.
  std::vector<EvalSet> eval_sets;
  /// The same of every `desc.incremental.pass`; `files` are then those of all, one behind the other. Of a pass that is
  /// trained and whose files are gone, none.
  std::vector<std::vector<std::string>> pass_files;
  /// Rendered warnings, to be shown to the user once; empty: none.
  std::string warnings;
  /// Keys of what the user was warned of while features were prepared (ValueWarnings).
  std::set<std::string> said_of_values;
  /// The texts and where each field stands in them, for mistakes that show later.
  Diagnostics sources;
  FieldPositions positions;

  LoadedConfig();
  ~LoadedConfig();
  LoadedConfig(LoadedConfig&&) noexcept;
  LoadedConfig& operator=(LoadedConfig&&) noexcept;

  /// kInvalidConfig that shows each mistake at its place, as LoadTrainerDesc does. `mistakes` is not empty.
  Status Report(const std::vector<ConfigMistake>& mistakes) const;
};

/// Reads, overrides and validates a TrainerDesc. Every mistake of every stage comes back in one kInvalidConfig whose
/// message is the full, multi-line report with places and suggestions; kNotFound when the only thing wrong is that
/// inputs which it names are not there.
Result<LoadedConfig> LoadTrainerDesc(const ConfigRequest& request);

/// As LoadTrainerDesc for a text in memory; `origin` stands for the file's name in messages.
Result<LoadedConfig> LoadTrainerDescText(std::string origin, std::string text, const ConfigRequest& request);

}  // namespace millrace
