#include <cstdlib>

#include "calibrate/peers/peers.h"

namespace herdsim {
namespace {

class LonePeer : public Peers {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  int rank_on_node() const override { return 0; }
  int nodes_of(int64_t /*ranks*/) const override { return 1; }
  void barrier() override {}
  double most(double value) override { return value; }
  double agree(double value) override { return value; }
  void broadcast(void* /*bytes*/, size_t /*count*/) override {}
  void collective(const std::string& /*kind*/, float* /*in*/, float* /*out*/,
                  int64_t /*floats*/) override {}
  std::string version() const override { return "one process"; }
  void abort(int status) override { std::_Exit(status); }
};

// How launchers tell a process how many there are.
constexpr const char* kSizeVariables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                          "SLURM_STEP_NUM_TASKS"};

bool is_one_of_several() {
  for (const char* name : kSizeVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr && std::atoi(value) > 1) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Peers> make_lone_peer() { return std::make_unique<LonePeer>(); }

std::unique_ptr<Peers> make_peers() {
  return is_one_of_several() ? make_mpi_peers() : make_lone_peer();
}

}  // namespace herdsim
