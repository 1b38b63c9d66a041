// Keeps the condition of the machine for one replica: the day's clock, slow parts that come and go,
// lasting causes. Whoever trains is told when it changes and asks for it then.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "sim/engine/engine.h"
#include "sim/job/campaign_spec.h"
#include "sim/job/condition.h"
#include "sim/models/clock_power.h"

namespace herdsim {

class SlowSource {
 public:
  // `engine` and `spec` must outlive this object. `on_change` runs after each change; `on_noticed`
  // when a slow part has been there for as long as the campaign takes to evict it.
  SlowSource(Engine& engine, const CampaignSpec& spec, uint64_t replica,
             std::function<void()> on_change, std::function<void()> on_noticed);
  SlowSource(const SlowSource&) = delete;  // events hold references to it
  SlowSource& operator=(const SlowSource&) = delete;

  void start();
  void stop();

  const Condition& condition() const { return condition_; }
  // Kelvin above the night's coolest.
  double kelvin() const { return kelvin_; }
  // NICs that failures slow instead of stopping the job, all of them mended after `duration`.
  // Nobody takes the hosts under a dead switch out.
  void degrade_nics(std::span<const int64_t> gpus, int32_t nic_permille, Duration duration);
  // Takes every part that has been noticed out of the job; how many hosts leave.
  int64_t evict_noticed();

 private:
  struct Part {
    uint64_t id = 0;
    SlowPart speed;
    bool noticed = false;
  };
  struct Episodes {
    size_t component = 0;
    RngStream stream;
    double mean_gap_seconds = 0;
  };

  void draw_lasting(uint64_t replica);
  void tick_hour();
  void next_episode(size_t index);
  uint64_t add_part(const SlowPart& speed);
  // Those added from `first` to `last`, after a while.
  void remove_after(Duration duration, uint64_t first, uint64_t last);
  void watch(uint64_t id);
  void rebuild();

  Engine& engine_;
  const CampaignSpec& spec_;
  std::function<void()> on_change_, on_noticed_;
  Condition condition_;
  std::vector<Part> parts_;
  std::vector<Episodes> episodes_;
  uint64_t last_part_ = 0;
  bool follows_day_ = false;
  double day_scale_ = 0;
  double swing_kelvin_ = 0;
  double kelvin_ = 0;
  double base_clock_ = 1;
  int64_t hour_ = 0;
  bool stopped_ = false;
};

}  // namespace herdsim
