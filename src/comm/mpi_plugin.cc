#include "comm/mpi_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/mpi/exported.h"

namespace millrace {
namespace {

constexpr char kFile[] = "libmillrace_mpi.so";

/// Environment variables with the number of ranks started by a launcher. PMIX_RANK does not contain it.
constexpr const char* kCounts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
constexpr const char* kSigns[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"};

/// Settings for Open MPI; other MPIs ignore them.
constexpr std::pair<const char*, const char*> kSettings[] = {
    // A waiting rank yields its CPU to computing threads.
    {"OMPI_MCA_mpi_yield_when_idle", "1"},
    // These collectives wait in a way that is slow if ranks share CPUs.
    {"OMPI_MCA_coll", "^han,adapt"},
};

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string_view() : value;
}

/// The folder of the shared object with this function (Python's module), and that of the program.
std::vector<std::filesystem::path> OwnFolders() {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&StartedByLauncher), &own) != 0 && own.dli_fname != nullptr) {
    // For a program this is argv[0], which need not be its path.
    const std::filesystem::path object = std::filesystem::absolute(own.dli_fname, error);
    const bool is_there = !error && std::filesystem::exists(object, error);
    if (is_there && !std::filesystem::equivalent(object, program, error)) folders.push_back(object.parent_path());
  }
  if (!program.empty()) folders.push_back(program.parent_path());
  return folders;
}

/// Candidate paths of the shared object: next to the program, in a build tree, in an installation.
std::vector<std::string> Places() {
  std::vector<std::string> places;
  for (const std::filesystem::path& folder : OwnFolders()) {
    for (const char* from_there : {".", "../lib", "../" MILLRACE_LIBDIR}) {
      std::string place = (folder / from_there / kFile).lexically_normal().string();
      if (places.empty() || places.back() != place) places.push_back(std::move(place));
    }
  }
  return places;
}

Status CheckSize(const Communicator& communicator) {
  for (const char* name : kCounts) {
    const std::string_view text = Environment(name);
    int count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    if (count > 1 && communicator.size() == 1) {
      return InvalidConfig("the launcher started " + std::to_string(count) + " ranks (" + name +
                           "), but MPI knows of 1: the launcher belongs to another MPI than the one that Millrace was "
                           "built with");
    }
  }
  return Status::Ok();
}

}  // namespace

bool StartedByLauncher() {
  for (const char* name : kSigns) {
    if (!Environment(name).empty()) return true;
  }
  return false;
}

std::optional<std::chrono::seconds> TimeBehindSigcont() {
  if (Environment("OMPI_COMM_WORLD_SIZE").empty()) return std::nullopt;
  const std::string_view forwards = Environment("OMPI_MCA_orte_forward_job_control");
  if (!forwards.empty() && forwards != "0" && forwards != "false") return std::nullopt;
  int pause = 1;  // the launcher's default
  for (const char* name : {"OMPI_MCA_odls_base_sigkill_timeout", "PRTE_MCA_odls_base_sigkill_timeout"}) {
    const std::string_view text = Environment(name);
    std::from_chars(text.data(), text.data() + text.size(), pause);
  }
  return std::chrono::seconds(2 * std::chrono::seconds::rep{pause});
}

Result<std::unique_ptr<Communicator>> OpenMpi() {
  const std::vector<std::string> places = Places();
  std::string looked_for;
  for (const std::string& place : places) {
    if (::access(place.c_str(), F_OK) == 0) return OpenMpiPlugin(place);
    looked_for += "\n  looked for " + place;
  }
  return NotFound("this Millrace was built without MPI: install libopenmpi-dev and openmpi-bin and build it again" +
                  looked_for);
}

Result<std::unique_ptr<Communicator>> OpenMpiPlugin(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return NotFound("there is no " + path);
  for (const auto& [name, value] : kSettings) ::setenv(name, value, 0);  // NOLINT(concurrency-mt-unsafe)
  // Global: Open MPI's own components need its functions among the global symbols. Ours are hidden.
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* error = ::dlerror();
    return NotFound("MPI cannot be loaded; install openmpi-bin, or the MPI that Millrace was built with: " +
                    std::string(error == nullptr ? path : error));
  }
  const auto tag = reinterpret_cast<MpiTagFn>(::dlsym(handle, kMpiTagSymbol));
  const auto open = reinterpret_cast<MpiOpenFn>(::dlsym(handle, kMpiOpenSymbol));
  if (tag == nullptr || open == nullptr) return InvalidConfig(path + " is no part of Millrace");
  if (tag() != MpiTag()) {
    return InvalidConfig(path + " belongs to another Millrace: it is of \"" + tag() + "\", and this program of \"" +
                         MpiTag() + "\"; install or build both together");
  }
  std::unique_ptr<Communicator> communicator;
  Status status;
  open(&communicator, &status);
  MR_TRY(std::move(status));
  MR_TRY(CheckSize(*communicator));
  return communicator;
}

}  // namespace millrace
