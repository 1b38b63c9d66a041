// NCCL communicators of the first so many ranks, made when they are first asked for.
//
// One process with several GPUs is as many ranks; several processes, on one host or more, are one
// each. In both cases the leader draws NCCL's unique id and every member joins by it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cuda/cuda_check.h"
#include "calibrate/harness/backend.h"
#include "calibrate/peers/peers.h"

namespace herdsim::cuda {

// A GPU of this process. `transfers` is of the highest priority, as frameworks have it.
struct LocalGpu {
  int device = 0, rank = 0;
  cudaStream_t stream = nullptr, transfers = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

class CollectiveGroups {
 public:
  struct Member {
    size_t gpu;  // of this process
    ncclComm_t communicator;
  };

  // Both must outlive it.
  CollectiveGroups(Peers& peers, const std::vector<LocalGpu>& gpus, int64_t ranks)
      : peers_(peers), gpus_(gpus), ranks_(ranks) {}
  ~CollectiveGroups();
  CollectiveGroups(const CollectiveGroups&) = delete;
  CollectiveGroups& operator=(const CollectiveGroups&) = delete;

  int64_t ranks() const { return ranks_; }
  Peers& peers() const { return peers_; }
  const std::vector<LocalGpu>& gpus() const { return gpus_; }

  // The members of this process, maybe none. NCCL takes `blocks` multiprocessors of each GPU; 0: as
  // many as it likes. Every process calls this at the same time.
  const std::vector<Member>& of(int64_t ranks, int blocks = 0);

 private:
  Peers& peers_;
  const std::vector<LocalGpu>& gpus_;
  int64_t ranks_;
  std::map<std::pair<int64_t, int>, std::vector<Member>> made_;
};

// `bytes` as nccl-tests counts them, of bf16; a buffer is at least collective_bytes() long.
struct Collective {
  std::string kind;
  size_t bytes = 0;
  int64_t ranks = 0;

  size_t all() const {
    return part() * static_cast<size_t>(ranks);
  }  // elements, a multiple of the ranks
  size_t part() const;
  size_t buffer_bytes() const { return 2 * all() + 256; }
};
// Enqueues one rank's part. Requires: between ncclGroupStart and ncclGroupEnd.
void enqueue(const Collective& collective, int rank, ncclComm_t communicator, const void* in,
             void* out, cudaStream_t stream);

}  // namespace herdsim::cuda
