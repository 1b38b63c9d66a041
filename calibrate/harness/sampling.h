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
  int64_t throttled = 0;            // of them, at a lowered clock
  double clock_mhz = 0, watts = 0;  // medians of all samples; 0: not known
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
StopReason stop_reason(const SeriesSummary& so_far, double seconds_spent, const StoppingRule& rule);
std::string stop_reason_text(StopReason reason);

}  // namespace herdsim
