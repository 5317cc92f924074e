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

/// Turns lines, or the records of a binary format, into rows of batches, for one reader thread.
///
///     feed.Attach(batch);  feed.ParseLine(line) ... until feed.rows() is the batch size;  feed.Detach();
///
/// A failure of any of them ends the reading: no memory for the rows, or rows that cannot be believed. It says whose.
class DataFeed {
 public:
  virtual ~DataFeed() = default;
  /// Rows go to the end of this empty batch, which is the feed's alone until Detach.
  virtual Status Attach(SlotBatch* batch) = 0;
  virtual Status Detach() = 0;
  /// Rows since Attach.
  virtual int rows() const = 0;
  /// `line` has no '\n' (a record has whatever it has), but kLinePadding bytes behind it may be read. A bad line is no
  /// failure, and leaves nothing behind.
  virtual Result<LineResult> ParseLine(std::string_view line) = 0;
  /// Says what was wrong with the last bad line.
  virtual const LineError& error() const = 0;
  virtual const ValueCounters& counters() const = 0;
};

/// The further ability of a feed whose files may begin with a line that names their columns.
class HeadedFeed {
 public:
  virtual ~HeadedFeed() = default;
  /// The lines that follow are of a file with this header; empty: with none. kBadData, without a place, when it is not
  /// the header of such lines.
  virtual Status TakeHeader(std::string_view header) = 0;
  /// What somebody should know of the header that was taken last, without a place; empty: nothing that was not said of
  /// another file already.
  virtual const std::string& note() const = 0;
};

/// The further ability of a feed whose lines name their values themselves: only they tell which names there are.
class NamedValuesFeed {
 public:
  virtual ~NamedValuesFeed() = default;
  /// Of the lines that were read without a mistake.
  virtual ValueNames names() const = 0;
};

/// The further ability of a feed that packs the row of a line as it reads it; rows of other feeds are packed from a
/// batch (dataset/feed_rows.h). A feed that a plugin wrote is held to batches.
class PackingFeed {
 public:
  virtual ~PackingFeed() = default;
  /// As DataFeed::ParseLine, with the row, its name and its content for `sink` in place of a batch.
  virtual Result<LineResult> PackLine(std::string_view line, RowSink& sink) = 0;
};

/// A class of data feeds.
struct FeedKind {
  /// Makes a feed, or says what in the desc it cannot follow. Called by any thread, once for each that reads.
  using Maker = std::function<Result<std::unique_ptr<DataFeed>>(const SlotSchema& schema, const DataFeedDesc& desc)>;
  /// Says what the records of these slots and this desc are; both outlive what is returned. `who` is to be blamed for
  /// what the class throws.
  using Cutter =
      std::function<Result<LineCut>(const SlotSchema& schema, const DataFeedDesc& desc, const std::string& who)>;
  /// Makes a feed of columns with names, in place of `maker` where the desc has features.
  using ColumnMaker = std::function<Result<std::unique_ptr<DataFeed>>(
      const SlotSchema& schema, const DataFeedDesc& desc, const ColumnSetup& setup)>;
  /// What takes the header off the first line of files that are read so; null: they have none.
  using HeaderOf = std::string_view (*(*)(const DataFeedDesc& desc))(std::string_view first_line);
  /// The command that makes the records of a file, of these columns in their order.
  using CommandOf =
      std::function<std::vector<std::string>(const DataFeedDesc& desc, std::span<const std::string> columns)>;
  /// Where a class comes from: the plugin's path and version.
  struct Origin {
    std::string path;
    std::string version;
  };
  /// Who wrote the code of a plugin's feeds.
  enum class Code : uint8_t {
    kPlugins,  ///< the plugin: they are held to what DataFeed promises
    kOwn       ///< Millrace, around functions of the plugin
  };

  Maker maker{};           ///< of a class that reads lines or records
  ColumnMaker columns{};   ///< of a class whose rows have columns with names
  LineCut cut{};           ///< what a line of the class is
  HeaderOf header_of{};    ///< in place of cut.header, where the desc says whether files have one
  CommandOf command_of{};  ///< in place of cut.command, which depends on the columns that are read
  /// The command that writes the name and the type of each of a file's columns, a NUL behind each. Null: there is none.
  std::function<std::vector<std::string>()> names_command{};
  std::function<void()> begin_job{};  ///< forgets what was said of another job's files; null: nothing is said once
  Cutter cut_of{};                    ///< in place of `cut`, of a class whose records Millrace itself parses
  InstantFeed::Maker instant{};       ///< in place of `maker`: of a class that reads mapped files
  /// Of a file format, by whose name the class is called: the factory refuses what it has no use for. None: the maker
  /// looks at all of the desc.
  std::optional<FormatTraits> format{};
  Origin plugin{};  ///< its path is empty: it is Millrace's own
  Code code = Code::kOwn;
};

/// Makes data feeds by class name: DataFeedDesc.name.
///
/// A value that the program makes and passes on; a plugin adds its classes to it before the first Create, which any
/// thread may call. What a class throws is caught and reported by its name.
class DataFeedFactory : public Registry<FeedKind> {
 public:
  using Code = FeedKind::Code;
  DataFeedFactory() : Registry("data feed of the class") {}
  /// With the feeds of MultiSlot data (kOwnFeeds, datafeed/multi_slot_feed.h) and the file formats
  /// (datafeed/builtin_formats.h).
  static DataFeedFactory Builtin();

  /// kAlreadyExists, with the plugin that it came from, when the name is taken.
  Status Add(std::string name, std::string doc, FeedKind kind);
  /// Adds a class at the level of files: Add's errors. What becomes of its values (empty slots, zeros, NaN, the width
  /// of a dense slot) is decided as for text.
  Status AddRowFiles(std::string name, std::string doc, RowFileMaker maker);
  /// Takes over every class of `feeds`, or none of them: Add's errors. They remember `plugin`, the path of the shared
  /// object that they came from, and its version.
  Status Adopt(const DataFeedFactory& feeds, const std::string& plugin, const std::string& version, Code code);
  /// To be called with each job of a process: what is said once is said once a job.
  void BeginJob() const;
  /// Keeps references to `schema`. kInvalidConfig for a feed that reads no lines, and for an unknown name, with all
  /// names that there are.
  Result<std::unique_ptr<DataFeed>> Create(std::string_view name, const SlotSchema& schema,
                                           const DataFeedDesc& desc) const;
  /// A feed of mapped files, likewise; kInvalidConfig for a class that reads lines.
  Result<std::unique_ptr<const InstantFeed>> CreateInstant(std::string_view name, const SlotSchema& schema,
                                                           const DataFeedDesc& desc) const;
  /// What a line of a class is: of text, where the name is not known. A class at the level of files says what in schema
  /// and desc, which outlive what is returned, it cannot follow.
  Result<LineCut> CutOf(std::string_view name, const SlotSchema& schema, const DataFeedDesc& desc) const;
  /// The classes that are file formats.
  std::map<std::string, FormatTraits> formats() const;
  /// Whether a class reads lines of text; so does an unknown one.
  bool ReadsText(std::string_view name) const;
  /// Checks a name alone: kInvalidConfig for one that is not known.
  Status CheckName(std::string_view name) const;
  /// Null: it is Millrace's own, or not known.
  const FeedKind::Origin* PluginOf(std::string_view name) const;
};

}  // namespace millrace
