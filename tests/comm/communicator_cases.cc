#include "comm/communicator_cases.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>
#include <utility>

namespace millrace {
namespace {

/// Calls a function with each message while it lives.
class Taking : public MessageReceiver {
 public:
  Taking(Communicator& comm, std::function<void(int, std::string)> take) : comm_(comm), take_(std::move(take)) {
    comm_.SetReceiver(this);
  }
  ~Taking() override { comm_.SetReceiver(nullptr); }
  void OnMessage(int from, std::string message) override { take_(from, std::move(message)); }

 private:
  Communicator& comm_;
  const std::function<void(int, std::string)> take_;
};

size_t SizeOf(const Communicator& comm) { return static_cast<size_t>(comm.size()); }

#define EXPECT_OK(call)                                  \
  do {                                                   \
    const Status expect_ok = (call);                     \
    EXPECT_TRUE(expect_ok.ok()) << expect_ok.ToString(); \
  } while (false)

void MessagesOfARankStayInOrder(Communicator& comm) {
  constexpr int kEach = 200;
  std::vector<std::vector<std::string>> got(SizeOf(comm));
  size_t count = 0;
  const Taking taking(comm, [&](int from, std::string message) {
    got[static_cast<size_t>(from)].push_back(std::move(message));
    ++count;
  });
  std::vector<std::string> expected;
  for (int i = 0; i < kEach; ++i) {
    // Small and large ones go different ways in some transports; some are empty.
    std::string message = i % 7 == 0 ? "" : std::to_string(i) + std::string(i % 10 == 3 ? 100000 : 3, 'x');
    for (int to = 0; to < comm.size(); ++to) EXPECT_OK(comm.Send(to, message));
    expected.push_back(std::move(message));
  }
  EXPECT_OK(comm.WaitUntil([&] { return count == kEach * SizeOf(comm); }));
  for (const auto& of_rank : got) EXPECT_TRUE(of_rank == expected);
  EXPECT_OK(comm.Barrier());
}

void MessagesWaitForAReceiver(Communicator& comm) {
  for (int to = 0; to < comm.size(); ++to) EXPECT_OK(comm.Send(to, "early from " + std::to_string(comm.rank())));
  EXPECT_OK(comm.Barrier());
  std::map<int, std::string> got;
  const Taking taking(comm, [&](int from, std::string message) { got[from] = std::move(message); });
  EXPECT_OK(comm.WaitUntil([&] { return got.size() == SizeOf(comm); }));
  for (const auto& [from, message] : got) EXPECT_EQ(message, "early from " + std::to_string(from));
  EXPECT_OK(comm.Barrier());
}

void ReceiversAreExchanged(Communicator& comm) {
  const int me = comm.rank();
  std::string first, second;
  EXPECT_OK(comm.Send(me, "a"));
  {
    const Taking taking(comm, [&](int, const std::string& message) { first += message; });
    EXPECT_OK(comm.WaitUntil([&] { return first == "a"; }));
  }
  EXPECT_OK(comm.Send(me, "b"));
  EXPECT_OK(comm.Send(me, "c"));
  EXPECT_OK(comm.Barrier());
  const Taking taking(comm, [&](int, const std::string& message) { second += message; });
  EXPECT_OK(comm.WaitUntil([&] { return second == "bc"; }));
  EXPECT_EQ(first, "a");
  EXPECT_OK(comm.Barrier());
}

void WaitingIsAskedAtOnceAndAfterEachMessage(Communicator& comm) {
  std::vector<int> asked_at;
  int taken = 0;
  const Taking taking(comm, [&](int, const std::string&) { ++taken; });
  EXPECT_OK(comm.WaitUntil([] { return true; }));
  for (int i = 0; i < 3; ++i) EXPECT_OK(comm.Send(comm.rank(), "x"));
  EXPECT_OK(comm.WaitUntil([&] {
    asked_at.push_back(taken);
    return taken == 3;
  }));
  // At once, when some of them may have been taken, and then at each.
  for (size_t i = 1; i < asked_at.size(); ++i) EXPECT_EQ(asked_at[i], asked_at[i - 1] + 1);
  EXPECT_OK(comm.Barrier());
}

/// "?n" is answered by "!n".
class Answering {
 public:
  explicit Answering(Communicator& comm)
      : comm_(comm), taking_(comm, [this](int from, std::string message) { Take(from, std::move(message)); }) {}

  Status Ask(int to) {
    const std::string number = std::to_string(asked_++);
    MR_TRY(comm_.Send(to, "?" + number));
    return comm_.WaitUntil([this, expected = "!" + number] { return answer_ == expected; });
  }
  int answered() const { return answered_; }

 private:
  void Take(int from, std::string message) {
    if (message.starts_with('?')) {
      message[0] = '!';
      ++answered_;
      EXPECT_OK(comm_.Send(from, std::move(message)));
    } else {
      answer_ = std::move(message);
    }
  }

  Communicator& comm_;
  std::string answer_;
  int answered_ = 0;
  int asked_ = 0;
  const Taking taking_;
};

void AllAskAll(Communicator& comm) {
  constexpr int kRounds = 30;
  Answering answering(comm);
  for (int round = 0; round < kRounds; ++round) {
    for (int to = 0; to < comm.size(); ++to) EXPECT_OK(answering.Ask(to));
  }
  EXPECT_OK(comm.WaitUntil([&] { return answering.answered() == kRounds * comm.size(); }));
  EXPECT_OK(comm.Barrier());
}

/// The others wait in a collective and must answer there.
void MessagesComeDuringCollectives(Communicator& comm) {
  const size_t size = SizeOf(comm);
  Answering answering(comm);
  const auto ask = [&](int late) {
    if (comm.rank() != late) return;
    for (int to = 0; to < comm.size(); ++to) EXPECT_OK(answering.Ask(to));
  };
  const std::vector<std::string> out(size, "rank " + std::to_string(comm.rank()));
  for (int late = 0; late < comm.size(); ++late) {
    ask(late);
    EXPECT_OK(comm.Barrier());
    ask(late);
    std::vector<std::string> in;
    EXPECT_OK(comm.AllToAll(out, &in));
    for (size_t r = 0; r < in.size(); ++r) EXPECT_EQ(in[r], "rank " + std::to_string(r));
    ask(late);
    int64_t one = 1;
    EXPECT_OK(comm.SumOverRanks({&one, 1}));
    EXPECT_EQ(one, comm.size());
    ask(late);
    std::string bytes = comm.rank() == late ? "from the late one" : "";
    EXPECT_OK(comm.Broadcast(late, &bytes));
    EXPECT_EQ(bytes, "from the late one");
  }
  EXPECT_OK(comm.Barrier());
}

/// What rank `from` sends to rank `to` in a round: of many lengths, often nothing.
std::string Piece(int from, int to, int round) {
  const int kind = (from * 5 + to * 3 + round) % 4;
  if (kind == 0) return "";
  return std::to_string(from) + ">" + std::to_string(to) + std::string(static_cast<size_t>(kind * round * 1000), '.');
}

void AllToAllOfManyLengths(Communicator& comm) {
  std::vector<std::string> in;
  size_t room = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> out;
    for (int to = 0; to < comm.size(); ++to) out.push_back(Piece(comm.rank(), to, round));
    EXPECT_OK(comm.AllToAll(out, &in));
    ASSERT_EQ(in.size(), SizeOf(comm));
    for (int from = 0; from < comm.size(); ++from) {
      EXPECT_EQ(in[static_cast<size_t>(from)], Piece(from, comm.rank(), round));
    }
    EXPECT_GE(in[0].capacity(), room);
    room = in[0].capacity();
  }
  const std::vector<std::string> nothing(SizeOf(comm));
  EXPECT_OK(comm.AllToAll(nothing, &in));
  for (const std::string& each : in) EXPECT_EQ(each, "");
}

void SumsOfManyLengths(Communicator& comm) {
  for (const size_t length : {0, 1, 7, 5000}) {
    std::vector<int64_t> values(length);
    for (size_t i = 0; i < length; ++i) values[i] = static_cast<int64_t>(i + 1) * (comm.rank() + 1) << 32;
    EXPECT_OK(comm.SumOverRanks(values));
    const int64_t of_ranks = static_cast<int64_t>(comm.size()) * (comm.size() + 1) / 2;
    for (size_t i = 0; i < length; ++i) ASSERT_EQ(values[i], (static_cast<int64_t>(i + 1) * of_ranks) << 32);
  }
}

void BroadcastsFromEachRank(Communicator& comm) {
  std::string bytes = "longer than what is broadcast first";
  for (int root = 0; root < comm.size(); ++root) {
    const std::string expected(static_cast<size_t>(root * 70000), static_cast<char>('a' + root));
    if (comm.rank() == root) bytes = expected;
    EXPECT_OK(comm.Broadcast(root, &bytes));
    EXPECT_TRUE(bytes == expected) << bytes.size();
  }
}

void BytesAreCounted(Communicator& comm) {
  const int64_t others = comm.size() - 1;
  const int64_t before = comm.bytes_sent();
  int64_t got = 0;
  const Taking taking(comm, [&](int, const std::string& message) { got += static_cast<int64_t>(message.size()); });
  for (int to = 0; to < comm.size(); ++to) EXPECT_OK(comm.Send(to, "ten bytes."));
  EXPECT_OK(comm.WaitUntil([&] { return got == 10 * comm.size(); }));
  EXPECT_EQ(comm.bytes_sent() - before, 10 * others);
  const std::vector<std::string> out(SizeOf(comm), "four");
  std::vector<std::string> in;
  EXPECT_OK(comm.AllToAll(out, &in));
  EXPECT_EQ(comm.bytes_sent() - before, 14 * others);
  std::string bytes = "sixsix";
  EXPECT_OK(comm.Broadcast(0, &bytes));
  EXPECT_EQ(comm.bytes_sent() - before, (comm.rank() == 0 ? 20 : 14) * others);
  EXPECT_OK(comm.Barrier());
}

void MistakesAreRefused(Communicator& comm) {
  EXPECT_EQ(comm.Send(comm.size(), "x").code(), StatusCode::kInternal);
  EXPECT_EQ(comm.Send(-1, "x").code(), StatusCode::kInternal);
  std::string bytes;
  EXPECT_EQ(comm.Broadcast(comm.size(), &bytes).code(), StatusCode::kInternal);
  const std::vector<std::string> too_many(SizeOf(comm) + 1);
  std::vector<std::string> in;
  EXPECT_EQ(comm.AllToAll(too_many, &in).code(), StatusCode::kInternal);
  EXPECT_OK(comm.Barrier());
}

/// Threads of one rank ask and wait at once, while another is in collectives.
void ThreadsOfARankSendAndWait(Communicator& comm) {
  constexpr int kThreads = 3;
  constexpr int kEach = 50;
  const int number = kThreads * kEach;
  std::atomic<int> answers{0};
  const Taking taking(comm, [&](int from, const std::string& message) {
    if (message == "?") {
      EXPECT_OK(comm.Send(from, "!"));
    } else {
      ++answers;
    }
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          const int before = answers;
          EXPECT_OK(comm.Send((comm.rank() + t) % comm.size(), "?"));
          EXPECT_OK(comm.WaitUntil([&] { return answers > before || answers == number; }));
        }
        EXPECT_OK(comm.WaitUntil([&] { return answers == number; }));
      });
    }
    for (int i = 0; i < 20; ++i) {
      int64_t one = 1;
      EXPECT_OK(comm.SumOverRanks({&one, 1}));
      EXPECT_EQ(one, comm.size());
    }
  }
  EXPECT_OK(comm.Barrier());
}

/// Longer than what one call of MPI is given.
void LongMessagesAndCollectives(Communicator& comm) {
  const size_t length = (size_t{65} << 20) + 12345;
  const auto is_right = [&](const std::string& bytes, char letter) {
    return bytes.size() == length && bytes.find_first_not_of(letter) == std::string::npos;
  };
  const int next = (comm.rank() + 1) % comm.size();
  const int last = (comm.rank() + comm.size() - 1) % comm.size();
  const char own = static_cast<char>('a' + comm.rank());
  const char lasts = static_cast<char>('a' + last);
  {
    std::vector<std::string> got;
    const Taking taking(comm, [&](int, std::string message) { got.push_back(std::move(message)); });
    EXPECT_OK(comm.Send(next, "before"));
    EXPECT_OK(comm.Send(next, std::string(length, own)));
    EXPECT_OK(comm.Send(next, "after"));
    EXPECT_OK(comm.WaitUntil([&] { return got.size() == 3; }));
    ASSERT_EQ(got.size(), 3);
    EXPECT_EQ(got[0], "before");
    EXPECT_TRUE(is_right(got[1], lasts));
    EXPECT_EQ(got[2], "after");
    EXPECT_OK(comm.Barrier());
  }
  {
    std::vector<std::string> out(SizeOf(comm), "short");
    out[static_cast<size_t>(next)] = std::string(length, own);
    std::vector<std::string> in;
    EXPECT_OK(comm.AllToAll(out, &in));
    for (int r = 0; r < comm.size(); ++r) {
      if (r == last) {
        EXPECT_TRUE(is_right(in[static_cast<size_t>(r)], lasts));
      } else {
        EXPECT_EQ(in[static_cast<size_t>(r)], "short");
      }
    }
  }
  std::string bytes;
  if (comm.rank() == 0) bytes.assign(length, '0');
  EXPECT_OK(comm.Broadcast(0, &bytes));
  EXPECT_TRUE(is_right(bytes, '0'));
}

}  // namespace

void RanksGoOnWithoutTheLast(Communicator& comm, const std::function<void()>& lose_me) {
  EXPECT_FALSE(comm.Shrink().ok());
  // Nobody is lost before all have asked.
  (void)comm.Barrier();
  while (comm.size() > 1) {
    const int rank = comm.rank();
    const int size = comm.size();
    (void)comm.Send(size - 1, "to one that never takes it, or is lost already");
    if (rank == size - 1) {
      lose_me();
      return;
    }
    Status status;
    while (status.ok()) status = comm.Barrier();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
    // Of a rank that is left, to one that is left: it belongs to what is over, too.
    (void)comm.Send(0, "too late");
    const Status shrunk = comm.Shrink();
    ASSERT_TRUE(shrunk.ok()) << shrunk.ToString();
    EXPECT_EQ(comm.rank(), rank);
    EXPECT_EQ(comm.size(), size - 1);
    for (const CommunicatorCase& each : CommunicatorCases()) {
      if (!each.is_big && !each.has_threads) each.run(comm);
      EXPECT_TRUE(comm.Barrier().ok());
    }
  }
}

const std::vector<CommunicatorCase>& CommunicatorCases() {
  static const std::vector<CommunicatorCase> kCases = {
      {"MessagesOfARankStayInOrder", MessagesOfARankStayInOrder},
      {"MessagesWaitForAReceiver", MessagesWaitForAReceiver},
      {"ReceiversAreExchanged", ReceiversAreExchanged},
      {"WaitingIsAskedAtOnceAndAfterEachMessage", WaitingIsAskedAtOnceAndAfterEachMessage},
      {"AllAskAll", AllAskAll},
      {"MessagesComeDuringCollectives", MessagesComeDuringCollectives},
      {"AllToAllOfManyLengths", AllToAllOfManyLengths},
      {"SumsOfManyLengths", SumsOfManyLengths},
      {"BroadcastsFromEachRank", BroadcastsFromEachRank},
      {"BytesAreCounted", BytesAreCounted},
      {"MistakesAreRefused", MistakesAreRefused},
      {"ThreadsOfARankSendAndWait", ThreadsOfARankSendAndWait, /*has_threads=*/true},
      {"LongMessagesAndCollectives", LongMessagesAndCollectives, /*has_threads=*/false, /*is_big=*/true},
  };
  return kCases;
}

}  // namespace millrace
