// A link that carries its peak while it has credit, and what it sustains otherwise.
//
// A token bucket: credit of at most `depth` fills at the sustained rate and drains at the rate of
// what crosses the link.
//
//   d(credit)/dt = sustained - load, within [0, depth];   capacity = credit > 0 ? peak : sustained
//
// Between two changes of a rate the credit is linear, so the instant at which it is gone is known
// and needs one event. After that the link stays at its sustained rate until a thousandth of its
// depth is back: without that, flows that a division left a few bytes a second below the sustained
// rate would switch it for ever.
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

class BurstLink {
 public:
  struct Rates {
    Bandwidth sustained, peak;  // peak >= sustained
    Bytes depth;  // beyond the sustained rate: a full bucket lasts depth / (peak - sustained) at
                  // the peak
  };
  // Full of credit now. Engine and network must outlive this object, and this object the events of
  // the engine. Requires: the network was made on this engine before.
  BurstLink(Engine& engine, FluidNetwork& network, LinkId link, const Rates& rates);
  BurstLink(const BurstLink&) = delete;  // events hold references to it
  BurstLink& operator=(const BurstLink&) = delete;

  Bytes credit() const;  // now, rounded down

 private:
  using Nanobytes = Int128;  // bytes * 1e-9, as in FluidNetwork

  Nanobytes credit_now() const;
  int64_t load() const;  // bytes a second, as of the last settling
  void follow();         // runs after every settling
  void schedule(Nanobytes distance, int64_t speed);

  Engine& engine_;
  FluidNetwork& network_;
  LinkId link_;
  Rates rates_;
  Nanobytes depth_, refill_;
  Nanobytes credit_;  // at `since_`
  int64_t gain_ = 0;  // bytes a second, from `since_` on
  Instant since_;
  EventId next_;
};

}  // namespace herdsim
