// Draws what fails and when, for one replica, and hands each failure over at its instant.
//
// The components of a class that fail independently at constant rates are, together, one Poisson
// process of the summed rate; that is what is drawn, then the victim, which is exact and costs
// nothing for a thousand more hosts.
//
// Due times are in exposure, not in time: exposure runs with the clock, stands still while paused
// and runs faster or slower at another pace. So rates may follow the temperature, or rest while the
// job is down, without a redraw.
//
// Everything an event needs is drawn when the event is, whether or not it is kept: two campaigns
// that differ in a rate or a policy see the same events (common random numbers).
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "sim/engine/engine.h"
#include "sim/job/campaign_spec.h"

namespace herdsim {

struct FailureEvent {
  size_t class_index = 0;
  int64_t hosts = 0;   // lost at once
  bool wide = false;   // it took the wider scope
  int64_t gpu = 0;     // the victim, by rank
  Duration detection;  // or how long a stall or an outage lasts, or the latency of the loss watch
  Duration repair;     // of what was lost; one for all, which return together
  double mark = 1;     // uniform, for what the event itself decides
};

class FailureSource {
 public:
  // `engine` and `spec` must outlive this object; `on_failure` runs at each event.
  FailureSource(Engine& engine, const CampaignSpec& spec, uint64_t replica,
                std::function<void(const FailureEvent&)> on_failure);
  FailureSource(const FailureSource&) = delete;  // events hold references to it
  FailureSource& operator=(const FailureSource&) = delete;

  void start();
  void pause();
  void resume();
  // Hazard over nominal from now on; 0: nothing fails. Requires: pace >= 0.
  void set_pace(double pace);
  void stop();
  // A failure of one host of the class, as its own are.
  FailureEvent repeated(size_t class_index, RngStream& stream);

 private:
  struct Source {
    RngStream stream;
    double mean_gap_seconds = 0;
    double keep = 1;
    bool infinite = false;
    bool scheduled = false;  // its first event has been drawn
  };
  struct Due {
    double exposure_seconds = 0;
    size_t class_index = 0;
    bool follow_up = false;
    bool operator>(const Due& other) const {
      return exposure_seconds != other.exposure_seconds ? exposure_seconds > other.exposure_seconds
                                                        : class_index > other.class_index;
    }
  };

  void push_arrival(size_t class_index);
  void settle_exposure();
  void schedule_next();
  void fire();
  FailureEvent draw(size_t class_index, RngStream& stream, double& thinning);
  void add_lemons(uint64_t replica);
  void fire_lemon();

  Engine& engine_;
  const CampaignSpec& spec_;
  std::function<void(const FailureEvent&)> on_failure_;
  std::vector<Source> sources_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  EventId next_;

  // Lemons fail as often as any host, and `factor - 1` times as often on top: those extra failures
  // are one more process, each of which falls on one lemon, and on none where that lemon is away or
  // was removed.
  struct Lemon {
    int strikes = 0;
    Instant away_until;
  };
  std::vector<Lemon> lemons_;
  std::vector<double> lemon_share_;  // of the extra failures, cumulative, by class
  double exposure_seconds_ = 0;      // as of `since_`
  Instant since_;
  double pace_ = 1;
  bool paused_ = true;
};

// The same events drawn one component at a time, for tests of the superposition: failures of
// `components` independent exponential components within `horizon_seconds`, ascending. Complexity:
// O(components + events).
std::vector<double> failures_component_by_component(uint64_t seed, int64_t components,
                                                    double rate_per_hour, double horizon_seconds);

}  // namespace herdsim
