// The least that transfers of a job can take: alone on their links, in whichever of the groups or
// pairs of ranks has them fastest.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/collectives/token_exchange.h"
#include "sim/fabric/fabric.h"
#include "sim/opgraph/rank_grid.h"
#include "tools/scenario/scenario.h"
#include "tools/study/unit_times.h"

namespace herdsim {

class TransferBounds {
 public:
  // Builds the machine. Must outlive this object: base.
  explicit TransferBounds(const Scenario& base);

  // Shapes of a communicator's groups, or of pairs of ranks, each once.
  using Shapes = std::vector<GroupShape>;

  // In Llama 3's order of axes groups of tensor ranks are the same whatever the other degrees, and
  // so on: looked at once. Complexity, the first time: the ranks of the job.
  const Shapes& of_groups(const RankGrid& grid, Communicator communicator);
  // Of every pair of ranks so far apart: no fewer than send to each other.
  const Shapes& of_pairs(int64_t ranks_apart);

  // The least in any of the shapes; zero where there is none.
  LeastTransfer collective(CollectiveKind kind, Bytes bytes, Communicator communicator,
                           const Shapes& shapes, const TokenRouting& routing = {}) const;
  LeastTransfer message(Bytes bytes, const Shapes& shapes) const;

 private:
  Shapes groups(const RankGrid& grid, Communicator communicator) const;
  Shapes pairs(int64_t ranks_apart) const;
  LeastTransfer alone(const CollectivePlan& plan) const;

  const Scenario& base_;
  const Fabric fabric_;
  const TypedVector<RankId, GpuId> placement_;
  const NcclTuning tuning_;
  std::map<std::tuple<Communicator, size_t, size_t, size_t, size_t>, Shapes> groups_;
  std::map<int64_t, Shapes> pairs_;
};

}  // namespace herdsim
