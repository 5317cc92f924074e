#include "dist/rank_file_queue.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dist/wire.h"

namespace millrace {

class RankFileQueue::OfOnePass final : public FileQueue {
 public:
  OfOnePass(RankFileQueue& queue, int64_t pass) : queue_(&queue), pass_(pass) {}
  Result<size_t> Next(const std::stop_token& stop) override { return queue_->Next(pass_, stop); }

 private:
  RankFileQueue* queue_;
  const int64_t pass_;
};

RankFileQueue::RankFileQueue(RankCalls& calls) : calls_(&calls) {
  if (calls_->communicator().rank() != 0) return;
  calls_->Serve(RankService::kFiles, [this](int /*from*/, std::string_view request, std::string* answer) {
    WireReader in(request);
    const auto pass = in.Get<int64_t>();
    if (!in.ok()) return Internal("a request for a file ends too soon");
    WireWriter(answer).Put(static_cast<uint64_t>(Count(pass)));
    return Status::Ok();
  });
}

RankFileQueue::~RankFileQueue() {
  if (calls_->communicator().rank() == 0) calls_->Serve(RankService::kFiles, nullptr);
}

std::unique_ptr<FileQueue> RankFileQueue::OfPass(int64_t pass) { return std::make_unique<OfOnePass>(*this, pass); }

std::unique_ptr<FileQueue> RankFileQueue::OfEvaluation(int64_t evaluation) { return OfPass(-1 - evaluation); }

size_t RankFileQueue::Count(int64_t pass) {
  const std::lock_guard lock(mutex_);
  return next_[pass]++;
}

Result<size_t> RankFileQueue::Next(int64_t pass, const std::stop_token& stop) {
  if (calls_->communicator().rank() == 0) return Count(pass);
  std::vector<std::optional<std::string>> requests(static_cast<size_t>(calls_->communicator().size()));
  WireWriter(&requests[0].emplace()).Put(pass);
  std::vector<std::string> answers;
  Status asked = calls_->Ask(RankService::kFiles, std::move(requests), &answers, stop);
  if (!asked.ok()) return std::move(asked).Context("asking for the next file");
  WireReader in(answers[0]);
  const auto number = in.Get<uint64_t>();
  if (!in.ok()) return Internal("an answer about files ends too soon");
  return static_cast<size_t>(number);
}

}  // namespace millrace
