#include "ranks/rank_file_queue.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/wire.h"

namespace millrace {

class RankFileQueue::OfOnePass final : public FileQueue {
 public:
  OfOnePass(RankFileQueue& queue, int64_t pass, size_t files) : queue_(&queue), pass_(pass), files_(files) {}
  Result<size_t> Next(FileTurn turn, const std::stop_token& stop) override {
    return queue_->Next({pass_, files_, turn}, stop);
  }

 private:
  RankFileQueue* queue_;
  const int64_t pass_;
  const size_t files_;
};

RankFileQueue::RankFileQueue(RankCalls& calls, int trainers)
    : calls_(&calls), trainers_(static_cast<size_t>(std::max(trainers, 1))) {
  if (calls_->communicator().rank() != 0) return;
  calls_->Serve(RankService::kFiles, [this](int from, std::string_view bytes, std::string* answer) {
    WireReader in(bytes);
    Request request;
    request.pass = in.Get<int64_t>();
    request.files = in.Get<uint64_t>();
    request.turn = in.Get<FileTurn>();
    if (!in.ok()) return Internal("a request for a file ends too soon");
    WireWriter(answer).Put(static_cast<uint64_t>(Count(request, from)));
    return Status::Ok();
  });
}

RankFileQueue::~RankFileQueue() {
  if (calls_->communicator().rank() == 0) calls_->Serve(RankService::kFiles, nullptr);
}

std::unique_ptr<FileQueue> RankFileQueue::OfPass(int64_t pass, size_t files) {
  return std::make_unique<OfOnePass>(*this, pass, files);
}

std::unique_ptr<FileQueue> RankFileQueue::OfEvaluation(int64_t evaluation, size_t files) {
  return OfPass(-1 - evaluation, files);
}

size_t RankFileQueue::ShareOf(size_t rank, size_t files) const {
  if (rank >= trainers_) return 0;
  return files / trainers_ + (rank < files % trainers_ ? 1 : 0);
}

size_t RankFileQueue::Count(const Request& request, int from) {
  const std::lock_guard lock(mutex_);
  const auto rank = static_cast<size_t>(from);
  Taken& taken = taken_[request.pass];
  taken.by_rank.resize(static_cast<size_t>(calls_->communicator().size()));
  if (taken.next >= request.files) return request.files;
  if (request.turn == FileTurn::kFirst && taken.by_rank[rank] >= ShareOf(rank, request.files)) {
    size_t of_others = 0;
    for (size_t other = 0; other < trainers_; ++other) {
      const size_t share = ShareOf(other, request.files);
      if (other != rank && share > taken.by_rank[other]) of_others += share - taken.by_rank[other];
    }
    if (request.files - taken.next <= of_others) return request.files;
  }
  ++taken.by_rank[rank];
  return taken.next++;
}

Result<size_t> RankFileQueue::Next(const Request& request, const std::stop_token& stop) {
  if (calls_->communicator().rank() == 0) return Count(request, 0);
  std::vector<std::optional<std::string>> requests(static_cast<size_t>(calls_->communicator().size()));
  WireWriter out(&requests[0].emplace());
  out.Put(request.pass);
  out.Put(request.files);
  out.Put(request.turn);
  std::vector<std::string> answers;
  Status asked = calls_->Ask(RankService::kFiles, std::move(requests), &answers, stop);
  if (!asked.ok()) return std::move(asked).Context("asking for the next file");
  WireReader in(answers[0]);
  const auto number = in.Get<uint64_t>();
  if (!in.ok()) return Internal("an answer about files ends too soon");
  return static_cast<size_t>(number);
}

}  // namespace millrace
