#include "sim/network/max_min.h"

#include <algorithm>
#include <numeric>

#include "sim/network/share.h"

namespace herdsim {
namespace {

// What progressive filling knows of a link.
struct Filling {
  int64_t remaining = 0;
  int64_t growing = 0;  // crossings by flows that still grow
  bool saturates = false;

  Share share() const { return {remaining, growing}; }
};

std::vector<Filling> empty_links(std::span<const Bandwidth> capacity_of_link,
                                 std::span<const FlowPath> flows) {
  std::vector<Filling> links(capacity_of_link.size());
  for (size_t l = 0; l < links.size(); ++l) {
    links[l].remaining = capacity_of_link[l].bytes_per_second();
  }
  for (const FlowPath& flow : flows) {
    for (const Crossing& c : flow.crossings) links[c.link.index()].growing += c.count;
  }
  return links;
}

void stop_growing(const FlowPath& flow, int64_t rate, std::vector<Filling>& links) {
  for (const Crossing& c : flow.crossings) {
    links[c.link.index()].remaining -= c.count * rate;
    links[c.link.index()].growing -= c.count;
  }
}

Share cap_of(const FlowPath& flow) { return {flow.rate_cap.bytes_per_second(), 1}; }

}  // namespace

std::vector<Bandwidth> max_min_rates(std::span<const Bandwidth> capacity_of_link,
                                     std::span<const FlowPath> flows) {
  std::vector<Filling> links = empty_links(capacity_of_link, flows);
  std::vector<Bandwidth> rates(flows.size());
  std::vector<size_t> growing(flows.size());
  std::iota(growing.begin(), growing.end(), size_t{0});
  while (!growing.empty()) {
    Share least = cap_of(flows[growing.front()]);
    for (const size_t f : growing) least = std::min(least, cap_of(flows[f]));
    for (const Filling& link : links) {
      if (link.growing > 0) least = std::min(least, link.share());
    }
    for (Filling& link : links) link.saturates = link.growing > 0 && link.share() == least;

    // All of the round's flows are found before any is subtracted: see the header.
    const auto stops = std::partition(growing.begin(), growing.end(), [&](size_t f) {
      return cap_of(flows[f]) != least &&
             std::none_of(flows[f].crossings.begin(), flows[f].crossings.end(),
                          [&](const Crossing& c) { return links[c.link.index()].saturates; });
    });
    for (auto f = stops; f != growing.end(); ++f) {
      rates[*f] = Bandwidth::from_bytes_per_second(least.floor());
      stop_growing(flows[*f], least.floor(), links);
    }
    growing.erase(stops, growing.end());
  }
  return rates;
}

namespace {

// The flows of each link, one after another.
struct FlowsOfLinks {
  FlowsOfLinks(size_t links, std::span<const FlowPath> flows) : first(links + 1) {
    for (const FlowPath& flow : flows) {
      for (const Crossing& c : flow.crossings) ++first[c.link.index() + 1];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    flow_at.resize(first.back());
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    for (size_t f = 0; f < flows.size(); ++f) {
      for (const Crossing& c : flows[f].crossings) {
        flow_at[next[c.link.index()]++] = static_cast<uint32_t>(f);
      }
    }
  }
  std::span<const uint32_t> of(size_t link) const {
    return std::span(flow_at).subspan(first[link], first[link + 1] - first[link]);
  }

  std::vector<uint32_t> first;
  std::vector<uint32_t> flow_at;
};

// A link's share only grows while flows stop, so an entry may be out of date but is never too high:
// it is put right when it comes up.
struct HeapEntry {
  Share share;
  size_t link = 0;
  friend bool operator<(const HeapEntry& a, const HeapEntry& b) { return b.share < a.share; }
};

class LinkHeap {
 public:
  explicit LinkHeap(const std::vector<Filling>& links) : links_(links) {
    for (size_t l = 0; l < links.size(); ++l) {
      if (links[l].growing > 0) entries_.push_back({links[l].share(), l});
    }
    std::make_heap(entries_.begin(), entries_.end());
  }
  // The least share, brought up to date; null when no link has a growing flow.
  const HeapEntry* least() {
    while (!entries_.empty()) {
      const HeapEntry top = entries_.front();
      const Filling& link = links_[top.link];
      if (link.growing > 0 && link.share() == top.share) return &entries_.front();
      pop();
      if (link.growing > 0) {
        entries_.push_back({link.share(), top.link});
        std::push_heap(entries_.begin(), entries_.end());
      }
    }
    return nullptr;
  }
  void pop() {
    std::pop_heap(entries_.begin(), entries_.end());
    entries_.pop_back();
  }

 private:
  const std::vector<Filling>& links_;
  std::vector<HeapEntry> entries_;
};

}  // namespace

std::vector<Bandwidth> max_min_rates_by_heap(std::span<const Bandwidth> capacity_of_link,
                                             std::span<const FlowPath> flows) {
  std::vector<Filling> links = empty_links(capacity_of_link, flows);
  const FlowsOfLinks flows_of_links(links.size(), flows);
  LinkHeap heap(links);
  std::vector<uint32_t> by_cap(flows.size());
  std::iota(by_cap.begin(), by_cap.end(), 0u);
  std::sort(by_cap.begin(), by_cap.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(flows[a].rate_cap, a) < std::pair(flows[b].rate_cap, b);
  });
  std::vector<Bandwidth> rates(flows.size());
  std::vector<uint8_t> stopped(flows.size());
  std::vector<uint32_t> stopping;
  const auto stop = [&](uint32_t f) {
    if (!stopped[f]) stopping.push_back(f);
    stopped[f] = 1;
  };
  size_t next_cap = 0;
  while (true) {
    while (next_cap < by_cap.size() && stopped[by_cap[next_cap]]) ++next_cap;
    if (next_cap == by_cap.size()) return rates;
    Share least = cap_of(flows[by_cap[next_cap]]);
    if (const HeapEntry* top = heap.least()) least = std::min(least, top->share);

    // As above: all of the round's flows first, then the subtraction.
    stopping.clear();
    for (size_t i = next_cap; i < by_cap.size() && cap_of(flows[by_cap[i]]) == least; ++i)
      stop(by_cap[i]);
    for (const HeapEntry* top = heap.least(); top != nullptr && top->share == least;
         top = heap.least()) {
      for (const uint32_t f : flows_of_links.of(top->link)) stop(f);
      heap.pop();
    }
    for (const uint32_t f : stopping) {
      rates[f] = Bandwidth::from_bytes_per_second(least.floor());
      stop_growing(flows[f], least.floor(), links);
    }
  }
}

}  // namespace herdsim
