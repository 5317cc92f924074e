#include "trainer/trainer.h"

#include "trainer/multi_trainer.h"
#include "trainer/reader_trainer.h"

namespace millrace {
namespace {

struct Entry {
  const char* name;
  Result<std::unique_ptr<Trainer>> (*create)(Job&, TrainerHooks);
};

// A new trainer is a class in a file of its own and a line here.
constexpr Entry kTrainers[] = {
    {"MultiTrainer", &MultiTrainer::Create},
    {"PipelineTrainer", &MultiTrainer::Create},
};

}  // namespace

Status KeptBehind(const Status& failure, const Status& saved, int64_t step, bool of_files) {
  std::string text = failure.message() + "\n";
  if (!saved.ok()) return {failure.code(), text + saved.message()};
  text += "what was trained before is kept: --resume=auto goes on from step " + std::to_string(step);
  if (of_files) text += "; once an input file is mended, with --set checkpoint.accept_changed_files=true";
  return {failure.code(), std::move(text)};
}

Result<std::unique_ptr<Trainer>> CreateTrainer(Job& job, TrainerHooks hooks) {
  std::string known;
  for (const Entry& entry : kTrainers) {
    if (job.desc().class_name() == entry.name) {
      return job.feeds_itself() ? ReaderTrainer::Create(job, std::move(hooks)) : entry.create(job, std::move(hooks));
    }
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return InvalidConfig("class_name: there is no trainer \"" + job.desc().class_name() + "\"; registered: " + known);
}

std::vector<std::string> TrainerNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kTrainers) names.emplace_back(entry.name);
  return names;
}

}  // namespace millrace
