// Jobs of one machine, folded: what plans have in common is found once.
//
// Where transfers run and which ranks are alike depends on the rank grid, the pattern of transfers
// and uneven loads, not on sizes or times. Plans that differ in micro-batches, recomputation or
// order of passes share it, and at 16,384 GPUs it is a quarter of the work of a step.
//
//   FoldedJobs jobs;                             // of one machine
//   FoldedJob job = jobs.of(graph, machine);     // what fold(classify(map_job())) is
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/opgraph/op_graph.h"
#include "sim/symmetry/folded_job.h"
#include "sim/symmetry/machine.h"
#include "sim/symmetry/rank_blocks.h"
#include "sim/symmetry/transfer_pattern.h"

namespace herdsim {

class FoldedJobs {
 public:
  // May be called by several threads. Requires: machines of all calls differ in their tuning only;
  // fabric and placement of the first outlive this object.
  FoldedJob of(const OpGraph& graph, const Machine& machine);

 private:
  // Ranks of all folded jobs kept, at most: some hundred megabytes. Beyond it all are forgotten.
  static constexpr size_t kMostRanks = size_t{1} << 24;

  struct Kept {
    TransferPattern pattern;
    std::array<UnevenLoad, kUnevenKinds> uneven;
    std::once_flag found;
    FoldedJob job;
  };
  struct OfGrid {
    OfGrid(const RankGrid& of, const Machine& machine, const AlikeGpus& alike)
        : grid(of),
          blocks(rank_blocks(grid, alike)),
          shapes(grid, machine.fabric, machine.placement, blocks) {}
    const RankGrid grid;
    const RankBlocks blocks;
    GroupShapes shapes;
    std::vector<std::shared_ptr<Kept>> jobs;
  };

  std::shared_ptr<OfGrid> of_grid(const RankGrid& grid, const Machine& machine);
  std::shared_ptr<Kept> kept(OfGrid& of, const TransferPattern& pattern, const OpGraph& graph);

  std::mutex mutex_;  // of the lists; what is in them guards itself
  std::vector<std::shared_ptr<OfGrid>> grids_;
  std::optional<AlikeGpus> alike_;
  size_t ranks_kept_ = 0;
};

}  // namespace herdsim
