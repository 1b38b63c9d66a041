// Slow, not dead: what makes a step longer without stopping the job. One row a cause.
//
// A synchronous step runs at the pace of its slowest member, so the campaign asks the step
// simulation for the step time under a condition (clock, slow parts) and these rows say when the
// condition changes and to what.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/provenance.h"
#include "sim/reliability/failure_class.h"

namespace herdsim {

enum class SlowKind : uint8_t {
  kDiurnalClock,   // the day's temperature moves every clock, by sim/models/clock_power.h
  kSiliconSpread,  // GPUs of one kind differ; the slowest of all sets the pace
  kSlowHosts,      // a share of the hosts is slow from the start, until noticed
  kEpisodes,       // one part is slow for a while
  kWholeJob,       // every step is longer by one factor, drawn once a replica
};
constexpr std::array<std::string_view, 5> kSlowKindNames = {"diurnal clock", "silicon spread",
                                                            "slow hosts", "episodes", "whole job"};

struct SlowComponent {
  std::string_view name, help;
  SlowKind kind = SlowKind::kEpisodes;
  // Of episodes: how often, counted in these units. Of slow hosts and of a whole-job cause: the
  // share affected.
  Exposure per = Exposure::kJob;
  double rate_per_hour = 0;
  double share = 1;
  RandomDuration duration;
  // Severity: time over nominal, minus one. Silicon spread: `mean_slowdown` is the standard
  // deviation of GPU speed.
  double mean_slowdown = 0;
  double sigma = 0;      // of its logarithm; 0: always the mean
  bool network = false;  // the NIC is slow, not the GPU
  Evidence evidence = Evidence::kPublished;
  std::string_view source;

  // One severity by one uniform number. Requires: 0 < u <= 1.
  double draw_slowdown(double u) const;
};

const std::vector<SlowComponent>& slow_components();
const SlowComponent* find_slow_component(std::string_view name);

// The daily swing of the coolant and the leakage that follows it, assumed so that throughput moves
// by the 1-2 % of the paper: 8 to 10 K gives 1.1 to 1.5 % with 105 W of leakage growing 1.75 % a
// kelvin.
constexpr double kDiurnalSwingLowKelvin = 8;
constexpr double kDiurnalSwingHighKelvin = 10;
constexpr double kDiurnalLeakageW = 105;
constexpr double kDiurnalLeakagePerKelvin = 0.0175;
constexpr double kWarmestHour = 14.5;

}  // namespace herdsim
