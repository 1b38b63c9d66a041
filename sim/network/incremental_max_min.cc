#include "sim/network/incremental_max_min.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// What a flow at `level` loads a link with that it crosses `count` times, rounded up.
Int128 load(const Share& level, int64_t count) {
  const Int128 product = Int128{level.amount()} * count;
  return level.parts() == 1 ? product : (product + level.parts() - 1) / level.parts();
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
    orders_.emplace_back();
  } else {
    f = free_flows_.back();
    free_flows_.pop_back();
  }
  orders_[f] = {.cap = rate_cap, .path = paths_.allocate(path.size()), .is_new = true};
  const std::span<PathPool::Step> steps = paths_.steps(orders_[f].path);
  for (size_t i = 0; i < path.size(); ++i) {
    const uint32_t l = static_cast<uint32_t>(path[i].link.index());
    std::vector<Member>& members = links_[l].members;
    HERDSIM_DCHECK(path[i].count > 0) << "link " << l;
    HERDSIM_DCHECK(members.empty() || members.back().flow != f)
        << "link " << l << " twice in a path";
    steps[i] = {l, static_cast<uint32_t>(members.size()), path[i].count};
    members.push_back({f, static_cast<uint32_t>(i), path[i].count});
  }
  set_ceiling(f);
  load_links(f, 1);
  added_.push_back(f);
  orders_[f].must_grow = !meets_only_loose_links(f);
  if (orders_[f].must_grow) flows_to_grow_.push_back(f);
  flows_[f].level = orders_[f].must_grow ? Share() : flows_[f].ceiling;
  flows_[f].rate = flows_[f].level.floor();
  return FlowId(f);
}

void IncrementalMaxMin::remove(FlowId id) {
  const uint32_t f = static_cast<uint32_t>(id.index());
  load_links(f, -1);
  for (const PathPool::Step& s : paths_.steps(orders_[f].path)) {
    Link& link = links_[s.link];
    const Member last = link.members.back();
    link.members.pop_back();
    if (s.member < link.members.size()) {
      link.members[s.member] = last;
      paths_.steps(orders_[last.flow].path)[last.step].member = s.member;
    }
    // A link that was not saturated has only more room now.
    if (!link.is_saturated) continue;
    if (link.members.empty()) {
      link.is_saturated = false;
    } else {
      links_to_repair_.push_back(s.link);
      note_change_at(flows_[f].level);
    }
  }
  paths_.release(orders_[f].path);
  orders_[f] = {};
  free_flows_.push_back(f);
}

void IncrementalMaxMin::set_capacity(LinkId id, Bandwidth capacity) {
  const uint32_t l = static_cast<uint32_t>(id.index());
  Link& link = links_[l];
  if (link.capacity == capacity.bytes_per_second()) return;
  link.capacity = capacity.bytes_per_second();
  for (const Member& m : link.members) {
    load_links(m.flow, -1);
    set_ceiling(m.flow);
    load_links(m.flow, 1);
    orders_[m.flow].must_grow = true;
    flows_to_grow_.push_back(m.flow);
  }
  note_change_at(Share());
}

std::span<const FlowId> IncrementalMaxMin::solve() {
  changed_.clear();
  if (!flows_to_grow_.empty() || !links_to_repair_.empty()) {
    start_repair();
    while (!events_.empty()) {
      const Event event = pop();
      switch (event.kind) {
        case EventKind::kLinkFills:
          fill_links_at(event.level, event.link);
          break;
        case EventKind::kLinkLostItsLevel:
          free_flows_stopped_by(event.link, event.level);
          break;
      }
    }
  }
  lowest_change_.reset();
  for (const uint32_t f : added_) {
    if (std::exchange(orders_[f].is_new, false)) changed_.push_back(FlowId(f));
  }
  added_.clear();
  return changed_;
}

void IncrementalMaxMin::set_ceiling(uint32_t f) {
  // Links crossed once, which is nearly all of them, need no fractions.
  int64_t whole = orders_[f].cap.bytes_per_second();
  std::optional<Share> part;
  for (const PathPool::Step& s : paths_.steps(orders_[f].path)) {
    if (s.count == 1) {
      whole = std::min(whole, links_[s.link].capacity);
    } else {
      const Share share(links_[s.link].capacity, s.count);
      part = part ? std::min(*part, share) : share;
    }
  }
  flows_[f].ceiling = part ? std::min(*part, Share(whole, 1)) : Share(whole, 1);
}

void IncrementalMaxMin::load_links(uint32_t f, int sign) {
  for (const PathPool::Step& s : paths_.steps(orders_[f].path)) {
    Link& link = links_[s.link];
    link.most += sign * load(flows_[f].ceiling, s.count);
    link.crossings += sign * s.count;
    link.is_loose = link.most <= link.capacity;
  }
}

void IncrementalMaxMin::note_change_at(const Share& level) {
  lowest_change_ = lowest_change_ ? std::min(*lowest_change_, level) : level;
}

bool IncrementalMaxMin::meets_only_loose_links(uint32_t f) const {
  const std::span<const PathPool::Step> steps = paths_.steps(orders_[f].path);
  return std::all_of(steps.begin(), steps.end(), [this](const PathPool::Step& s) {
    return links_[s.link].is_loose && !links_[s.link].is_saturated;
  });
}

// No link fills below its capacity over all its crossings.
Share IncrementalMaxMin::lower_bound(uint32_t f) const {
  Share bound = flows_[f].ceiling;
  for (const PathPool::Step& s : paths_.steps(orders_[f].path)) {
    bound = std::min(bound, Share(links_[s.link].capacity, links_[s.link].crossings));
  }
  return bound;
}

void IncrementalMaxMin::start_repair() {
  HERDSIM_CHECK(++solve_ != 0) << "2^32 solves in one run";
  // Everything that grows is known before any link is counted.
  std::erase_if(flows_to_grow_,
                [this](uint32_t f) { return !std::exchange(orders_[f].must_grow, false); });
  for (const uint32_t f : flows_to_grow_) {
    flows_[f].grows = solve_;
    note_change_at(lower_bound(f));
  }
  const Share bottom = lowest_change_.value_or(Share());
  for (const uint32_t f : flows_to_grow_) grow(f, bottom);
  for (const uint32_t l : links_to_repair_) {
    if (links_[l].repair != solve_ && links_[l].is_saturated) put_under_repair(l, bottom);
  }
  flows_to_grow_.clear();
  links_to_repair_.clear();
}

// Takes the link's level away and works out a new one. Everything below `water` is settled.
void IncrementalMaxMin::put_under_repair(uint32_t l, const Share& water) {
  Link& link = links_[l];
  link.repair = solve_;
  if (link.is_saturated) push({link.level, l, EventKind::kLinkLostItsLevel});
  link.is_saturated = false;
  link.finished = link.is_loose;
  if (link.finished) return;
  count_left(link, water);
  link.finished = link.growing == 0;
  if (!link.finished) push({Share(link.left, link.growing), l, EventKind::kLinkFills});
}

// A kept flow with a level not below `water` may still move, so it counts as growing; the link's
// share is then never too high. A growing flow whose ceiling the water has passed stopped there:
// finding that out here, late, is soon enough, because every link that fills looks first, and it
// saves an event for each flow.
void IncrementalMaxMin::count_left(Link& link, const Share& water) {
  int64_t left = link.capacity;
  int64_t growing = 0;
  for (const Member& m : link.members) {
    const Flow& flow = flows_[m.flow];
    bool has_stopped = flow.stopped == solve_;
    if (!has_stopped && flow.grows == solve_) {
      has_stopped = flow.ceiling < water;
      if (has_stopped) stop(m.flow, flow.ceiling, flow.ceiling.floor());
    } else if (!has_stopped) {
      has_stopped = flow.level < water;
    }
    if (has_stopped) {
      left -= m.count * flow.rate;
    } else {
      growing += m.count;
    }
  }
  link.left = left;
  link.growing = growing;
  flows_visited_ += static_cast<int64_t>(link.members.size());
}

// Whether the link is full when the water is at `level`. If not, it comes up again later, or never
// if nothing on it grows.
bool IncrementalMaxMin::fills_at(uint32_t l, const Share& level) {
  Link& link = links_[l];
  if (link.finished) return false;
  // A stale entry is put right without a count. A true one may still leave out flows that the water
  // has passed.
  Share share = link.growing == 0 ? Share() : Share(link.left, link.growing);
  if (share == level) {
    count_left(link, level);
    if (link.growing != 0) share = Share(link.left, link.growing);
  }
  if (link.growing == 0) {
    link.finished = true;
    return false;
  }
  if (share == level) return true;
  push({share, l, EventKind::kLinkFills});
  return false;
}

void IncrementalMaxMin::fill_links_at(const Share& level, uint32_t first) {
  filling_.clear();
  if (fills_at(first, level)) filling_.push_back(first);
  while (!events_.empty() && events_.front().kind == EventKind::kLinkFills &&
         events_.front().level == level) {
    const uint32_t l = pop().link;
    if (fills_at(l, level)) filling_.push_back(l);
  }
  for (const uint32_t l : filling_) {
    links_[l].level = level;
    links_[l].is_saturated = true;
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

void IncrementalMaxMin::stop(uint32_t f, const Share& level, int64_t rate) {
  Flow& flow = flows_[f];
  const bool sank = flow.grows != solve_ && level < flow.level;
  flow.stopped = solve_;
  flow.level = level;
  if (flow.rate != rate && !orders_[f].is_new) changed_.push_back(FlowId(f));
  flow.rate = rate;
  for (const PathPool::Step& s : paths_.steps(orders_[f].path)) {
    Link& link = links_[s.link];
    if (link.repair != solve_) {
      // What it no longer takes there others may have.
      if (sank && link.is_saturated) put_under_repair(s.link, level);
    } else if (!link.finished) {
      link.left -= s.count * rate;
      link.growing -= s.count;
    }
  }
}

void IncrementalMaxMin::grow(uint32_t f, const Share& water) {
  flows_[f].grows = solve_;
  bool may_be_stopped = false;
  for (const PathPool::Step& s : paths_.steps(orders_[f].path)) {
    const Link& link = links_[s.link];
    may_be_stopped |= !link.is_loose;
    if (link.repair != solve_ && (!link.is_loose || link.is_saturated)) {
      put_under_repair(s.link, water);
    }
  }
  if (!may_be_stopped) stop(f, flows_[f].ceiling, flows_[f].ceiling.floor());
}

// The water has reached the level at which the link used to be saturated. The kept flows it stopped
// go on, unless something else stops them here.
void IncrementalMaxMin::free_flows_stopped_by(uint32_t l, const Share& level) {
  if (links_[l].is_saturated) return;  // again, at or below this level, and stopped them all
  for (const Member& m : links_[l].members) {
    const Flow& flow = flows_[m.flow];
    if (flow.stopped == solve_ || flow.grows == solve_ || flow.level != level) continue;
    if (!is_stopped_elsewhere(m.flow, level)) grow(m.flow, level);
  }
  flows_visited_ += static_cast<int64_t>(links_[l].members.size());
}

bool IncrementalMaxMin::is_stopped_elsewhere(uint32_t f, const Share& level) const {
  if (flows_[f].ceiling == level) return true;
  const std::span<const PathPool::Step> steps = paths_.steps(orders_[f].path);
  return std::any_of(steps.begin(), steps.end(), [&](const PathPool::Step& s) {
    const Link& link = links_[s.link];
    return link.repair != solve_ && link.is_saturated && link.level == level;
  });
}

void IncrementalMaxMin::push(const Event& event) {
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
