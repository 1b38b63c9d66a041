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

}  // namespace herdsim
