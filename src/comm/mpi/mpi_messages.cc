#include "comm/mpi/mpi_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/mpi/mpi_call.h"

namespace millrace {
namespace {

// MPI tags.
constexpr int kWhole = 1;     ///< a message
constexpr int kLength = 2;    ///< the length of the message whose pieces follow
constexpr int kPiece = 3;     ///< a piece of it
constexpr int kFarewell = 4;  ///< a Farewell

/// Maximum number of messages received in a row before other work.
constexpr int kMostAtOnce = 32;

}  // namespace

MpiMessages::MpiMessages(MPI_Comm comm, int size) : comm_(comm), sources_(static_cast<size_t>(size)) {}

Status MpiMessages::Start(Sending* sending, int tag, const char* bytes, size_t length) {
  sending->requests.push_back(MPI_REQUEST_NULL);
  return MpiStatus(
      "MPI_Isend",
      MPI_Isend(bytes, static_cast<int>(length), MPI_BYTE, sending->to, tag, comm_, &sending->requests.back()),
      sending->to);
}

Status MpiMessages::Send(int to, std::string message) {
  // Added to the list first, because MPI needs a stable address until it is sent.
  Sending& sending = sending_.emplace_back();
  sending.to = to;
  sending.bytes = std::move(message);
  const size_t length = sending.bytes.size();
  if (length <= kMpiPiece) return Start(&sending, kWhole, sending.bytes.data(), length);
  sending.length = length;
  MR_TRY(Start(&sending, kLength, reinterpret_cast<const char*>(&sending.length), sizeof(sending.length)));
  for (size_t begin = 0; begin < length; begin += kMpiPiece) {
    MR_TRY(Start(&sending, kPiece, sending.bytes.data() + begin, std::min(kMpiPiece, length - begin)));
  }
  return Status::Ok();
}

Status MpiMessages::Send(int to, const Farewell& farewell) {
  Sending& sending = sending_.emplace_back();
  sending.to = to;
  sending.bytes.assign(reinterpret_cast<const char*>(&farewell), sizeof(farewell));
  return Start(&sending, kFarewell, sending.bytes.data(), sending.bytes.size());
}

Status MpiMessages::Poll(std::vector<Arrival>* arrivals, bool* moved) {
  for (auto it = sending_.begin(); it != sending_.end();) {
    int done = 0;
    MR_TRY(MpiStatus(
        "MPI_Testall of what is sent",
        MPI_Testall(static_cast<int>(it->requests.size()), it->requests.data(), &done, MPI_STATUSES_IGNORE), it->to));
    it = done != 0 ? sending_.erase(it) : std::next(it);
    if (done != 0) *moved = true;
  }
  MR_TRY(Receive(moved));
  for (size_t from = 0; from < sources_.size() && receiving_ > 0; ++from) {
    MR_TRY(Finish(static_cast<int>(from), arrivals, moved));
  }
  return Status::Ok();
}

Status MpiMessages::Receive(bool* moved) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status about;
    MR_TRY(MpiStatus("MPI_Improbe", MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, &message, &about)));
    if (found == 0) return Status::Ok();
    *moved = true;
    int length = 0;
    MR_TRY(MpiStatus("MPI_Get_count", MPI_Get_count(&about, MPI_BYTE, &length), about.MPI_SOURCE));
    std::deque<Receiving>& receiving = sources_[static_cast<size_t>(about.MPI_SOURCE)].receiving;
    Receiving& next = receiving.emplace_back();
    ++receiving_;
    next.tag = about.MPI_TAG;
    next.bytes.resize(static_cast<size_t>(length));
    MR_TRY(MpiStatus("MPI_Imrecv", MPI_Imrecv(next.bytes.data(), length, MPI_BYTE, &message, &next.request),
                     about.MPI_SOURCE));
  }
  return Status::Ok();
}

Status MpiMessages::Finish(int from, std::vector<Arrival>* arrivals, bool* moved) {
  std::deque<Receiving>& receiving = sources_[static_cast<size_t>(from)].receiving;
  while (!receiving.empty()) {
    int done = 0;
    MR_TRY(MpiStatus("MPI_Test of what is received", MPI_Test(&receiving.front().request, &done, MPI_STATUS_IGNORE),
                     from));
    if (done == 0) return Status::Ok();
    *moved = true;
    Receiving received = std::move(receiving.front());
    receiving.pop_front();
    --receiving_;
    Take(from, std::move(received), arrivals);
  }
  return Status::Ok();
}

void MpiMessages::Take(int from, Receiving received, std::vector<Arrival>* arrivals) {
  Source& source = sources_[static_cast<size_t>(from)];
  switch (received.tag) {
    case kWhole: arrivals->push_back({.from = from, .bytes = std::move(received.bytes), .farewell = {}}); return;
    case kLength:
      std::memcpy(&source.announced, received.bytes.data(), std::min(received.bytes.size(), sizeof(source.announced)));
      source.pieces.reserve(source.announced);
      return;
    case kPiece:
      source.pieces += received.bytes;
      if (source.pieces.size() < source.announced) return;
      arrivals->push_back({.from = from, .bytes = std::move(source.pieces), .farewell = {}});
      source.pieces = std::string();
      return;
    default: {
      Farewell farewell;
      std::memcpy(&farewell, received.bytes.data(), std::min(received.bytes.size(), sizeof(farewell)));
      arrivals->push_back({.from = from, .bytes = {}, .farewell = farewell});
    }
  }
}

}  // namespace millrace
