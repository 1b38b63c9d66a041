// How often a transfer passes a link: a path with its repeats merged.
//
// A ring over 128 GPUs of one rail crosses each NIC once and a pod's uplink as often as the ring
// enters the pod; at a common rate r the transfer takes count * r of the link.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/ids.h"

namespace herdsim {

struct Crossing {
  LinkId link;
  int64_t count = 1;

  friend auto operator<=>(const Crossing&, const Crossing&) = default;
};

}  // namespace herdsim
