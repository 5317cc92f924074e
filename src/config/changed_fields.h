#pragma once

#include <string>
#include <vector>

namespace google::protobuf {
class Message;
}

namespace millrace {

class TrainerDesc;

/// A field of a job that is not what it was when a checkpoint was written.
struct ChangedField {
  std::string path;    ///< "model.table[t].optimizer.adagrad.lr"
  std::string before;  ///< in text format, cut when long; "(none)" where it was not set and has no default
  std::string now;
  /// Whether a run that goes on can take the new value: what was trained so far does not hang on the old one.
  bool may_change = false;
};

/// Every field whose value differs, in the order of the descriptors; a value that is the default is no other one than
/// the default left out. Elements that have names are compared by them. `may_change` is for what no rule says more of.
std::vector<ChangedField> ChangedFields(const google::protobuf::Message& before, const google::protobuf::Message& now,
                                        bool may_change);

/// The same of whole jobs. Slot ranges may be written out in one of them, and a table may leave out the model's
/// optimizer.
std::vector<ChangedField> ChangedJobFields(const TrainerDesc& before, const TrainerDesc& now);

/// The last names of each path, as many as distinguish it from the others: "lr" of "model.optimizer.adagrad.lr".
std::vector<std::string> ShortPaths(const std::vector<std::string>& paths);

}  // namespace millrace
