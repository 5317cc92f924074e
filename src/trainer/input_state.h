#pragma once

#include <string>

#include "checkpoint.pb.h"
#include "core/status.h"

namespace millrace {

/// What a checkpoint keeps of a file's content: reads its two ends. Empty for what is no plain file, or cannot be read.
StoredInputState LookAtInput(const std::string& file);

/// How far two looks at a file differ: kInvalidConfig says what it was and what it is now. A file that was only written
/// again looks alike and is ok; `*written_again` then tells. Looks at no plain file are alike.
Status CompareInput(const StoredInputState& before, const StoredInputState& now, bool* written_again);

}  // namespace millrace
