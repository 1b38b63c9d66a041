#include "sim/job/spare_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/base/rng.h"
#include "sim/models/queueing.h"
#include "sim/reliability/law.h"

namespace herdsim {
namespace {

struct Observed {
  double mean_away = 0;
  double mean_wait = 0;
  double share_above = 0;
};

// Hosts leave at a rate; what an outside observer sees of the repair shop.
Observed observe(double leaving_per_hour, const RandomDuration& repair, int64_t technicians,
                 int64_t level, int64_t events) {
  Engine engine;
  SparePool pool(engine, {.spares = 100'000, .technicians = technicians},
                 RngStream(1, "test/checks", 0), [] {});
  RngStream stream(17, "test/spares", static_cast<uint64_t>(technicians));
  Observed seen;
  Instant last;
  double area = 0, above = 0, time = 0;
  const auto look = [&] {
    const double span = (engine.now() - last).seconds();
    last = engine.now();
    area += span * static_cast<double>(pool.away());
    above += pool.away() > level ? span : 0;
    time += span;
  };
  int64_t left = events;
  std::function<void()> leave = [&] {
    look();
    std::vector<SparePool::Fault> bad;
    pool.take(1, bad);
    pool.send_to_repair(repair.draw(stream.uniform()));
    if (--left > 0)
      engine.after(seconds_rounded_up(-std::log(stream.uniform()) * 3600 / leaving_per_hour),
                   [&] { leave(); });
  };
  engine.after(seconds(1), [&] { leave(); });
  // Looking between departures as well, so that returns are seen; a quarter of an hour is short
  // against a repair.
  std::function<void()> tick = [&] {
    look();
    if (left > 0) engine.after(seconds(900), [&] { tick(); });
  };
  tick();
  engine.run();
  seen.mean_away = area / time;
  seen.share_above = above / time;
  return seen;
}

TEST(SparePool, hosts_in_repair_are_a_poisson_number_whatever_the_law) {
  const double rate = 2048 * 3.79 / 1000 / 24, mean = rate * 40.4;
  for (const DurationShape shape : {DurationShape::kConstant, DurationShape::kLognormal}) {
    const Observed seen = observe(
        rate, {.shape = shape, .mean_seconds = 40.4 * 3600, .parameter = 1.0}, 0, 22, 40'000);
    // 40,000 departures are some 3,000 independent looks: the mean within 5 sigma, the tail within
    // a factor.
    EXPECT_NEAR(seen.mean_away, mean, 5 * std::sqrt(mean / 3000)) << static_cast<int>(shape);
    EXPECT_NEAR(seen.share_above / poisson_tail(mean, 22), 1, 0.5) << static_cast<int>(shape);
  }
}

TEST(SparePool, few_technicians_make_hosts_wait_as_queueing_says) {
  // M/M/c is exact: hosts away = in repair + waiting, by Little.
  const double rate = 0.3, repair_hours = 20;
  const Observed seen =
      observe(rate, {.shape = DurationShape::kExponential, .mean_seconds = repair_hours * 3600}, 8,
              0, 60'000);
  const double wait_hours = mean_wait(rate / 3600, repair_hours * 3600, 1, 8) / 3600;
  EXPECT_GT(wait_hours, 1);
  EXPECT_NEAR(seen.mean_away / (rate * (repair_hours + wait_hours)), 1, 0.06);
}

TEST(SparePool, gives_no_more_than_it_has_and_takes_mended_hosts_back) {
  Engine engine;
  int returns = 0;
  SparePool pool(engine, {.spares = 3, .technicians = 1, .health_check = seconds(10)},
                 RngStream(1, "test/checks", 0), [&] { ++returns; });
  std::vector<SparePool::Fault> bad;
  EXPECT_EQ(pool.take(5, bad), 3);
  EXPECT_EQ(pool.take(1, bad), 0);
  for (int i = 0; i < 3; ++i) pool.send_to_repair(seconds(100));
  EXPECT_EQ(pool.away(), 3);
  engine.run_until(Instant::start() + seconds(109));
  EXPECT_EQ(returns, 0);
  engine.run_until(Instant::start() + seconds(215));
  EXPECT_EQ(returns, 2);
  engine.run();
  EXPECT_EQ(engine.now(), Instant::start() + seconds(310));
  EXPECT_EQ(pool.free(), 3);
  EXPECT_EQ(pool.away(), 0);
}

// b, r, f of the header: the share of bad hosts in the pool, and how often each was looked at.
TEST(SparePool, a_check_with_errors_lets_through_and_sends_back_as_its_form_says) {
  constexpr int64_t kHosts = 40'000;
  const double b = 0.4, r = 0.7, f = 0.05;
  Engine engine;
  const SparePool::Shape shape{.technicians = 1,  // one after the other: time counts visits
                               .unmended_share = b,
                               .recall = r,
                               .false_alarm = f};
  SparePool pool(engine, shape, RngStream(3, "test/checks", 0), [] {});
  for (int64_t i = 0; i < kHosts; ++i) pool.send_to_repair(seconds(1), i);
  engine.run();
  std::vector<SparePool::Fault> bad;
  EXPECT_EQ(pool.take(kHosts, bad), kHosts);
  const double q = b * (1 - r) / (b * (1 - r) + (1 - b) * (1 - f));
  const double visits = 1 / (1 - b * r - (1 - b) * f);
  const double n = static_cast<double>(kHosts);
  // 5 sigma of a binomial, and of a geometric number: below 1e-6 a run each.
  EXPECT_NEAR(static_cast<double>(bad.size()) / n, q, 5 * std::sqrt(q * (1 - q) / n));
  EXPECT_NEAR(engine.now().since_start().seconds() / n, visits,
              5 * std::sqrt(visits * (visits - 1) / n));
}

TEST(SparePool, takes_bad_hosts_at_their_share_and_each_once) {
  Engine engine;
  SparePool pool(engine, {.spares = 900, .unmended_share = 0.999999999, .recall = 0},
                 RngStream(3, "test/checks", 0), [] {});
  for (int64_t i = 0; i < 100; ++i) pool.send_to_repair(seconds(1), i);
  engine.run();
  std::vector<SparePool::Fault> bad;
  EXPECT_EQ(pool.take(500, bad), 500);
  EXPECT_NEAR(static_cast<double>(bad.size()), 50, 24);  // 5 sigma, hypergeometric: below 1e-6
  EXPECT_EQ(pool.take(1000, bad), 500);
  EXPECT_EQ(std::set<SparePool::Fault>(bad.begin(), bad.end()).size(), 100U);
}

}  // namespace
}  // namespace herdsim
