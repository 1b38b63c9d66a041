#include "sim/network/incremental_max_min.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr Share kUnsaturated{0, 0};

// What a flow at `level` loads a link with that it crosses `count` times, rounded up.
Int128 load(Share level, int64_t count) {
  const Int128 product = Int128{level.amount} * count;
  return level.parts == 1 ? product : (product + level.parts - 1) / level.parts;
}

}  // namespace

IncrementalMaxMin::IncrementalMaxMin(std::span<const Bandwidth> capacity_of_link)
    : links_(capacity_of_link.size()) {
  for (size_t l = 0; l < links_.size(); ++l) {
    links_[l].capacity = capacity_of_link[l].bytes_per_second();
  }
}

FlowId IncrementalMaxMin::add(std::span<const Crossing> path, Bandwidth rate_cap) {
  uint32_t f = static_cast<uint32_t>(flows_.size());
  if (free_flows_.empty()) {
    flows_.emplace_back();
  } else {
    f = free_flows_.back();
    free_flows_.pop_back();
  }
  Flow& flow = flows_[f];
  flow.path = paths_.allocate(path.size());
  flow.cap = rate_cap.bytes_per_second();
  flow.rate = 0;
  flow.is_new = true;
  const std::span<PathPool::Step> steps = paths_.steps(flow.path);
  for (size_t i = 0; i < path.size(); ++i) {
    const uint32_t l = static_cast<uint32_t>(path[i].link.index());
    std::vector<Member>& members = links_[l].members;
    HERDSIM_DCHECK(path[i].count > 0) << "link " << l;
    HERDSIM_DCHECK(members.empty() || members.back().flow != f)
        << "link " << l << " twice in a path";
    steps[i] = {l, static_cast<uint32_t>(members.size()), path[i].count};
    members.push_back({f, static_cast<uint32_t>(i), path[i].count});
  }
  set_ceiling(flow);
  load_links(flow, 1);
  added_.push_back(f);
  flow.must_grow = !meets_only_loose_links(flow);
  if (flow.must_grow) {
    flows_to_grow_.push_back(f);
  } else {
    flow.level = flow.ceiling;
    flow.rate = flow.ceiling.floor();
  }
  return FlowId(f);
}

void IncrementalMaxMin::remove(FlowId id) {
  const uint32_t f = static_cast<uint32_t>(id.index());
  Flow& flow = flows_[f];
  load_links(flow, -1);
  for (const PathPool::Step& s : paths_.steps(flow.path)) {
    Link& link = links_[s.link];
    const Member last = link.members.back();
    link.members.pop_back();
    if (s.member < link.members.size()) {
      link.members[s.member] = last;
      paths_.steps(flows_[last.flow].path)[last.step].member = s.member;
    }
    // A link that did not saturate has only more room now.
    if (!link.is_saturated()) continue;
    if (link.members.empty()) {
      link.level = kUnsaturated;
    } else {
      links_to_repair_.push_back(s.link);
    }
  }
  paths_.release(flow.path);
  flow.is_new = false;
  flow.must_grow = false;
  free_flows_.push_back(f);
}

void IncrementalMaxMin::set_capacity(LinkId id, Bandwidth capacity) {
  const uint32_t l = static_cast<uint32_t>(id.index());
  Link& link = links_[l];
  if (link.capacity == capacity.bytes_per_second()) return;
  link.capacity = capacity.bytes_per_second();
  for (const Member& m : link.members) {
    Flow& flow = flows_[m.flow];
    load_links(flow, -1);
    set_ceiling(flow);
    load_links(flow, 1);
    flow.must_grow = true;
    flows_to_grow_.push_back(m.flow);
  }
  links_to_repair_.push_back(l);
}

std::span<const FlowId> IncrementalMaxMin::solve() {
  changed_.clear();
  if (!flows_to_grow_.empty() || !links_to_repair_.empty()) {
    start_repair();
    while (!events_.empty()) {
      const Event event = pop();
      switch (event.kind) {
        case EventKind::kLinkFills:
          fill_links_at(event.level, event.index);
          break;
        case EventKind::kFlowReachesCeiling:
          if (flows_[event.index].stopped != solve_) {
            stop(event.index, event.level, event.level.floor());
          }
          break;
        case EventKind::kLinkLostItsLevel:
          free_flows_stopped_by(event.index, event.level);
          break;
      }
    }
  }
  for (const uint32_t f : added_) {
    if (flows_[f].is_new) changed_.push_back(FlowId(f));
    flows_[f].is_new = false;
  }
  added_.clear();
  return changed_;
}

void IncrementalMaxMin::set_ceiling(Flow& flow) {
  flow.ceiling = {flow.cap, 1};
  for (const PathPool::Step& s : paths_.steps(flow.path)) {
    flow.ceiling = std::min(flow.ceiling, Share{links_[s.link].capacity, s.count});
  }
}

void IncrementalMaxMin::load_links(const Flow& flow, int sign) {
  for (const PathPool::Step& s : paths_.steps(flow.path)) {
    links_[s.link].most += sign * load(flow.ceiling, s.count);
  }
}

bool IncrementalMaxMin::meets_only_loose_links(const Flow& flow) const {
  const std::span<const PathPool::Step> steps = paths_.steps(flow.path);
  return std::all_of(steps.begin(), steps.end(), [this](const PathPool::Step& s) {
    return links_[s.link].is_loose() && !links_[s.link].is_saturated();
  });
}

void IncrementalMaxMin::start_repair() {
  HERDSIM_CHECK(++solve_ != 0) << "2^32 solves in one run";
  // Everything that grows is known before any link is counted.
  std::erase_if(flows_to_grow_,
                [this](uint32_t f) { return !std::exchange(flows_[f].must_grow, false); });
  for (const uint32_t f : flows_to_grow_) flows_[f].grows = solve_;
  const Share bottom{0, 1};
  for (const uint32_t f : flows_to_grow_) grow(f, bottom);
  for (const uint32_t l : links_to_repair_) {
    if (links_[l].repair != solve_ && links_[l].is_saturated()) put_under_repair(l, bottom);
  }
  flows_to_grow_.clear();
  links_to_repair_.clear();
}

// Takes the link's level away and works out a new one. Everything below `water` is settled.
void IncrementalMaxMin::put_under_repair(uint32_t l, Share water) {
  Link& link = links_[l];
  link.repair = solve_;
  if (link.is_saturated()) push({link.level, l, EventKind::kLinkLostItsLevel});
  link.level = kUnsaturated;
  link.finished = link.is_loose();
  if (link.finished) return;
  count_left(link, water);
  link.finished = link.left.parts == 0;
  if (!link.finished) push({link.left, l, EventKind::kLinkFills});
}

// A kept flow with a level not below `water` may still move, so it counts as growing. The share is
// then never too high.
void IncrementalMaxMin::count_left(Link& link, Share water) {
  link.left = {link.capacity, 0};
  for (const Member& m : link.members) {
    const Flow& flow = flows_[m.flow];
    const bool has_stopped = flow.stopped == solve_ || (flow.grows != solve_ && flow.level < water);
    if (has_stopped) {
      link.left.amount -= m.count * flow.rate;
    } else {
      link.left.parts += m.count;
    }
  }
  flows_visited_ += static_cast<int64_t>(link.members.size());
}

// Whether the link is full when the water is at `level`; if not, it comes up again later, or never
// if nothing on it grows.
bool IncrementalMaxMin::fills_at(uint32_t l, Share level) {
  Link& link = links_[l];
  if (link.finished) return false;
  // Stale entries first, because a count is dear. Then without the kept flows that the water has
  // passed meanwhile.
  if (link.left.parts != 0 && link.left == level) count_left(link, level);
  if (link.left.parts == 0) {
    link.finished = true;
    return false;
  }
  if (link.left == level) return true;
  push({link.left, l, EventKind::kLinkFills});
  return false;
}

void IncrementalMaxMin::fill_links_at(Share level, uint32_t first) {
  filling_.clear();
  if (fills_at(first, level)) filling_.push_back(first);
  while (!events_.empty() && events_.front().kind == EventKind::kLinkFills &&
         events_.front().level == level) {
    const uint32_t l = pop().index;
    if (fills_at(l, level)) filling_.push_back(l);
  }
  for (const uint32_t l : filling_) {
    links_[l].level = links_[l].left;
    links_[l].finished = true;
  }
  const int64_t rate = level.floor();
  for (const uint32_t l : filling_) {
    for (const Member& m : links_[l].members) {
      const Flow& flow = flows_[m.flow];
      if (flow.stopped == solve_ || (flow.grows != solve_ && flow.level < level)) continue;
      stop(m.flow, level, rate);
    }
  }
}

void IncrementalMaxMin::stop(uint32_t f, Share level, int64_t rate) {
  Flow& flow = flows_[f];
  const bool sank = flow.grows != solve_ && level < flow.level;
  flow.stopped = solve_;
  flow.level = level;
  if (flow.rate != rate && !flow.is_new) changed_.push_back(FlowId(f));
  flow.rate = rate;
  for (const PathPool::Step& s : paths_.steps(flow.path)) {
    Link& link = links_[s.link];
    if (link.repair != solve_) {
      // What it no longer takes there others may have.
      if (sank && link.is_saturated()) put_under_repair(s.link, level);
    } else if (!link.finished) {
      link.left.amount -= s.count * rate;
      link.left.parts -= s.count;
    }
  }
}

void IncrementalMaxMin::grow(uint32_t f, Share water) {
  Flow& flow = flows_[f];
  flow.grows = solve_;
  push({flow.ceiling, f, EventKind::kFlowReachesCeiling});
  for (const PathPool::Step& s : paths_.steps(flow.path)) {
    const Link& link = links_[s.link];
    if (link.repair != solve_ && (!link.is_loose() || link.is_saturated())) {
      put_under_repair(s.link, water);
    }
  }
}

// The water has reached the level at which the link used to saturate. The kept flows it used to
// stop go on, unless something else stops them here.
void IncrementalMaxMin::free_flows_stopped_by(uint32_t l, Share level) {
  if (links_[l].is_saturated()) return;  // again, at or below this level, and stopped them all
  for (const Member& m : links_[l].members) {
    const Flow& flow = flows_[m.flow];
    if (flow.stopped == solve_ || flow.grows == solve_ || flow.level != level) continue;
    if (!is_stopped_elsewhere(flow, level)) grow(m.flow, level);
  }
  flows_visited_ += static_cast<int64_t>(links_[l].members.size());
}

bool IncrementalMaxMin::is_stopped_elsewhere(const Flow& flow, Share level) const {
  if (flow.ceiling == level) return true;
  const std::span<const PathPool::Step> steps = paths_.steps(flow.path);
  return std::any_of(steps.begin(), steps.end(), [&](const PathPool::Step& s) {
    const Link& link = links_[s.link];
    return link.repair != solve_ && link.is_saturated() && link.level == level;
  });
}

void IncrementalMaxMin::push(Event event) {
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end());
}

IncrementalMaxMin::Event IncrementalMaxMin::pop() {
  std::pop_heap(events_.begin(), events_.end());
  const Event event = events_.back();
  events_.pop_back();
  return event;
}

}  // namespace herdsim
