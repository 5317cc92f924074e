#include "ranks/rank_calls.h"

#include <algorithm>
#include <utility>

#include "core/caught.h"
#include "core/wire.h"

namespace millrace {
namespace {

enum class Kind : uint8_t { kRequest, kAnswer, kNothing };

constexpr char kNothing = static_cast<char>(Kind::kNothing);

constexpr uint64_t kNoAnswer = 0;

// A message is what is asked or answered, and behind it what it is: so nothing moves to make room for that.

void EndRequest(RankService service, uint64_t number, std::string* message) {
  WireWriter out(message);
  out.Put(service);
  out.Put(number);
  out.Put(Kind::kRequest);
}

void EndAnswer(const Status& status, uint64_t number, std::string* message) {
  if (!status.ok()) *message = status.message();
  WireWriter out(message);
  out.Put(static_cast<int32_t>(status.code()));
  out.Put(number);
  out.Put(Kind::kAnswer);
}

/// What an answer brings, or the failure that it tells of.
Status GetAnswer(std::string_view message, std::string_view* answer) {
  WireReader in(message);
  in.GetLast<Kind>();
  in.GetLast<uint64_t>();
  const auto code = static_cast<StatusCode>(in.GetLast<int32_t>());
  if (!in.ok()) return Internal("a message of another rank ends too soon");
  if (code != StatusCode::kOk) return Status(code, std::string(in.rest()));
  *answer = in.rest();
  return Status::Ok();
}

}  // namespace

RankCalls::RankCalls(Communicator& communicator) : communicator_(&communicator) { communicator_->SetReceiver(this); }

RankCalls::~RankCalls() { communicator_->SetReceiver(nullptr); }

void RankCalls::Serve(RankService service, Answer answer) {
  const std::lock_guard lock(services_mutex_);
  services_[static_cast<size_t>(service)] = std::move(answer);
}

Status RankCalls::Begin(RankService service, std::span<std::optional<std::string>> requests, Call* call) {
  call->answers_.resize(requests.size());
  int open = 0;
  for (size_t r = 0; r < requests.size(); ++r) {
    call->answers_[r].reset();
    if (!requests[r].has_value()) continue;
    call->answers_[r].emplace();
    ++open;
  }
  call->open_ = open;
  if (open == 0) return Status::Ok();
  {
    const std::lock_guard lock(calls_mutex_);
    call->number_ = next_call_++;
    calls_[call->number_] = call;
  }
  for (size_t r = 0; r < requests.size(); ++r) {
    if (!requests[r].has_value()) continue;
    EndRequest(service, call->number_, &*requests[r]);
    Status sent = communicator_->Send(static_cast<int>(r), std::move(*requests[r]));
    if (sent.ok()) continue;
    const std::lock_guard lock(calls_mutex_);
    calls_.erase(call->number_);
    call->open_ = 0;
    return sent;
  }
  return Status::Ok();
}

Status RankCalls::Wait(Call* call, std::vector<std::string_view>* answers, const std::stop_token& stop) {
  answers->assign(call->answers_.size(), {});
  Status waited;
  if (!call->is_over()) {
    waited = WaitUntil([call] { return call->is_over(); }, stop);
    if (waited.ok() && !call->is_over()) waited = Cancelled("stopped while waiting for another rank");
  }
  {
    // An answer that comes late finds no call and is dropped.
    const std::lock_guard lock(calls_mutex_);
    calls_.erase(call->number_);
    call->open_ = 0;
  }
  MR_TRY(std::move(waited));
  for (size_t r = 0; r < answers->size(); ++r) {
    if (!call->answers_[r].has_value()) continue;
    Status answered = GetAnswer(*call->answers_[r], &(*answers)[r]);
    if (!answered.ok()) return std::move(answered).Context("rank " + std::to_string(r));
  }
  return Status::Ok();
}

Status RankCalls::Ask(RankService service, std::vector<std::optional<std::string>> requests,
                      std::vector<std::string>* answers, const std::stop_token& stop) {
  Call call;
  std::vector<std::string_view> views;
  MR_TRY(Begin(service, requests, &call));
  MR_TRY(Wait(&call, &views, stop));
  answers->assign(views.begin(), views.end());
  return Status::Ok();
}

Status RankCalls::WaitUntil(const std::function<bool()>& done, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { Wake(); });
  return communicator_->WaitUntil([&] { return done() || stop.stop_requested(); });
}

void RankCalls::Wake() {
  // Whatever comes lets who waits look again. What keeps it from coming has failed the wait, too.
  (void)communicator_->Send(communicator_->rank(), std::string(1, kNothing)).ok();
}

Status RankCalls::Tell(int to, RankService service, std::string message) {
  EndRequest(service, kNoAnswer, &message);
  return communicator_->Send(to, std::move(message));
}

void RankCalls::OnMessage(int from, std::string message) {
  WireReader in(message);
  const auto kind = in.GetLast<Kind>();
  if (kind == Kind::kNothing) return;
  const auto number = in.GetLast<uint64_t>();
  if (kind == Kind::kRequest) return AnswerTo(from, number, in);
  const std::lock_guard lock(calls_mutex_);
  const auto call = calls_.find(number);
  if (call == calls_.end()) return;
  call->second->answers_[static_cast<size_t>(from)] = std::move(message);
  call->second->open_.fetch_sub(1, std::memory_order_release);
}

void RankCalls::AnswerTo(int from, uint64_t number, WireReader request) {
  const auto service = static_cast<size_t>(request.GetLast<RankService>());
  std::string answer;
  const Status served = Caught("an answer to another rank", [&] {
    const std::lock_guard lock(services_mutex_);
    if (service >= services_.size() || services_[service] == nullptr) {
      return NotFound("nobody answers to service " + std::to_string(service) + " here");
    }
    return services_[service](from, request.rest(), &answer);
  });
  if (number == kNoAnswer) return;
  EndAnswer(served, number, &answer);
  // Who asked is told of a lost rank by his own communicator.
  (void)communicator_->Send(from, std::move(answer)).ok();
}

}  // namespace millrace
