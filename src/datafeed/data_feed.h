#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_batch.h"
#include "batch/slot_schema.h"
#include "config/feed_names.h"
#include "core/registry.h"
#include "core/status.h"
#include "datafeed/instant_feed.h"
#include "datafeed/line_cut.h"
#include "datafeed/line_error.h"
#include "datafeed/multi_slot_parser.h"
#include "datafeed/row_file.h"
#include "datafeed/value_names.h"

namespace millrace {

class DataFeedDesc;
class RowSink;
struct ColumnSetup;

/// Parses lines, or the records of a binary format, to rows of batches, for one reader thread.
///
///     feed.Attach(batch);  feed.ParseLine(line) ... until feed.rows() is the batch size;  feed.Detach();
///
/// Any failure ends reading. Built-in feeds do not fail; they report bad lines. Feeds of plugins can fail, for example
/// with kUnavailable without memory for the rows; see CheckedFeed.
class DataFeed {
 public:
  virtual ~DataFeed() = default;
  /// Appends rows to this empty batch, which belongs to the feed until Detach. Fails as stated for the class.
  virtual Status Attach(SlotBatch* batch) = 0;
  /// Completes the batch. Fails as stated for the class.
  virtual Status Detach() = 0;
  /// Rows since Attach.
  virtual int rows() const = 0;
  /// `line` has no '\n' (a record can contain any byte); kLinePadding bytes after it are readable. A bad line is not a
  /// failure and leaves no trace in the batch. Fails as stated for the class.
  virtual Result<LineResult> ParseLine(std::string_view line) = 0;
  /// The error of the last bad line.
  virtual const LineError& error() const = 0;
  virtual const ValueCounters& counters() const = 0;
};

/// Optional interface of a feed whose files can start with a line of column names.
class HeadedFeed {
 public:
  virtual ~HeadedFeed() = default;
  /// Announces the header of the next lines; empty: none. Fails with kBadData, without a position, if it does not fit
  /// the feed.
  virtual Status TakeHeader(std::string_view header) = 0;
  /// A message about the last header, without a position; empty if there is nothing new to report.
  virtual const std::string& note() const = 0;
};

/// Optional interface of a feed whose lines contain names, which only the lines reveal.
class NamedValuesFeed {
 public:
  virtual ~NamedValuesFeed() = default;
  /// The names in correctly parsed lines.
  virtual ValueNames names() const = 0;
};

/// Optional interface of a feed that packs rows while parsing. Rows of other feeds are packed from a batch
/// (dataset/feed_rows.h). Feeds of plugins always use batches.
class PackingFeed {
 public:
  virtual ~PackingFeed() = default;
  /// Like DataFeed::ParseLine, but writes the row, its name and its content to `sink`. Fails like ParseLine.
  virtual Result<LineResult> PackLine(std::string_view line, RowSink& sink) = 0;
};

/// A class of data feeds.
struct FeedKind {
  /// Creates a feed. Fails with kInvalidConfig for an unsupported setting. Any thread; called once per reading thread.
  using Maker = std::function<Result<std::unique_ptr<DataFeed>>(const SlotSchema& schema, const DataFeedDesc& desc)>;
  /// Defines the records for these slots and this desc, which must outlive the result. `who` is named if the class
  /// throws.
  using Cutter =
      std::function<Result<LineCut>(const SlotSchema& schema, const DataFeedDesc& desc, const std::string& who)>;
  /// Creates a feed of named columns, used instead of `maker` if the desc has features.
  using ColumnMaker = std::function<Result<std::unique_ptr<DataFeed>>(
      const SlotSchema& schema, const DataFeedDesc& desc, const ColumnSetup& setup)>;
  /// Returns the function that separates the header from a file's first line; null: files have no header.
  using HeaderOf = std::string_view (*(*)(const DataFeedDesc& desc))(std::string_view first_line);
  /// The command that writes the records of a file, with these columns in order.
  using CommandOf =
      std::function<std::vector<std::string>(const DataFeedDesc& desc, std::span<const std::string> columns)>;
  /// The plugin that registered a class, and its version.
  struct Origin {
    std::string path;
    std::string version;
  };
  /// The author of a plugin's feed code.
  enum class Code : uint8_t {
    kPlugins,  ///< the plugin: feeds are checked against DataFeed's contract
    kOwn       ///< Millrace, calling the plugin's functions
  };

  Maker maker{};           ///< for a class that reads lines or records
  ColumnMaker columns{};   ///< for a class with named columns
  LineCut cut{};           ///< how files are cut into lines
  HeaderOf header_of{};    ///< replaces cut.header if the desc decides whether files have one
  CommandOf command_of{};  ///< replaces cut.command, which depends on the columns read
  /// The command that writes name and type of each column of a file, each followed by a NUL. Null: none.
  std::function<std::vector<std::string>()> names_command{};
  std::function<void()> begin_job{};  ///< allows messages to repeat for a new job; null: no such messages
  Cutter cut_of{};                    ///< replaces `cut` for a class whose records Millrace parses
  InstantFeed::Maker instant{};       ///< replaces `maker` for a class that reads mapped files
  /// Set for a file format, which names the class: the factory rejects fields the format cannot use. Otherwise the
  /// maker checks the whole desc.
  std::optional<FormatTraits> format{};
  Origin plugin{};  ///< empty path: built in
  Code code = Code::kOwn;
};

/// Creates data feeds by class name: DataFeedDesc.name.
///
/// A value that the program creates and passes on. Plugins add classes before the first Create, which any thread can
/// call. Exceptions of a class are converted to a failure that names it.
class DataFeedFactory : public Registry<FeedKind> {
 public:
  using Code = FeedKind::Code;
  DataFeedFactory() : Registry("data feed of the class") {}
  /// Contains the feeds for MultiSlot data (kOwnFeeds, datafeed/multi_slot_feed.h) and the file formats
  /// (datafeed/builtin_formats.h).
  static DataFeedFactory Builtin();

  /// Fails with kAlreadyExists, naming the plugin that added it, if the name is taken.
  Status Add(std::string name, std::string doc, FeedKind kind);
  /// Adds a class at the level of files. The desc controls its values (empty slots, zeros, NaN, width of a dense slot)
  /// as for text. Fails like Add.
  Status AddRowFiles(std::string name, std::string doc, RowFileMaker maker);
  /// Adds all classes of `feeds`, or none: fails like Add, and with kInvalidConfig for a class without maker. Each
  /// class records `plugin`, the path of its shared object, and its version.
  Status Adopt(const DataFeedFactory& feeds, const std::string& plugin, const std::string& version, Code code);
  /// Call it at the start of each job: once-per-job messages can then repeat.
  void BeginJob() const;
  /// Keeps references to `schema`. Fails with kInvalidConfig for an unknown name (listing all names), a class that does
  /// not read lines, an unsupported field, and with the class's own failure.
  Result<std::unique_ptr<DataFeed>> Create(std::string_view name, const SlotSchema& schema,
                                           const DataFeedDesc& desc) const;
  /// Creates a feed of mapped files. Fails like Create, and with kInvalidConfig for a class that reads lines.
  Result<std::unique_ptr<const InstantFeed>> CreateInstant(std::string_view name, const SlotSchema& schema,
                                                           const DataFeedDesc& desc) const;
  /// How a class cuts files into lines; text if the name is unknown. Fails with kInvalidConfig if a class at the level
  /// of files does not support `schema` or `desc`, which must outlive the result.
  Result<LineCut> CutOf(std::string_view name, const SlotSchema& schema, const DataFeedDesc& desc) const;
  /// The classes that are file formats.
  std::map<std::string, FormatTraits> formats() const;
  /// Whether a class reads lines of text; true for an unknown one.
  bool ReadsText(std::string_view name) const;
  /// Fails with kInvalidConfig if the name is unknown.
  Status CheckName(std::string_view name) const;
  /// The plugin of a class. Null: built in, or unknown.
  const FeedKind::Origin* PluginOf(std::string_view name) const;
};

}  // namespace millrace
