#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/inbox.h"

namespace millrace {

/// The communicator of a job that no launcher started: its only rank. Collectives return at once. Messages to itself
/// are handed over by a thread that starts with the first one, so that a rank that sends none has no thread.
///
/// The destructor joins the thread and drops messages that nobody took.
class SoloCommunicator final : public Communicator {
 public:
  SoloCommunicator() = default;

  int rank() const override { return 0; }
  int size() const override { return 1; }
  void SetReceiver(MessageReceiver* receiver) override { inbox_.SetReceiver(receiver); }
  Status Send(int to, std::string message) override;
  Status WaitUntil(const std::function<bool()>& done) override { return inbox_.WaitUntil(done); }
  Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) override;
  Status SumOverRanks(std::span<int64_t> values) override;
  Status Broadcast(int root, std::string* bytes) override;
  Status Barrier() override { return Status::Ok(); }
  Status Shrink() override;
  int64_t bytes_sent() const override { return 0; }

 private:
  Inbox inbox_;
  std::once_flag started_;
  std::jthread thread_;  ///< last, so that it ends before what it uses
};

}  // namespace millrace
