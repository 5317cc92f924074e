// The traffic of a job of ranks at their own pace, without the job: what src/ranks sends, to whom, in which sizes, in
// which order, and what is waited for; processors and networks are SimGrid's (SMPI). scale.py writes its input,
// compiles it with smpicxx and starts it.
//
// A rank is two processes on a host, as it has two threads: an even one trains, the odd one behind it does what the
// communicator's thread does. Only the latter talks to other ranks. Processor time is what bench_ranks has measured.
// Of many ranks, `group` consecutive owners are sent their messages as one, with their bytes and their processor time
// together; one of them takes it for all.

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

// What messages are. Those that a rank's two processes send each other cost nothing.
enum What : int { kOrder = 1, kRequest, kAnswer, kDone, kStop };
// What is asked for; a rank has one of each under way at most, of kPull two.
enum Service : int { kPullWide, kPullDeep, kPushWide, kPushDeep, kSmallDense, kDense, kAllDense, kClock, kServices };

struct Message {
  int service = 0;
  int number = 0;   ///< of the call
  int members = 1;  ///< messages of the job that this one is
  int keys = 0;     ///< rows of each table, in all of them
  int values = 0;   ///< dense values in all of them
  int answer = 0;   ///< bytes that come back; none: 0
  int sample = 0;   ///< of an order: the batch whose keys are meant
};

constexpr int kShards = 1024;
// The communicator's thread looks for messages without pause until it has been idle for so long; then it naps
// (comm/mpi/mpi_communicator.cc).
constexpr double kSpin = 200e-6;
constexpr double kNap = 200e-6;

class Input {
 public:
  explicit Input(const char* path) {
    std::ifstream in(path);
    std::string name;
    while (in >> name && name != "samples") in >> values_[name];
    int count = 0;
    in >> count;
    samples_.resize(static_cast<size_t>(count));
    for (auto& sample : samples_) {
      for (int& keys : sample) in >> keys;
    }
    in >> name >> count;  // exchanges
    exchanges_.resize(static_cast<size_t>(count));
    for (auto& sample : exchanges_) {
      for (int& keys : sample) in >> keys;
    }
    if (!in || name != "exchanges") std::abort();
  }
  double operator[](const char* name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      std::fprintf(stderr, "traffic: %s is missing\n", name);
      std::abort();
    }
    return found->second;
  }
  /// Keys of a batch, by shard; with copies those that are read.
  const std::array<int, kShards>& Sample(int i) const { return samples_[static_cast<size_t>(i) % samples_.size()]; }
  /// Rows that an exchange of copies has.
  const std::array<int, kShards>& Exchange(int i) const {
    return exchanges_[static_cast<size_t>(i) % exchanges_.size()];
  }

 private:
  std::map<std::string, double> values_;
  std::vector<std::array<int, kShards>> samples_;
  std::vector<std::array<int, kShards>> exchanges_;
};

class Rank {
 public:
  Rank(const Input& input, int process, int processes)
      : in_(input), rank_(process / 2), ranks_(processes / 2), group_(static_cast<int>(input["group"])) {
    value_bytes_ = static_cast<int>(in_["float_bytes"]);
    geo_ = static_cast<int>(in_["geo_steps"]);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 protected:
  /// Processor time, for the sum `of`.
  void Compute(double seconds, size_t of = 0) {
    busy_[of] += seconds;
    if (seconds > 0) smpi_execute_flops(seconds * 1e9);
  }
  void Send(const Message& message, What what, int bytes, int process) {
    std::memcpy(buffer_.get(), &message, sizeof(message));
    const int size = std::max<int>(bytes, sizeof(message));
    MPI_Send(buffer_.get(), size, MPI_BYTE, process, what, MPI_COMM_WORLD);
  }
  using Means = std::array<double, 8>;
  static void Sum(Means* all) {
    MPI_Allreduce(MPI_IN_PLACE, all->data(), static_cast<int>(all->size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  What Receive(Message* message, int* process) {
    MPI_Status status;
    MPI_Recv(buffer_.get(), static_cast<int>(buffer_size_), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
             &status);
    std::memcpy(message, buffer_.get(), sizeof(*message));
    *process = status.MPI_SOURCE;
    return static_cast<What>(status.MPI_TAG);
  }

  const Input& in_;
  const int rank_;
  const int ranks_;
  const int group_;
  int value_bytes_ = 4;
  int geo_ = 0;
  std::array<double, 3> busy_{};
  /// For the largest message, that with all dense values of some owners; never filled, so that it takes no memory.
  const size_t buffer_size_ = (size_t{1} << 20) + (size_t{16} << 20) * static_cast<size_t>(std::min(group_, ranks_)) /
                                                      static_cast<size_t>(ranks_);
  const std::unique_ptr<char[]> buffer_{new char[buffer_size_]};
};

/// The thread that trains.
class Worker : public Rank {
 public:
  using Rank::Rank;

  /// Trains; the time of a batch, and shares of it.
  void Train(MPI_Comm workers) {
    const int batches = static_cast<int>(in_["batches"]);
    const int warm = static_cast<int>(in_["warm"]);
    const double batch = in_["batch_seconds"];
    const bool has_others = ranks_ > 1;
    double peers = has_others ? in_["worker_peer_us"] * (ranks_ - 1) * 1e-6 : 0;
    const double remote = static_cast<double>(ranks_ - 1) / ranks_;
    peers += has_others ? (in_["worker_us"] + in_["worker_key_us"] * in_["keys"] * remote) * 1e-6 : 0;
    // Copies are exchanged at other batches on each rank, and dense parameters with them: few batches are simulated.
    since_all_ = geo_ > 0 ? rank_ % std::max(static_cast<int>(in_["parameters_every"]), 1) : 0;
    // Ranks do not begin at once.
    Compute(batch * ((rank_ * 37) % 101) / 101.0);
    if (has_others) Fetch(0);
    double begin = 0;
    for (int step = 0; step < batches + warm; ++step) {
      if (step == warm) {
        begin = MPI_Wtime();
        waited_ = {};
        busy_ = {};
        Tell(kServices, 0);  // the other process begins to count, too
      }
      if (has_others) {
        Fetch(step + 1);
        WaitFor(kPullWide, 1);
        WaitFor(kPullDeep, 1);
      }
      Compute(batch + peers);
      if (!has_others) continue;
      Push(step);
      Dense();
      Clock();
    }
    const double seconds = MPI_Wtime() - begin;
    // Others go on to ask this rank until they have ended.
    MPI_Barrier(workers);
    Message stop;
    Send(stop, kStop, 0, 2 * rank_ + 1);
    Means all = {seconds, busy_[0], waited_[0], waited_[1]};
    Sum(&all);
    if (rank_ != 0) return;
    const std::array<const char*, 8> names = {"batch_s",     "worker_s",     "pull_wait_s",   "push_wait_s",
                                              "comm_rows_s", "comm_dense_s", "comm_clocks_s", "bytes"};
    for (size_t i = 0; i < names.size(); ++i) {
      std::printf("%s\"%s\": %.9g", i == 0 ? "{" : ", ", names[i], all[i] / ranks_ / batches);
    }
    std::printf("}\n");
  }

 private:
  void Tell(int service, int sample) {
    Message order;
    order.service = service;
    order.sample = sample;
    if (service < kServices) ++open_[static_cast<size_t>(service)];
    Send(order, kOrder, 0, 2 * rank_ + 1);
  }
  int SampleOf(int step) const { return rank_ * 7 + step; }
  void Fetch(int step) {
    Tell(kPullWide, SampleOf(step));
    Tell(kPullDeep, SampleOf(step));
  }
  void Push(int step) {
    // With copies an exchange, at other batches on each rank.
    if (geo_ > 0 && (step + rank_) % geo_ != 0) return;
    for (const int service : {kPushWide, kPushDeep}) {
      WaitFor(service, 0);
      Tell(service, geo_ > 0 ? rank_ + step / geo_ : SampleOf(step));
    }
  }
  void Dense() {
    const int every = static_cast<int>(in_["dense_every"]);
    if (every == 0) return;
    ++since_;
    ++since_all_;
    for (int service = kSmallDense; service <= kAllDense; ++service) {
      Look();
      if (open_[static_cast<size_t>(service)] > 0) return;
    }
    if (since_ < every) return;
    since_ = 0;
    double values = in_["small_values"];
    if (since_all_ < in_["parameters_every"]) {
      Tell(kSmallDense, 0);
    } else {
      since_all_ = 0;
      values += in_["parameter_values"];
      const bool has_rest = ++with_all_ % static_cast<int>(in_["rest_every"]) == 0;
      if (has_rest) values += in_["rest_values"];
      Tell(has_rest ? kAllDense : kDense, 0);
    }
    Compute(values * in_["worker_value_us"] * 1e-6);
  }
  void Clock() {
    const double now = MPI_Wtime();
    if (now - told_ < 0.05) return;
    told_ = now;
    Tell(kClock, 0);
    open_[kClock] = 0;
  }
  void Take() {
    Message message;
    int process = 0;
    Receive(&message, &process);
    --open_[static_cast<size_t>(message.service)];
  }
  /// Takes what has come.
  void Look() {
    for (int found = 1; found != 0;) {
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
      if (found != 0) Take();
    }
  }
  /// Until no more than so many calls of the service are under way.
  void WaitFor(int service, int left) {
    const double begin = MPI_Wtime();
    while (open_[static_cast<size_t>(service)] > left) Take();
    waited_[service <= kPullDeep ? 0 : 1] += MPI_Wtime() - begin;
  }

  std::array<int, kServices + 1> open_{};
  std::array<double, 2> waited_{};
  int since_ = 0;
  int since_all_ = 0;
  int with_all_ = rank_;  // so that in few batches each has its share of what goes with every few exchanges
  double told_ = 0;
};

/// The communicator's thread.
class Server : public Rank {
 public:
  Server(const Input& input, int process, int processes) : Rank(input, process, processes) {
    handling_ = in_["comm_message_us"] * 1e-6;
    for (int shard = 0; shard < kShards; ++shard) owners_[static_cast<size_t>(shard)] = OwnerOf(shard);
  }

  void Serve() {
    Message message;
    int process = 0;
    double idle_since = MPI_Wtime();
    const bool spins = in_["spins"] != 0;
    while (true) {
      // Where ranks share processors, this takes them from those that train.
      for (int found = 0; spins && found == 0 && MPI_Wtime() - idle_since < kSpin;) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        if (found == 0) smpi_execute_flops(kSpin * 1e9 / 8);
      }
      const What what = Receive(&message, &process);
      const double idle = MPI_Wtime() - idle_since;
      if (what == kStop) break;
      // An order wakes the thread; what comes from others waits for the end of a nap.
      if (what != kOrder && idle > kSpin) {
        const double nap = std::min(kNap, idle - kSpin);
        usleep(static_cast<useconds_t>(nap * 1e6 * (++naps_ * 61 % 100) / 100.0));
      }
      if (what == kOrder) Begin(message);
      if (what == kRequest) Answer(message, process);
      if (what == kAnswer) {
        Compute(message.members * handling_, KindOf(message.service));
        const auto call = calls_.find(message.number);
        if (--call->second.first == 0) {
          message.service = call->second.second;
          calls_.erase(call);
          Send(message, kDone, 0, 2 * rank_);
        }
      }
      idle_since = MPI_Wtime();
    }
    Means all = {0, 0, 0, 0, busy_[0], busy_[1], busy_[2], bytes_};
    Sum(&all);
  }

 private:
  /// Who has a shard (ranks/part_of.h): parts of a whole number of shards, the first ones larger.
  int OwnerOf(int shard) const {
    const int small = kShards / ranks_;
    const int large = kShards % ranks_;
    const int of_large = large * (small + 1);
    return shard < of_large ? shard / (small + 1) : large + (shard - of_large) / std::max(small, 1);
  }

  /// Rows, dense parameters, or how far ranks are.
  static size_t KindOf(int service) { return service <= kPushDeep ? 0 : service <= kAllDense ? 1 : 2; }

  void Begin(const Message& order) {
    if (order.service == kServices) {
      busy_ = {};
      bytes_ = 0;
      return;
    }
    const bool has_keys = order.service <= kPushDeep;
    std::vector<int> keys(static_cast<size_t>(ranks_), 0);
    if (has_keys) {
      const bool is_exchange = geo_ > 0 && order.service >= kPushWide;
      const auto& sample = is_exchange ? in_.Exchange(order.sample) : in_.Sample(order.sample);
      for (size_t shard = 0; shard < kShards; ++shard) keys[static_cast<size_t>(owners_[shard])] += sample[shard];
    }
    const int number = ++calls_made_;
    int open = 0;
    // Own rows are not asked for; a part of dense parameters is, by a message of the rank to itself.
    for (int first = 0; first < ranks_; first += group_) {
      Message message;
      message.service = order.service;
      message.number = number;
      message.members = 0;
      const int end = std::min(first + group_, ranks_);
      for (int r = first; r < end; ++r) {
        const int theirs = keys[static_cast<size_t>(r)];
        if (r == rank_ || (has_keys && theirs == 0)) continue;
        ++message.members;
        message.keys += theirs;
      }
      if (message.members == 0) continue;
      int to = first + (rank_ + number) % (end - first);
      if (to == rank_) to = to + 1 < end ? to + 1 : first;
      const int bytes = Sizes(&message);
      Compute(message.members * handling_, KindOf(message.service));
      bytes_ += bytes;
      if (message.answer > 0) ++open;
      Send(message, kRequest, bytes, 2 * to + 1);
    }
    if (order.service == kClock) return;
    if (open > 0) {
      calls_[number] = {open, order.service};
      return;
    }
    Message done;
    done.service = order.service;
    Send(done, kDone, 0, 2 * rank_);
  }

  /// Bytes of a request; those of its answer, and the dense values, are put into it.
  int Sizes(Message* message) const {
    const int dim = message->service == kPullDeep || message->service == kPushDeep ? 16 : 1;
    const int state = dim == 16 ? 32 : 3;  // floats of a row with what its optimizer keeps
    const int row = dim * value_bytes_;
    const bool is_told = in_["keys_travel_once"] != 0;
    const int members = message->members;
    const int keys = message->keys;
    const int head = static_cast<int>(in_["request_bytes"]) * members;
    switch (message->service) {
      case kPullWide:
      case kPullDeep: {
        if (geo_ > 0) {
          message->answer = static_cast<int>(in_["answer_bytes"]) * members + keys * state * value_bytes_;
          return head + 8 * keys;
        }
        message->answer = static_cast<int>(in_["answer_bytes"]) * members + keys * row;
        return head + (is_told && message->service == kPullDeep ? 0 : 8 * keys);
      }
      case kPushWide:
      case kPushDeep:
        if (geo_ > 0) {
          message->answer = static_cast<int>(in_["answer_bytes"]) * members + keys * state * value_bytes_;
          return head + keys * (8 + state * value_bytes_);
        }
        message->answer = static_cast<int>(in_["done_bytes"]) * members;
        return head + keys * (row + (is_told ? 0 : 8));
      case kClock: return static_cast<int>(in_["clock_bytes"]) * members;
      default: {
        double values = in_["small_values"];
        if (message->service >= kDense) values += in_["parameter_values"];
        if (message->service == kAllDense) values += in_["rest_values"];
        message->values = static_cast<int>(values / ranks_ * members);
        message->answer = static_cast<int>(in_["dense_bytes"]) * members + message->values * value_bytes_;
        return static_cast<int>(in_["dense_bytes"]) * members + message->values * value_bytes_;
      }
    }
  }

  void Answer(Message message, int process) {
    // Pulls and pushes cost alike, and so do the rows of both tables together; a share for each of the four.
    Compute(message.members * handling_ + message.keys * in_["comm_key_us"] * 0.25e-6 +
                message.values * in_["comm_value_us"] * 1e-6,
            KindOf(message.service));
    if (message.answer == 0) return;
    Compute(message.members * handling_, KindOf(message.service));
    bytes_ += message.answer;
    Send(message, kAnswer, message.answer, process);
  }

  double handling_ = 0;
  std::array<int, kShards> owners_{};
  std::map<int, std::pair<int, int>> calls_;  ///< answers that are to come, and the service, by number
  int calls_made_ = 0;
  int naps_ = 0;
  double bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int process = 0;
  int processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  MPI_Comm alike = MPI_COMM_NULL;  // all that train, and all that do not
  MPI_Comm_split(MPI_COMM_WORLD, process % 2, process, &alike);
  static const Input input(argv[1]);  // one for all processes of a simulation, which share their memory
  if (process % 2 == 0) {
    Worker(input, process, processes).Train(alike);
  } else {
    Server server(input, process, processes);
    server.Serve();
  }
  MPI_Finalize();
  return 0;
}
