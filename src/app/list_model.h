#pragma once

#include <string>

#include "inference_model.pb.h"

namespace millrace {

/// What a saved model says of itself, for people: by whom it was written, what it predicts and is fed with, what it
/// keeps, which plugins it needs, and by what its predictions are calibrated.
std::string ListModel(const InferenceModel& model);

}  // namespace millrace
