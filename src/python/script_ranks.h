#pragma once

#include <stop_token>
#include <type_traits>
#include <utility>

#include "python/bindings.h"
#include "python/interruptible.h"
#include "session/call_context.h"

namespace millrace {

/// RanksOfProcess under the GIL; throws its errors as StatusError.
const ProcessRanks& RanksOfScript();

/// Runs a call of a session by RunInterruptibly; returns its value, or throws StatusError.
template <class Call>
auto RunCall(const Call& call, const ProcessRanks& ranks = RanksOfScript()) {
  const Environment& environment = SharedEnvironment();
  using Returned = std::invoke_result_t<Call, const CallContext&>;
  if constexpr (std::is_same_v<Returned, Status>) {
    RunInterruptibly([&](std::stop_token stop) {
      ThrowUnlessOk(call(CallContext{environment, ranks, std::move(stop)}));
    });
  } else {
    using Value = std::remove_cvref_t<decltype(*std::declval<Returned>())>;
    return RunInterruptibly<Value>([&](std::stop_token stop) {
      return call(CallContext{environment, ranks, std::move(stop)});
    });
  }
}

/// For Python's atexit: waits for the other ranks, which can still request rows, and ends MPI. After a failure of the
/// script it does not wait.
void EndRanksOfScript();

}  // namespace millrace
