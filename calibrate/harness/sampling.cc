#include "calibrate/harness/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/profile/error_summary.h"

namespace herdsim {
namespace {

constexpr double kThrottledClock = 0.95;

}  // namespace

SeriesSummary summarize(const std::vector<Sample>& samples) {
  double fastest = 0;
  for (const Sample& s : samples) fastest = std::max(fastest, s.clock_mhz);
  std::vector<double> kept;
  std::vector<double> clocks, watts;
  for (const Sample& s : samples) {
    clocks.push_back(s.clock_mhz);
    watts.push_back(s.watts);
    if (s.clock_mhz <= 0 || s.clock_mhz >= kThrottledClock * fastest) kept.push_back(s.seconds);
  }
  SeriesSummary out{.samples = static_cast<int64_t>(samples.size()),
                    .throttled = static_cast<int64_t>(samples.size() - kept.size()),
                    .clock_mhz = median(clocks),
                    .watts = median(watts)};
  // A device that is throttled most of the time is as fast as that.
  if (kept.size() * 2 < samples.size()) {
    kept.clear();
    for (const Sample& s : samples) kept.push_back(s.seconds);
  }
  out.seconds = median(kept);
  std::vector<double> deviations;
  for (const double seconds : kept) deviations.push_back(std::abs(seconds - out.seconds));
  out.spread = median(deviations) / out.seconds;
  out.relative_error = 1.2533 * 1.4826 * out.spread / std::sqrt(static_cast<double>(kept.size()));
  return out;
}

std::string StoppingRule::text() const {
  return fmt::format("median known to {:.1f} %, {} to {} samples, {:.3g} s at most",
                     100 * relative_error, least_samples, most_samples, most_seconds);
}

StopReason stop_reason(const SeriesSummary& so_far, double seconds_spent,
                       const StoppingRule& rule) {
  if (so_far.samples >= rule.least_samples && so_far.relative_error <= rule.relative_error) {
    return StopReason::kPrecise;
  }
  if (so_far.samples >= rule.most_samples) return StopReason::kOutOfSamples;
  // Three samples at least, or the median is no better than luck.
  if (seconds_spent >= rule.most_seconds && so_far.samples >= 3) return StopReason::kOutOfTime;
  return StopReason::kGoOn;
}

std::string stop_reason_text(StopReason reason) {
  switch (reason) {
    case StopReason::kGoOn:
      return "not finished";
    case StopReason::kPrecise:
      return "precise";
    case StopReason::kOutOfSamples:
      return "out of samples";
    case StopReason::kOutOfTime:
      return "out of time";
  }
  return "";
}

}  // namespace herdsim
