// Collectives on a torus, where chips are their own routers and NCCL is not.
//
// A group whose chips fill a box (in every dimension equally spaced, all combinations) runs rings
// along the k dimensions in which it extends, both ways at once. The data is cut in k parts; part r
// is gathered along dimension r first, then r + 1, and so on, so that all dimensions are busy in
// every phase:
//   phase time = largest part then in flight * (c - 1) / c * f / link     f = 1/2 on a ring, 1 on a
//   line
// which sums to bytes * (1 - 1/N) / (2 k link) for k equal rings of N chips in all. All-reduce and
// broadcast pass twice (reduce-scatter or scatter, then all-gather). A dimension is a ring where
// the spacing times the count is its extent and its ends are joined.
//   hops: c / 2 of a ring, c - 1 of a line, times the spacing, a dimension after another
//   all-to-all: c / 8 of a chip's bytes on each link of a ring of even c, c / 4 on the middle of a
//   line
// Sources: Sack and Gropp, "Collective algorithms for multiported torus networks", ACM TOPC 2015;
// Austin et al., "How to scale your model", 2025: V / (2 link) an all-gather on a ring, by the
// number of dimensions, 1 us a hop, a quarter of it an all-to-all.
//
// Any other group runs one ring in the order of its members, half of the data each way, over
// whatever links their routes share; and an all-to-all over all routes. Nobody published how that
// performs. Not modelled: twisted tori, routing around dead chips, several slices over a
// data-centre network.
#pragma once

#include <span>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/fabric/crossing.h"
#include "sim/fabric/fabric.h"

namespace herdsim {

// Requires: the fabric is a torus; members differ.
TorusGroup torus_group(const TorusShape& torus, std::span<const GpuId> members);

// Requires: several ranks, some bytes, a group on a torus.
CollectivePlan plan_on_torus(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                             const NcclTuning& tuning);

// Appends the links that the plan's transfer crosses, ascending, each once.
void append_torus_path(const Fabric& fabric, std::span<const GpuId> members,
                       const CollectivePlan& plan, std::vector<Crossing>& out);

}  // namespace herdsim
