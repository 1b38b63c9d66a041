// The rates of max_min_rates(), bit for bit, kept up to date while flows come and go and capacities
// change.
//
// What it relies on. Progressive filling gives every flow the level at which it stopped: an exact
// fraction, the share of the link that stopped it (its bottleneck) or its cap. These levels are the
// only ones for which
//   (a) a flow's level is its cap or the level of its lowest link, and
//   (b) a saturated link's level is what its slower flows leave, over the crossings of the others.
// A change therefore matters only to its own links, to flows stopped there, to the other links of
// flows that moved, and so on, always upwards: whatever stopped below the level of a change cannot
// notice it. solve() fills again from the links that changed and keeps the other flows where they
// are until one of two things happens as the level rises:
//   - a link under repair fills up below a kept flow's level: the flow stops there, lower than
//   before;
//   - the level reaches a kept flow whose bottleneck no longer binds: the flow grows again.
// Either way that flow's links come under repair too. Nothing at a lower level is ever revisited,
// so one pass suffices. Repair never leaves the connected component of the change and usually sees
// a small part of it.
//
// Ceilings keep the common cases O(path). No flow rises above its cap or above what one of its
// links would give it alone, so a link whose flows cannot fill it even at their ceilings is loose:
// it never stops anyone and is not looked at. A flow that meets only loose links, for instance one
// alone on its path, has its ceiling for a rate, at once.
//
//   IncrementalMaxMin sharing(capacities);
//   const FlowId flow = sharing.add(path, gigabytes_per_second(48));
//   for (FlowId changed : sharing.solve()) reschedule(changed, sharing.rate(changed));
//
// Steady state allocates nothing: flows, their copied paths and the member lists of links reuse
// their memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/max_min.h"
#include "sim/network/path_pool.h"
#include "sim/network/share.h"

namespace herdsim {

class IncrementalMaxMin {
 public:
  explicit IncrementalMaxMin(std::span<const Bandwidth> capacity_of_link);

  // The path is copied. Ids are reused after remove().
  // Requires: the links of the path are distinct, counts and cap as in max_min.h.
  FlowId add(std::span<const Crossing> path, Bandwidth rate_cap);
  // Requires: `flow` was added and not removed.
  void remove(FlowId flow);
  void set_capacity(LinkId link, Bandwidth capacity);

  // Brings all rates up to date. Returns the flows added since the last call and those whose rate
  // changed, each once. Invalidates: the span of the call before.
  std::span<const FlowId> solve();

  // As of the last solve().
  Bandwidth rate(FlowId flow) const {
    return Bandwidth::from_bytes_per_second(flows_[flow.index()].rate);
  }
  Bandwidth capacity(LinkId link) const {
    return Bandwidth::from_bytes_per_second(links_[link.index()].capacity);
  }
  std::span<const PathPool::Step> path(FlowId flow) const {
    return paths_.steps(orders_[flow.index()].path);
  }
  // Calls visit(FlowId, count) for every flow that crosses the link.
  template <class Visit>
  void for_each_flow_on(LinkId link, Visit visit) const {
    for (const Member& m : links_[link.index()].members) visit(FlowId(m.flow), m.count);
  }
  size_t links() const { return links_.size(); }
  // Flow visits by solve() so far: what the repair cost, free of any clock.
  int64_t flows_visited() const { return flows_visited_; }

 private:
  struct Member {
    uint32_t flow;
    uint32_t step;  // which crossing of that flow this is
    int64_t count;
  };
  // Adding to and removing from a loose link touches the first cache line only.
  struct alignas(64) Link {
    Int128 most = 0;  // bytes per second it would carry with every flow at its ceiling
    int64_t capacity = 0;
    int64_t crossings = 0;  // sum of the counts
    std::vector<Member> members;
    uint32_t repair = 0;    // the solve that last had it under repair ...
    bool finished = false;  // ... and whether that is over
    bool is_saturated = false;
    bool is_loose = true;

    Share level;  // where it is saturated
    // Under repair: what remains, over the crossings not known to have stopped.
    int64_t left = 0;
    int64_t growing = 0;
  };
  // What a repair looks at, in one cache line.
  struct alignas(64) Flow {
    Share level;
    int64_t rate = 0;      // floor of the level
    uint32_t grows = 0;    // the solve in which it last was free to grow
    uint32_t stopped = 0;  // the solve in which it last stopped
    Share ceiling;         // its cap, or what the narrowest of its links could give it alone
  };
  struct Order {
    Bandwidth cap;
    PathPool::Path path;
    bool is_new = false;     // not yet reported by solve()
    bool must_grow = false;  // has no level yet, or its ceiling moved
  };
  // In the order in which events of one level are handled: all links of a tie are found before
  // anything else happens, as max_min.h demands.
  enum class EventKind : uint8_t { kLinkFills, kLinkLostItsLevel };
  struct Event {
    Share level;
    uint32_t link;
    EventKind kind;
    friend bool operator<(const Event& a, const Event& b) {  // a heap's front is the least
      return a.level > b.level || (a.level == b.level && a.kind > b.kind);
    }
  };

  void set_ceiling(uint32_t flow);
  void load_links(uint32_t flow, int sign);
  void note_change_at(const Share& level);
  bool meets_only_loose_links(uint32_t flow) const;
  Share lower_bound(uint32_t flow) const;
  void start_repair();
  void put_under_repair(uint32_t link, const Share& water);
  void count_left(Link& link, const Share& water);
  bool fills_at(uint32_t link, const Share& level);
  void fill_links_at(const Share& level, uint32_t first);
  void stop(uint32_t flow, const Share& level, int64_t rate);
  void grow(uint32_t flow, const Share& water);
  void free_flows_stopped_by(uint32_t link, const Share& level);
  bool is_stopped_elsewhere(uint32_t flow, const Share& level) const;
  void push(const Event& event);
  Event pop();

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<Order> orders_;  // by flow
  std::vector<uint32_t> free_flows_;
  PathPool paths_;
  std::vector<uint32_t> added_;            // since the last solve; may name removed flows
  std::vector<uint32_t> flows_to_grow_;    // likewise
  std::vector<uint32_t> links_to_repair_;  // may have repetitions
  std::optional<Share> lowest_change_;     // no flow below it can notice what changed
  std::vector<FlowId> changed_;
  std::vector<Event> events_;
  std::vector<uint32_t> filling_;
  uint32_t solve_ = 0;
  int64_t flows_visited_ = 0;
};

}  // namespace herdsim
