#include "comm/mpi/mpi_communicator.h"

#include <dlfcn.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "comm/mpi/mpi_call.h"
#include "comm/rank_status.h"
#include "core/caught.h"
#include "core/numbers.h"

namespace millrace {
namespace {

// Separate MPI communicators, so that none receives another's messages.
constexpr size_t kMessages = 0;
constexpr size_t kCollectives = 1;
constexpr size_t kEnding = 2;

constexpr std::chrono::microseconds kSpin{50};
constexpr std::chrono::microseconds kYield{200};
/// While data is in transit, keep yielding until nothing has arrived for this long: then something else is the
/// bottleneck.
constexpr std::chrono::milliseconds kYieldForBytes{100};
constexpr std::chrono::microseconds kShortestNap{50};
constexpr std::chrono::microseconds kLongestNap{200};

Status RankLeft(int rank, int size) {
  return Unavailable("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                     " has ended before the others: its own output says why");
}

constexpr int kIsHere = -1;

/// A function of User Level Failure Mitigation, for continuing without lost ranks. Looked up when needed, because the
/// MPI that Millrace was built with may lack it.
template <class Function>
Function* FindUlfm(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}
using RevokeFn = int(MPI_Comm);
using ShrinkFn = int(MPI_Comm, MPI_Comm*);
using AgreeFn = int(MPI_Comm, int*);

Status Duplicate(MPI_Comm world, std::array<MPI_Comm, 3>* comms) {
  for (MPI_Comm& comm : *comms) {
    MR_TRY(MpiStatus("MPI_Comm_dup", MPI_Comm_dup(world, &comm)));
    MR_TRY(MpiStatus("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)));
  }
  return Status::Ok();
}

/// MPI can be initialized and finalized once per process.
std::atomic<bool> was_begun{false};

/// Exit code if another rank is lost.
constexpr int kExitUnavailable = 3;
constexpr char kWaitSeconds[] = "MILLRACE_MPI_WAIT_SECONDS";

/// How long ranks wait for each other at MPI's start and end; nullopt: forever. Other launchers end all ranks when one
/// is killed; with mpirun --with-ft, Open MPI 5.0.11 does not notify waiting ranks.
Result<std::optional<std::chrono::seconds>> LongestWait() {
  const char* const given = std::getenv(kWaitSeconds);                        // NOLINT(concurrency-mt-unsafe)
  const char* const goes_on_without = std::getenv("OMPI_MCA_mpi_ft_enable");  // NOLINT(concurrency-mt-unsafe)
  if (given == nullptr && (goes_on_without == nullptr || std::string_view(goes_on_without) != "1")) {
    return std::optional<std::chrono::seconds>();
  }
  uint64_t seconds = 120;
  if (given != nullptr && (ParseInteger(given, &seconds) != IntegerText::kOk || seconds == 0 || seconds > 86'400)) {
    return InvalidConfig(std::string(kWaitSeconds) + " is \"" + given + "\"; it is a number of seconds, 1 to 86400");
  }
  return std::optional(std::chrono::seconds(seconds));
}

}  // namespace

Result<std::unique_ptr<Communicator>> MpiCommunicator::Create() {
  if (was_begun.exchange(true)) return Internal("MPI was begun before in this process");
  std::unique_ptr<MpiCommunicator> communicator(new MpiCommunicator);
  MR_ASSIGN(communicator->longest_wait_, LongestWait());
  MR_TRY(Caught("the thread of MPI", [&] {
    communicator->thread_ = std::jthread([c = communicator.get()] { c->Serve(); });
    return Status::Ok();
  }));
  {
    std::unique_lock lock(communicator->mutex_);
    const auto has_begun = [&] { return communicator->begun_.has_value(); };
    if (const auto longest = communicator->longest_wait_; !longest.has_value()) {
      communicator->begun_or_ended_.wait(lock, has_begun);
    } else if (!communicator->begun_or_ended_.wait_for(lock, *longest, has_begun)) {
      lock.unlock();
      // MPI_Init_thread, in which its thread hangs, ends only with the process.
      static_cast<void>(communicator.release());
      return Unavailable(
          "MPI has not begun within " + std::to_string(longest->count()) +
          " s: a rank was lost while ranks started, begins later, or is not reached. Start the job again; " +
          kWaitSeconds + " gives ranks more time");
    }
    MR_TRY(*communicator->begun_);
  }
  return std::unique_ptr<Communicator>(std::move(communicator));
}

MpiCommunicator::~MpiCommunicator() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  is_awake_ = true;
  wake_.notify_one();
}

void MpiCommunicator::SetReceiver(MessageReceiver* receiver) {
  inbox_.SetReceiver(receiver);
  const std::lock_guard lock(mutex_);
  is_awake_ = true;
  wake_.notify_one();
}

Status MpiCommunicator::Send(int to, std::string message) {
  MR_TRY(CheckRank("sending to", to, size_));
  MR_TRY(inbox_.failure());
  if (const int blamed = blamed_[static_cast<size_t>(to)]; blamed != kIsHere) return RankLeft(blamed, size_);
  if (to != rank_) bytes_sent_ += static_cast<int64_t>(message.size());
  const std::lock_guard lock(mutex_);
  messages_.push_back({to, std::move(message)});
  is_awake_ = true;
  wake_.notify_one();
  return Status::Ok();
}

Status MpiCommunicator::RunCollective(std::shared_ptr<MpiCollective> collective) {
  MR_TRY(inbox_.failure());
  const auto call = std::make_shared<Call>(std::move(collective));
  std::unique_lock lock(mutex_);
  if (next_call_ != nullptr) return Internal("two threads of a rank call collectives at a time");
  next_call_ = call;
  is_awake_ = true;
  wake_.notify_one();
  begun_or_ended_.wait(lock, [&] { return call->ended.has_value(); });
  return *std::move(call->ended);
}

Status MpiCommunicator::AllToAll(std::span<const std::string> out, std::vector<std::string>* in) {
  MR_TRY(CheckStrings(out.size(), size_));
  int64_t bytes = 0;
  for (size_t r = 0; r < out.size(); ++r) {
    if (r != static_cast<size_t>(rank_)) bytes += static_cast<int64_t>(out[r].size());
  }
  const auto exchange = std::make_shared<MpiAllToAll>(rank_, out, in, &copies_);
  MR_TRY(RunCollective(exchange));
  in->swap(exchange->in());
  copies_.swap(exchange->copies());
  bytes_sent_ += bytes;
  return Status::Ok();
}

Status MpiCommunicator::SumOverRanks(std::span<int64_t> values) {
  const auto sum = std::make_shared<MpiSum>(values);
  MR_TRY(RunCollective(sum));
  std::copy(sum->sums().begin(), sum->sums().end(), values.begin());
  if (size_ > 1) bytes_sent_ += static_cast<int64_t>(values.size_bytes());
  return Status::Ok();
}

Status MpiCommunicator::Broadcast(int root, std::string* bytes) {
  MR_TRY(CheckRank("broadcasting from", root, size_));
  const auto broadcast = std::make_shared<MpiBroadcast>(root, rank_ == root ? *bytes : std::string());
  MR_TRY(RunCollective(broadcast));
  if (rank_ != root) bytes->swap(broadcast->bytes());
  if (rank_ == root) bytes_sent_ += static_cast<int64_t>(bytes->size()) * (size_ - 1);
  return Status::Ok();
}

Status MpiCommunicator::Barrier() { return RunCollective(std::make_shared<MpiBarrier>()); }

Status MpiCommunicator::Shrink() {
  MR_TRY(CheckIsFailed(inbox_.failure()));
  std::unique_lock lock(mutex_);
  shrunk_.reset();
  is_to_shrink_ = true;
  is_awake_ = true;
  wake_.notify_one();
  begun_or_ended_.wait(lock, [&] { return shrunk_.has_value(); });
  return *std::move(shrunk_);
}

void MpiCommunicator::Serve() {
  Status begun = Caught("beginning MPI", [&] { return Begin(); });
  const bool is_usable = begun.ok();
  {
    const std::lock_guard lock(mutex_);
    begun_ = std::move(begun);
    begun_or_ended_.notify_all();
  }
  if (!is_usable) return;
  last_work_ = Clock::now();
  WorkUntil([this] {
    const std::lock_guard lock(mutex_);
    return is_ending_;
  });
  const Status ended = Caught("ending MPI", [&] { return is_broken_ ? inbox_.failure() : End(); });
  if (!ended.ok()) LOG(ERROR) << "rank " << rank_ << " ends without the others: " << ended.message();
}

Status MpiCommunicator::Begin() {
  int was_begun_by_others = 0;
  MR_TRY(MpiStatus("MPI_Initialized", MPI_Initialized(&was_begun_by_others)));
  if (was_begun_by_others != 0) {
    return InvalidConfig("something else in this process began MPI before (mpi4py?), and only one may use it");
  }
  int provided = MPI_THREAD_SINGLE;
  MR_TRY(MpiStatus("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided)));
  if (provided < MPI_THREAD_FUNNELED) return Unavailable("this MPI was built without threads (MPI_THREAD_FUNNELED)");
  MR_TRY(MpiStatus("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)));
  world_ = MPI_COMM_WORLD;
  Status duplicated = Duplicate(world_, &comms_);
  return duplicated.ok() ? Enter() : EnterWithWhoIsLeft(duplicated);
}

Status MpiCommunicator::Enter() {
  MR_TRY(MpiStatus("MPI_Comm_rank", MPI_Comm_rank(comms_[kMessages], &rank_)));
  MR_TRY(MpiStatus("MPI_Comm_size", MPI_Comm_size(comms_[kMessages], &size_)));
  if (transport_ != nullptr) left_behind_.push_back(std::move(transport_));
  transport_ = std::make_unique<MpiMessages>(comms_[kMessages], size_);
  blamed_ = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(size_));
  for (int r = 0; r < size_; ++r) blamed_[static_cast<size_t>(r)] = kIsHere;
  calls_of_left_.assign(static_cast<size_t>(size_), 0);
  left_.clear();
  calls_ = 0;
  missed_ = -1;
  return Status::Ok();
}

Status MpiCommunicator::EnterWithWhoIsLeft(const Status& failure) {
  auto* const revoke = FindUlfm<RevokeFn>("MPIX_Comm_revoke");
  auto* const shrink = FindUlfm<ShrinkFn>("MPIX_Comm_shrink");
  auto* const agree = FindUlfm<AgreeFn>("MPIX_Comm_agree");
  if (revoke == nullptr || shrink == nullptr || agree == nullptr) return failure;
  int before = 0;
  MR_TRY(MpiStatus("MPI_Comm_size", MPI_Comm_size(world_, &before)));
  // Revoking also notifies ranks that wait for a rank which is still here.
  for (const MPI_Comm comm : comms_) {
    if (comm != MPI_COMM_NULL) MR_TRY(MpiStatus("MPIX_Comm_revoke", revoke(comm)));
  }
  MR_TRY(MpiStatus("MPIX_Comm_revoke", revoke(world_)));
  for (int tries = 0; tries < before; ++tries) {
    MPI_Comm world = MPI_COMM_NULL;
    MR_TRY(MpiStatus("MPIX_Comm_shrink", shrink(world_, &world)));
    int left = 0;
    MR_TRY(MpiStatus("MPI_Comm_size", MPI_Comm_size(world, &left)));
    if (left == before) return failure;
    MR_TRY(MpiStatus("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN)));
    std::array<MPI_Comm, 3> comms{};
    int can_go_on = Duplicate(world, &comms).ok() ? 1 : 0;
    // Either all continue with these, or, if another rank is lost meanwhile, none.
    if (agree(world, &can_go_on) != MPI_SUCCESS || can_go_on == 0) continue;
    world_ = world;
    comms_ = comms;
    MR_TRY(Enter());
    {
      const std::lock_guard lock(mutex_);
      messages_.clear();
    }
    arrivals_.clear();
    is_broken_ = false;
    inbox_.Reset();
    return Status::Ok();
  }
  return failure;
}

void MpiCommunicator::WorkUntil(const std::function<bool()>& done) {
  while (!done()) {
    bool moved = false;
    const Status status = Caught("the thread of MPI", [&] { return Work(&moved); });
    if (!status.ok()) {
      // In any case, MPI's remaining state is unknown.
      is_broken_ = true;
      Fail(status);
    }
    if (moved) {
      last_work_ = Clock::now();
      nap_ = kShortestNap;
    } else {
      Rest();
    }
  }
}

void MpiCommunicator::Rest() {
  const auto idle = Clock::now() - last_work_;
  const bool are_bytes_moving =
      !is_broken_ && (transport_->are_bytes_moving() || (call_ != nullptr && call_->collective->are_bytes_moving()));
  if (idle < kSpin && !is_broken_) return;
  if (idle < (are_bytes_moving ? kYieldForBytes : kYield) && !is_broken_) {
    std::this_thread::yield();
    return;
  }
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, nap_, [this] { return is_awake_; });
  if (std::exchange(is_awake_, false)) last_work_ = Clock::now();
  nap_ = std::min(2 * nap_, kLongestNap);
}

Status MpiCommunicator::Work(bool* moved) {
  MR_TRY(TakeOrders(moved));
  if (!is_broken_) {
    MR_TRY(TakeArrivals(moved));
    MR_TRY(CarryOnCall(moved));
  }
  while (inbox_.HandOver()) *moved = true;
  MissWhoLeft();
  return Status::Ok();
}

Status MpiCommunicator::TakeOrders(bool* moved) {
  std::deque<Message> messages;
  bool is_new = false;
  bool is_to_shrink = false;
  {
    const std::lock_guard lock(mutex_);
    is_to_shrink = std::exchange(is_to_shrink_, false);
    messages.swap(messages_);
    if (call_ == nullptr && next_call_ != nullptr) {
      call_ = std::move(next_call_);
      next_call_ = nullptr;
      *moved = true;
      is_new = true;
    }
  }
  if (is_to_shrink) {
    Status shrunk = is_broken_ ? EnterWithWhoIsLeft(inbox_.failure()) : inbox_.failure();
    const std::lock_guard lock(mutex_);
    shrunk_ = std::move(shrunk);
    begun_or_ended_.notify_all();
    *moved = true;
    return Status::Ok();
  }
  for (Message& message : messages) {
    *moved = true;
    if (message.to == rank_) {
      inbox_.Put(rank_, std::move(message.bytes));
    } else if (!is_broken_) {
      MR_TRY(transport_->Send(message.to, std::move(message.bytes)));
    }
  }
  if (!is_new) return Status::Ok();
  if (const Status failure = inbox_.failure(); !failure.ok()) {
    EndCall(failure);
  } else {
    ++calls_;
  }
  return Status::Ok();
}

Status MpiCommunicator::TakeArrivals(bool* moved) {
  MR_TRY(transport_->Poll(&arrivals_, moved));
  for (MpiMessages::Arrival& arrival : arrivals_) {
    if (!arrival.farewell) {
      inbox_.Put(arrival.from, std::move(arrival.bytes));
      continue;
    }
    const auto [collectives, missed] = *arrival.farewell;
    calls_of_left_[static_cast<size_t>(arrival.from)] = collectives;
    blamed_[static_cast<size_t>(arrival.from)] = missed < 0 ? arrival.from : static_cast<int>(missed);
    left_.push_back(arrival.from);
  }
  arrivals_.clear();
  return Status::Ok();
}

Status MpiCommunicator::CarryOnCall(bool* moved) {
  if (call_ == nullptr) return Status::Ok();
  bool done = false;
  MR_TRY(call_->collective->Poll(comms_[kCollectives], moved, &done));
  if (done) EndCall(Status::Ok());
  return Status::Ok();
}

void MpiCommunicator::MissWhoLeft() {
  for (const int r : left_) {
    const int blamed = blamed_[static_cast<size_t>(r)];
    // Everything it sent has been delivered by now, if there is a receiver.
    if (inbox_.FailWaits(RankLeft(blamed, size_)) && missed_ < 0) missed_ = blamed;
    if (call_ == nullptr || calls_ <= calls_of_left_[static_cast<size_t>(r)]) continue;
    if (missed_ < 0) missed_ = blamed;
    Fail(RankLeft(blamed, size_));
  }
}

void MpiCommunicator::EndCall(Status status) {
  if (!status.ok()) given_up_.push_back(call_->collective);
  const std::lock_guard lock(mutex_);
  call_->ended = std::move(status);
  call_ = nullptr;
  begun_or_ended_.notify_all();
}

void MpiCommunicator::Fail(const Status& status) {
  inbox_.Fail(status);
  if (call_ != nullptr) EndCall(status);
}

Status MpiCommunicator::End() {
  const auto is_all_sent = [this] {
    const std::lock_guard lock(mutex_);
    return messages_.empty() && transport_->all_sent();
  };
  WorkUntil([&] { return is_broken_ || is_all_sent(); });
  if (is_broken_) return inbox_.failure();
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) MR_TRY(transport_->Send(r, MpiMessages::Farewell{.collectives = calls_, .missed = missed_}));
  }
  // Until all have joined, messages of others can still arrive, and MPI requires receiving them.
  MPI_Request barrier = MPI_REQUEST_NULL;
  MR_TRY(MpiStatus("MPI_Ibarrier", MPI_Ibarrier(comms_[kEnding], &barrier)));
  Status tested;
  int are_all_here = 0;
  WorkUntil([&] {
    if (is_broken_) return true;
    if (are_all_here == 0) {
      tested = MpiStatus("MPI_Test of the end", MPI_Test(&barrier, &are_all_here, MPI_STATUS_IGNORE));
    }
    return !tested.ok() || (are_all_here != 0 && is_all_sent());
  });
  if (is_broken_) return inbox_.failure();
  MR_TRY(std::move(tested));
  for (bool moved = true; moved;) {
    moved = false;
    MR_TRY(transport_->Poll(&arrivals_, &moved));
  }
  // It would wait for the lost ranks, with Open MPI 5.0.11 often forever.
  if (world_ != MPI_COMM_WORLD) return Status::Ok();
  std::jthread limit;
  if (longest_wait_.has_value()) {
    limit = std::jthread([longest = *longest_wait_](const std::stop_token& ended) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait_for(lock, ended, longest, [] { return false; });
      if (ended.stop_requested()) return;
      LOG(ERROR) << "MPI has not ended within " << longest.count()
                 << " s: a rank was lost behind the last line. What ranks write is written; start the job again with "
                    "--resume=auto to see it to its end. "
                 << kWaitSeconds << " gives ranks more time";
      std::_Exit(kExitUnavailable);
    });
  }
  return MpiStatus("MPI_Finalize", MPI_Finalize());
}

}  // namespace millrace
