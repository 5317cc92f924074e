#include "trainer/builtin_trainers.h"

#include "core/caught.h"
#include "trainer/multi_trainer.h"
#include "trainer/reader_trainer.h"

namespace millrace {

Status RegisterBuiltinTrainers(TrainerRegistry& registry) {
  MR_TRY(registry.Add("MultiTrainer", "a thread a worker", &MultiTrainer::Create));
  MR_TRY(registry.Add("DistMultiTrainer", "Paddle's name of a MultiTrainer whose workers have servers",
                      &MultiTrainer::Create));
  return registry.Add("PipelineTrainer", "a pipeline of section threads a worker", &MultiTrainer::Create);
}

Result<std::unique_ptr<Trainer>> CreateTrainer(JobSession& session, TrainerHooks hooks) {
  const CompiledJob& job = session.job();
  MR_ASSIGN(const TrainerMaker* maker, job.environment().trainers.Get(job.desc().class_name()).Context("class_name"));
  if (job.feeds_itself())
    return (job.is_loop() ? &ReaderTrainer::Create : &MultiTrainer::Create)(session, std::move(hooks));
  return CaughtMaking("the trainer \"" + job.desc().class_name() + "\"",
                      [&] { return (*maker)(session, std::move(hooks)); });
}

}  // namespace millrace
