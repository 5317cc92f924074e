#pragma once

#include <functional>

#include "program/model_judgement.h"

namespace millrace {

class ModelDesc;
class SlotSchema;

/// Says what is wrong with a model over these slots and what it reads of them, as the model's compiler sees it. The
/// model may have any mistake; without any slot, names of slots are not missed. The last one: the model stands beside a
/// program.
using ModelJudge = std::function<ModelJudgement(const ModelDesc&, const SlotSchema&, bool is_of_program)>;

}  // namespace millrace
