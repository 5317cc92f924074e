#include "dist/rank_calls.h"

#include <algorithm>
#include <utility>

#include "core/caught.h"
#include "dist/wire.h"

namespace millrace {
namespace {

enum class Kind : uint8_t { kRequest, kAnswer, kNothing };

constexpr char kNothing = static_cast<char>(Kind::kNothing);

constexpr uint64_t kNoAnswer = 0;

void PutStatus(const Status& status, WireWriter* out) {
  out->Put(static_cast<int32_t>(status.code()));
  if (!status.ok()) out->PutText(status.message());
}

Status GetStatus(WireReader* in) {
  const auto code = static_cast<StatusCode>(in->Get<int32_t>());
  if (!in->ok()) return Internal("a message of another rank ends too soon");
  return code == StatusCode::kOk ? Status::Ok() : Status(code, std::string(in->GetText()));
}

std::string RequestOf(uint64_t number, RankService service, std::string_view request) {
  std::string message;
  message.reserve(request.size() + 16);
  WireWriter out(&message);
  out.Put(Kind::kRequest);
  out.Put(number);
  out.Put(service);
  message += request;
  return message;
}

}  // namespace

RankCalls::RankCalls(Communicator& communicator) : communicator_(&communicator) { communicator_->SetReceiver(this); }

RankCalls::~RankCalls() { communicator_->SetReceiver(nullptr); }

void RankCalls::Serve(RankService service, Answer answer) {
  const std::lock_guard lock(services_mutex_);
  services_[static_cast<size_t>(service)] = std::move(answer);
}

Status RankCalls::Begin(RankService service, std::span<const std::optional<std::string>> requests, Call* call) {
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
    Status sent = communicator_->Send(static_cast<int>(r), RequestOf(call->number_, service, *requests[r]));
    if (sent.ok()) continue;
    const std::lock_guard lock(calls_mutex_);
    calls_.erase(call->number_);
    call->open_ = 0;
    return sent;
  }
  return Status::Ok();
}

Status RankCalls::Wait(Call* call, std::vector<std::string>* answers, const std::stop_token& stop) {
  answers->resize(call->answers_.size());
  for (std::string& answer : *answers) answer.clear();
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
    WireReader in(*call->answers_[r]);
    MR_TRY(GetStatus(&in).Context("rank " + std::to_string(r)));
    (*answers)[r] = in.rest();
  }
  return Status::Ok();
}

Status RankCalls::Ask(RankService service, std::span<const std::optional<std::string>> requests,
                      std::vector<std::string>* answers, const std::stop_token& stop) {
  Call call;
  MR_TRY(Begin(service, requests, &call));
  return Wait(&call, answers, stop);
}

Status RankCalls::WaitUntil(const std::function<bool()>& done, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { Wake(); });
  return communicator_->WaitUntil([&] { return done() || stop.stop_requested(); });
}

void RankCalls::Wake() {
  // Whatever comes lets who waits look again. What keeps it from coming has failed the wait, too.
  (void)communicator_->Send(communicator_->rank(), std::string(1, kNothing)).ok();
}

Status RankCalls::Tell(int to, RankService service, std::string_view message) {
  return communicator_->Send(to, RequestOf(kNoAnswer, service, message));
}

void RankCalls::OnMessage(int from, std::string message) {
  WireReader in(message);
  const auto kind = in.Get<Kind>();
  if (kind == Kind::kNothing) return;
  if (kind == Kind::kRequest) return AnswerTo(from, in.rest());
  const auto number = in.Get<uint64_t>();
  const std::lock_guard lock(calls_mutex_);
  const auto call = calls_.find(number);
  if (call == calls_.end()) return;
  call->second->answers_[static_cast<size_t>(from)] = in.rest();
  call->second->open_.fetch_sub(1, std::memory_order_release);
}

void RankCalls::AnswerTo(int from, std::string_view request) {
  WireReader in(request);
  const auto number = in.Get<uint64_t>();
  const auto service = static_cast<size_t>(in.Get<RankService>());
  std::string answer;
  Status served = Caught("an answer to another rank", [&] {
    const std::lock_guard lock(services_mutex_);
    if (service >= services_.size() || services_[service] == nullptr) {
      return NotFound("nobody answers to service " + std::to_string(service) + " here");
    }
    return services_[service](from, in.rest(), &answer);
  });
  if (number == kNoAnswer) return;
  if (!served.ok()) answer.clear();
  std::string message;
  message.reserve(answer.size() + 32);
  WireWriter out(&message);
  out.Put(Kind::kAnswer);
  out.Put(number);
  PutStatus(served, &out);
  message += answer;
  // Who asked is told of a lost rank by his own communicator.
  (void)communicator_->Send(from, std::move(message)).ok();
}

}  // namespace millrace
