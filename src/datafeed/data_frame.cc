#include "datafeed/data_frame.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/crc32c.h"
#include "core/edit_distance.h"

namespace millrace {
namespace {

Status FailureOf(ArrowArrayStream* stream, int error, const std::string& name) {
  const char* const said = stream->get_last_error(stream);
  return BadData(name + ": " + (said != nullptr ? said : std::strerror(error)));
}

/// For a part whose null count may be -1, unknown.
bool HasNullRows(const ArrowArray& part) {
  if (part.null_count >= 0) return part.null_count > 0;
  const auto* const validity = part.n_buffers > 0 ? static_cast<const uint8_t*>(part.buffers[0]) : nullptr;
  if (validity == nullptr) return false;
  for (int64_t at = part.offset; at < part.offset + part.length; ++at) {
    if (((validity[at >> 3] >> (at & 7)) & 1) == 0) return true;
  }
  return false;
}

}  // namespace

Result<std::shared_ptr<const DataFrame>> DataFrame::Take(ArrowOwner<ArrowArrayStream> stream, std::string name,
                                                         const std::stop_token& stop,
                                                         const std::map<std::string, std::string>& units) {
  ArrowSchema schema{};
  if (const int error = stream.get()->get_schema(stream.get(), &schema); error != 0) {
    return FailureOf(stream.get(), error, name);
  }
  ArrowOwner<ArrowSchema> owner(&schema);
  std::vector<ArrowOwner<ArrowArray>> parts;
  while (true) {
    if (stop.stop_requested()) return Cancelled("stopped while taking the rows of " + name);
    ArrowArray next{};
    if (const int error = stream.get()->get_next(stream.get(), &next); error != 0) {
      return FailureOf(stream.get(), error, name);
    }
    ArrowOwner<ArrowArray> part(&next);
    if (part.is_released()) break;
    parts.push_back(std::move(part));
  }
  return Create(std::move(owner), std::move(parts), std::move(name), units);
}

Result<std::shared_ptr<const DataFrame>> DataFrame::Create(ArrowOwner<ArrowSchema> schema,
                                                           std::vector<ArrowOwner<ArrowArray>> parts, std::string name,
                                                           const std::map<std::string, std::string>& units) {
  if (std::string_view(schema->format) != "+s") {
    return BadData(name + ": expected rows of columns with names, found one column of Arrow's type \"" +
                   schema->format + "\"");
  }
  std::shared_ptr<DataFrame> frame(new DataFrame);
  frame->name_ = std::move(name);
  const auto shared = std::make_shared<const ArrowOwner<ArrowSchema>>(std::move(schema));
  const ArrowSchema& columns = *shared->get();
  for (int64_t i = 0; i < columns.n_children; ++i) {
    const char* const column = columns.children[i]->name;
    frame->columns_.emplace_back(column == nullptr ? "" : column);
  }
  for (ArrowOwner<ArrowArray>& part : parts) {
    if (part->n_children != columns.n_children) {
      return BadData(frame->name_ + ": a part has " + std::to_string(part->n_children) + " columns, and the frame " +
                     std::to_string(columns.n_children));
    }
    if (HasNullRows(*part.get())) return BadData(frame->name_ + ": whole rows are null; leave them out");
    if (part->length == 0) continue;
    auto taken = std::make_shared<FramePart>();
    taken->schema = shared;
    taken->array = std::move(part);
    for (int64_t i = 0; i < columns.n_children; ++i) {
      const auto unit = units.find(frame->columns_[static_cast<size_t>(i)]);
      taken->columns.emplace_back(*columns.children[i], *taken->array->children[i],
                                  unit == units.end() ? std::string() : unit->second);
    }
    frame->rows_ += taken->array->length;
    frame->parts_.push_back(std::move(taken));
  }
  return std::shared_ptr<const DataFrame>(std::move(frame));
}

Result<std::shared_ptr<const DataFrame>> DataFrame::Join(const std::vector<std::shared_ptr<const DataFrame>>& frames,
                                                         std::string name) {
  std::shared_ptr<DataFrame> all(new DataFrame);
  all->name_ = std::move(name);
  if (!frames.empty()) all->columns_ = frames[0]->columns_;
  for (size_t i = 0; i < frames.size(); ++i) {
    const DataFrame& frame = *frames[i];
    for (size_t k = 0; k < std::max(frame.columns_.size(), all->columns_.size()); ++k) {
      const auto column = [k](const DataFrame& of) {
        return k < of.columns_.size() ? "\"" + of.columns_[k] + "\"" : "none";
      };
      if (column(frame) == column(*all)) continue;
      return BadData(all->name_ + ": frame " + std::to_string(i) + " has other columns than frame 0: column " +
                     std::to_string(k) + " is " + column(frame) + ", and was " + column(*all));
    }
    all->rows_ += frame.rows_;
    all->parts_.insert(all->parts_.end(), frame.parts_.begin(), frame.parts_.end());
  }
  return std::shared_ptr<const DataFrame>(std::move(all));
}

Result<std::vector<size_t>> DataFrame::FindColumns(std::span<const std::string> wanted) const {
  std::vector<size_t> places;
  std::string problems;
  for (const std::string& column : wanted) {
    const auto report = [&](const std::string& problem) {
      problems += (problems.empty() ? "" : "\n") + name_ + problem;
    };
    const auto found = std::find(columns_.begin(), columns_.end(), column);
    if (found == columns_.end()) {
      const std::vector<std::string_view> known(columns_.begin(), columns_.end());
      report(" has no column \"" + column + "\"" + DidYouMean(column, known));
      continue;
    }
    if (std::find(found + 1, columns_.end(), column) != columns_.end()) report(" has two columns \"" + column + "\"");
    const auto place = static_cast<size_t>(found - columns_.begin());
    for (const std::shared_ptr<const FramePart>& part : parts_) {
      if (part->columns[place]) continue;
      report(": column \"" + column + "\" is " + part->columns[place].type_name() +
             ", of which no text is made; make it numbers, texts, dates, or lists of these");
      break;
    }
    places.push_back(place);
  }
  if (!problems.empty()) return BadData(problems);
  return places;
}

uint32_t DataFrame::Checksum() const {
  constexpr int64_t kRowsAtEachEnd = 1024;
  constexpr TextRule kRule = TextRule::kByFormat;  // the rule of older checkpoints, which compare checksums
  uint32_t crc = Crc32c(0, &rows_, sizeof(rows_));
  const auto add = [&crc](std::string_view text) {
    const uint64_t size = text.size();
    crc = Crc32c(Crc32c(crc, &size, sizeof(size)), text.data(), text.size());
  };
  for (const std::string& column : columns_) add(column);
  std::string scratch;
  int64_t number = 0;
  for (const std::shared_ptr<const FramePart>& part : parts_) {
    for (int64_t row = 0; row < part->array->length; ++row, ++number) {
      if (number >= kRowsAtEachEnd && number < rows_ - kRowsAtEachEnd) {
        // Skips to the last rows, or to the next part.
        const int64_t skipped = std::min(rows_ - kRowsAtEachEnd - number, part->array->length - row) - 1;
        row += skipped;
        number += skipped;
        continue;
      }
      for (const FrameColumn& column : part->columns) {
        if (!column) continue;
        int64_t begin = 0;
        int64_t end = 0;
        if (column.is_list()) column.List(part->array->offset + row, &begin, &end);
        if (!column.is_list()) add(column.Text(part->array->offset + row, kRule, &scratch));
        for (; begin < end; ++begin) add(column.items().Text(begin, kRule, &scratch));
      }
    }
  }
  return crc;
}

}  // namespace millrace
