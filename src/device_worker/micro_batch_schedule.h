#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// The index of a section or a micro-batch, both of which are counted by int.
inline size_t At(int i) { return static_cast<size_t>(i); }

/// One thing for a thread of a section to do.
struct SectionTask {
  enum class Kind : uint8_t { kForward, kBackward, kUpdate };
  Kind kind = Kind::kForward;
  int section = 0;
  int micro_batch = 0;  ///< 0 for updates

  friend bool operator==(const SectionTask&, const SectionTask&) = default;
  /// "F1(3)": the forward operators of section 1 on micro-batch 3; "U0".
  std::string ToString() const;
};

/// Decides which task of a mini-batch a section does next. A value without threads: the caller locks.
///
/// A micro-batch goes forward through the sections and back; then every section updates, the last one first. With
/// F-then-B no section goes back before it went forward with all; with 1F1B it goes back as soon as it can, so that
/// fewer micro-batches are under way. At most `queue_size` scopes are between a section and the next.
class MicroBatchSchedule {
 public:
  struct Options {
    std::vector<int> concurrency;  ///< threads of each section
    int queue_size = 1;
    bool one_forward_one_backward = false;
  };
  explicit MicroBatchSchedule(Options options);

  /// Scopes that a mini-batch of at most `micro_batches` needs: micro-batch k may use scope k modulo that.
  int scopes(int micro_batches) const;

  /// Begins a mini-batch; the one before is finished.
  void Start(int micro_batches);
  /// What a free thread of `section` is to do now; nothing while it must wait, or when all is done.
  std::optional<SectionTask> Take(int section);
  /// A task that was taken is done.
  void Done(const SectionTask& task);
  bool finished() const { return section(0).updated; }

 private:
  struct Section {
    int forwards = 0;   ///< taken
    int backwards = 0;  ///< taken
    bool updating = false;
    bool updated = false;
    std::vector<char> forward_done;  ///< by micro-batch
    std::vector<char> backward_done;
    int backwards_done = 0;
    int forwards_done = 0;
    int limit = 0;  ///< micro-batches under way at once
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
