#include "sim/network/max_min.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/sim/network/random_systems.h"

namespace herdsim {
namespace {

using ::testing::ElementsAre;

Bandwidth per_second(int64_t n) { return Bandwidth::from_bytes_per_second(n); }

// The property that defines max-min fairness. With whole bytes a saturated link may keep less than
// one byte a second for each crossing that stopped there.
void expect_bottlenecks(const RandomSystem& system, const std::vector<Bandwidth>& rates) {
  const size_t links = system.capacities.size();
  std::vector<int64_t> load(links), crossings(links);
  std::vector<Bandwidth> fastest(links);
  for (size_t f = 0; f < rates.size(); ++f) {
    for (const Crossing& c : system.paths[f]) {
      const size_t l = c.link.index();
      load[l] += c.count * rates[f].bytes_per_second();
      crossings[l] += c.count;
      fastest[l] = std::max(fastest[l], rates[f]);
    }
  }
  for (size_t l = 0; l < links; ++l) {
    ASSERT_LE(load[l], system.capacities[l].bytes_per_second()) << "link " << l;
  }
  for (size_t f = 0; f < rates.size(); ++f) {
    ASSERT_LE(rates[f], system.caps[f]);
    const bool at_cap = rates[f] == system.caps[f];
    const bool has_bottleneck =
        std::any_of(system.paths[f].begin(), system.paths[f].end(), [&](const Crossing& c) {
          const size_t l = c.link.index();
          return system.capacities[l].bytes_per_second() - load[l] < crossings[l] &&
                 rates[f] == fastest[l];
        });
    ASSERT_TRUE(at_cap || has_bottleneck) << "flow " << f;
  }
}

TEST(MaxMin, every_flow_has_a_bottleneck_where_it_is_fastest) {
  for (const Scale scale : kScales) {
    for (uint64_t seed = 1; seed <= 1500; ++seed) {
      Dice dice(seed);
      const RandomSystem system = random_system(dice, scale);
      expect_bottlenecks(system, max_min_rates(system.capacities, system.flows()));
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    }
  }
}

TEST(MaxMin, the_order_of_flows_and_links_does_not_matter) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Dice dice(seed);
    const RandomSystem system = random_system(dice, Scale::kTiny);
    RandomSystem reversed = system;
    std::reverse(reversed.paths.begin(), reversed.paths.end());
    std::reverse(reversed.caps.begin(), reversed.caps.end());
    std::reverse(reversed.capacities.begin(), reversed.capacities.end());
    for (std::vector<Crossing>& path : reversed.paths) {
      for (Crossing& c : path) c.link = LinkId(system.capacities.size() - 1 - c.link.index());
    }
    std::vector<Bandwidth> rates = max_min_rates(reversed.capacities, reversed.flows());
    std::reverse(rates.begin(), rates.end());
    ASSERT_EQ(rates, max_min_rates(system.capacities, system.flows())) << "seed " << seed;
  }
}

TEST(MaxMin, the_textbook_line_network) {
  // Bertsekas and Gallager: one long flow over two links, one short flow on each.
  const std::array<Bandwidth, 2> capacities = {per_second(10), per_second(30)};
  const std::array<Crossing, 2> both = {{{LinkId(0)}, {LinkId(1)}}};
  const std::array<Crossing, 1> first = {{{LinkId(0)}}}, second = {{{LinkId(1)}}};
  const std::array<FlowPath, 3> flows = {{{both}, {first}, {second}}};
  EXPECT_THAT(max_min_rates(capacities, flows), ElementsAre(per_second(5), per_second(5), per_second(25)));
}

TEST(MaxMin, tied_links_saturate_together_and_no_flow_gets_the_floor_of_another) {
  // Two links of 5 share flow b; one at a time, c would get 3 of its link and a 2 of its.
  const std::array<Bandwidth, 2> capacities = {per_second(5), per_second(5)};
  const std::array<Crossing, 1> left = {{{LinkId(0)}}}, right = {{{LinkId(1)}}};
  const std::array<Crossing, 2> both = {{{LinkId(0)}, {LinkId(1)}}};
  const std::array<FlowPath, 3> flows = {{{left}, {both}, {right}}};
  EXPECT_THAT(max_min_rates(capacities, flows), ElementsAre(per_second(2), per_second(2), per_second(2)));
}

TEST(MaxMin, a_flow_without_links_runs_at_its_cap_and_a_dead_link_stops_its_flows) {
  const std::array<Bandwidth, 2> capacities = {per_second(0), per_second(8)};
  const std::array<Crossing, 2> dead = {{{LinkId(0)}, {LinkId(1)}}};
  const std::array<Crossing, 1> alive = {{{LinkId(1), 2}}};
  const std::array<FlowPath, 3> flows = {{{{}, per_second(7)}, {dead}, {alive}}};
  EXPECT_THAT(max_min_rates(capacities, flows), ElementsAre(per_second(7), per_second(0), per_second(4)));
}

// A system with a cyclic symmetry of order `copies`: link class a has copies[a] links, and member i
// of flow class f crosses link (i * step + offset) mod size of each class on its path. A class size
// divides the order, so the partition is equitable, and each link of the class is crossed by order
// / size members.
TEST(MaxMin, folding_a_symmetry_into_counts_gives_the_unfolded_rates_bit_for_bit) {
  for (const Scale scale : kScales) {
    for (uint64_t seed = 1; seed <= 500; ++seed) {
      Dice dice(seed);
      constexpr int64_t kOrder = 12;
      constexpr std::array<int64_t, 6> kDivisors = {1, 2, 3, 4, 6, 12};
      const size_t link_classes = static_cast<size_t>(dice.between(1, 8));
      RandomSystem folded, unfolded;
      std::vector<int64_t> size(link_classes), first(link_classes);
      for (size_t a = 0; a < link_classes; ++a) {
        size[a] = kDivisors[static_cast<size_t>(dice.between(0, 5))];
        first[a] = static_cast<int64_t>(unfolded.capacities.size());
        folded.capacities.push_back(random_capacity(dice, scale));
        for (int64_t i = 0; i < size[a]; ++i) unfolded.capacities.push_back(folded.capacities[a]);
      }
      std::vector<size_t> class_of_flow;
      for (int64_t f = dice.between(1, 10); f-- > 0;) {
        const std::vector<Crossing> path = random_path(dice, link_classes);
        const Bandwidth cap = random_cap(dice, scale);
        std::vector<int64_t> offsets;
        for (size_t i = 0; i < path.size(); ++i) offsets.push_back(dice.between(0, kOrder - 1));
        std::vector<Crossing> folded_path = path;
        for (Crossing& c : folded_path) c.count *= kOrder / size[c.link.index()];
        folded.paths.push_back(folded_path);
        folded.caps.push_back(cap);
        for (int64_t member = 0; member < kOrder; ++member) {
          std::vector<Crossing> member_path = path;
          for (size_t i = 0; i < path.size(); ++i) {
            const size_t a = path[i].link.index();
            member_path[i].link =
                LinkId(static_cast<size_t>(first[a] + (member + offsets[i]) % size[a]));
          }
          unfolded.paths.push_back(member_path);
          unfolded.caps.push_back(cap);
          class_of_flow.push_back(folded.paths.size() - 1);
        }
      }
      // Shuffled, or ties would be met in the order of the classes in both systems.
      std::vector<size_t> place(unfolded.capacities.size());
      std::iota(place.begin(), place.end(), size_t{0});
      for (size_t i = place.size(); i > 1; --i) {
        std::swap(place[i - 1],
                  place[static_cast<size_t>(dice.between(0, static_cast<int64_t>(i) - 1))]);
      }
      const std::vector<Bandwidth> in_order = unfolded.capacities;
      for (size_t l = 0; l < place.size(); ++l) unfolded.capacities[place[l]] = in_order[l];
      for (std::vector<Crossing>& path : unfolded.paths) {
        for (Crossing& c : path) c.link = LinkId(place[c.link.index()]);
      }
      const auto folded_rates = max_min_rates(folded.capacities, folded.flows());
      const auto unfolded_rates = max_min_rates(unfolded.capacities, unfolded.flows());
      for (size_t f = 0; f < unfolded_rates.size(); ++f) {
        ASSERT_EQ(unfolded_rates[f], folded_rates[class_of_flow[f]])
            << "seed " << seed << " flow " << f;
      }
    }
  }
}

}  // namespace
}  // namespace herdsim
