#include "device_worker/pause_gate.h"

namespace millrace {

PauseGate::PauseGate(int workers) : workers_(static_cast<size_t>(workers)) {}

void PauseGate::StartPass() {
  std::lock_guard lock(mutex_);
  done_ = 0;
  asked_.store(false);
}

void PauseGate::Enter(int worker) {
  std::atomic<bool>& busy = workers_[static_cast<size_t>(worker)].busy;
  while (true) {
    // Sequentially consistent with Ask and AnyBusy: either this thread sees the request, or the coordinator sees it
    // busy.
    busy.store(true);
    if (!asked_.load()) return;
    busy.store(false);
    std::unique_lock lock(mutex_);
    coordinator_.notify_one();
    resumed_.wait(lock, [this] { return !asked_.load(); });
  }
}

void PauseGate::Leave(int worker) {
  workers_[static_cast<size_t>(worker)].busy.store(false);
  if (asked_.load()) NotifyCoordinator();
}

void PauseGate::Done(int worker) {
  workers_[static_cast<size_t>(worker)].busy.store(false);
  std::lock_guard lock(mutex_);
  ++done_;
  coordinator_.notify_one();
}

void PauseGate::Ask() {
  asked_.store(true);
  NotifyCoordinator();
}

PauseGate::Event PauseGate::Wait(std::chrono::milliseconds tick) {
  std::unique_lock lock(mutex_);
  const auto all_done = [this] { return done_ == static_cast<int>(workers_.size()); };
  const auto paused = [this] { return asked_.load() && !AnyBusy(); };
  coordinator_.wait_for(lock, tick, [&] { return paused() || all_done(); });
  // A pause requested by the last batch is still handled.
  if (paused()) return Event::kPaused;
  return all_done() ? Event::kAllDone : Event::kTick;
}

void PauseGate::WaitForAsk(std::chrono::milliseconds tick) {
  std::unique_lock lock(mutex_);
  coordinator_.wait_for(lock, tick, [this] { return asked_.load(); });
}

void PauseGate::Resume() {
  std::lock_guard lock(mutex_);
  asked_.store(false);
  resumed_.notify_all();
}

bool PauseGate::AnyBusy() const {
  for (const Flag& flag : workers_) {
    if (flag.busy.load()) return true;
  }
  return false;
}

void PauseGate::NotifyCoordinator() {
  std::lock_guard lock(mutex_);
  coordinator_.notify_one();
}

}  // namespace millrace
