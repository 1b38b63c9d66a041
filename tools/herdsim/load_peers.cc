#include "tools/herdsim/load_peers.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "tools/herdsim/load_options.h"

namespace herdsim {
namespace {

// How launchers tell a process how many there are.
constexpr const char* kSizeVariables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                          "SLURM_STEP_NUM_TASKS"};
constexpr char kLibrary[] = "libherdsim_mpi.so";

bool is_one_of_several() {
  for (const char* name : kSizeVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr && std::atoi(value) > 1) return true;
  }
  return false;
}

// Where a build and where an installation has it, seen from the program.
void* open_library() {
  std::error_code ignored;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& path : {folder / kLibrary, folder / "../lib/herdsim" / kLibrary}) {
    if (!std::filesystem::exists(path, ignored)) continue;
    // Open MPI opens its own parts and wants its symbols global.
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    const char* why = dlerror();
    reject("mpirun",
           fmt::format("started several processes, and {} does not load: {}", path.string(),
                       why != nullptr ? why : "no reason given"),
           "one process with --threads N, or a machine with the Open MPI that this program was "
           "built with (libopenmpi3)");
  }
  reject("mpirun", "started several processes, and this program was built without Open MPI",
         "one process with --threads N, or a build where libopenmpi-dev is installed");
}

}  // namespace

std::unique_ptr<SweepPeers> load_peers() {
  if (!is_one_of_several()) return nullptr;
  void* library = open_library();
  using Make = SweepPeers* (*)();
  const auto make = reinterpret_cast<Make>(dlsym(library, "herdsim_mpi_peers"));
  if (make == nullptr) reject("mpirun", "found a damaged libherdsim_mpi.so", "a new build");
  return std::unique_ptr<SweepPeers>(make());
}

}  // namespace herdsim
