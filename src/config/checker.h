#pragma once

#include <cmath>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.h"
#include "config/field_positions.h"
#include "config/known_names.h"
#include "config/model_judge.h"

namespace google::protobuf {
class Message;
}

namespace millrace {

class DataFeedDesc;
class ModelDesc;
class TrainerDesc;

/// A slot that a configuration defines.
struct DefinedSlot {
  std::string name;
  bool is_float = false;
  bool is_dense = false;
  bool is_used = true;
  std::vector<int> shape = {};            ///< of a dense slot; one of one value where a wrong one was given
  std::string path;                       ///< of its block
  std::vector<std::string> columns = {};  ///< that a feature is made of
  int64_t ids = 0;                        ///< that the words of a slot's vocabulary make; 0: it lists none
  bool is_hashed = false;                 ///< its ids are 64-bit ones of texts
  bool has_ids_of_data = false;  ///< which id a text has is not said: by a hash, or by how often it stands in files
};

/// Whether an error stands within `field`, or in an override of it.
bool HasErrorsWithin(const Diagnostics& diagnostics, const FieldPositions& positions, const std::string& field);

/// What the checks of one configuration share. Paths are those of FieldPositions.
class Checker {
 public:
  Checker(const KnownNames& known, const FieldPositions& positions, Diagnostics* diagnostics)
      : known_(known), positions_(positions), diagnostics_(diagnostics) {}

  const KnownNames& known() const { return known_; }
  void Error(std::string_view path, std::string message) {
    said_.emplace(path);
    diagnostics_->Error(positions_.Find(path), std::move(message));
  }
  int errors() const { return diagnostics_->errors(); }
  bool has_errors() const { return errors() > 0; }
  void Warning(std::string_view path, std::string message) {
    diagnostics_->Warning(positions_.Find(path), std::move(message));
  }
  /// Reports a field that must be set, at the message it belongs to, unless it stands there with a mistake.
  void Missing(const std::string& parent, const std::string& field, const std::string& message) {
    if (!positions_.Has(parent.empty() ? field : parent + "." + field)) Error(parent, message);
  }
  /// Reports mistakes that others found, but for those of fields of which an error was reported before.
  void Add(const std::vector<ConfigMistake>& mistakes);
  /// Whether an error stands within a field, or in an override of it.
  bool HasErrorsIn(const std::string& field) const { return HasErrorsWithin(*diagnostics_, positions_, field); }
  /// The line on which a path was written, for "first on line 7".
  int Line(std::string_view path) const { return positions_.Find(path).line; }

  /// Reports the numbers of a configuration that its schema does not allow: "batch_size must be at least 1, not 0".
  void Ranges(const google::protobuf::Message& message);

  template <class T>
  static std::string Number(T value) {
    std::ostringstream out;
    out << value;
    return out.str();
  }
  /// The last name of a path without its index.
  static std::string Field(std::string_view path);

 private:
  const KnownNames& known_;
  const FieldPositions& positions_;
  Diagnostics* const diagnostics_;
  std::set<std::string, std::less<>> said_;  ///< paths of errors
};

/// Reports a name that is not among `names`, with the nearest or, when there are few, all of them; without a near one,
/// `advice` as well.
void CheckKnown(Checker& check, const std::string& path, std::string_view what, const std::string& name,
                const std::vector<std::string>& names, const std::string& advice = "");

/// Checks data_desc and returns its slots.
std::vector<DefinedSlot> CheckDataFeed(const TrainerDesc& desc, Checker& check);

/// Checks the features of a data_desc that has some, and returns the slots that they make.
std::vector<DefinedSlot> CheckFeatures(const DataFeedDesc& feed, Checker& check);

/// Reports what `judge` finds in the model at "model", labels that do not suit their loss, unknown classes of tables
/// and metrics, and unused slots and tables. Without a judge, mistakes of names of layers, slots and tables go
/// unnoticed. `read_elsewhere`: slots that something other than the model reads. `is_of_program`: the model stands
/// beside a program.
void CheckModel(const ModelDesc& model, const std::vector<DefinedSlot>& slots, bool are_features,
                const std::set<std::string>& read_elsewhere, bool is_of_program, const ModelJudge& judge,
                Checker& check);

}  // namespace millrace
