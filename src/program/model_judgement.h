#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

/// What is wrong with a part of a job.
struct ConfigMistake {
  enum class Kind : uint8_t {
    kPlain,
    kMissing,  ///< the field at `path` is not set: reported at the message that lacks it
    kShape,    ///< an operator's word on sizes: with a mistake in the slots or in the model it may follow from that
  };
  std::string path;  ///< of the field: "model.layer[2].fc.in[0]"
  std::string message;
  Kind kind = Kind::kPlain;
  std::string earlier = {};  ///< path of the earlier definition that a name collides with; empty: none
};

/// A name that a model looks up: a slot, a layer or a table.
struct ModelRead {
  std::string layer;  ///< that computes with it; empty: a loss, a metric, or a layer that only counts by it
  std::string name;
  std::string path;  ///< where it is named
};

/// What the lowering of a model finds: everything that is wrong with it, and what it reads.
struct ModelJudgement {
  std::vector<ConfigMistake> mistakes;
  std::vector<ModelRead> reads;
};

}  // namespace millrace
