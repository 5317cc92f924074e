#include "python/process_ranks.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "comm/mpi_plugin.h"
#include "python/errors.h"
#include "python/interruptible.h"

namespace py = pybind11;

namespace millrace {
namespace {

/// The way to the others until it is ended; what Python destroys later still finds it.
class ScriptCommunicator final : public Communicator {
 public:
  explicit ScriptCommunicator(std::unique_ptr<Communicator> open)
      : open_(std::move(open)), rank_(open_->rank()), size_(open_->size()) {}
  bool is_ended() const { return open_ == nullptr; }
  /// Waits for the others to end theirs.
  void End() {
    open_->SetReceiver(nullptr);
    open_.reset();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void SetReceiver(MessageReceiver* receiver) override {
    if (!is_ended()) open_->SetReceiver(receiver);
  }
  Status Send(int to, std::string message) override {
    return is_ended() ? Ended() : open_->Send(to, std::move(message));
  }
  Status WaitUntil(const std::function<bool()>& done) override { return is_ended() ? Ended() : open_->WaitUntil(done); }
  Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) override {
    return is_ended() ? Ended() : open_->AllToAll(out, in);
  }
  Status SumOverRanks(std::span<int64_t> values) override { return is_ended() ? Ended() : open_->SumOverRanks(values); }
  Status Broadcast(int root, std::string* bytes) override {
    return is_ended() ? Ended() : open_->Broadcast(root, bytes);
  }
  Status Barrier() override { return is_ended() ? Ended() : open_->Barrier(); }
  /// What a script holds in its variables is its own: nobody could bring it back to where the others go on.
  Status Shrink() override { return Unavailable("a script does not go on without a lost rank: start all of it again"); }
  int64_t bytes_sent() const override { return is_ended() ? 0 : open_->bytes_sent(); }

 private:
  static Status Ended() { return Unavailable("the script is over, and so are its ranks"); }

  std::unique_ptr<Communicator> open_;
  const int rank_;
  const int size_;
};

struct Opened {
  pid_t process = 0;  ///< that opened it: what it forks is no rank
  Status status;
  std::unique_ptr<ScriptCommunicator> communicator;  ///< null where it could not be opened
  std::unique_ptr<RankGroup> group;
  std::unique_ptr<CollectiveOrder> script;
  std::optional<ProcessRanks> ranks;  ///< where there are several
};

/// Lives for ever, as tables of scopes do that Python does not destroy.
Opened*& OfProcess() {
  static Opened* opened = nullptr;
  return opened;
}

Status Open(Opened* opened) {
  MR_ASSIGN(std::unique_ptr<Communicator> made, OpenMpi());
  opened->communicator = std::make_unique<ScriptCommunicator>(std::move(made));
  opened->group = std::make_unique<RankGroup>(*opened->communicator);
  opened->script = std::make_unique<CollectiveOrder>(opened->group->calls());
  // None may send what another one does not know of yet.
  MR_TRY(opened->communicator->Barrier());
  if (opened->communicator->size() > 1) opened->ranks = {opened->group.get(), opened->script.get()};
  return Status::Ok();
}

std::map<std::string, const TablesOfRanks*>& Owners() {
  static auto* const owners = new std::map<std::string, const TablesOfRanks*>;
  return *owners;
}

void Flush(const char* stream) {
  try {
    py::module_::import("sys").attr(stream).attr("flush")();
  } catch (const py::error_already_set&) {  // NOLINT(bugprone-empty-catch): there may be none, or it is closed
  }
}

}  // namespace

std::vector<std::string> ProcessRanks::Together(std::string_view call, std::string_view mine) const {
  if (!are_several()) return {std::string(mine)};
  std::vector<std::string> all;
  RunInterruptibly([&](const std::stop_token& stop) { ThrowUnlessOk(script->Together(call, mine, &all, stop)); });
  return all;
}

void AgreeOrThrow(const ProcessRanks& ranks, const Status& mine) {
  WithoutGil([&] { ThrowUnlessOk(ranks.group->Agree(mine)); });
}

void RunByLeader(const ProcessRanks& ranks, const std::string& call,
                 const std::function<Status(const std::stop_token&)>& work) {
  RunInterruptibly([&](const std::stop_token& stop) {
    const auto run = [&] { return work(stop); };
    ThrowUnlessOk(ranks.are_several() ? ranks.script->ByLeader(call, run, stop) : run());
  });
}

TablesOfRanks::~TablesOfRanks() {
  std::erase_if(Owners(), [this](const auto& owner) { return owner.second == this; });
}

Status TablesOfRanks::Own(const ProcessRanks& ranks, const ProgramDesc& program) {
  if (!ranks.are_several()) return Status::Ok();
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.type().type() != VarType::SPARSE_TABLE) continue;
    if (Owners().emplace(var.name(), this).first->second == this) continue;
    return AlreadyExists(
        "table \"" + var.name() +
        "\" is in another scope or job of this script, and ranks know a table by its name: give one of "
        "the two another name, or let go of the other one first");
  }
  return Status::Ok();
}

Result<std::vector<std::string>> FilesOfRanks(const std::vector<std::vector<std::string>>& lists) {
  const auto is_first = [&](const std::vector<std::string>& list) { return list == lists[0]; };
  if (std::all_of(lists.begin(), lists.end(), is_first)) return lists[0];
  std::vector<std::string> all;
  std::map<std::string_view, size_t> ranks;
  for (size_t r = 0; r < lists.size(); ++r) {
    for (const std::string& file : lists[r]) {
      const auto [known, is_new] = ranks.emplace(file, r);
      if (!is_new && known->second != r) {
        return InvalidConfig("the lists of files of ranks " + std::to_string(known->second) + " and " +
                             std::to_string(r) + " both have \"" + file +
                             "\", and differ; give all ranks the same list, which they share out, or each rank files "
                             "of its own, or none");
      }
      all.push_back(file);
    }
  }
  return all;
}

const ProcessRanks& AloneInProcess() {
  static const auto* const alone = new ProcessRanks{RankGroup::Solo().release(), nullptr};
  return *alone;
}

const ProcessRanks& RanksOfProcess() {
  Opened*& opened = OfProcess();
  if (opened == nullptr) {
    if (!StartedByLauncher()) return AloneInProcess();
    opened = new Opened;
    opened->process = ::getpid();
    WithoutGil([&] { opened->status = Open(opened); });
  }
  if (opened->process != ::getpid()) {
    throw StatusError(Unavailable("a process that a rank forked is no rank: train in the process that mpirun started"));
  }
  ThrowUnlessOk(opened->status);
  if (!opened->ranks.has_value()) return AloneInProcess();
  if (opened->communicator->is_ended()) throw StatusError(Unavailable("the script is over, and so are its ranks"));
  return *opened->ranks;
}

void EndRanksOfProcess() {
  Opened* const opened = OfProcess();
  if (opened == nullptr || opened->communicator == nullptr || opened->process != ::getpid()) return;
  // The launcher may end all ranks as soon as one of them has failed: what to say is said before.
  Flush("stdout");
  Flush("stderr");
  const bool has_failed = py::hasattr(py::module_::import("sys"), "last_type");
  std::vector<std::string> all;
  if (opened->ranks.has_value() && !has_failed) {
    try {
      opened->ranks->Together("the end of the script");
    } catch (const StatusError&) {  // NOLINT(bugprone-empty-catch): the others say what went wrong
    }
  }
  WithoutGil([&] { opened->communicator->End(); });
}

}  // namespace millrace
