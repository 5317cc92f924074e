#pragma once

#include <stop_token>
#include <string>

#include "core/file.h"
#include "job/job_session.h"
#include "report/run_recorder.h"
#include "report/run_summary.h"

namespace millrace {

/// Runs a session of a job as `trainer` does, from its start or a checkpoint to its end, and writes what a run keeps
/// into the job's output folder: checkpoints/, metrics.jsonl, tensorboard/, run.json, model/, trace.json
/// (docs/training.md); of an `infer` job infer.json and infer.jsonl. Without a folder nothing is written.
///
/// `resume` is "never", "auto" or a checkpoint's folder. Tells the user what goes on by `output`. A stop request
/// ends the run at a batch boundary with a checkpoint: the summary then says `interrupted`, and no model is saved.
///
/// `model` is of an `infer` job with "auto": "last" (the newest checkpoint) or "best" (that of the best evaluation).
///
/// `folder` is what MakeOutputFolder gave, where the output folder was made before; else it is made here.
Result<RunSummary> RunJob(JobSession& session, const std::string& resume, const std::string& model,
                          std::stop_token stop, const RunOutput& output = {}, FileDescriptor folder = {});

}  // namespace millrace
