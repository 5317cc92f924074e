// The tests of communicators as a rank that mpirun started; how it ends is what the test looks at.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/communicator_cases.h"
#include "comm/mpi_plugin.h"

namespace millrace {
namespace {

Communicator* communicator = nullptr;

class MpiCase : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(MpiCase, Holds) {
  GetParam().run(*communicator);
  // The next one's messages must not come to this one's receivers.
  EXPECT_TRUE(communicator->Barrier().ok());
}

INSTANTIATE_TEST_SUITE_P(All, MpiCase, testing::ValuesIn(CommunicatorCases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

int Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return 1;
}

/// The last rank ends while the others wait for it: in a collective, or for a message.
int LeaveEarly(Communicator& comm, bool in_collective) {
  if (comm.rank() == comm.size() - 1) return 0;
  std::vector<std::string> in;
  const std::vector<std::string> out(static_cast<size_t>(comm.size()), std::string(1000, 'x'));
  const Status status = in_collective ? comm.AllToAll(out, &in) : comm.WaitUntil([] { return false; });
  const std::string expected = "rank " + std::to_string(comm.size() - 1) + " of ";
  if (status.code() != StatusCode::kUnavailable || !status.message().starts_with(expected)) {
    return Fail("expected to miss " + expected + ", got: " + status.ToString());
  }
  return 0;
}

/// The last rank is killed while the others wait for it.
int BeKilled(Communicator& comm) {
  if (comm.rank() == comm.size() - 1) std::raise(SIGKILL);
  (void)comm.Barrier();
  return 0;
}

/// Messages that nobody takes do not keep anyone from ending.
int EndWithMessages(Communicator& comm) {
  for (int to = 0; to < comm.size(); ++to) {
    if (!comm.Send(to, std::string(3'000'000, 'x')).ok()) return Fail("cannot send");
  }
  return comm.Barrier().ok() ? 0 : 1;
}

/// Ranks are killed until one is left; with MPI that knows how to go on without them.
int GoOn(Communicator& comm) {
  RanksGoOnWithoutTheLast(comm, [] { std::raise(SIGKILL); });
  if (testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed()) return 1;
  std::fprintf(stderr, "one rank is left\n");
  return 0;
}

int Run(const std::string& what, Communicator& comm) {
  if (what == "go_on") return GoOn(comm);
  if (what == "leave_collective") return LeaveEarly(comm, true);
  if (what == "leave_messages") return LeaveEarly(comm, false);
  if (what == "be_killed") return BeKilled(comm);
  if (what == "end_with_messages") return EndWithMessages(comm);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string what = argc > 2 ? argv[2] : "";
  if (!millrace::StartedByLauncher()) return millrace::Fail("no launcher started this");
  millrace::Result<std::unique_ptr<millrace::Communicator>> opened = millrace::OpenMpi();
  if (!opened.ok()) return millrace::Fail(opened.status().ToString());
  millrace::communicator = opened->get();
  const std::string expected_size = argc > 1 ? argv[1] : "";
  if (std::to_string(millrace::communicator->size()) != expected_size) {
    return millrace::Fail("there are " + std::to_string(millrace::communicator->size()) + " ranks");
  }
  return millrace::Run(what, *millrace::communicator);
}
