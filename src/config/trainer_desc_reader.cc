#include "config/trainer_desc_reader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "config/checker.h"
#include "config/diagnostics.h"
#include "config/feature_slots.h"
#include "config/feed_names.h"
#include "config/field_positions.h"
#include "config/file_list.h"
#include "config/overrides.h"
#include "config/text_file.h"
#include "config/text_parser.h"
#include "config/validate.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

bool IsBlank(std::string_view text) {
  bool comment = false;
  for (const char c : text) {
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (!comment && c != ' ' && c != '\t' && c != '\r' && c != '\n') return false;
  }
  return true;
}

void CheckProgramFiles(const ProgramFiles& program, const FieldPositions& positions, Diagnostics* diagnostics) {
  const auto check = [&](const std::string& path, const std::string& field) {
    std::error_code error;
    if (path.empty() || std::filesystem::exists(path, error)) return;
    diagnostics->InputError(positions.Find("program." + field), field + ": " + ExplainMissingFile(path));
  };
  check(program.main(), "main");
  check(program.startup(), "startup");
  check(program.init_dir(), "init_dir");
}

/// The lines of a message, without what they are indented by.
std::vector<std::string> LinesOf(const std::string& message) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < message.size();) {
    const size_t end = std::min(message.find('\n', start), message.size());
    start = std::min(message.find_first_not_of(' ', start), end);
    lines.push_back(message.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

/// Loads the job's plugins. What is known afterwards; nothing when one is missing, as nobody can say then which of the
/// names that the job uses would have come from it.
std::optional<KnownNames> LoadPlugins(const TrainerDesc& desc, const ConfigRequest& request,
                                      const FieldPositions& positions, Diagnostics* diagnostics) {
  if (desc.plugins_size() == 0) return request.plugins == nullptr ? request.known : request.plugins->names();
  if (request.plugins == nullptr) return KnownNames();
  const int errors = diagnostics->errors();
  for (int i = 0; i < desc.plugins_size(); ++i) {
    const SourceSpan where = positions.Find("plugins[" + std::to_string(i) + "]");
    const std::string& path = desc.plugins(i);
    std::error_code error;
    if (path.empty()) {
      diagnostics->Error(where, "the name of a plugin is empty");
    } else if (!std::filesystem::exists(path, error)) {
      diagnostics->InputError(where, "plugins: " + ExplainMissingFile(path));
    } else if (const Status status = request.plugins->Load(path); !status.ok()) {
      std::vector<std::string> lines = LinesOf(status.message());
      std::string first = std::move(lines.front());
      lines.erase(lines.begin());
      diagnostics->Error(where, std::move(first), std::move(lines));
    }
  }
  if (diagnostics->errors() > errors) return std::nullopt;
  return request.plugins->names();
}

/// Rows that come once make no second epoch: a named pipe's writer is gone, and reading again would wait for ever, or
/// find nothing. `eval_place` is where the first of `eval_files` is named.
void CheckReadOnce(const TrainerDesc& desc, const std::vector<FileReadOnce>& files,
                   const std::vector<FileReadOnce>& eval_files, const std::string& eval_place,
                   const FieldPositions& positions, Diagnostics* diagnostics) {
  if (desc.dataset().class_name() == "InMemoryDataset" || desc.infer()) return;
  const auto check = [&](const std::vector<FileReadOnce>& read_once, const std::string& field, const std::string& why) {
    if (read_once.empty()) return;
    diagnostics->Error(positions.Find(field),
                       "\"" + read_once.front().name + "\" is no plain file, so that its rows come once, and " + why +
                           " reads them again: load them once by dataset { class_name: \"InMemoryDataset\" }, or "
                           "name a file");
  };
  const int passes = desc.has_incremental() ? desc.incremental().pass_size() : desc.epochs();
  if (desc.epochs() > 1 && !desc.has_incremental()) {
    check(files, "epochs", "epochs: " + std::to_string(desc.epochs()));
  }
  const EvalDesc& eval = desc.eval();
  if (eval.every_steps() > 0) {
    check(eval_files, "eval.every_steps", "eval.every_steps: " + std::to_string(eval.every_steps()));
  } else if (eval.every_epochs() > 0 && passes > eval.every_epochs()) {
    check(eval_files, eval_place, "an evaluation every " + std::to_string(eval.every_epochs()) + " epochs");
  } else if (desc.has_feature_importance()) {
    check(eval_files, "feature_importance", "feature_importance");
  }
}

/// Warns of files that train and that an evaluation set names, too, once a set.
void WarnOfTrainedSets(const TrainerDesc& desc, const std::vector<std::string>& files, const std::vector<EvalSet>& sets,
                       const FieldPositions& positions, Diagnostics* diagnostics) {
  if (desc.infer() || sets.empty()) return;
  std::set<std::string> trained;
  for (const std::string& file : files) trained.insert(IdentityOf(file));
  for (const EvalSet& set : sets) {
    if (set.is_split) continue;
    const auto is_trained = [&](const std::string& file) { return trained.contains(IdentityOf(file)); };
    const auto first = std::find_if(set.files.begin(), set.files.end(), is_trained);
    if (first == set.files.end()) continue;
    const auto others = std::count_if(first + 1, set.files.end(), is_trained);
    const std::string which = set.name.empty() ? "eval.filelist" : "the evaluation set \"" + set.name + "\"";
    const std::string path = set.number < 0 ? "eval.filelist" : ElementPath("eval.set", set.number) + ".filelist";
    diagnostics->Warning(
        positions.Find(ElementPath(path, 0)),
        "\"" + *first + "\"" +
            (others > 0 ? " and " + std::to_string(others) + (others == 1 ? " other file" : " other files") : "") +
            " of " + which + (others > 0 ? " also train" : " also trains") +
            ": metrics of rows that were trained say nothing of others; name them in one of the "
            "two lists, or hold rows out by eval.set { share: 0.1 }");
  }
}

/// Who opens a named pipe that was read to its end waits for another writer, for ever as a rule.
void CheckPipesOnce(const TrainerDesc& desc, const std::vector<FileReadOnce>& files,
                    const std::vector<FileReadOnce>& eval_files, const std::string& eval_place,
                    const FieldPositions& positions, Diagnostics* diagnostics) {
  std::map<std::pair<uint64_t, uint64_t>, std::string> pipes;
  const auto check = [&](const std::vector<FileReadOnce>& read_once, const std::string& field) {
    for (const FileReadOnce& file : read_once) {
      if (!file.is_pipe) continue;
      const auto [first, is_new] = pipes.insert({file.identity, file.name});
      if (is_new) continue;
      const std::string alias = first->second == file.name ? "" : " (as \"" + first->second + "\", too)";
      diagnostics->Error(positions.Find(field), "\"" + file.name +
                                                    "\" is a named pipe, whose rows come once, and the job reads " +
                                                    "it twice" + alias + ": name a file");
      return;
    }
  };
  check(files, desc.has_incremental() ? "incremental" : "filelist[0]");
  if (!desc.infer()) check(eval_files, eval_place);
}

/// The rows of a file that several passes name are trained in each of them.
void WarnOfSharedFiles(const LoadedConfig& config, const FieldPositions& positions, Diagnostics* diagnostics) {
  std::map<std::string, size_t> first_pass;
  for (size_t i = 0; i < config.pass_files.size(); ++i) {
    for (const std::string& file : config.pass_files[i]) {
      const size_t first = first_pass.try_emplace(IdentityOf(file), i).first->second;
      if (first == i) continue;
      diagnostics->Warning(positions.Find(ElementPath("incremental.pass", i) + ".filelist"),
                           "\"" + file + "\" is a file of pass \"" +
                               config.desc->incremental().pass(static_cast<int>(first)).name() +
                               "\", too: its rows are trained in both");
      break;
    }
  }
}

/// A step takes a batch of each stream, and streams take files in turn: those without one leave every step smaller.
void WarnOfFewStreams(const LoadedConfig& config, const FieldPositions& positions, Diagnostics* diagnostics) {
  const TrainerDesc& desc = *config.desc;
  const int streams = desc.dist().micro_batches();
  const bool deals_files = desc.dist().update() == DistDesc::SYNC && desc.has_data_desc() && !desc.infer() &&
                           !desc.dataset().global_shuffle();
  if (!deals_files || (config.files.size() == 1 && config.files[0] == kTrainedRows)) return;
  size_t files = config.pass_files.empty() ? config.files.size() : SIZE_MAX;
  for (const std::vector<std::string>& of_pass : config.pass_files) {
    if (!of_pass.empty()) files = std::min(files, of_pass.size());
  }
  if (files == 0 || files >= static_cast<size_t>(std::max(0, streams))) return;
  const int64_t batch_size = desc.data_desc().batch_size();
  diagnostics->Warning(
      positions.Find("dist.micro_batches"),
      "a step has " + std::to_string(files) + " of its " + std::to_string(streams) + " batches, " +
          std::to_string(static_cast<int64_t>(files) * batch_size) + " of " + std::to_string(streams * batch_size) +
          " examples, as each batch is of files of its own (files" +
          (config.pass_files.empty() ? "" : " in the smallest pass") + ": " + std::to_string(files) +
          "); split the input into " + std::to_string(streams) + " files, set micro_batches: " + std::to_string(files) +
          ", or shuffle rows over all batches (dataset { class_name: \"InMemoryDataset\" global_shuffle: true })");
}

/// Names the rows that are to come where the job names no files.
void NameRowsInMemory(TrainerDesc* desc) {
  if (desc->data_desc().feature_size() == 0 || desc->has_incremental() || desc->infer()) return;
  if (desc->filelist_size() == 0) desc->add_filelist(std::string(kTrainedRows));
  // Where files are trained on, evaluations lack theirs.
  if (desc->filelist_size() != 1 || desc->filelist(0) != kTrainedRows) return;
  if (!desc->has_eval()) return;
  if (desc->eval().filelist_size() + desc->eval().set_size() == 0) {
    desc->mutable_eval()->add_filelist(std::string(kEvaluatedRows));
  }
  for (EvalDesc::Set& set : *desc->mutable_eval()->mutable_set()) {
    if (set.filelist_size() == 0 && !IsSplit(set)) set.add_filelist(EvaluatedRowsOf(set.name()));
  }
}

/// Expands the lists of the passes of `incremental`, whose files come behind `*files`. The first passes may be trained,
/// and their files gone.
void ExpandPasses(const ConfigRequest& request, const FieldPositions& positions, Diagnostics* diagnostics,
                  LoadedConfig* config, ExpandedFiles* files) {
  const TrainerDesc& desc = *config->desc;
  const int64_t trained = request.trained_passes ? request.trained_passes(desc) : 0;
  for (int i = 0; i < desc.incremental().pass_size(); ++i) {
    const auto& entries = desc.incremental().pass(i).filelist();
    const auto expand = [&](Diagnostics* to) {
      return ExpandFileList({entries.begin(), entries.end()}, ElementPath("incremental.pass", i) + ".filelist",
                            positions, to, request.stop);
    };
    if (i < trained) {
      Diagnostics unheard = diagnostics->SourcesAlone();
      expand(&unheard);
      if (unheard.errors() > 0) {
        config->pass_files.emplace_back();
        continue;
      }
    }
    const ExpandedFiles of_pass = expand(diagnostics);
    config->pass_files.push_back(of_pass.names);
    if (desc.infer()) continue;  // it reads filelist alone
    files->names.insert(files->names.end(), of_pass.names.begin(), of_pass.names.end());
    files->read_once.insert(files->read_once.end(), of_pass.read_once.begin(), of_pass.read_once.end());
  }
}

}  // namespace

bool IsSplit(const EvalDesc_Set& set) { return set.has_share() || set.has_since(); }

int WatchedSet(const EvalDesc& eval) {
  if (eval.watch().empty()) return eval.filelist_size() == 0 && eval.set_size() > 0 ? 0 : -1;
  for (int i = 0; i < eval.set_size(); ++i) {
    if (eval.set(i).name() == eval.watch()) return i;
  }
  return -1;
}

Status LoadedConfig::Report(const std::vector<ConfigMistake>& mistakes) const {
  Diagnostics diagnostics = sources;
  const KnownNames known;
  Checker(known, positions, &diagnostics).Add(mistakes);
  return diagnostics.ToStatus();
}

LoadedConfig::LoadedConfig() : desc(std::make_unique<TrainerDesc>()) {}
LoadedConfig::~LoadedConfig() = default;
LoadedConfig::LoadedConfig(LoadedConfig&&) noexcept = default;
LoadedConfig& LoadedConfig::operator=(LoadedConfig&&) noexcept = default;

Result<LoadedConfig> LoadTrainerDescText(std::string origin, std::string text, const ConfigRequest& request) {
  Diagnostics diagnostics;
  FieldPositions positions;
  LoadedConfig config;
  const bool blank = IsBlank(text);
  const int source = diagnostics.AddSource(std::move(origin), std::move(text));
  positions.Set("", {source, 0, 0, 0});
  if (blank) {
    diagnostics.Error({source, 0, 0, 0},
                      "the text holds nothing; a TrainerDesc says at least data_desc, filelist and model");
    return diagnostics.ToStatus();
  }
  const bool intact = ParseText(source, "", config.desc.get(), &diagnostics, &positions);
  for (size_t i = 0; i < request.overrides.size(); ++i) {
    ApplyOverride(request.overrides[i], static_cast<int>(i) + 1, config.desc.get(), &diagnostics, &positions);
  }
  if (request.of_ranks && !config.desc->has_dist()) config.desc->mutable_dist()->set_update(DistDesc::ASYNC);
  if (request.may_lack_files) NameRowsInMemory(config.desc.get());
  // Where braces do not match, what belongs to what is a guess, and judging it would bury the cause.
  std::optional<KnownNames> known;
  if (intact) {
    known = LoadPlugins(*config.desc, request, positions, &diagnostics);
    ValidateTrainerDesc(*config.desc, known.value_or(KnownNames()), request.needs_model, request.judge, positions,
                        &diagnostics);
  }
  const bool has_features = config.desc->data_desc().feature_size() > 0;
  if (has_features) FillFeatureSlots(config.desc->mutable_data_desc());
  if (intact && request.check_files) {
    const auto expand = [&](const auto& entries, std::string_view path) {
      return ExpandFileList({entries.begin(), entries.end()}, path, positions, &diagnostics, request.stop);
    };
    ExpandedFiles files = expand(config.desc->filelist(), "filelist");
    std::vector<FileReadOnce> eval_read_once;
    std::string eval_place;
    const EvalDesc& eval = config.desc->eval();
    const auto add_set = [&](EvalSet set, const std::string& path, const ExpandedFiles& expanded) {
      if (eval_read_once.empty()) eval_place = path;
      set.files = expanded.names;
      const bool is_watched = set.number == WatchedSet(eval);
      config.eval_sets.insert(is_watched ? config.eval_sets.begin() : config.eval_sets.end(), std::move(set));
      eval_read_once.insert(eval_read_once.end(), expanded.read_once.begin(), expanded.read_once.end());
    };
    if (eval.filelist_size() > 0) add_set({}, "eval.filelist[0]", expand(eval.filelist(), "eval.filelist"));
    for (int i = 0; i < eval.set_size(); ++i) {
      const EvalDesc::Set& set = eval.set(i);
      const std::string path = ElementPath("eval.set", i);
      add_set({set.name(), i, {}, IsSplit(set)}, path,
              IsSplit(set) ? files : expand(set.filelist(), path + ".filelist"));
    }
    ExpandPasses(request, positions, &diagnostics, &config, &files);
    if (request.stop.stop_requested())
      return Cancelled("stopped while looking for the files of " + diagnostics.origin(source));
    CheckProgramFiles(config.desc->program(), positions, &diagnostics);
    CheckReadOnce(*config.desc, files.read_once, eval_read_once, eval_place, positions, &diagnostics);
    CheckPipesOnce(*config.desc, files.read_once, eval_read_once, eval_place, positions, &diagnostics);
    const auto read_vocabularies = [&] { return ReadVocabularyFiles(config.desc->mutable_data_desc(), request.stop); };
    for (const FeatureMistake& mistake : has_features ? read_vocabularies() : std::vector<FeatureMistake>()) {
      diagnostics.InputError(positions.Find("data_desc." + mistake.path), mistake.message);
    }
    WarnOfTrainedSets(*config.desc, files.names, config.eval_sets, positions, &diagnostics);
    config.files = std::move(files.names);
    for (const FileReadOnce& file : files.read_once) config.files_read_once.insert(file.name);
    WarnOfFewStreams(config, positions, &diagnostics);
    WarnOfSharedFiles(config, positions, &diagnostics);
  }
  if (intact && !request.has_output_folder) CheckOutputFolder(*config.desc, positions, &diagnostics);
  if (known && diagnostics.errors() > 0 && request.find_deeper &&
      !HasErrorsWithin(diagnostics, positions, "data_desc") && !HasErrorsWithin(diagnostics, positions, "model")) {
    Checker(*known, positions, &diagnostics).Add(request.find_deeper(*config.desc));
  }
  MR_TRY(diagnostics.ToStatus());
  if (config.desc->has_data_desc()) {
    ResolveZeros(config.desc->dataset().class_name(), config.desc->mutable_data_desc());
  }
  config.warnings = diagnostics.Render();
  config.sources = diagnostics.SourcesAlone();
  config.positions = std::move(positions);
  return config;
}

Result<LoadedConfig> LoadTrainerDesc(const ConfigRequest& request) {
  if (request.file.empty())
    return InvalidConfig("--trainer_desc=FILE is missing: the job to run, a TrainerDesc in text format");
  Result<std::string> text = ReadTextFile(request.file);
  if (!text.ok()) return std::move(text).status().Context(request.file);
  return LoadTrainerDescText(request.file, std::move(*text), request);
}

}  // namespace millrace
