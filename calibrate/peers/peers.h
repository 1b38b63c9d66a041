// The processes that calibrate together: started by mpirun or srun, one a GPU or a core; or one
// alone. Every rank makes the same calls in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace herdsim {

class Peers {
 public:
  virtual ~Peers() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Among those on the same node, in the order of ranks.
  virtual int rank_on_node() const = 0;
  // Nodes that the first `ranks` ranks are on.
  virtual int nodes_of(int64_t ranks) const = 0;

  virtual void barrier() = 0;
  // The most of all ranks; the leader's, which is rank 0; whether it is so on every rank.
  virtual double most(double value) = 0;
  virtual double agree(double value) = 0;
  bool all(bool value) { return most(value ? 0 : 1) == 0; }
  // The leader's bytes, on every rank.
  virtual void broadcast(void* bytes, size_t count) = 0;
  // A collective of the processes' own, over `floats` floats as nccl-tests counts its size; see
  // CollectiveProbe for kinds.
  virtual void collective(const std::string& kind, float* in, float* out, int64_t floats) = 0;

  // Name and version of what carries it.
  virtual std::string version() const = 0;
  // Ends every rank at once.
  [[noreturn]] virtual void abort(int status) = 0;
};

// As many as a launcher started. Throws: SpecError where it started several and this build has no
// MPI.
std::unique_ptr<Peers> make_peers();

std::unique_ptr<Peers> make_lone_peer();
// Requires: started by a launcher of MPI.
std::unique_ptr<Peers> make_mpi_peers();

}  // namespace herdsim
