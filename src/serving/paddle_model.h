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

/// The files of a model as Paddle's save_inference_model writes them.
struct PaddleModelFiles {
  std::string program;     ///< PREFIX.pdmodel, or __model__
  std::string parameters;  ///< PREFIX.pdiparams, or __params__; empty: one file a variable beside the program
  std::string data_feed;   ///< how lines are read, as WritePaddleModel leaves it; empty: nothing says
};

/// Finds the model in a folder (its only .pdmodel, or model.pdmodel among several, or __model__) or by its prefix.
/// kNotFound when there is none, kInvalidConfig when there are several, kBadData for a file that is a link elsewhere or
/// no plain file.
Result<PaddleModelFiles> FindPaddleModel(const std::string& folder_or_prefix);

/// Reads the program of a model, without its feed and fetch operators, which come back as lists.
Result<ProgramDesc> ReadPaddleProgram(const PaddleModelFiles& files, FeedFetch* lists);

/// Reads the parameters of `program` into `root`. kCancelled after a stop request.
Status LoadPaddleParameters(const PaddleModelFiles& files, const ProgramDesc& program, Scope& root,
                            const std::stop_token& stop);

/// A slot for each fed variable, in the order of the feed list: how lines of a model are read that says no more.
Result<DataFeedDesc> FeedLines(const ProgramDesc& program, const std::vector<std::string>& feeds);

/// Writes FOLDER/NAME.pdmodel and .pdiparams for paddle.static.load_inference_model(FOLDER/NAME, ...), and
/// NAME.data_feed.prototxt for Predictor. Parameters come from `root`; lookups must be in dense ones. kCancelled when
/// `work` is stopped, with some files missing.
Status WritePaddleModel(const FeedList& feed, const std::vector<std::string>& fetches, const Scope& root,
                        const std::string& folder, const std::string& name, const LongWork& work);

}  // namespace millrace
