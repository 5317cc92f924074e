#include "trainer/program_readers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace millrace {

Result<ProgramReaders> ProgramReaders::Find(const Executable& program, Scope& root) {
  std::set<std::string> used;
  std::set<std::string> read;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpDesc& op : program.ops(block)) {
      for (const std::string& name : InputArguments(op, "Reader")) {
        used.insert(name);
        if (op.type() == "read") read.insert(name);
      }
    }
  }
  ProgramReaders found;
  for (const std::string& name : used) {
    Variable* variable = root.Find(name);
    if (variable == nullptr || !variable->Is<ReaderHolder>()) {
      return InvalidConfig(
          "reader \"" + name +
          "\": declare it as a persistable variable of type READER in both programs, and make it in the "
          "startup program");
    }
    auto* holder = variable->GetMutable<ReaderHolder>();
    MR_TRY(holder->shapes().status().Context("reader \"" + name + "\""));
    found.readers_.push_back({name, holder, read.contains(name)});
  }
  return found;
}

Result<bool> ProgramReaders::HasNext(const std::stop_token& stop) {
  for (const Reader& reader : readers_) {
    if (!reader.is_read) continue;
    Result<bool> has_next = reader.holder->HasNext(stop);
    if (!has_next.ok() || !*has_next) return std::move(has_next).Context("reader \"" + reader.name + "\"");
  }
  return true;
}

Result<bool> ProgramReaders::HasNext(const std::string& reader, const std::stop_token& stop) {
  return Named(reader)->holder->HasNext(stop);
}

const ProgramReaders::Reader* ProgramReaders::Named(const std::string& name) const {
  const auto it = std::find_if(readers_.begin(), readers_.end(), [&](const Reader& one) { return one.name == name; });
  return it == readers_.end() ? nullptr : &*it;
}

Status ProgramReaders::StartOver() {
  for (const Reader& reader : readers_) MR_TRY(reader.holder->ReInit().Context("reader \"" + reader.name + "\""));
  return Status::Ok();
}

bool ProgramReaders::WasRead() const {
  return std::any_of(readers_.begin(), readers_.end(),
                     [](const Reader& reader) { return reader.holder->position().items > 0; });
}

int64_t ProgramReaders::resets() const {
  int64_t resets = 0;
  for (const Reader& reader : readers_) {
    resets = std::max(resets, static_cast<int64_t>(reader.holder->position().resets));
  }
  return resets;
}

ReaderCounts ProgramReaders::Counts() const {
  ReaderCounts counts;
  for (const Reader& reader : readers_) counts.Add(*reader.holder);
  return counts;
}

std::vector<ReaderState> ProgramReaders::Positions() const {
  std::vector<ReaderState> positions;
  for (const Reader& reader : readers_) positions.push_back({reader.name, reader.holder->position()});
  return positions;
}

Status ProgramReaders::MoveTo(const std::vector<ReaderState>& saved, const std::stop_token& stop) {
  for (const ReaderState& state : saved) {
    const Reader* const reader = Named(state.name);
    if (reader == nullptr) {
      return InvalidConfig("the checkpoint is of a program with a reader \"" + state.name +
                           "\", which this one has not");
    }
    MR_TRY(reader->holder->MoveTo(state.position, stop).Context("reader \"" + state.name + "\""));
  }
  return Status::Ok();
}

Status ProgramReaders::NothingToTrainOn() const {
  const auto it = std::find_if(readers_.begin(), readers_.end(), [](const Reader& reader) { return reader.is_read; });
  if (it == readers_.end()) return Status::Ok();
  return BadData("nothing to train on: reader \"" + it->name + "\" delivered no item; are its files empty?");
}

Status CheckSources(const CompiledJob& job, const Frame& frame, TrainingRun* run) {
  const std::vector<NamedKernelState> states = frame.states();
  std::string unsaved;
  for (const std::string& name : job.plugin_sources()) {
    const bool is_saved = std::any_of(states.begin(), states.end(),
                                      [&](const NamedKernelState& kernel) { return kernel.output == name; });
    if (!is_saved) unsaved = name;
  }
  if (unsaved.empty()) return Status::Ok();
  const std::string why = "what gives \"" + unsaved +
                          "\" reads by itself and does not say how far: its kernel is no KernelState "
                          "(runtime/kernel_state.h), so that no run can go on from a checkpoint; ";
  if (run->is_resumed()) return InvalidConfig("--resume: " + why + "start anew with --resume=never");
  if (run->hooks().checkpointer == nullptr) return Status::Ok();
  if (job.desc().has_checkpoint()) {
    return InvalidConfig("checkpoint: " + why + "make it one, or leave out checkpoint");
  }
  run->LeaveOutCheckpoints(std::move(unsaved));
  return Status::Ok();
}

}  // namespace millrace
