// Collectives as phases that follow each other: an algorithm by name, or a plan of the user's own.
//
// A phase is a collective in parts of the group, in all of them at once: among the members on each
// host (kNode), along each rail across hosts (kRail), or in the whole group (kAll). With p members
// on each of n hosts a vector of S bytes is reduced hierarchically as
//
//   reduce-scatter in each host   S bytes       (p - 1) / p S           through each NVLink port
//   all-reduce along each rail    S / p bytes   2 (n - 1) / n S / p     through each NIC
//   all-gather in each host       S bytes       (p - 1) / p S           through each NVLink port
//
// which is what a flat ring over R = p n members moves through NICs too (2 (R - 1) / R S / p), in
// far fewer steps: 2 (n - 1) across hosts and 2 (p - 1) inside. A phase begins when the one before
// it has ended for every member, so phases share nothing with each other, and everything with
// whatever else runs.
//
// Phases add up to a kind if they do to each member's data what the kind promises: `phases_fault()`
// follows what is reduced and what is scattered in hosts and along rails.
//
//   const auto steps = placed_phases(CollectiveKind::kAllReduce,
//   find_collective_algorithm("hierarchical")->phases(...)); plan_phase(mebibytes(64), group,
//   steps[1], tuning);   // the all-reduce along rails
//
// Sources: hierarchical all-reduce, Jia et al., arXiv:1807.11205; reduce-scatters and all-gathers
// by level, Cho et al., "BlueConnect", MLSys 2019; all-to-all in two dimensions, Hwang et al.,
// "Tutel", arXiv:2206.03382.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/collective.h"

namespace herdsim {

struct CollectivePhase {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  GroupPart part = GroupPart::kAll;
  std::optional<Algorithm> algorithm = {};  // none: as NCCL chooses for the part
  // SMs it takes. Fewer than NCCL would use carry their part of its rate, more carry no more. 0:
  // NCCL's.
  int64_t channels = 0;
  // What it reaches of the port that limits it, NVLink or the NIC, in (0, 1]. 0: what NCCL reaches.
  double efficiency = 0;

  friend bool operator==(const CollectivePhase&, const CollectivePhase&) = default;
};

// A phase with what is scattered while it runs, beside what it scatters or gathers itself: it is
// then of a part of the collective's bytes.
struct PlacedPhase {
  CollectivePhase phase;
  bool scattered_in_node = false, scattered_over_rails = false;
};

// A row.
struct CollectiveAlgorithm {
  std::string_view name;
  std::string_view help;  // with its source
  // How it does a kind; empty where it cannot.
  std::vector<CollectivePhase> (*phases)(CollectiveKind);
};
// Every row, in the order of `herdsim help collectives`.
const std::vector<CollectiveAlgorithm>& collective_algorithms();
// Null if there is none of that name.
const CollectiveAlgorithm* find_collective_algorithm(std::string_view name);

// Why the phases are not the kind, or "".
std::string phases_fault(CollectiveKind kind, std::span<const CollectivePhase> phases);

// Requires: phases_fault() is "".
std::vector<PlacedPhase> placed_phases(CollectiveKind kind,
                                       std::span<const CollectivePhase> phases);

// The part of the group that a phase runs in. Where hosts have unequal numbers of members, the
// least of them counts.
GroupShape part_of(const GroupShape& group, GroupPart part);
// The bytes that a phase is of, as plan_collective() counts them, of a collective of `whole`.
// Rounds up.
Bytes bytes_of_phase(Bytes whole, const GroupShape& group, const PlacedPhase& placed);
// A part of one rank costs nothing: all zero.
CollectivePlan plan_phase(Bytes whole, const GroupShape& group, const PlacedPhase& placed,
                          const NcclTuning& tuning);

}  // namespace herdsim
