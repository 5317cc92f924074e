#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "checkpoint.pb.h"
#include "core/status.h"

namespace millrace {

/// What a checkpoint keeps of a file's content: reads its two ends. Empty for what is no plain file, or cannot be read.
StoredInputState LookAtInput(const std::string& file);

/// LookAtInput of each of `files`, in their order. A few threads look: on a network most of it is waiting. After each
/// file that the calling thread looked at itself, `show` is told how many have been looked at. kCancelled after a stop.
Result<std::vector<StoredInputState>> LookAtInputs(const std::vector<std::string>& files, const std::stop_token& stop,
                                                   const std::function<void(size_t)>& show);

/// How far two looks at a file differ: kInvalidConfig says what it was and what it is now. A file that was only written
/// again looks alike and is ok; `*written_again` then tells. Looks at no plain file are alike, and whatever has come
/// under a name that nothing had is ok: no line of it was trained.
Status CompareInput(const StoredInputState& before, const StoredInputState& now, bool* written_again);

}  // namespace millrace
