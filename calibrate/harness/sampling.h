// The statistics of a series of samples, and when there are enough.
//
// Times of kernels have a floor and a tail: now and then something disturbs one. So the centre is
// the median, the spread the median absolute deviation, and the error of the median
//   1.2533 * 1.4826 * MAD / sqrt(n)
// (that of a normal sample; the tail does not reach it). Samples taken at less than 95 % of the
// series' fastest clock were throttled: they are left out where enough others are left, and
// counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/harness/backend.h"

namespace herdsim {

struct SeriesSummary {
  double seconds = 0;         // median
  double spread = 0;          // MAD over median
  double relative_error = 0;  // of the median
  int64_t samples = 0;
  int64_t throttled = 0;                // of them, at a lowered clock
  double clock_mhz = 0, watts = 0;      // medians of all samples; 0: not known
  Slowdown slowdown = Slowdown::kNone;  // of most samples
};

// Requires: at least one sample.
SeriesSummary summarize(const std::vector<Sample>& samples);

struct StoppingRule {
  double relative_error = 0.01;
  int64_t least_samples = 7;
  int64_t most_samples = 200;
  double most_seconds = 2;               // a probe
  double least_seconds_a_sample = 2e-3;  // short runs are repeated to this
  std::string text() const;              // for provenance
};

enum class StopReason : uint8_t { kGoOn, kPrecise, kOutOfSamples, kOutOfTime };
// Requires of both: so_far.samples is the number of samples taken; 0 before the first.
StopReason stop_reason(const SeriesSummary& so_far, double seconds_spent, const StoppingRule& rule);
// And what slowed most samples, if anything: "precise, at the power limit".
std::string stop_reason_text(StopReason reason, Slowdown slowdown = Slowdown::kNone);

// Samples to take before stop_reason() is asked again: as many as the rule wants at least, then as
// many as would make the median precise if the spread stays (it goes with 1 / sqrt(n)), at most as
// many as there are, and none beyond the rule's samples and time. Requires: stop_reason() is kGoOn;
// `seconds_a_sample`, with all that goes around one, is above 0.
int64_t next_batch(const SeriesSummary& so_far, double seconds_spent, double seconds_a_sample,
                   const StoppingRule& rule);

}  // namespace herdsim
