#include "table/server_rows.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/decompress.h"
#include "core/file.h"
#include "core/folder_entries.h"
#include "core/gzip_member.h"
#include "core/numbers.h"
#include "table/counted_table.h"
#include "table/ctr_rows.h"
#include "table/table_io.h"
#include "table/virtual_shards.h"

namespace millrace {
namespace {

/// Numbers after a row's key: slot, unseen days, score since the last save, shows, clicks.
constexpr size_t kCounts = 5;
/// Maximum line length, for a row of 2^20 floats; also stops reading a file without line ends.
constexpr size_t kLongestLine = size_t{1} << 25;
constexpr size_t kAll = std::numeric_limits<size_t>::max();

/// Order of a row's numbers after the counts: the first weight, its state, the other weights, their state; and the size
/// of the state here.
struct Layout {
  enum class Rule : uint8_t { kSgd, kAdam, kAdagrad };
  Rule rule = Rule::kSgd;
  size_t dim = 0;
  float beta1 = 0;
  float beta2 = 0;

  /// Minimum count of numbers after the counts; for Adagrad with one sum per row, `shared`.
  size_t Numbers(bool shared) const {
    const size_t rest = dim - 1;
    switch (rule) {
      case Rule::kSgd: return dim;
      case Rule::kAdam: return 1 + 4 + rest + (rest == 0 ? 0 : 2 * rest + 2);
      case Rule::kAdagrad: return 1 + 1 + rest + (rest == 0 ? 0 : shared ? 1 : rest);
    }
    return 0;
  }
  /// For a single weight, servers still store a state for the others: powers, or a sum that is the mean of nothing.
  size_t StateOfNone() const { return dim > 1 || rule == Rule::kSgd ? 0 : rule == Rule::kAdam ? 2 : 1; }
  bool IsRow(size_t behind_counts) const {
    const auto is = [&](bool shared) {
      return behind_counts == Numbers(shared) || behind_counts == Numbers(shared) + StateOfNone();
    };
    return is(false) || is(true);
  }
  size_t FirstState() const { return rule == Rule::kSgd ? 0 : rule == Rule::kAdam ? 4 : 1; }
};

/// The header that the table's own files would have for `shards`.
Result<TableHeader> HeaderOf(const SparseTable& table, ShardRange shards) {
  std::stringstream bytes;
  MR_TRY(table.Save({shards.begin, shards.begin + 1}, TableContent::kAll, bytes));
  MR_ASSIGN(const TableReader reader, TableReader::Open(bytes));
  return reader.header();
}

float NumberBehind(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  float value = 0;
  if (at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + name.size());
    ParseFloat(rest.substr(0, rest.find(' ')), &value);
  }
  return value;
}

Result<Layout> LayoutOf(const TableHeader& header) {
  const std::string rule = header.optimizer.substr(0, header.optimizer.find(' '));
  Layout layout;
  layout.dim = header.dim;
  layout.beta1 = NumberBehind(header.optimizer, "beta1=");
  layout.beta2 = NumberBehind(header.optimizer, "beta2=");
  if (rule == "sgd") return layout;
  layout.rule = rule == "adam" ? Layout::Rule::kAdam : Layout::Rule::kAdagrad;
  if (rule == "adam" || rule == "adagrad") return layout;
  return InvalidConfig("table \"" + header.name + "\": Paddle's servers have no rule " + rule +
                       "; their files are those of sgd, adam and adagrad");
}

/// The lines of a file, decompressed if necessary.
class Lines {
 public:
  static Result<Lines> Open(const std::string& path) {
    MR_ASSIGN(std::unique_ptr<ByteSource> file, OpenFile(path));
    return Lines(path, Decompress(std::move(file), path));
  }

  /// The next line without its end, valid until the next call; nullopt after the last.
  Result<std::optional<std::string_view>> Next(const std::stop_token& stop) {
    for (;;) {
      const size_t end = bytes_.find('\n', at_);
      if (end != std::string::npos || (ended_ && at_ < bytes_.size())) {
        const size_t last = end == std::string::npos ? bytes_.size() : end;
        const std::string_view line(bytes_.data() + at_, last - at_);
        at_ = end == std::string::npos ? last : last + 1;
        ++number_;
        return std::optional<std::string_view>(line);
      }
      if (ended_) return std::optional<std::string_view>();
      bytes_.erase(0, at_);
      at_ = 0;
      const size_t had = bytes_.size();
      if (had > kLongestLine) return Wrong("is no line of a table: it has no end");
      bytes_.resize(had + kPiece);
      MR_ASSIGN(const size_t got, source_->Read(std::span<char>(bytes_.data() + had, kPiece), stop));
      bytes_.resize(had + got);
      ended_ = got == 0;
    }
  }

  Status Wrong(const std::string& what) const {
    return BadData(path_ + ":" + std::to_string(std::max<int64_t>(number_, 1)) + ": " + what);
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 16;
  Lines(std::string path, std::unique_ptr<ByteSource> source) : path_(std::move(path)), source_(std::move(source)) {}

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::string bytes_;
  size_t at_ = 0;
  int64_t number_ = 0;
  bool ended_ = false;
};

/// The numbers of a line, of which the first `finite` must be finite; `key`, if not null, receives the first.
Status ReadNumbers(const Lines& lines, std::string_view line, size_t finite, uint64_t* key,
                   std::vector<float>* numbers) {
  numbers->clear();
  bool is_first = key != nullptr;
  while (!line.empty()) {
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (word.empty()) continue;
    if (is_first) {
      if (ParseInteger(word, key) != IntegerText::kOk) {
        return lines.Wrong("\"" + std::string(word.substr(0, 40)) + "\" is no id of 64 bits, with which a row begins");
      }
      is_first = false;
      continue;
    }
    float value = 0;
    const FloatText read = ParseFloat(word, &value);
    const bool is_nothing = read == FloatText::kNonFinite && std::isnan(value) && numbers->size() >= finite;
    if (read != FloatText::kFinite && read != FloatText::kUnderflow && !is_nothing) {
      return lines.Wrong("\"" + std::string(word.substr(0, 40)) + "\" is no finite number");
    }
    numbers->push_back(value);
  }
  return Status::Ok();
}

/// Collects rows as read, then sorts them like a table's file.
class Rows {
 public:
  /// For a table with counts, `counted` has the layout.
  Rows(TableHeader header, const Layout& layout, const CtrRows* counted)
      : header_(std::move(header)), layout_(layout), counted_(counted) {
    // Adagrad's sums have other units.
    if (layout_.rule == Layout::Rule::kAdagrad) {
      header_.optimizer.clear();
      header_.row_floats = header_.dim;
    }
  }

  Status Add(const Lines& lines, uint64_t key, const std::vector<float>& numbers) {
    if (counted_ != nullptr) return AddCounted(lines, key, numbers);
    const size_t have = numbers.size();
    if (have < kCounts || !layout_.IsRow(have - kCounts)) {
      return lines.Wrong("the row of id " + std::to_string(key) + " has " + std::to_string(have) +
                         " numbers behind it, not the " + std::to_string(kCounts + layout_.Numbers(false)) +
                         " of a row of " + std::to_string(layout_.dim) +
                         " weights with this rule; the job's model.table has another dim or optimizer than the server");
    }
    keys_.push_back(key);
    const size_t rest = layout_.dim - 1;
    const float* first = numbers.data() + kCounts;
    const float* others = first + 1 + layout_.FirstState();
    values_.push_back(first[0]);
    values_.insert(values_.end(), others, others + rest);
    if (layout_.rule != Layout::Rule::kAdam) return Status::Ok();
    for (size_t moment = 0; moment < 2; ++moment) {
      values_.push_back(first[1 + moment]);
      const float* state = others + rest + moment * rest;
      values_.insert(values_.end(), state, state + rest);
    }
    header_.pushes = std::max(header_.pushes, UpdatesOf(first[3]));
    return Status::Ok();
  }

  /// How many numbers after a key must be finite. A server's state without weights can be the mean of nothing.
  size_t finite_numbers() const {
    if (counted_ != nullptr) return counted_->finite_numbers() + 1;
    return layout_.dim == 1 ? kCounts + layout_.Numbers(false) : kAll;
  }

  Status LoadInto(SparseTable* table, ShardRange shards) {
    std::vector<size_t> order(keys_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto place = [this](size_t i) { return std::pair(VirtualShardOf(keys_[i]), keys_[i]); };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
    for (size_t i = 1; i < order.size(); ++i) {
      if (keys_[order[i]] != keys_[order[i - 1]]) continue;
      return BadData("id " + std::to_string(keys_[order[i]]) +
                     " has two rows: the folder has files of two saves, or a file twice");
    }
    header_.rows = keys_.size();
    header_.shards = shards;
    header_.by_key = false;
    std::stringstream bytes;
    MR_ASSIGN(TableWriter writer, TableWriter::Create(bytes, header_));
    for (const size_t i : order) MR_TRY(writer.Add(keys_[i], values_.data() + i * header_.row_floats));
    MR_TRY(writer.Finish());
    return table->Load(shards, bytes, LoadMode::kNew);
  }

 private:
  Status AddCounted(const Lines& lines, uint64_t key, std::span<const float> numbers) {
    keys_.push_back(key);
    values_.resize(values_.size() + header_.row_floats);
    float* const row = values_.data() + values_.size() - header_.row_floats;
    if (!numbers.empty() && counted_->TakeNumbers(key, numbers.subspan(1), row)) return Status::Ok();
    return lines.Wrong(
        "the row of id " + std::to_string(key) + " has " + std::to_string(numbers.size()) +
        " numbers behind it, not the " + std::to_string(counted_->least_numbers() + 1) + " or, with embedx, " +
        std::to_string(counted_->most_numbers() + 1) +
        " of a row of this accessor; the job's model.table has another embedx_dim or other rules than the server");
  }

  /// The number of updates of a row, from its power of beta1, which starts at beta1.
  uint64_t UpdatesOf(float power) const {
    if (!(layout_.beta1 > 0 && power > 0 && power < 1)) return 0;
    const double updates = std::log(static_cast<double>(power)) / std::log(static_cast<double>(layout_.beta1)) - 1;
    return static_cast<uint64_t>(std::max(0.0, std::round(updates)));
  }

  TableHeader header_;
  Layout layout_;
  const CtrRows* counted_;
  std::vector<uint64_t> keys_;
  std::vector<float> values_;
};

/// Appends a row as a line; `powers` for the next update.
void AppendRow(const Layout& layout, uint64_t key, const float* row, std::array<float, 2> powers, std::string* text) {
  *text += std::to_string(key);
  for (size_t i = 0; i < kCounts; ++i) *text += " 0";
  const size_t dim = layout.dim;
  const auto append = [text](const float* from, const float* to) {
    for (; from < to; ++from) AppendExact(*from, &(*text += ' '));
  };
  append(row, row + 1);
  if (layout.rule == Layout::Rule::kAdam) {
    append(row + dim, row + dim + 1);
    append(row + 2 * dim, row + 2 * dim + 1);
    append(powers.data(), powers.data() + 2);
  }
  append(row + 1, row + dim);
  if (layout.rule == Layout::Rule::kAdam) {
    append(row + dim + 1, row + 2 * dim);
    append(row + 2 * dim + 1, row + 3 * dim);
    append(powers.data(), powers.data() + 2);
  }
  *text += '\n';
}

/// Appends a row with counts as a line; its slot is unknown. `numbers` is a buffer.
void AppendRow(const CtrRows& rows, uint64_t key, const float* row, std::vector<float>* numbers, std::string* text) {
  *text += std::to_string(key) + " 0";
  numbers->clear();
  rows.AppendNumbers(row, numbers);
  for (const float number : *numbers) AppendExact(number, &(*text += ' '));
  *text += '\n';
}

/// The files of a server's shards, written in parallel; each consists of compressed members.
class ShardFiles {
 public:
  explicit ShardFiles(std::string folder) : folder_(std::move(folder)), texts_(kServerShards) {}

  std::string& TextOf(uint64_t key) { return texts_[key % kServerShards]; }
  /// Appends the collected data to the files; the first call creates all of them.
  Status WriteOut() {
    for (size_t shard = 0; shard < texts_.size(); ++shard) {
      if (are_made_ && texts_[shard].empty()) continue;
      const std::string number = std::to_string(shard);
      const std::string path = folder_ + "/part-000-" + std::string(5 - number.size(), '0') + number + ".gz";
      std::FILE* file = std::fopen(path.c_str(), "ab");
      if (file == nullptr) return IoErrorFromErrno("cannot make \"" + path + "\"", errno);
      const std::string bytes = GzipMember(texts_[shard]);
      const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
      if (std::fclose(file) != 0 || !written) return IoErrorFromErrno("cannot write \"" + path + "\"", errno);
      texts_[shard].clear();
    }
    are_made_ = true;
    return Status::Ok();
  }

 private:
  std::string folder_;
  std::vector<std::string> texts_;
  bool are_made_ = false;
};

/// Virtual shards whose rows are in memory at a time, as text.
constexpr uint32_t kShardsAtOnce = 64;

Status WriteShards(const SparseTable& table, const Layout& layout, const CtrRows* counted, const std::string& folder,
                   const std::stop_token& stop) {
  ShardFiles files(folder);
  std::vector<float> numbers;
  for (uint32_t begin = 0; begin < kVirtualShards; begin += kShardsAtOnce) {
    if (stop.stop_requested()) return Cancelled("stopped before the rows for Paddle's servers were saved");
    std::stringstream bytes;
    MR_TRY(table.Save({begin, begin + kShardsAtOnce}, TableContent::kAll, bytes));
    MR_ASSIGN(TableReader reader, TableReader::Open(bytes));
    const auto next = static_cast<double>(reader.header().pushes + 1);
    const std::array<float, 2> powers = {static_cast<float>(std::pow(static_cast<double>(layout.beta1), next)),
                                         static_cast<float>(std::pow(static_cast<double>(layout.beta2), next))};
    for (;;) {
      MR_ASSIGN(const TableBlock* block, reader.Next());
      if (block == nullptr) break;
      for (size_t i = 0; i < block->keys.size(); ++i) {
        const uint64_t key = block->keys[i];
        const float* row = block->values.data() + i * reader.header().row_floats;
        if (counted != nullptr) {
          AppendRow(*counted, key, row, &numbers, &files.TextOf(key));
        } else {
          AppendRow(layout, key, row, powers, &files.TextOf(key));
        }
      }
    }
    MR_TRY(files.WriteOut());
  }
  return Status::Ok();
}

/// Calls `take` for each line of all files in a folder, with the reader that knows its position.
template <class Take>
Status ForEachLine(const std::string& folder, const std::stop_token& stop, const Take& take) {
  MR_ASSIGN(const std::vector<std::string> paths, ServerTableFiles(folder));
  for (const std::string& path : paths) {
    MR_ASSIGN(Lines lines, Lines::Open(path));
    for (;;) {
      MR_ASSIGN(const std::optional<std::string_view> line, lines.Next(stop));
      if (!line.has_value()) break;
      MR_TRY(take(lines, *line));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<std::string>> ServerTableFiles(const std::string& folder) {
  MR_ASSIGN(std::vector<std::string> names, NamesIn(folder));
  names.erase(std::remove_if(names.begin(), names.end(), [](const std::string& n) { return !n.starts_with("part-"); }),
              names.end());
  if (names.empty()) {
    return NotFound("\"" + folder +
                    "\" has no file part-SERVER-SHARD, as a server of Paddle's the_one_ps saves a table");
  }
  std::sort(names.begin(), names.end());
  for (std::string& name : names) name.insert(0, folder + "/");
  return names;
}

std::set<std::string> FilesOfServerTable(const std::string& folder) {
  std::set<std::string> files;
  const Result<std::vector<std::string>> names = NamesIn(folder);
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    if (name.starts_with("part-000-") && name.ends_with(".gz")) files.insert(name);
  }
  return files;
}

Status LoadServerRows(const std::string& folder, SparseTable* table, ShardRange shards, const std::stop_token& stop) {
  MR_ASSIGN(TableHeader header, HeaderOf(*table, shards));
  const CountedTable* const counted = AsCounted(table);
  MR_ASSIGN(const Layout layout, counted != nullptr ? Layout() : LayoutOf(header));
  Rows rows(std::move(header), layout, counted != nullptr ? &counted->policy() : nullptr);
  std::vector<float> numbers;
  const auto add = [&](const Lines& lines, std::string_view line) {
    uint64_t key = 0;
    MR_TRY(ReadNumbers(lines, line, rows.finite_numbers(), &key, &numbers));
    return shards.Has(VirtualShardOf(key)) ? rows.Add(lines, key, numbers) : Status::Ok();
  };
  MR_TRY(ForEachLine(folder, stop, add));
  return rows.LoadInto(table, shards).Context(folder);
}

Status SaveServerRows(const SparseTable& table, const std::string& folder, const std::stop_token& stop) {
  MR_ASSIGN(const TableHeader header, HeaderOf(table, kAllShards));
  const CountedTable* const counted = AsCounted(&table);
  MR_ASSIGN(const Layout layout, counted != nullptr ? Layout() : LayoutOf(header));
  if (layout.rule == Layout::Rule::kAdagrad) {
    return InvalidConfig("table \"" + header.name +
                         "\": its rule adagrad counts other sums than a server's; rows for servers are those of sgd "
                         "and adam. program.save_dir keeps it for Millrace");
  }
  const CtrRows* const rows = counted != nullptr ? &counted->policy() : nullptr;
  return WriteFolder(folder, kServerTableFolder,
                     [&](const std::string& made) { return WriteShards(table, layout, rows, made, stop); });
}

Result<std::vector<float>> ReadServerDense(const std::string& folder, const std::stop_token& stop) {
  std::vector<float> values;
  std::vector<float> numbers;
  const auto add = [&](const Lines& lines, std::string_view line) -> Status {
    MR_TRY(ReadNumbers(lines, line, kAll, nullptr, &numbers));
    if (numbers.empty()) return lines.Wrong("no value of a dense parameter");
    values.push_back(numbers[0]);
    return Status::Ok();
  };
  MR_TRY(ForEachLine(folder, stop, add));
  return values;
}

}  // namespace millrace
