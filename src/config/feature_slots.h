#pragma once

#include <stop_token>
#include <vector>

#include "core/status.h"
#include "features/feature_spec.h"

namespace millrace {

class DataFeedDesc;

/// Makes what readers of a description look at of its features: their slots become `multi_slot_desc`, and
/// `feature_states` names the rule of texts of new jobs. Nothing where it has none. Mistakes of features are passed
/// over, as who checks the description tells them.
void FillFeatureSlots(DataFeedDesc* desc);

/// Reads the files of vocabularies into `desc->feature_states`, so that a model knows their words. Returns what is
/// wrong with them. Ends early after a stop request.
std::vector<FeatureMistake> ReadVocabularyFiles(DataFeedDesc* desc, const std::stop_token& stop);

}  // namespace millrace
