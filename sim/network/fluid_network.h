// Transfers in flight as fluids: each moves its volume along its path at its max-min fair rate, and
// is done when nothing is left.
//
// Starting, stopping and finishing transfers and changing capacities only note what happened. Rates
// are worked out once an instant, in a settle hook, for everything that happened at that instant
// together, so the order of simultaneous starts cannot change a rate or an end. Only transfers
// whose rate changed are rescheduled.
//
// Exactness. What is left of a transfer is an integer in bytes * 1e-9: at a rate of r bytes per
// second it loses exactly r of those a nanosecond. A transfer ends at the first nanosecond by which
// all of it has passed, ceil(left / rate) from now; rescheduling it a thousand times loses nothing,
// and a folded system ends when the unfolded one does.
//
//   FluidNetwork network(engine, capacities);
//   network.start(gigabytes(1), path, gigabits_per_second(400), [&] { /* 20 ms later, if alone */
//   }); engine.run();
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/inline_callback.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/engine/engine.h"
#include "sim/network/incremental_max_min.h"
#include "sim/network/max_min.h"

namespace herdsim {

// Names one transfer for ever; asking about one that has ended is harmless.
class TransferId {
 public:
  constexpr TransferId() = default;  // no transfer
  friend constexpr bool operator==(TransferId, TransferId) = default;

 private:
  friend class FluidNetwork;
  constexpr TransferId(FlowId flow, uint64_t serial) : flow_(flow), serial_(serial) {}
  FlowId flow_;
  uint64_t serial_ = 0;
};

// Whether to count what each link carries. On, it costs a visit to each link of a path when a
// transfer ends.
enum class LinkAccounting : bool { kOff, kOn };

class FluidNetwork {
 public:
  // `engine` must outlive this object, and this object the events it has scheduled there.
  FluidNetwork(Engine& engine, std::span<const Bandwidth> capacity_of_link,
               LinkAccounting accounting = LinkAccounting::kOff);
  FluidNetwork(const FluidNetwork&) = delete;  // events hold references to it
  FluidNetwork& operator=(const FluidNetwork&) = delete;

  // Runs `on_done` when the volume has passed; no earlier than after this instant's settling, even
  // if it is zero. The path is copied. A rate that stays zero means `on_done` never runs: see
  // stalled(). Requires: volume >= 0; the links of the path are distinct. Allocates nothing in the
  // steady state.
  TransferId start(Bytes volume, std::span<const Crossing> path, Bandwidth rate_cap,
                   InlineCallback on_done);
  // One that began `since` ago and has met nobody: so much of it has passed as rate_alone() says.
  // Requires: volume > 0; something of it is left.
  TransferId start_under_way(Bytes volume, std::span<const Crossing> path, Bandwidth rate_cap,
                             Duration since, InlineCallback on_done);
  // The rate of a transfer as long as what runs beside it on its links leaves room for it.
  Bandwidth rate_alone(std::span<const Crossing> path, Bandwidth rate_cap) const;
  // Gives up a transfer: its callback is dropped and will not run. False if it has ended already.
  bool stop(TransferId id);
  // Transfers in flight speed up or slow down from this instant on; zero stalls them until it is
  // raised again.
  void set_capacity(LinkId link, Bandwidth capacity);
  Bandwidth capacity(LinkId link) const { return sharing_.capacity(link); }

  bool is_running(TransferId id) const;
  // As of the last settling; zero for a transfer of this instant, or one that has ended.
  Bandwidth rate(TransferId id) const;
  // As of now, rounded up; zero for a transfer that has ended.
  Bytes left(TransferId id) const;
  size_t running() const { return running_; }
  // Transfers that have something left and a rate of zero, in the order they were started: what to
  // name when a run ends with work undone. As of the last settling. Complexity: O(all).
  std::vector<TransferId> stalled() const;

  // What the link has carried up to now, rounded up, by transfers that are running, done and
  // stopped. Requires: accounting is on. Complexity: O(transfers on the link).
  Bytes carried(LinkId link) const;

  const IncrementalMaxMin& sharing() const { return sharing_; }

 private:
  // Byte-nanoseconds per second: bytes * 1e-9.
  using Nanobytes = Int128;

  struct Transfer {
    Nanobytes left = 0;   // at `since`
    int64_t since = 0;    // nanoseconds
    int64_t rate = 0;     // from `since` on
    uint64_t serial = 0;  // 0 when free
    EventId completion;
    Bytes volume;
  };

  Transfer* find(TransferId id);
  const Transfer* find(TransferId id) const;
  Nanobytes left_now(const Transfer& transfer) const;
  void settle();
  void schedule_completion(FlowId flow);
  void finish(FlowId flow);
  void end(FlowId flow);

  Engine& engine_;
  IncrementalMaxMin sharing_;
  TypedVector<FlowId, Transfer> transfers_;
  TypedVector<FlowId, InlineCallback> on_done_;
  TypedVector<LinkId, Nanobytes> carried_;  // by transfers that ended; empty when accounting is off
  size_t running_ = 0;
  uint64_t last_serial_ = 0;
};

}  // namespace herdsim
