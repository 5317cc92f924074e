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

/// Version of the folder's format, in MODEL.
inline constexpr int kModelFormatVersion = 1;

/// What save_inference_model needs to know of a trained model.
struct InferenceSource {
  const ProgramDesc* test = nullptr;     ///< forward operators
  const ProgramDesc* startup = nullptr;  ///< that makes the tables
  const Scope* root = nullptr;           ///< with the parameters
  const DataFeedDesc* data_desc = nullptr;
  TableContent content = TableContent::kWeights;  ///< of tables that grow
  std::string prediction;                         ///< the variable with a score a row
  /// All that the model returns to who runs it as a program, `prediction` among them. Empty: that alone.
  std::vector<std::string> targets;
  std::string label;                           ///< slot with what is predicted; the online feed leaves it out
  std::vector<ModelCalibration> calibrations;  ///< that the program has of its predictions
  std::vector<ModelTask> tasks;  ///< the losses of a job with several, the first with `prediction` and `label`
  SlotShares slot_shares;        ///< of the last evaluation
  /// Outputs of the embedding layers: what an online caller feeds instead of ids. Empty: no online feed.
  std::vector<std::string> pooled;
  uint64_t seed = 1;
  /// Where operators and the class that reads the lines come from: the model says which plugins it needs.
  const OpRegistry* ops = nullptr;
  const DataFeedFactory* feeds = nullptr;
  int threads = 1;     ///< that write files of a table
  LongWork work = {};  ///< whose stop gives the save up
};

/// Writes a model that Predictor loads: FOLDER with the programs pruned to the prediction (`offline`: fed with ids;
/// `online`: fed with pooled embeddings), their parameters and tables, and MODEL with checksums. docs/formats/model.md.
///
/// The folder appears whole or not at all; one that is there is replaced, if it holds nothing but the files of a model.
/// Nobody may train meanwhile. kIo with the system's reason; kCancelled after a stop request.
Status SaveInferenceModel(const InferenceSource& source, const std::string& folder);

/// The files of the model in a folder, as its MODEL lists them; none where there is no such file, or it is damaged.
std::set<std::string> FilesOfModel(const std::string& folder);
inline constexpr SavedFolder kModelFolder = {"a saved model", FilesOfModel};

/// kBadData for a model kept as its files by name, of which one lies outside its folder.
Status CheckModelFiles(const std::map<std::string, std::string>& files);
/// Writes such a model as SaveInferenceModel does.
Status WriteModelFiles(const std::map<std::string, std::string>& files, const std::string& folder);

/// The folder of the model in the output folder of a run; empty: there is none.
std::string ModelInOutput(const std::string& folder);
/// kNotFound that says of a folder without MODEL what it is, and what else it lacks.
Status NoModelIn(const std::string& folder, const std::string& nor = "");

/// What such a folder says, once the sums of its files were compared. kNotFound, kBadData; kCancelled.
Result<InferenceModel> ReadInferenceModel(const std::string& folder, int threads, const std::stop_token& stop);

/// Reads the weights of such a folder into the variables of `program`, which its startup program has just made in
/// `root`: tables have no rows yet. What updates keep stays as it was made. kInvalidConfig with each variable that does
/// not fit, and the errors of ReadInferenceModel; after a failure some may be read.
Status LoadModelWeights(const std::string& folder, const ProgramDesc& program, Scope& root, int threads,
                        const std::stop_token& stop);

}  // namespace millrace
