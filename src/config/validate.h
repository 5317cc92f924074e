#pragma once

#include "config/diagnostics.h"
#include "config/field_positions.h"
#include "config/known_names.h"
#include "config/model_judge.h"

namespace millrace {

class TrainerDesc;

/// Whether the job's program reads its data itself, through readers: `program`, and nothing that says what would feed
/// it.
bool FeedsItself(const TrainerDesc& desc);

/// Reports everything in `desc` that cannot work, each with its place: unknown classes and references, values out of
/// range, slots that contradict each other, and fields of Paddle that would change results but are not acted on here.
/// `needs_model`: one of model and program must be there.
/// `judge` may be empty: then the model is checked for ranges, classes and labels only.
void ValidateTrainerDesc(const TrainerDesc& desc, const KnownNames& known, bool needs_model, const ModelJudge& judge,
                         const FieldPositions& positions, Diagnostics* diagnostics);

/// Reports what asks for files when there is no folder to write to.
void CheckOutputFolder(const TrainerDesc& desc, const FieldPositions& positions, Diagnostics* diagnostics);

}  // namespace millrace
