#pragma once

#include <stop_token>
#include <string>

#include "core/long_work.h"
#include "core/status.h"
#include "framework.pb.h"
#include "program/feed_fetch.h"
#include "runtime/scope.h"
#include "serving/feed_lists.h"

namespace millrace {

/// The files written by Paddle's save_inference_model.
struct PaddleModelFiles {
  std::string program;     ///< PREFIX.pdmodel, or __model__
  std::string parameters;  ///< PREFIX.pdiparams, or __params__; empty: one file per variable next to the program
  std::string data_feed;   ///< line format as written by WritePaddleModel; empty: none
};

/// Finds the model in a folder (its only .pdmodel, or model.pdmodel among several, or __model__) or by prefix. Fails
/// with kNotFound without a model, kInvalidConfig for several, kBadData for a file that is a link out of the folder or
/// a special file.
Result<PaddleModelFiles> FindPaddleModel(const std::string& folder_or_prefix);

/// Reads a model's program without feed and fetch operators, which are returned in `lists`. Fails with kNotFound or kIo
/// if it cannot be read, kInvalidConfig if it is not a program or has no fetch operators.
Result<ProgramDesc> ReadPaddleProgram(const PaddleModelFiles& files, FeedFetch* lists);

/// Loads the parameters of `program` into `root`. Fails like LoadVariables and LoadCombined.
Status LoadPaddleParameters(const PaddleModelFiles& files, const ProgramDesc& program, Scope& root,
                            const std::stop_token& stop);

/// A slot per fed variable in feed order: the line format of a model without a description. Fails with kInvalidConfig
/// for a variable that is undeclared or is not float32 or int64.
Result<DataFeedDesc> FeedLines(const ProgramDesc& program, const std::vector<std::string>& feeds);

/// Writes FOLDER/NAME.pdmodel and .pdiparams for paddle.static.load_inference_model(FOLDER/NAME, ...), and
/// NAME.data_feed.prototxt for Predictor. Parameters come from `root`; lookups must use dense parameters. Fails with
/// kIo if a file cannot be written, kCancelled after a stop request of `work`; some files are missing then.
Status WritePaddleModel(const FeedList& feed, const std::vector<std::string>& fetches, const Scope& root,
                        const std::string& folder, const std::string& name, const LongWork& work);

}  // namespace millrace
