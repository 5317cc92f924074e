#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace {

class DataFeedDesc;

/// A class of data feed that Millrace brings along, and the dataset that it feeds.
struct OwnFeed {
  std::string_view dataset;
  std::string_view name;
};

/// All of them; the first one of a dataset is what it reads with by itself.
inline constexpr OwnFeed kOwnFeeds[] = {
    {"QueueDataset", "MultiSlotDataFeed"},
    {"InMemoryDataset", "MultiSlotInMemoryDataFeed"},
    {"InMemoryDataset", "SlotRecordInMemoryDataFeed"},
    {"FileInstantDataset", "MultiSlotFileInstantDataFeed"},
};

/// The feed that `desc` names or, where it names none, that of `dataset`.
std::string FeedNameFor(std::string_view dataset, const DataFeedDesc& desc);
/// The dataset whose own feed this is; empty: none's, or any's.
std::string_view DatasetOfFeed(std::string_view feed_class);

/// What a file format whose records are rows says of itself: which settings of a DataFeedDesc it has no use for. A
/// reason ends the sentence "a file of the format X ..."; without one the format follows the setting.
struct FormatTraits {
  std::string_view no_trailing_values = {};  ///< why not `trailing_values: IGNORE`
  std::string_view no_dropped_zeros = {};    ///< why not `zeros: DROP`
  bool takes_attrs = false;
  bool has_columns = false;  ///< with names, of which features make slots
  bool opens_files = false;  ///< by itself: it gets paths, not bytes, and no command stands before it
};

/// A field of a DataFeedDesc that its format has no use for.
struct RefusedField {
  std::string field;
  std::string why;
};
/// All of them; `format` is that of desc.name.
std::vector<RefusedField> RefusedByFormat(const DataFeedDesc& desc, const FormatTraits& format);

/// Whether a class of data feed reads MultiSlot text as Millrace does itself; so does no name at all. Datasets may read
/// such lines in ways of their own, and those of a plugin's class, or of a format, by that class alone.
bool ReadsMultiSlot(std::string_view feed_class);

/// Says outright what `zeros: FEED_DEFAULT` means for the feed that `desc` names or, where it names none, for that of
/// `dataset`: who reads the rows in another way later (an evaluation, a predictor) takes the same values from them. A
/// plugin's feed, a format, and lines that are whole batches, keep all values. Any other rule stays.
void ResolveZeros(std::string_view dataset, DataFeedDesc* desc);

/// Makes a description of MultiSlot text fit for any dataset: forgets which dataset's feed it names, after
/// ResolveZeros. That of a plugin stays.
void ForgetOwnFeed(DataFeedDesc* desc);

}  // namespace millrace
