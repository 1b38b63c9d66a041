// What flow control makes of collisions: rows with a source each.
//
// Where a port is full, RoCE's priority flow control pauses whoever feeds it. Deep buffers above
// the ToR take the burst in; shallow ones pass the pause on to flows that are not in the collision
// (head-of-line blocking). The fluid model is the first; the second is its slowdown beyond that of
// an empty network times a factor:
//
//   slowdown = 1 + factor * (fluid slowdown - 1)
//
// with a factor for the mean of the connections and a larger one for their tail, which is what
// rings wait for.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/provenance.h"

namespace herdsim {

struct SwitchBuffers {
  std::string_view name;
  std::string_view help;
  Provenance provenance;
  double mean_factor, tail_factor;
};

const std::vector<SwitchBuffers>& switch_buffers();
// Null if there is none of that name.
const SwitchBuffers* find_switch_buffers(std::string_view name);

}  // namespace herdsim
