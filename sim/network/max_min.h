// Max-min fair sharing of links among flows, in exact integers.
//
// The rates are those of progressive filling (Bertsekas and Gallager, Data Networks,
// section 6.5.2): all flows grow together; where a link fills up, or a flow reaches its own cap,
// the flows concerned stop; the others go on.
//
// Each round takes the smallest exact fraction remaining / crossings-that-still-grow over all links
// and the smallest cap. Every link that attains exactly that minimum saturates in this round, and
// the flows on any of them get its floor, in whole bytes per second. Handling tied links one after
// another instead would hand the bytes lost to the floor to whichever flows came later: symmetric
// flows would get different rates, and a folded system could not equal the unfolded one.
//
// Folding. A path crosses a link with a count: one unit of the flow's rate loads the link `count`
// times. When a class of interchangeable flows is represented by one, and a class of links by one
// link with its own capacity, the count is the number of members that cross one such link. The
// fractions, and so the rates, are then the same numbers.
//
//   const std::array<Crossing, 2> path = {{{LinkId(0)}, {LinkId(4), 8}}};
//   const std::array<FlowPath, 1> flows = {{{path, gigabytes_per_second(48)}}};
//   max_min_rates(capacities, flows)[0]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/fabric/crossing.h"

namespace herdsim {

// The links of one path are distinct. Links that nobody needs to share are left out by the caller.
struct FlowPath {
  std::span<const Crossing> crossings;
  Bandwidth rate_cap = Bandwidth::unlimited();
};

// The definition, as plain as it can be, and the oracle of IncrementalMaxMin, which is the one to
// use for anything large. `capacity_of_link` is indexed by LinkId; the result by position in
// `flows`. Ensures: no capacity and no cap is exceeded; every flow is at its cap or crosses a link
// that is
//          full (to within the floor) on which no flow is faster.
// Complexity: O(rounds * (links + crossings)).
std::vector<Bandwidth> max_min_rates(std::span<const Bandwidth> capacity_of_link,
                                     std::span<const FlowPath> flows);

}  // namespace herdsim
