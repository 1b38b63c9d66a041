#include "sim/network/fluid_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/sim/network/random_systems.h"

namespace herdsim {
namespace {

using ::testing::ElementsAre;

Instant at_ms(int64_t ms) { return Instant::start() + milliseconds(ms); }

TEST(FluidNetwork, a_lone_gigabyte_at_400_gigabits_takes_exactly_20_ms) {
  Engine engine;
  FluidNetwork network(engine, std::vector{gigabits_per_second(400)}, LinkAccounting::kOn);
  const std::vector<Crossing> path = {{LinkId(0)}};
  Instant done;
  network.start(gigabytes(1), path, Bandwidth::unlimited(), [&] { done = engine.now(); });
  engine.run();
  EXPECT_EQ(done, at_ms(20));
  EXPECT_EQ(network.carried(LinkId(0)), gigabytes(1));
  EXPECT_EQ(network.running(), 0u);
}

TEST(FluidNetwork, a_newcomer_halves_the_rate_from_the_instant_it_starts) {
  Engine engine;
  FluidNetwork network(engine, std::vector{gigabytes_per_second(50)}, LinkAccounting::kOn);
  const std::vector<Crossing> path = {{LinkId(0)}};
  std::vector<std::pair<char, Instant>> done;
  const TransferId first = network.start(gigabytes(1), path, Bandwidth::unlimited(),
                                         [&] { done.emplace_back('a', engine.now()); });
  engine.at(at_ms(10), [&] {
    network.start(gigabytes(1), path, Bandwidth::unlimited(),
                  [&] { done.emplace_back('b', engine.now()); });
  });
  engine.run_until(at_ms(15));
  EXPECT_EQ(network.rate(first), gigabytes_per_second(25));
  EXPECT_EQ(network.left(first), megabytes(375));
  EXPECT_EQ(network.carried(LinkId(0)), megabytes(750));
  engine.run();
  EXPECT_THAT(done, ElementsAre(std::pair('a', at_ms(30)), std::pair('b', at_ms(40))));
  EXPECT_EQ(network.carried(LinkId(0)), gigabytes(2));
}

TEST(FluidNetwork, a_dead_link_stalls_its_transfers_names_them_and_lets_them_go_on_when_repaired) {
  Engine engine;
  FluidNetwork network(engine, std::vector{gigabytes_per_second(50), gigabytes_per_second(50)});
  const std::vector<Crossing> path = {{LinkId(0)}, {LinkId(1)}};
  Instant done;
  const TransferId id =
      network.start(gigabytes(1), path, Bandwidth::unlimited(), [&] { done = engine.now(); });
  engine.at(at_ms(5), [&] { network.set_capacity(LinkId(1), Bandwidth()); });
  engine.run();
  EXPECT_EQ(engine.now(), at_ms(5));
  EXPECT_THAT(network.stalled(), ElementsAre(id));
  engine.at(at_ms(100), [&] { network.set_capacity(LinkId(1), gigabytes_per_second(10)); });
  engine.run();
  EXPECT_TRUE(network.stalled().empty());
  EXPECT_EQ(done, at_ms(175));
}

TEST(FluidNetwork, nothing_to_move_is_done_at_once_and_takes_nobodys_share) {
  Engine engine;
  FluidNetwork network(engine, std::vector{gigabytes_per_second(50)});
  const std::vector<Crossing> path = {{LinkId(0)}};
  int done = 0;
  const TransferId other =
      network.start(gigabytes(1), path, Bandwidth::unlimited(), [&] { done += 10; });
  network.start(Bytes(), path, Bandwidth(), [&] { done += 1; });
  EXPECT_EQ(done, 0) << "a callback ran inside start()";
  engine.run_until(Instant::start());
  EXPECT_EQ(done, 1);
  EXPECT_EQ(network.rate(other), gigabytes_per_second(50));
}

TEST(FluidNetwork, a_stopped_transfer_never_calls_back_and_stopping_again_is_harmless) {
  Engine engine;
  FluidNetwork network(engine, std::vector{gigabytes_per_second(50)}, LinkAccounting::kOn);
  const std::vector<Crossing> path = {{LinkId(0), 2}};
  bool called = false;
  const TransferId id =
      network.start(gigabytes(1), path, Bandwidth::unlimited(), [&] { called = true; });
  engine.run_until(at_ms(10));
  EXPECT_TRUE(network.stop(id));
  EXPECT_FALSE(network.stop(id));
  EXPECT_FALSE(network.stop(TransferId()));
  // The slot is reused; the old id must not reach the newcomer.
  const TransferId next = network.start(gigabytes(1), path, Bandwidth::unlimited(), [] {});
  EXPECT_FALSE(network.stop(id));
  EXPECT_TRUE(network.is_running(next));
  engine.run();
  EXPECT_FALSE(called);
  EXPECT_EQ(network.carried(LinkId(0)), megabytes(500) + gigabytes(2));
}

TEST(FluidNetwork, a_callback_may_start_the_next_transfer_at_the_same_instant) {
  Engine engine;
  FluidNetwork network(engine, std::vector{gigabytes_per_second(50)});
  const std::vector<Crossing> path = {{LinkId(0)}};
  int left = 5;
  std::function<void()> next = [&] {
    if (left-- > 0) network.start(gigabytes(1), path, Bandwidth::unlimited(), [&] { next(); });
  };
  next();
  engine.run();
  EXPECT_EQ(engine.now(), at_ms(100));
}

// What happens in one simulation: (start, path, cap, volume) of transfers and changes of
// capacities.
struct Arrival {
  int64_t when;
  Bytes volume;
  std::vector<Crossing> path;
  Bandwidth cap;
};
struct Change {
  int64_t when;
  LinkId link;
  Bandwidth capacity;
};
struct Story {
  std::vector<Bandwidth> capacities;
  std::vector<Arrival> arrivals;
  std::vector<Change> changes;
};

Story random_story(Dice& dice) {
  Story story;
  const size_t links = static_cast<size_t>(dice.between(1, 12));
  for (size_t l = 0; l < links; ++l) {
    story.capacities.push_back(gigabits_per_second(dice.between(1, 8)) +
                               Bandwidth::from_bytes_per_second(dice.between(0, 3)));
  }
  for (int64_t n = dice.between(1, 40); n-- > 0;) {
    story.arrivals.push_back({dice.between(0, 5) * 1'000'000, Bytes(dice.between(0, 3'000'000)),
                              random_path(dice, links), random_cap(dice, Scale::kReal)});
  }
  for (int64_t n = dice.between(0, 4); n-- > 0;) {
    story.changes.push_back(
        {dice.between(0, 9) * 1'000'000,
         LinkId(static_cast<size_t>(dice.between(0, static_cast<int64_t>(links) - 1))),
         gigabits_per_second(dice.between(0, 8))});
  }
  return story;
}

// Ends of the arrivals, in nanoseconds; -1 for those that stall for ever.
std::vector<int64_t> simulate(const Story& story, const std::vector<size_t>& order) {
  Engine engine;
  FluidNetwork network(engine, story.capacities);
  std::vector<int64_t> ends(story.arrivals.size(), -1);
  for (const Change& change : story.changes) {
    engine.at(Instant::from_nanoseconds(change.when),
              [&network, &change] { network.set_capacity(change.link, change.capacity); });
  }
  for (const size_t i : order) {
    engine.at(Instant::from_nanoseconds(story.arrivals[i].when), [&, i] {
      const Arrival& a = story.arrivals[i];
      network.start(a.volume, a.path, a.cap,
                    [&ends, &engine, i] { ends[i] = engine.now().nanoseconds(); });
    });
  }
  engine.run();
  EXPECT_EQ(network.running(), network.stalled().size());
  return ends;
}

// The same, with no engine, no slots and no memory of rates: at every instant at which anything
// happens, all rates anew from the plain solver.
std::vector<int64_t> simulate_plainly(const Story& story) {
  std::vector<Bandwidth> capacities = story.capacities;
  std::vector<int64_t> ends(story.arrivals.size(), -1);
  std::vector<Int128> left;
  for (const Arrival& a : story.arrivals) left.push_back(Int128{a.volume.count()} * 1'000'000'000);
  int64_t now = 0;
  while (true) {
    for (const Change& c : story.changes) {
      if (c.when == now) capacities[c.link.index()] = c.capacity;
    }
    std::vector<size_t> running;
    std::vector<FlowPath> paths;
    for (size_t i = 0; i < ends.size(); ++i) {
      const Arrival& a = story.arrivals[i];
      if (a.when > now || ends[i] >= 0) continue;
      if (left[i] <= 0) {
        ends[i] = now;
        continue;
      }
      running.push_back(i);
      paths.push_back({a.path, a.cap});
    }
    const std::vector<Bandwidth> rates = max_min_rates(capacities, paths);
    int64_t next = INT64_MAX;
    for (const Change& c : story.changes) {
      if (c.when > now) next = std::min(next, c.when);
    }
    for (const Arrival& a : story.arrivals) {
      if (a.when > now) next = std::min(next, a.when);
    }
    for (size_t r = 0; r < running.size(); ++r) {
      const int64_t rate = rates[r].bytes_per_second();
      if (rate == 0) continue;
      next = std::min(next, now + static_cast<int64_t>((left[running[r]] + rate - 1) / rate));
    }
    if (next == INT64_MAX) return ends;
    for (size_t r = 0; r < running.size(); ++r) {
      left[running[r]] -= Int128{rates[r].bytes_per_second()} * (next - now);
    }
    now = next;
  }
}

TEST(FluidNetwork, every_end_equals_that_of_a_plain_simulation_to_the_nanosecond) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const Story story = random_story(dice);
    std::vector<size_t> order(story.arrivals.size());
    std::iota(order.begin(), order.end(), size_t{0});
    ASSERT_EQ(simulate(story, order), simulate_plainly(story)) << "seed " << seed;
  }
}

TEST(FluidNetwork, the_order_of_simultaneous_starts_does_not_change_any_end) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    const Story story = random_story(dice);
    std::vector<size_t> order(story.arrivals.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const std::vector<int64_t> ends = simulate(story, order);
    for (int permutation = 0; permutation < 5; ++permutation) {
      for (size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1],
                  order[static_cast<size_t>(dice.between(0, static_cast<int64_t>(i) - 1))]);
      }
      ASSERT_EQ(simulate(story, order), ends) << "seed " << seed;
    }
  }
}

TEST(FluidNetwork, what_links_carried_is_what_transfers_moved) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    Story story = random_story(dice);
    Engine engine;
    FluidNetwork network(engine, story.capacities, LinkAccounting::kOn);
    std::vector<Bytes> expected(story.capacities.size());
    for (const Arrival& a : story.arrivals) {
      network.start(a.volume, a.path, Bandwidth::unlimited(), [] {});
      for (const Crossing& c : a.path) expected[c.link.index()] += a.volume * c.count;
    }
    // While transfers are under way no link has carried more than its capacity allows.
    engine.run_until(Instant::start() + microseconds(200));
    for (size_t l = 0; l < expected.size(); ++l) {
      const int64_t most = story.capacities[l].bytes_per_second() / 5'000 + 1;
      ASSERT_LE(network.carried(LinkId(l)).count(), most) << "seed " << seed << " link " << l;
    }
    engine.run();
    for (size_t l = 0; l < expected.size(); ++l) {
      ASSERT_EQ(network.carried(LinkId(l)), expected[l]) << "seed " << seed << " link " << l;
    }
  }
}

}  // namespace
}  // namespace herdsim
