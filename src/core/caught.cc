#include "core/caught.h"

#include <new>
#include <string>
#include <system_error>

#include "core/exception_text.h"
#include "core/no_memory.h"

namespace millrace {

Status CaughtFailure(std::string_view task) {
  const std::string who(task);
  try {
    throw;
  } catch (const NoMemory& error) {
    return Unavailable(error.what());
  } catch (const std::bad_alloc&) {
    return Unavailable("no memory for " + who +
                       ": smaller batches, tables or layers, fewer threads, or a larger limit (ulimit -v) may help");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return Unavailable(who + ": the system has no room for another thread (ulimit -u, ulimit -v): " + error.what());
    }
    return IoError(who + ": the system refused: " + error.what());
  } catch (...) {
    return Internal(who + " threw " + DescribeException());
  }
}

}  // namespace millrace
