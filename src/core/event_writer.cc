#include "core/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/crc32c.h"
#include "core/replace_folder.h"
#include "core/same_file.h"

namespace millrace {
namespace {

// The parts of protobuf's wire format needed for an Event; core does not use protobuf.
void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

void AppendKey(int field, int wire_type, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type), out);
}

template <class T>
void AppendFixed(T value, std::string* out) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

void AppendBytes(int field, std::string_view bytes, std::string* out) {
  AppendKey(field, 2, out);
  AppendVarint(bytes.size(), out);
  *out += bytes;
}

std::string EventStart(int64_t step, double seconds) {
  std::string event;
  AppendKey(1, 1, &event);  // Event.wall_time
  AppendFixed(seconds, &event);
  AppendKey(2, 0, &event);  // Event.step
  AppendVarint(static_cast<uint64_t>(step), &event);
  return event;
}

uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(0, bytes.data(), bytes.size());
  return std::rotr(crc, 15) + 0xa282ead8U;
}

}  // namespace

std::string TfRecord(std::string_view content) {
  std::string record;
  AppendFixed(static_cast<uint64_t>(content.size()), &record);
  AppendFixed(MaskedCrc(record), &record);
  record += content;
  AppendFixed(MaskedCrc(content), &record);
  return record;
}

Result<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& folder, std::optional<int64_t> from) {
  MR_TRY(MakeFolder(folder));
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const std::string path = folder + "/events.out.tfevents." + std::to_string(seconds) + "." + host;
  FileDescriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.is_open()) return IoErrorFromErrno("cannot make \"" + path + "\"", errno);
  std::unique_ptr<EventWriter> writer(new EventWriter(path, std::move(fd)));
  std::string event = EventStart(0, static_cast<double>(seconds));
  AppendBytes(3, "brain.Event:2", &event);  // Event.file_version
  MR_TRY(writer->Append(event));
  if (from.has_value()) {
    event = EventStart(*from, static_cast<double>(seconds));
    AppendBytes(7, "\x08\x01", &event);  // Event.session_log: SessionLog.status = START
    MR_TRY(writer->Append(event));
  }
  return writer;
}

Status EventWriter::AddScalars(int64_t step, double seconds, std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [name, number] : scalars) {
    if (!std::isfinite(number)) continue;
    std::string value;
    AppendBytes(1, name, &value);  // Summary.Value.tag
    AppendKey(2, 5, &value);       // Summary.Value.simple_value
    AppendFixed(static_cast<float>(number), &value);
    AppendBytes(1, value, &summary);
  }
  if (summary.empty()) return Status::Ok();
  std::string event = EventStart(step, seconds);
  AppendBytes(5, summary, &event);  // Event.summary
  return Append(event);
}

bool EventWriter::IsThere() const { return IsStillUnder(fd_.get(), path_, bytes_); }

Status EventWriter::Append(std::string_view event) {
  const std::string record = TfRecord(event);
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t written = write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return IoErrorFromErrno("cannot write \"" + path_ + "\"", errno);
    rest.remove_prefix(static_cast<size_t>(written));
    bytes_ += written;
  }
  return Status::Ok();
}

}  // namespace millrace
