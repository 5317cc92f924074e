#pragma once

#include "job/environment.h"
#include "job/trainer.h"

namespace millrace {

/// The list of trainers that Millrace brings along. kAlreadyExists when one of them is there.
Status RegisterBuiltinTrainers(TrainerRegistry& registry);

/// The trainer of the job's class_name; kInvalidConfig, with the known names, when there is none. A program that feeds
/// itself has a MultiTrainer, or, when it is a whole training, one of its own.
Result<std::unique_ptr<Trainer>> CreateTrainer(JobSession& session, TrainerHooks hooks);

}  // namespace millrace
