// Several jobs on one fabric, folded so that they still load the same links.
//
// Links that one job uses alike may be told apart by another. So every job's links are coloured,
// each job's classes are refined with the colours of the others, and again until no job's classes
// split any more. A class of links is then a class to every job that crosses one of them, crossings
// are counted on one representative for all, and sharing is as exact as for a job alone
// (rank_classes.h). Jobs that meet nowhere keep the classes they have alone.
//
//   const std::vector<MappedJob> jobs = {{graph_a, machine_a, map_a}, {graph_b, machine_b, map_b}};
//   const std::vector<FoldedJob> folded = fold_together(jobs, classify_together(jobs));
#pragma once

#include <vector>

#include "sim/symmetry/folded_job.h"
#include "sim/symmetry/job_map.h"
#include "sim/symmetry/rank_classes.h"

namespace herdsim {

// Machines are of one fabric and one state of its links; no two jobs have a host in common.
struct MappedJob {
  const OpGraph& graph;
  const Machine& machine;
  const JobMap& map;
};

// Complexity: as of classify(), once for each round in which colours spread from job to job; two
// without an asymmetry.
std::vector<JobClasses> classify_together(const std::vector<MappedJob>& jobs);

// `classes` are of classify_together(), or no_classes() of each. The jobs get one table of link
// classes: a LinkId means the same class in each, and `capacity`, `representative_link`,
// `links_of_class` and `changes` are the same in all.
std::vector<FoldedJob> fold_together(const std::vector<MappedJob>& jobs,
                                     const std::vector<JobClasses>& classes);

}  // namespace herdsim
