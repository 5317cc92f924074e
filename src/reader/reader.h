#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "reader/lod_tensor.h"

namespace millrace {

/// Delivers items one after another: an example or a batch, each one tensor per output.
///
/// A new reader derives from FileReader or DecoratedReader and overrides Produce (ReadRecord) and Restart (Rewind)
/// alone; looking ahead for HasNext, the end and failures are kept here. One thread at a time. Owns whatever it reads
/// from, and every thread that it starts: its destructor stops and joins them within a second.
class ReaderBase {
 public:
  virtual ~ReaderBase() = default;
  ReaderBase(const ReaderBase&) = delete;
  ReaderBase& operator=(const ReaderBase&) = delete;

  /// Puts the next item into `out` and returns true; empties `out` and returns false at the end, again and again until
  /// ReInit. Tensors that `out` holds are written over, so that the caller's buffers are used again. Waits for slow
  /// files; kCancelled soon after a stop request. A failure stays until ReInit.
  Result<bool> ReadNext(std::vector<LoDTensor>* out, const std::stop_token& stop);
  /// Whether ReadNext would deliver an item: reads it ahead to know. A failure is that of the ReadNext to come.
  Result<bool> HasNext(const std::stop_token& stop);
  /// Starts over: the next item is the first one again (of the next pass, where passes differ).
  Status ReInit() { return StartPass(pass_ + 1); }
  /// Starts over with the pass of this number; a new reader is in pass 0. What is random in a pass follows from its
  /// number, and not from how far the passes before it were read.
  Status StartPass(uint64_t pass);

  /// Says that the caller will take `items` of them before it does anything else with any: a reader that waits for
  /// other threads may wait for as many. Holds until it is said otherwise; at first 1.
  void Expect(size_t items) { expected_ = items; }

  /// Says that a table is asked for the values of an output: TensorSpec::is_id for the files that they come from. While
  /// nothing was read since the reader was made or started over.
  void MarkIds(size_t output);

  /// What every item holds, in its order. Types and shapes do not change.
  const std::vector<TensorSpec>& shapes() const { return shapes_; }

 protected:
  /// `source` has the same outputs and gives the items; null for a reader that makes them itself.
  explicit ReaderBase(std::vector<TensorSpec> shapes, ReaderBase* source = nullptr)
      : shapes_(std::move(shapes)), source_(source) {}
  /// What Expect was told.
  size_t expected() const { return expected_; }
  /// The number of this pass: within Restart, of the one that begins.
  uint64_t pass() const { return pass_; }

 private:
  /// As ReadNext; not called again after the end or a failure before Restart.
  virtual Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) = 0;
  virtual Status Restart() = 0;

  enum class State : uint8_t { kReading, kAhead, kEnded, kFailed };
  /// Produce, remembering an end or a failure.
  Result<bool> Advance(std::vector<LoDTensor>* out, const std::stop_token& stop);

  std::vector<TensorSpec> shapes_;
  ReaderBase* const source_;
  std::vector<LoDTensor> ahead_;  ///< the item that HasNext has read, when kAhead
  State state_ = State::kReading;
  Status failure_;
  uint64_t pass_ = 0;
  size_t expected_ = 1;
};

/// Reads one file and delivers one example a record. Checks each against shapes(): a record of another shape is
/// kBadData that names file, record (from 1, as lines are counted), output and both shapes.
class FileReader : public ReaderBase {
 public:
  const std::string& file() const { return file_; }

 protected:
  FileReader(std::string file, std::vector<TensorSpec> shapes)
      : ReaderBase(std::move(shapes)), file_(std::move(file)) {}
  /// "part-3.pgm: record 17", the one that is being read.
  std::string Where() const { return file_ + ": record " + std::to_string(records_ + 1); }

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) final;
  Status Restart() final;

  /// The next record into `out`, which comes with as many tensors as shapes() has, of whatever content; false at the
  /// end. Failures name the file.
  virtual Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) = 0;
  /// Goes back to the first record.
  virtual Status Rewind() = 0;

  std::string file_;
  uint64_t records_ = 0;  ///< that were delivered since the first one
};

/// Takes items from another reader, which it owns, and passes on what it makes of them.
class DecoratedReader : public ReaderBase {
 protected:
  /// Passes items of the same shapes on. Both throw std::invalid_argument for a null `reader`.
  explicit DecoratedReader(std::unique_ptr<ReaderBase> reader)
      : ReaderBase(Given(reader).shapes(), reader.get()), reader_(std::move(reader)) {}
  DecoratedReader(std::unique_ptr<ReaderBase> reader, std::vector<TensorSpec> shapes)
      : ReaderBase(std::move(shapes), &Given(reader)), reader_(std::move(reader)) {}

  ReaderBase& reader() { return *reader_; }

 private:
  static ReaderBase& Given(const std::unique_ptr<ReaderBase>& reader) {
    if (reader == nullptr) throw std::invalid_argument("a decorated reader was given no reader to take items from");
    return *reader;
  }

  std::unique_ptr<ReaderBase> reader_;
};

}  // namespace millrace
