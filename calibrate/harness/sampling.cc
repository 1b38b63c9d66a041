#include "calibrate/harness/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "calibrate/profile/error_summary.h"

namespace herdsim {
namespace {

constexpr double kThrottledClock = 0.95;
// Or the median is no better than luck.
constexpr int64_t kLeastForAMedian = 3;

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
  for (const Slowdown slowdown : {Slowdown::kPower, Slowdown::kHeat}) {
    const auto slowed = std::count_if(samples.begin(), samples.end(),
                                      [&](const Sample& s) { return s.slowdown == slowdown; });
    if (static_cast<size_t>(2 * slowed) > samples.size()) out.slowdown = slowdown;
  }
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
  if (seconds_spent >= rule.most_seconds && so_far.samples >= kLeastForAMedian)
    return StopReason::kOutOfTime;
  return StopReason::kGoOn;
}

int64_t next_batch(const SeriesSummary& so_far, double seconds_spent, double seconds_a_sample,
                   const StoppingRule& rule) {
  const int64_t n = so_far.samples;
  double wanted = static_cast<double>(rule.least_samples - n);
  if (wanted <= 0) {
    const double excess = so_far.relative_error / rule.relative_error;
    wanted = static_cast<double>(n) * std::clamp(excess * excess - 1, 0.0, 1.0);
  }
  const double in_time = (rule.most_seconds - seconds_spent) / seconds_a_sample;
  const double least = static_cast<double>(std::max<int64_t>(1, kLeastForAMedian - n));
  const double most = static_cast<double>(std::max<int64_t>(1, rule.most_samples - n));
  return static_cast<int64_t>(
      std::min(std::max(std::min(std::ceil(wanted), in_time), least), most));
}

std::string stop_reason_text(StopReason reason, Slowdown slowdown) {
  constexpr std::array<std::string_view, 4> kReasons = {"not finished", "precise", "out of samples",
                                                        "out of time"};
  constexpr std::array<std::string_view, 3> kSlowdowns = {"", ", at the power limit", ", too hot"};
  return std::string(kReasons[static_cast<size_t>(reason)]) +
         std::string(kSlowdowns[static_cast<size_t>(slowdown)]);
}

}  // namespace herdsim
