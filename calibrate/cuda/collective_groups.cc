#include "calibrate/cuda/collective_groups.h"

#include <algorithm>

namespace herdsim::cuda {

CollectiveGroups::~CollectiveGroups() {
  for (const auto& [key, members] : made_) {
    for (const Member& member : members) ncclCommDestroy(member.communicator);
  }
}

const std::vector<CollectiveGroups::Member>& CollectiveGroups::of(int64_t ranks, int blocks) {
  const auto [found, is_new] = made_.try_emplace({ranks, blocks});
  if (!is_new) return found->second;
  std::vector<Member>& members = found->second;
  try {
    ncclUniqueId id{};
    if (peers_.rank() == 0) check(ncclGetUniqueId(&id));
    peers_.broadcast(&id, sizeof(id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (blocks > 0) config.minCTAs = config.maxCTAs = blocks;
    for (size_t g = 0; g < gpus_.size(); ++g) {
      if (gpus_[g].rank < ranks) members.push_back({g, nullptr});
    }
    check(ncclGroupStart());
    for (Member& member : members) {
      const LocalGpu& gpu = gpus_[member.gpu];
      check(cudaSetDevice(gpu.device));
      check(ncclCommInitRankConfig(&member.communicator, static_cast<int>(ranks), id, gpu.rank,
                                   &config));
    }
    check(ncclGroupEnd());
  } catch (...) {
    made_.erase(found);
    throw;
  }
  check(cudaSetDevice(gpus_.front().device));
  return members;
}

size_t Collective::part() const {
  return std::max<size_t>(1, bytes / 2 / static_cast<size_t>(ranks));
}

void enqueue(const Collective& c, int rank, ncclComm_t communicator, const void* in, void* out,
             cudaStream_t stream) {
  const int ranks = static_cast<int>(c.ranks);
  const size_t part = c.part(), all = c.all();
  if (c.kind == "all_reduce") {
    check(ncclAllReduce(in, out, all, ncclBfloat16, ncclSum, communicator, stream));
  } else if (c.kind == "all_gather") {
    check(ncclAllGather(in, out, part, ncclBfloat16, communicator, stream));
  } else if (c.kind == "reduce_scatter") {
    check(ncclReduceScatter(in, out, part, ncclBfloat16, ncclSum, communicator, stream));
  } else if (c.kind == "all_to_all") {
    for (int peer = 0; peer < ranks; ++peer) {
      const size_t offset = 2 * part * static_cast<size_t>(peer);
      check(ncclSend(static_cast<const char*>(in) + offset, part, ncclBfloat16, peer, communicator,
                     stream));
      check(ncclRecv(static_cast<char*>(out) + offset, part, ncclBfloat16, peer, communicator,
                     stream));
    }
  } else {
    check(ncclSend(in, all, ncclBfloat16, (rank + 1) % ranks, communicator, stream));
    check(ncclRecv(out, all, ncclBfloat16, (rank + ranks - 1) % ranks, communicator, stream));
  }
}

}  // namespace herdsim::cuda
