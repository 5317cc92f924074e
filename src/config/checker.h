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

namespace google::protobuf {
class Message;
}

namespace millrace {

class DataFeedDesc;
class ModelDesc;
class TrainerDesc;

/// A name that a configuration defines, and what it is.
struct DefinedName {
  std::string name;
  bool is_layer = false;
  bool is_embedding = false;
  bool is_float = false;
  bool is_dense = false;
  bool is_used = true;
  std::string path;                       ///< of a slot's block; empty for a layer
  std::vector<std::string> columns = {};  ///< that a feature is made of
  int64_t ids = 0;                        ///< that the words of a slot's vocabulary make; 0: it lists none
  bool is_hashed = false;                 ///< its ids are 64-bit ones of texts
  bool has_ids_of_data = false;  ///< which id a text has is not said: by a hash, or by how often it stands in files
};

/// What the checks of one configuration share. Paths are those of FieldPositions.
class Checker {
 public:
  Checker(const KnownNames& known, const FieldPositions& positions, Diagnostics* diagnostics)
      : known_(known), positions_(positions), diagnostics_(diagnostics) {}

  const KnownNames& known() const { return known_; }
  void Error(std::string_view path, std::string message) {
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
};

/// "a", "a and b", "a, b and c".
std::string JoinNames(const std::vector<std::string_view>& names);

/// Reports a name that is not among `names`, with the nearest or, when there are few, all of them; without a near one,
/// `advice` as well.
void CheckKnown(Checker& check, const std::string& path, std::string_view what, const std::string& name,
                const std::vector<std::string>& names, const std::string& advice = "");

/// Reports a class_name, that of the message at `path`, which is missing or not known.
void CheckClassName(Checker& check, const std::string& path, std::string_view what, const std::string& name,
                    const std::vector<std::string>& names);

/// Checks data_desc and returns its slots.
std::vector<DefinedName> CheckDataFeed(const TrainerDesc& desc, Checker& check);

/// Checks the features of a data_desc that has some, and returns the slots that they make.
std::vector<DefinedName> CheckFeatures(const DataFeedDesc& feed, Checker& check);

/// Checks the model, which stands at "model" and reads `slots`.
/// `read_elsewhere`: slots that something beside the model reads; others that no layer reads are warned of.
void CheckModel(const ModelDesc& model, const std::vector<DefinedName>& slots, std::set<std::string> read_elsewhere,
                Checker& check);

/// Checks a model that stands beside a program: metrics, and what Paddle's servers had. Whether the program has the
/// variables that they name shows when it is read.
void CheckModelBesideProgram(const ModelDesc& model, const std::vector<DefinedName>& slots, Checker& check);

}  // namespace millrace
