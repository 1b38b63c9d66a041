// A link that carries its peak while it has credit, and what it sustains otherwise: a token bucket.
//
//   d(credit)/dt = sustained - load, at most `depth`;   capacity = credit > 0 ? peak : sustained
//
// Credit fills at the sustained rate and what crosses the link takes it, so in any time w the link
// carries at most depth + sustained * w. Between two changes of a rate credit is linear: the
// instant at which it is gone is known and takes one event. At that nanosecond up to (peak -
// sustained) * 1 ns more than the credit has passed; it is kept as a debt, so that it cannot add
// up.
//
// Where less than the sustained rate is asked for, nobody notices which capacity the link has, so
// it has its peak then: whoever starts later bursts with what has been saved by then. Where all of
// it is asked for, credit cannot grow, but for the few bytes a second that the division into whole
// rates leaves.
//
//   FluidNetwork network(engine, capacities);
//   BurstLink store(engine, network, LinkId(3), {.sustained = ..., .peak = ..., .depth = ...});
#pragma once

#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/engine/engine.h"
#include "sim/network/fluid_network.h"

namespace herdsim {

struct BurstRates {
  Bandwidth sustained, peak;  // peak >= sustained
  Bytes depth;  // beyond the sustained rate: a full bucket lasts depth / (peak - sustained) at the
                // peak
};

class BurstLink {
 public:
  // Full of credit now. Engine and network must outlive this object, and this object the events of
  // the engine. Requires: the network was made on this engine before; nobody else sets the capacity
  // of the link.
  BurstLink(Engine& engine, FluidNetwork& network, LinkId link, const BurstRates& rates);
  BurstLink(const BurstLink&) = delete;  // events hold references to it
  BurstLink& operator=(const BurstLink&) = delete;

  Bytes credit() const;  // now, rounded down; no debt

 private:
  using Nanobytes = Int128;  // bytes * 1e-9, as in FluidNetwork
  struct Load {
    int64_t bytes_per_second = 0;
    int64_t crossings = 0;  // of all flows on the link
  };

  Nanobytes credit_now() const;
  Load load() const;  // as of the last settling
  void follow();      // runs after every settling
  void set_bursting(bool bursting);

  Engine& engine_;
  FluidNetwork& network_;
  LinkId link_;
  BurstRates rates_;
  Nanobytes depth_;
  Nanobytes credit_;  // at `since_`
  int64_t gain_ = 0;  // bytes a second, from `since_` on
  Instant since_;
  bool bursting_ = false;
  EventId empty_;
};

}  // namespace herdsim
