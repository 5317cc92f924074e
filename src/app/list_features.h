#pragma once

#include <string>

namespace millrace {

class DataFeedDesc;

/// The features of a job or a model, a paragraph each: columns, steps, and what it learned from the training files,
/// of a vocabulary the first `top` words.
std::string ListFeatures(const DataFeedDesc& desc, int top);

}  // namespace millrace
