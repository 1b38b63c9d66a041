// A link's capacity from an instant of the step on: a cable that flaps, a switch that comes back.
#pragma once

#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"

namespace herdsim {

struct CapacityChange {
  Duration at;  // since the step's begin
  LinkId link;
  Bandwidth capacity;  // zero: what crosses the link waits
};

}  // namespace herdsim
