#include "session/process_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "comm/mpi_plugin.h"

namespace millrace {
namespace {

Status ScriptIsOver() { return Unavailable("the script is over, and so are its ranks"); }

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
    return is_ended() ? ScriptIsOver() : open_->Send(to, std::move(message));
  }
  Status WaitUntil(const std::function<bool()>& done) override {
    return is_ended() ? ScriptIsOver() : open_->WaitUntil(done);
  }
  Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) override {
    return is_ended() ? ScriptIsOver() : open_->AllToAll(out, in);
  }
  Status SumOverRanks(std::span<int64_t> values) override {
    return is_ended() ? ScriptIsOver() : open_->SumOverRanks(values);
  }
  Status Broadcast(int root, std::string* bytes) override {
    return is_ended() ? ScriptIsOver() : open_->Broadcast(root, bytes);
  }
  Status Barrier() override { return is_ended() ? ScriptIsOver() : open_->Barrier(); }
  /// What a script holds in its variables is its own: nobody could bring it back to where the others go on.
  Status Shrink() override { return Unavailable("a script does not go on without a lost rank: start all of it again"); }
  int64_t bytes_sent() const override { return is_ended() ? 0 : open_->bytes_sent(); }

 private:
  std::unique_ptr<Communicator> open_;
  const int rank_;
  const int size_;
};

struct Opened {
  pid_t process = 0;  ///< that opened it: what it forks is no rank
  Status status;
  std::unique_ptr<ScriptCommunicator> communicator;  ///< null where it could not be opened
  std::unique_ptr<RankGroup> group;
  std::unique_ptr<CollectiveOrder> order;
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
  opened->order = std::make_unique<CollectiveOrder>(opened->group->calls());
  // None may send what another one does not know of yet.
  MR_TRY(opened->communicator->Barrier());
  if (opened->communicator->size() > 1) opened->ranks = {opened->group.get(), opened->order.get()};
  return Status::Ok();
}

/// Which object owns the tables of a name. Never destroyed: Python can keep scopes past the end of static objects.
struct Owners {
  std::mutex mutex;
  std::map<std::string, const TableOwner*> by_name;
};

Owners& AllOwners() {
  static auto* const owners = new Owners;
  return *owners;
}

std::mutex& OpenMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

}  // namespace

Result<std::vector<std::string>> ProcessRanks::Together(std::string_view call, std::string_view mine,
                                                        const std::stop_token& stop) const {
  std::vector<std::string> all = {std::string(mine)};
  if (are_several()) MR_TRY(order->Together(call, mine, &all, stop));
  return all;
}

Status ProcessRanks::Together(std::string_view call, const std::stop_token& stop) const {
  return Together(call, {}, stop).status();
}

Status ProcessRanks::ByLeader(const std::string& call, const std::function<Status()>& work,
                              const std::stop_token& stop) const {
  return are_several() ? order->ByLeader(call, work, stop) : work();
}

TableOwner::~TableOwner() {
  Owners& owners = AllOwners();
  const std::lock_guard lock(owners.mutex);
  std::erase_if(owners.by_name, [this](const auto& owner) { return owner.second == this; });
}

Status TableOwner::Own(const ProcessRanks& ranks, const ProgramDesc& program) {
  if (!ranks.are_several()) return Status::Ok();
  Owners& owners = AllOwners();
  const std::lock_guard lock(owners.mutex);
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.type().type() != VarType::SPARSE_TABLE) continue;
    if (owners.by_name.emplace(var.name(), this).first->second == this) continue;
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

const ProcessRanks& SoloProcess() {
  static const auto* const solo = new ProcessRanks{RankGroup::Solo().release(), nullptr};
  return *solo;
}

Result<const ProcessRanks*> RanksOfProcess() {
  const std::lock_guard lock(OpenMutex());
  Opened*& opened = OfProcess();
  if (opened == nullptr) {
    if (!StartedByLauncher()) return &SoloProcess();
    opened = new Opened;
    opened->process = ::getpid();
    opened->status = Open(opened);
  }
  if (opened->process != ::getpid()) {
    return Unavailable("a process that a rank forked is no rank: train in the process that mpirun started");
  }
  MR_TRY(Status(opened->status));
  if (!opened->ranks.has_value()) return &SoloProcess();
  if (opened->communicator->is_ended()) return ScriptIsOver();
  return &*opened->ranks;
}

bool HasRanksToEnd() {
  const std::lock_guard lock(OpenMutex());
  const Opened* const opened = OfProcess();
  return opened != nullptr && opened->communicator != nullptr && opened->process == ::getpid();
}

void WaitForRanksAtEnd(const std::stop_token& stop) {
  // If this fails, the other ranks report why.
  const Opened* const opened = OfProcess();
  if (opened->ranks.has_value()) (void)opened->ranks->Together("the end of the script", stop);
}

void EndRanksOfProcess() { OfProcess()->communicator->End(); }

}  // namespace millrace
