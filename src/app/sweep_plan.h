#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/field_positions.h"
#include "core/status.h"

namespace millrace {

class SweepDesc;
class TrainerDesc;

/// A combination of values.
struct SweepTrial {
  std::string name;                    ///< of its folder: "lr=0.1,units=64_32"
  std::vector<std::string> overrides;  ///< "model.optimizer.adagrad.lr=0.1", in the order of the fields
};

/// A sweep that was read and found sound.
struct Sweep {
  std::unique_ptr<SweepDesc> desc;
  std::vector<SweepTrial> trials;
  /// The text and where its fields stand, for mistakes that show later.
  Diagnostics sources;
  FieldPositions positions;

  Sweep();
  ~Sweep();
  Sweep(Sweep&&) noexcept;
  Sweep& operator=(Sweep&&) noexcept;

  /// kInvalidConfig with a message that stands at a field of the sweep.
  Status Mistake(const std::string& path, const std::string& message) const;
};

/// Reads a sweep over fields of `job` and makes its trials. Every mistake comes back in one kInvalidConfig with file,
/// line and column: of the text, and of each value that its field does not take. What only a whole job shows is left to
/// who reads the trials' jobs. `file` is a prototxt with a SweepDesc.
Result<Sweep> ReadSweep(const std::string& file, const TrainerDesc& job);

/// As ReadSweep for a text in memory; `origin` stands for the file's name in messages.
Result<Sweep> ReadSweepText(std::string origin, std::string text, const TrainerDesc& job);

/// Epochs after which the rounds of a halving end: from `first`, `factor` times as many each, the last `epochs`.
std::vector<int> HalvingEpochs(int first, int factor, int epochs);

}  // namespace millrace
