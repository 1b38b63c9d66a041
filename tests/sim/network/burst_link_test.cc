// The token bucket: its differential equation by hand, its law over random flows, and against a
// plain twin in small steps.
#include "sim/network/burst_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/network/max_min.h"
#include "tests/sim/network/random_systems.h"

namespace herdsim {
namespace {

// Credit against its differential equation, by hand: 30 s at 7 leave 300 - 150, a pause of 60 s
// gives 120 back.
TEST(BurstLink, keeps_account_of_its_credit) {
  Engine engine;
  const std::vector<Bandwidth> capacity = {Bandwidth::unlimited()};
  FluidNetwork network(engine, capacity);
  BurstLink link(engine, network, LinkId(0),
                 {.sustained = gigabytes_per_second(2),
                  .peak = gigabytes_per_second(7),
                  .depth = gigabytes(300)});
  const std::vector<Crossing> path = {{LinkId(0)}};
  network.start(gigabytes(210), path, Bandwidth::unlimited(), {});
  engine.run_until(Instant::start() + seconds(30));
  EXPECT_EQ(link.credit(), gigabytes(150));
  engine.run_until(Instant::start() + seconds(90));
  EXPECT_EQ(link.credit(), gigabytes(270));
  Instant end;
  // 54 s at the peak are 378 GB; 122 more at 2 GB/s.
  network.start(gigabytes(500), path, Bandwidth::unlimited(), [&] { end = engine.now(); });
  engine.run();
  EXPECT_EQ(end, Instant::start() + seconds(90 + 54 + 61));
  EXPECT_EQ(network.capacity(LinkId(0)), gigabytes_per_second(7)) << "after a rest";
}

// Flows that come and go at random, over the bucket and an ordinary link beside it.
struct RandomLoad {
  struct Arrival {
    Instant at;
    Bytes volume;
    std::vector<Crossing> path;
    Bandwidth cap;
  };
  BurstRates rates;
  std::vector<Bandwidth> capacities;  // of the bucket's link and of two others
  std::vector<Arrival> arrivals;
};

constexpr LinkId kBucket(0);

Bandwidth mb_per_s(int64_t n) { return Bandwidth::from_bytes_per_second(n * 1'000'000); }

RandomLoad random_load(uint64_t seed) {
  Dice dice(seed);
  RandomLoad load;
  const Bandwidth sustained = mb_per_s(dice.between(1, 20));
  load.rates = {.sustained = sustained,
                .peak = sustained * dice.between(1, 8),
                .depth = megabytes(dice.between(0, 40))};
  load.capacities = {Bandwidth::unlimited(), mb_per_s(dice.between(1, 60)),
                     mb_per_s(dice.between(1, 60))};
  for (int64_t n = dice.between(1, 12); n-- > 0;) {
    std::vector<Crossing> path = {{kBucket, dice.between(1, 3)}};
    for (size_t other = 1; other <= 2; ++other) {
      if (dice.one_in(2)) path.push_back({LinkId(other)});
    }
    load.arrivals.push_back(
        {Instant::start() + milliseconds(dice.between(0, 8'000)), megabytes(dice.between(1, 30)),
         path, dice.one_in(2) ? Bandwidth::unlimited() : mb_per_s(dice.between(1, 30))});
  }
  return load;
}

struct Answer {
  std::vector<Duration> ends;       // by arrival, since the start
  std::vector<int64_t> carried;     // by the bucket, bytes; at each of the instants asked for
  std::vector<Bandwidth> capacity;  // likewise
};

Answer exactly(const RandomLoad& load, Duration step, int64_t steps) {
  Engine engine;
  FluidNetwork network(engine, load.capacities, LinkAccounting::kOn);
  BurstLink bucket(engine, network, kBucket, load.rates);
  Answer answer{.ends = std::vector<Duration>(load.arrivals.size())};
  for (size_t a = 0; a < load.arrivals.size(); ++a) {
    const RandomLoad::Arrival& arrival = load.arrivals[a];
    engine.at(arrival.at, [&, a] {
      network.start(load.arrivals[a].volume, load.arrivals[a].path, load.arrivals[a].cap,
                    [&, a] { answer.ends[a] = engine.now() - Instant::start(); });
    });
  }
  for (int64_t i = 0; i < steps; ++i) {
    engine.run_until(Instant::start() + step * (i + 1));
    answer.carried.push_back(network.carried(kBucket).count());
    answer.capacity.push_back(network.capacity(kBucket));
  }
  engine.run();
  return answer;
}

// What a bucket of depth d and rate r promises: d + r w in any time w, and never more than the
// peak. A byte beside it is rounding, and so is what the peak carries in the nanosecond in which
// credit ends.
TEST(BurstLink, carries_at_most_its_depth_and_what_it_sustains_in_any_time) {
  constexpr int64_t kSteps = 3'000;
  constexpr Duration kStep = milliseconds(7);
  int64_t bursts = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomLoad load = random_load(seed);
    const Answer answer = exactly(load, kStep, kSteps);
    const auto in = [](Bandwidth rate, int64_t steps) {
      return static_cast<double>(rate.bytes_per_second()) * (kStep * steps).seconds();
    };
    // Beyond what it sustains, since the instant at which that was least.
    double least = 0, most = 0;
    int64_t before = 0;
    for (int64_t i = 0; i < kSteps; ++i) {
      const int64_t now = answer.carried[static_cast<size_t>(i)];
      ASSERT_LE(static_cast<double>(now - before), in(load.rates.peak, 1) + 1) << "seed " << seed;
      before = now;
      const double beyond = static_cast<double>(now) - in(load.rates.sustained, i + 1);
      least = std::min(least, beyond);
      most = std::max(most, beyond - least);
      ASSERT_LE(beyond - least, static_cast<double>(load.rates.depth.count()) + 2)
          << "seed " << seed;
    }
    bursts += most >= static_cast<double>(load.rates.depth.count()) - 2 &&
              load.rates.depth > Bytes() && load.rates.peak > load.rates.sustained;
  }
  EXPECT_GT(bursts, 30) << "the bucket is never emptied";
}

// In steps of dt the bucket gives sustained + credit / dt, at most its peak.
TEST(BurstLink, is_the_limit_of_a_bucket_in_small_steps) {
  constexpr Duration kStep = milliseconds(1);
  int64_t emptied = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const RandomLoad load = random_load(seed);
    const Answer exact = exactly(load, kStep, 0);
    std::vector<double> left, ends(load.arrivals.size(), -1);
    for (const auto& arrival : load.arrivals)
      left.push_back(static_cast<double>(arrival.volume.count()));
    const auto sustained = static_cast<double>(load.rates.sustained.bytes_per_second());
    const auto peak = static_cast<double>(load.rates.peak.bytes_per_second());
    const auto depth = static_cast<double>(load.rates.depth.count());
    double credit = depth;
    size_t done = 0;
    const double dt = kStep.seconds();
    for (int64_t i = 0; done < ends.size() && i < 2'000'000; ++i) {
      const Instant now = Instant::start() + kStep * i;
      std::vector<size_t> active;
      std::vector<FlowPath> flows;
      for (size_t a = 0; a < ends.size(); ++a) {
        if (load.arrivals[a].at > now || ends[a] >= 0) continue;
        active.push_back(a);
        flows.push_back({load.arrivals[a].path, load.arrivals[a].cap});
      }
      std::vector<Bandwidth> capacities = load.capacities;
      capacities[0] = bytes_per_second(std::min(peak, sustained + std::max(0.0, credit) / dt));
      emptied += capacities[0] < load.rates.peak;
      const std::vector<Bandwidth> rates = max_min_rates(capacities, flows);
      double crossed = 0;
      for (size_t f = 0; f < active.size(); ++f) {
        const auto rate = static_cast<double>(rates[f].bytes_per_second());
        crossed += rate * static_cast<double>(load.arrivals[active[f]].path.front().count);
        if ((left[active[f]] -= rate * dt) > 0) continue;
        ends[active[f]] = (now - Instant::start()).seconds() + dt;
        ++done;
      }
      credit = std::min(depth, credit + (sustained - crossed) * dt);
    }
    ASSERT_EQ(done, ends.size());
    for (size_t a = 0; a < ends.size(); ++a) {
      // A flow that ends inside a step holds its share until the step ends, and what was its peak
      // is made up at less.
      EXPECT_NEAR(exact.ends[a].seconds(), ends[a],
                  2 * dt * static_cast<double>(ends.size()) * std::max(1.0, peak / sustained))
          << "seed " << seed << ", flow " << a;
    }
  }
  EXPECT_GT(emptied, 1'000);
}

// A short rest gives a short burst: 2 s at 2 GB/s are 4 GB of credit, gone in 4 / 5 s at the peak.
TEST(BurstLink, bursts_with_whatever_credit_there_is) {
  Engine engine;
  FluidNetwork network(engine, std::vector{Bandwidth::unlimited()});
  BurstLink link(engine, network, kBucket,
                 {.sustained = gigabytes_per_second(2),
                  .peak = gigabytes_per_second(7),
                  .depth = gigabytes(300'000)});
  const std::vector<Crossing> path = {{kBucket}};
  // Three flows that the division of 2 GB/s leaves some bytes a second.
  std::vector<Instant> ends(4);
  const auto start = [&](Bytes volume, size_t i) {
    network.start(volume, path, Bandwidth::unlimited(), [&, i] { ends[i] = engine.now(); });
  };
  // 300 TB beyond the sustained rate last 60,000 s at the peak: 420 TB; then 6 GB of each at the
  // sustained rate.
  for (size_t i = 0; i < 3; ++i) start(gigabytes(140'000) + gigabytes(6), i);
  engine.run();
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR((ends[i] - Instant::start()).seconds(), 60'000 + 9, 1e-5);
  EXPECT_LT(link.credit(), bytes(1'000));
  engine.run_until(ends[0] + seconds(2));
  const Instant again = engine.now();
  start(gigabytes(14), 3);
  engine.run();
  EXPECT_NEAR((ends[3] - again).seconds(), 0.8 + (14 - 5.6) / 2, 1e-5);
}

}  // namespace
}  // namespace herdsim
