#include "sim/storage/shared_store.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/base/check.h"
#include "sim/engine/engine.h"
#include "sim/network/burst_link.h"
#include "sim/network/fluid_network.h"

namespace herdsim {
namespace {

constexpr int64_t kPhases = 32;
// Saves before the one that is timed: by then the store's credit swings to and fro.
constexpr int64_t kSavesBefore = 8;
// A byte read crosses the store this often, so that write amplification is a whole number too.
constexpr int64_t kWeight = 100;
// What loaders read until nobody looks any more.
constexpr Bytes kEndless{int64_t{1} << 62};
// Longer than any run: what a save takes that no rate finishes.
constexpr Duration kNever = days(36'500);
// Below this a share is rounding.
constexpr double kNothing = 1e-9;

enum class Access : uint8_t { kWrite, kRead };

Bandwidth of_whole(Bandwidth most, const StoreTenant& job) {
  return std::min(most, job.host * job.hosts);
}
// The same for each host: its part of what bounds the whole job, a byte a second at least.
Bandwidth of_host(Bandwidth most, const StoreTenant& job) {
  return std::clamp(most / job.hosts, Bandwidth::from_bytes_per_second(1), job.host);
}

// The store with everybody on it. Tenant 0 is the one that is timed.
class StoreRun {
 public:
  StoreRun(const SharedStore& store, const StoreTenant& job, std::span<const StoreTenant> others)
      : store_(store),
        network_(engine_, capacities(others.size())),
        burst_(engine_, network_, kStore, burst_rates(store, kWeight)) {
    tenants_.push_back(&job);
    for (const StoreTenant& other : others) tenants_.push_back(&other);
    for (size_t t = 0; t < tenants_.size(); ++t) {
      network_.set_capacity(port(t, Access::kWrite), tenants_[t]->host);
      network_.set_capacity(port(t, Access::kRead), tenants_[t]->host);
    }
  }

  // Others save at this phase of their intervals, turned on from one to the next so that they do
  // not meet.
  void start_others(double phase) {
    constexpr double kGoldenTurn = 0.6180339887498949;
    for (size_t t = 1; t < tenants_.size(); ++t) {
      const StoreTenant& job = *tenants_[t];
      start_loaders(t);
      if (job.bytes <= Bytes() || !job.interval.is_finite()) continue;
      const double turn = phase + kGoldenTurn * static_cast<double>(t - 1);
      const double first = (turn - std::floor(turn)) * job.interval.seconds();
      engine_.after(seconds_rounded_up(first), [this, t] { save(t, engine_.now(), -1); });
    }
  }
  Duration time_save(double* loaders_slowed) {
    own_loaders_ = start_loaders(0);
    save(0, engine_.now(), tenants_[0]->interval.is_finite() ? kSavesBefore : 0);
    engine_.run();
    const Bandwidth asked = of_host(tenants_[0]->loading, *tenants_[0]);
    if (tenants_[0]->loading > Bandwidth()) {
      const double share = static_cast<double>(read_.count()) /
                           (static_cast<double>(asked.bytes_per_second()) * took_.seconds());
      *loaders_slowed = 1 - share < kNothing ? 0 : 1 - share;
    }
    return is_over_ ? took_ : kNever;
  }
  Duration time_load() {
    Duration settled;
    for (const StoreTenant* job : tenants_) {
      if (job->interval.is_finite()) settled = std::max(settled, job->interval * kSavesBefore);
    }
    engine_.after(tenants_.size() > 1 ? settled : Duration::zero(), [this] {
      const Instant begin = engine_.now();
      move(0, Access::kRead, tenants_[0]->bytes / tenants_[0]->hosts, tenants_[0]->read_most,
           [this, begin] { end(begin); });
    });
    engine_.run();
    return is_over_ ? took_ : kNever;
  }

 private:
  static constexpr LinkId kStore{0};

  static LinkId port(size_t tenant, Access access) {
    return LinkId(2 * tenant + (access == Access::kWrite ? 1 : 2));
  }
  static std::vector<Bandwidth> capacities(size_t others) {
    return std::vector<Bandwidth>(2 * (others + 1) + 1, Bandwidth::unlimited());
  }
  int64_t weight(Access access) const {
    return access == Access::kRead ? kWeight : std::llround(kWeight * store_.write_amplification);
  }

  TransferId move(size_t tenant, Access access, Bytes of_one, Bandwidth most, InlineCallback done) {
    const StoreTenant& job = *tenants_[tenant];
    const std::array<Crossing, 2> path = {
        {{kStore, job.hosts * weight(access)}, {port(tenant, access), 1}}};
    return network_.start(of_one, path, of_host(most, job), std::move(done));
  }
  TransferId start_loaders(size_t tenant) {
    if (tenants_[tenant]->loading <= Bandwidth()) return {};
    loaders_.push_back(move(tenant, Access::kRead, kEndless, tenants_[tenant]->loading, {}));
    return loaders_.back();
  }

  // Again and again, or until `more` have followed; no save begins before the one before it is
  // done.
  void save(size_t tenant, Instant due, int64_t more) {
    if (is_over_) return;
    if (more == 0) first_left_ = network_.left(own_loaders_);
    const Instant begin = engine_.now();
    move(tenant, Access::kWrite, tenants_[tenant]->bytes / tenants_[tenant]->hosts,
         tenants_[tenant]->write_most, [this, begin, tenant, due, more] {
           if (more == 0) return end(begin);
           const Instant next = std::max(due + tenants_[tenant]->interval, engine_.now());
           engine_.at(next, [this, tenant, next, more] {
             save(tenant, next, more > 0 ? more - 1 : more);
           });
         });
  }
  void end(Instant begin) {
    took_ = engine_.now() - begin;
    read_ = first_left_ - network_.left(own_loaders_);
    is_over_ = true;
    for (const TransferId id : loaders_) network_.stop(id);
  }

  const SharedStore& store_;
  Engine engine_;
  FluidNetwork network_;
  BurstLink burst_;
  std::vector<const StoreTenant*> tenants_;
  std::vector<TransferId> loaders_;
  TransferId own_loaders_;
  bool is_over_ = false;
  Duration took_;
  Bytes first_left_, read_;
};

// Whether all that anybody may ever ask for fits into what the store sustains: then nobody notices
// the others.
bool is_ample(const SharedStore& store, const StoreTenant& job,
              std::span<const StoreTenant> others) {
  double asked = 0;
  const auto add = [&](const StoreTenant& t) {
    const auto rate = [&](Bandwidth most) {
      return static_cast<double>(of_whole(most, t).bytes_per_second());
    };
    asked += rate(t.loading) +
             std::max(rate(t.write_most) * store.write_amplification, rate(t.read_most));
  };
  add(job);
  for (const StoreTenant& other : others) add(other);
  return asked <= static_cast<double>(store.sustained.bytes_per_second());
}

// With its own limits alone; and as the run rounds it, host by host.
struct OwnTime {
  OwnTime(const StoreTenant& job, Bandwidth most)
      : exact(job.bytes / of_whole(most, job)),
        in_run((job.bytes / job.hosts) / of_host(most, job)) {}
  Duration exact_of(Duration timed) const {
    return timed >= kNever ? kNever : exact + (timed - in_run);
  }
  Duration exact, in_run;
};

Duration files_floor(const SharedStore& store, const StoreTenant& job) {
  return seconds_rounded_up(static_cast<double>(job.files) /
                            (static_cast<double>(job.directories) * store.files_per_second));
}

template <class Time>
StoreTime over_phases(const SharedStore& store, const StoreTenant& job,
                      std::span<const StoreTenant> others, const OwnTime& own, Time time) {
  HERDSIM_CHECK(job.hosts > 0) << "a job without hosts";
  const StoreTime never{.alone = kNever, .mean = kNever, .worst = kNever};
  if (own.exact >= kNever || own.in_run >= kNever) return never;
  const Duration floor = files_floor(store, job);
  StoreTime out;
  if (is_ample(store, job, others)) {
    out.alone = out.mean = out.worst = std::max(floor, own.exact);
    return out;
  }
  StoreTenant quiet = job;
  quiet.loading = Bandwidth();
  double ignored = 0;
  StoreRun by_itself(store, quiet, {});
  out.alone = std::max(floor, own.exact_of(time(by_itself, &ignored)));
  if (out.alone >= kNever) return never;
  const int64_t phases = others.empty() ? 1 : kPhases;
  int64_t sum = 0;
  for (int64_t p = 0; p < phases; ++p) {
    StoreRun run(store, job, others);
    run.start_others((static_cast<double>(p) + 0.5) / static_cast<double>(phases));
    double slowed = 0;
    const Duration took = std::max(floor, own.exact_of(time(run, &slowed)));
    if (took >= kNever) return never;
    sum += (took - out.alone).nanoseconds();
    out.worst = std::max(out.worst, took);
    out.loaders_slowed += slowed / static_cast<double>(phases);
  }
  out.mean = out.alone + nanoseconds(sum / phases);
  return out;
}

}  // namespace

Bandwidth SharedStore::peak() const {
  constexpr double kMost = 1e16;
  return bytes_per_second(
      std::min(static_cast<double>(sustained.bytes_per_second()) * burst_factor, kMost));
}

BurstRates burst_rates(const SharedStore& store, int64_t crossings) {
  constexpr int64_t kMostRate = int64_t{1} << 62;
  constexpr double kMostDepth = 4e18;
  const auto counted = [&](Bandwidth rate) {
    return Bandwidth::from_bytes_per_second(
               std::min(rate.bytes_per_second(), kMostRate / crossings)) *
           crossings;
  };
  const Bandwidth sustained = counted(store.sustained);
  const Bandwidth peak = std::max(sustained, counted(store.peak()));
  const double depth =
      static_cast<double>((peak - sustained).bytes_per_second()) * store.burst.seconds();
  return {.sustained = sustained,
          .peak = peak,
          .depth = Bytes(std::llround(std::min(depth, kMostDepth)))};
}

StoreTime save_time(const SharedStore& store, const StoreTenant& job,
                    std::span<const StoreTenant> others) {
  return over_phases(store, job, others, OwnTime(job, job.write_most),
                     [](StoreRun& run, double* slowed) { return run.time_save(slowed); });
}

StoreTime load_time(const SharedStore& store, const StoreTenant& job,
                    std::span<const StoreTenant> others) {
  StoreTenant stopped = job;
  stopped.loading = Bandwidth();
  return over_phases(store, stopped, others, OwnTime(job, job.read_most),
                     [](StoreRun& run, double*) { return run.time_load(); });
}

}  // namespace herdsim
