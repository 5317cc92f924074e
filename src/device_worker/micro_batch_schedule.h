#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// The index of a section or micro-batch, both numbered with int.
inline size_t At(int i) { return static_cast<size_t>(i); }

/// A task for a section's thread.
struct SectionTask {
  enum class Kind : uint8_t { kForward, kBackward, kUpdate };
  Kind kind = Kind::kForward;
  int section = 0;
  int micro_batch = 0;  ///< 0 for updates

  friend bool operator==(const SectionTask&, const SectionTask&) = default;
  /// "F1(3)": the forward operators of section 1 on micro-batch 3; "U0".
  std::string ToString() const;
};

/// Decides the next task of each section in a mini-batch. A value without threads: the caller locks.
///
/// A micro-batch passes forward through the sections and then back; finally every section updates, the last one first.
/// With F-then-B a section starts backward tasks after all its forward tasks; with 1F1B as early as possible, so fewer
/// micro-batches are in flight. At most `queue_size` scopes are between two adjacent sections.
class MicroBatchSchedule {
 public:
  struct Options {
    std::vector<int> concurrency;  ///< threads per section
    int queue_size = 1;
    bool one_forward_one_backward = false;
  };
  explicit MicroBatchSchedule(Options options);

  /// Number of scopes needed for a mini-batch of up to `micro_batches`: micro-batch k can use scope k modulo this
  /// number.
  int scopes(int micro_batches) const;

  /// Starts a mini-batch; the previous one must be finished.
  void Start(int micro_batches);
  /// The next task for a free thread of `section`; nullopt if it must wait or all is done.
  std::optional<SectionTask> Take(int section);
  /// Marks a taken task as done.
  void Done(const SectionTask& task);
  bool finished() const { return section(0).updated; }

 private:
  struct Section {
    int forwards = 0;   ///< started
    int backwards = 0;  ///< started
    bool updating = false;
    bool updated = false;
    std::vector<char> forward_done;  ///< by micro-batch
    std::vector<char> backward_done;
    int backwards_done = 0;
    int forwards_done = 0;
    int limit = 0;  ///< maximum number of micro-batches in flight
  };
  bool CanGoForward(int s) const;
  bool CanGoBackward(int s) const;
  bool CanUpdate(int s) const;
  const Section& section(int s) const { return sections_[static_cast<size_t>(s)]; }
  Section& section(int s) { return sections_[static_cast<size_t>(s)]; }
  int last() const { return static_cast<int>(sections_.size()) - 1; }

  Options options_;
  int micro_batches_ = 0;
  std::vector<Section> sections_;
};

}  // namespace millrace
