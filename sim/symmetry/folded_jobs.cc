#include "sim/symmetry/folded_jobs.h"

#include <algorithm>
#include <utility>

#include "sim/symmetry/job_map.h"
#include "sim/symmetry/rank_classes.h"

namespace herdsim {

FoldedJob FoldedJobs::of(const OpGraph& graph, const Machine& machine) {
  const std::shared_ptr<OfGrid> grid = of_grid(graph.grid, machine);
  GraphPattern of = transfer_pattern(graph, machine.tuning, grid->shapes);
  const std::shared_ptr<Kept> found = kept(*grid, of.pattern, graph);
  std::call_once(found->found, [&] {
    const bool even = is_even_in_blocks(graph.uneven, grid->blocks.ranks);
    const JobMap map = map_lanes(graph.grid, found->pattern, machine, grid->shapes,
                                 even ? grid->blocks : RankBlocks{});
    found->job = fold(graph, machine, map, classify(graph, machine, map));
  });
  FoldedJob job = found->job;
  job.lane_of_work = std::move(of.collectives_of);
  return job;
}

std::shared_ptr<FoldedJobs::OfGrid> FoldedJobs::of_grid(const RankGrid& grid,
                                                        const Machine& machine) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = std::find_if(grids_.begin(), grids_.end(),
                               [&](const auto& kept) { return kept->grid == grid; });
  if (at != grids_.end()) return *at;
  if (!alike_) alike_ = alike_gpus(machine);
  grids_.push_back(std::make_shared<OfGrid>(grid, machine, *alike_));
  return grids_.back();
}

std::shared_ptr<FoldedJobs::Kept> FoldedJobs::kept(OfGrid& of, const TransferPattern& pattern,
                                                   const OpGraph& graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = std::find_if(of.jobs.begin(), of.jobs.end(), [&](const auto& kept) {
    return kept->pattern == pattern && kept->uneven == graph.uneven;
  });
  if (at != of.jobs.end()) return *at;
  ranks_kept_ += graph.grid.ranks();
  if (ranks_kept_ > kMostRanks) {
    for (const std::shared_ptr<OfGrid>& grid : grids_) grid->jobs.clear();
    ranks_kept_ = graph.grid.ranks();
  }
  of.jobs.push_back(std::make_shared<Kept>());
  of.jobs.back()->pattern = pattern;
  of.jobs.back()->uneven = graph.uneven;
  return of.jobs.back();
}

}  // namespace herdsim
