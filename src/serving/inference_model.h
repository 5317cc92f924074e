#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/long_work.h"
#include "core/replace_folder.h"
#include "core/status.h"
#include "datafeed/value_names.h"
#include "framework.pb.h"
#include "inference_model.pb.h"
#include "runtime/scope.h"
#include "table/sparse_table.h"

namespace millrace {

class DataFeedDesc;
class DataFeedFactory;
class OpRegistry;

/// Format version of the folder, stored in MODEL.
inline constexpr int kModelFormatVersion = 1;

/// The trained model for SaveInferenceModel.
struct InferenceSource {
  const ProgramDesc* test = nullptr;     ///< forward operators
  const ProgramDesc* startup = nullptr;  ///< creates the tables
  const Scope* root = nullptr;           ///< contains the parameters
  const DataFeedDesc* data_desc = nullptr;
  TableContent content = TableContent::kWeights;  ///< for growing tables
  std::string prediction;                         ///< the variable with a score per row
  /// All variables returned when the model runs as a program, including `prediction`. Empty: only that.
  std::vector<std::string> targets;
  std::string label;                           ///< slot of the label; the online feed excludes it
  std::vector<ModelCalibration> calibrations;  ///< calibrations of the program's predictions
  std::vector<ModelTask> tasks;  ///< the losses of a job with several, the first with `prediction` and `label`
  SlotShares slot_shares;        ///< of the last evaluation
  /// Outputs of the embedding layers, fed online instead of ids. Empty: no online feed.
  std::vector<std::string> pooled;
  uint64_t seed = 1;
  /// Origin of operators and of the class that reads lines: the model lists the plugins it requires.
  const OpRegistry* ops = nullptr;
  const DataFeedFactory* feeds = nullptr;
  int threads = 1;     ///< writing threads per table
  LongWork work = {};  ///< its stop request cancels the save
};

/// Writes a model for Predictor: FOLDER with the programs pruned to the prediction (`offline`: fed with ids; `online`:
/// fed with pooled embeddings), their parameters and tables, and MODEL with checksums. See docs/formats/model.md.
///
/// The folder appears atomically and replaces an earlier model. No thread may train meanwhile. Fails with
/// kInvalidConfig if the folder contains other files or the program cannot be pruned, kIo with the system's reason,
/// kCancelled after a stop request.
Status SaveInferenceModel(const InferenceSource& source, const std::string& folder);

/// The files listed in a folder's MODEL; empty if it is missing or damaged.
std::set<std::string> FilesOfModel(const std::string& folder);
inline constexpr SavedFolder kModelFolder = {"a saved model", FilesOfModel};

/// Fails with kBadData if a model, given as files by name, has a file outside its folder.
Status CheckModelFiles(const std::map<std::string, std::string>& files);
/// Writes such a model like SaveInferenceModel. Fails like CheckModelFiles and WriteFolder.
Status WriteModelFiles(const std::map<std::string, std::string>& files, const std::string& folder);

/// The model's folder in a run's output folder; empty if there is none.
std::string ModelInOutput(const std::string& folder);
/// Returns kNotFound for a folder without MODEL, describing what it is and what else is missing.
Status NoModelIn(const std::string& folder, const std::string& nor = "");

/// Reads the MODEL of such a folder after verifying its files. Fails with kNotFound without a model, kBadData for
/// damaged files or another version, kIo if one cannot be read, kCancelled after a stop request.
Result<InferenceModel> ReadInferenceModel(const std::string& folder, int threads, const std::stop_token& stop);

/// Loads the weights of such a folder into the variables of `program`, just created by its startup program in `root`
/// with empty tables. Optimizer states do not change. Fails with kInvalidConfig, listing each variable that does not
/// fit, and like ReadInferenceModel; some variables may be loaded then.
Status LoadModelWeights(const std::string& folder, const ProgramDesc& program, Scope& root, int threads,
                        const std::stop_token& stop);

}  // namespace millrace
