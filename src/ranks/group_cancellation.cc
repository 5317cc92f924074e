#include "ranks/group_cancellation.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/wire.h"

namespace millrace {

GroupCancellation::GroupCancellation(RankCalls& calls) : calls_(&calls) {
  calls_->Serve(RankService::kEnd, [this](int /*from*/, std::string_view request, std::string* /*answer*/) {
    WireReader in(request);
    const auto number = in.Get<int64_t>();
    if (!in.ok()) return Internal("a word about an end ends too soon");
    EndHere(number);
    return Status::Ok();
  });
}

GroupCancellation::~GroupCancellation() { calls_->Serve(RankService::kEnd, nullptr); }

std::stop_token GroupCancellation::Begin() {
  const std::lock_guard lock(mutex_);
  stop_ = std::stop_source();
  if (++begun_ <= given_up_) stop_.request_stop();
  return stop_.get_token();
}

void GroupCancellation::GiveUp() {
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = begun_;
    if (given_up_ >= number) return;
  }
  const int own = calls_->communicator().rank();
  for (int r = 0; r < calls_->communicator().size(); ++r) {
    if (r == own) continue;
    std::string message;
    WireWriter(&message).Put(number);
    (void)calls_->Tell(r, RankService::kEnd, std::move(message)).ok();
  }
  EndHere(number);
}

void GroupCancellation::EndHere(int64_t number) {
  std::optional<std::stop_source> stop;
  {
    const std::lock_guard lock(mutex_);
    given_up_ = std::max(given_up_, number);
    if (number == begun_) stop = stop_;
  }
  // Those who are told of it may ask for the lock.
  if (stop.has_value()) stop->request_stop();
}

}  // namespace millrace
