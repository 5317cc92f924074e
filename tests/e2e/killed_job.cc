#include "e2e/killed_job.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "core/rng.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

std::vector<std::string> FlagsOf(const std::string& job, const std::string& out) {
  return {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto"};
}

}  // namespace

void TrainToTheEnd(const std::string& job, const std::string& out) {
  Process trainer("trainer", FlagsOf(job, out));
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
}

void TrainKilled(const std::string& job, const std::string& out, int kills, int most_lines) {
  Rng rng(5);
  for (int kill = 0; kill < kills; ++kill) {
    Process trainer("trainer", FlagsOf(job, out));
    const auto lines = static_cast<int>(rng.Below(static_cast<uint64_t>(most_lines)));
    std::string line;
    for (int i = 0; i < lines && trainer.ReadLine(&line); ++i) {
    }
    trainer.Signal(SIGKILL);
    trainer.Wait();
  }
  TrainToTheEnd(job, out);
}

std::vector<std::string> ParametersOf(const std::string& model) {
  std::vector<std::string> files = FolderContent(model);
  std::erase_if(files, [](const std::string& file) { return file.starts_with("/MODEL\n"); });
  return files;
}

}  // namespace millrace
