#include "sim/job/slow_source.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/models/gaussian.h"

namespace herdsim {
namespace {

// A job a million times slower has stopped; beyond, the number would not fit.
int32_t permille(double factor) {
  constexpr double kMost = 1e6;
  return static_cast<int32_t>(std::lround(1000 * std::min(factor, kMost)));
}

// A clock that stands still would never end a step.
int32_t clock_permille(double factor) { return std::max(10, permille(factor)); }

// Speed of a part whose step takes 1 + slowdown times as long; in hundredths, so that conditions
// repeat.
int32_t speed_permille(double slowdown) {
  return std::clamp(10 * static_cast<int32_t>(std::lround(100 / (1 + slowdown))), 10, 1000);
}

SlowPart part_of(const SlowComponent& row, int64_t gpu, int32_t speed) {
  return {.gpu = gpu,
          .compute_permille = row.network ? 1000 : speed,
          .nic_permille = row.network ? speed : 1000};
}

int64_t victim(double u, int64_t gpus) {
  return std::min(gpus - 1, static_cast<int64_t>(u * static_cast<double>(gpus)));
}

}  // namespace

SlowSource::SlowSource(Engine& engine, const CampaignSpec& spec, uint64_t replica,
                       std::function<void()> on_change, std::function<void()> on_noticed)
    : engine_(engine),
      spec_(spec),
      on_change_(std::move(on_change)),
      on_noticed_(std::move(on_noticed)) {
  draw_lasting(replica);
}

void SlowSource::draw_lasting(uint64_t replica) {
  const CampaignRequest& request = spec_.request;
  double job_factor = 1, slowest_silicon = 1;
  for (const CorruptionDetector& detector : spec_.detectors)
    job_factor *= 1 + detector.step_overhead;
  for (size_t i = 0; i < spec_.slow.size(); ++i) {
    const auto& [row, scale] = spec_.slow[i];
    RngStream stream(request.seed, std::string("slow/") + std::string(row.name), replica);
    switch (row.kind) {
      case SlowKind::kDiurnalClock:
        follows_day_ = true;
        day_scale_ = scale;
        swing_kelvin_ = kDiurnalSwingLowKelvin +
                        (kDiurnalSwingHighKelvin - kDiurnalSwingLowKelvin) * stream.uniform();
        break;
      case SlowKind::kSiliconSpread: {
        // The slowest of all GPUs, from one number.
        const double p = std::min(stream.uniform(), 1 - 0x1p-53);
        slowest_silicon = std::max(
            0.1, 1 - scale * row.mean_slowdown * normal_maximum_quantile(p, request.machine.gpus));
        break;
      }
      case SlowKind::kSlowHosts: {
        const int64_t units = request.machine.units(row.per);
        const double mean = row.share * static_cast<double>(units);
        // A share of one job is a chance; a share of many hosts a count.
        const auto count =
            units == 1 ? (stream.uniform() <= row.share ? 1 : 0) : std::llround(mean);
        for (int64_t k = 0; k < count; ++k) {
          const int64_t gpu = victim(stream.uniform(), request.machine.gpus);
          const int32_t speed = speed_permille(scale * row.draw_slowdown(stream.uniform()));
          watch(add_part(part_of(row, gpu, speed)));
        }
        break;
      }
      case SlowKind::kEpisodes: {
        // Above 1 a scale adds episodes; below, next_episode() keeps that share of them.
        const double rate = row.rate_per_hour * std::max(1.0, scale) *
                            static_cast<double>(request.machine.units(row.per)) / 3600;
        if (rate > 0)
          episodes_.push_back({.component = i, .stream = stream, .mean_gap_seconds = 1 / rate});
        break;
      }
      case SlowKind::kWholeJob:
        job_factor *= 1 + scale * row.draw_slowdown(stream.uniform());
        break;
    }
  }
  const ClockPowerModel power{.power_limit_w = request.board_watts};
  if (request.reliability.power_cap_w > 0)
    base_clock_ = clock_factor_under_cap(power, request.reliability.power_cap_w);
  condition_.job_permille = permille(job_factor);
  if (slowest_silicon < 1)
    watch(add_part({.gpu = 0, .compute_permille = permille(slowest_silicon)}));
  condition_.clock_permille = clock_permille(base_clock_);
  rebuild();
}

void SlowSource::start() {
  if (follows_day_) tick_hour();
  for (size_t i = 0; i < episodes_.size(); ++i) next_episode(i);
}

void SlowSource::stop() { stopped_ = true; }

void SlowSource::tick_hour() {
  if (stopped_) return;
  // The hour's middle stands for it.
  const double phase =
      2 * std::numbers::pi * (static_cast<double>(hour_ % 24) + 0.5 - kWarmestHour) / 24;
  kelvin_ = swing_kelvin_ / 2 * (1 + std::cos(phase));
  const ClockPowerModel model{.leakage_w = kDiurnalLeakageW,
                              .leakage_per_kelvin = kDiurnalLeakagePerKelvin};
  const double loss = day_scale_ * (1 - clock_factor_at(model, kelvin_));
  const int32_t clock = clock_permille(base_clock_ * (1 - loss));
  ++hour_;
  engine_.after(hours(1), [this] { tick_hour(); });
  if (clock == condition_.clock_permille) return;
  condition_.clock_permille = clock;
  on_change_();
}

void SlowSource::next_episode(size_t index) {
  Episodes& episodes = episodes_[index];
  const auto& [row, scale] = spec_.slow[episodes.component];
  RngStream& stream = episodes.stream;
  const Duration gap = seconds_rounded_up(-std::log(stream.uniform()) * episodes.mean_gap_seconds);
  const bool kept = stream.uniform() <= scale;
  const int64_t gpu = victim(stream.uniform(), spec_.request.machine.gpus);
  const SlowPart part = part_of(row, gpu, speed_permille(row.draw_slowdown(stream.uniform())));
  const Duration lasts = row.duration.draw(stream.uniform());
  engine_.after(gap, [this, index, part, lasts, kept] {
    if (stopped_) return;
    if (kept) {
      const uint64_t id = add_part(part);
      watch(id);
      remove_after(lasts, id, id);
      rebuild();
      on_change_();
    }
    next_episode(index);
  });
}

void SlowSource::degrade_nics(std::span<const int64_t> gpus, int32_t nic_permille,
                              Duration duration) {
  const uint64_t first = last_part_ + 1;
  for (const int64_t gpu : gpus) add_part({.gpu = gpu, .nic_permille = nic_permille});
  if (gpus.size() == 1) watch(first);
  remove_after(duration, first, last_part_);
  rebuild();
  on_change_();
}

uint64_t SlowSource::add_part(const SlowPart& speed) {
  parts_.push_back({.id = ++last_part_, .speed = speed});
  return last_part_;
}

void SlowSource::watch(uint64_t id) {
  const double patience = spec_.request.reliability.evict_slow_after_s;
  if (patience <= 0) return;
  engine_.after(seconds_rounded_up(patience), [this, id] {
    const auto part =
        std::find_if(parts_.begin(), parts_.end(), [id](const Part& p) { return p.id == id; });
    if (stopped_ || part == parts_.end()) return;
    part->noticed = true;
    on_noticed_();
  });
}

void SlowSource::remove_after(Duration duration, uint64_t first, uint64_t last) {
  engine_.after(duration, [this, first, last] {
    if (stopped_) return;
    const auto ended = [&](const Part& p) { return first <= p.id && p.id <= last; };
    if (std::erase_if(parts_, ended) == 0) return;
    rebuild();
    on_change_();
  });
}

int64_t SlowSource::evict_noticed() {
  const auto gone =
      static_cast<int64_t>(std::erase_if(parts_, [](const Part& p) { return p.noticed; }));
  if (gone > 0) rebuild();
  return gone;
}

void SlowSource::rebuild() {
  condition_.slow.clear();
  for (const Part& part : parts_) {
    if (part.speed.compute_permille < 1000 || part.speed.nic_permille < 1000)
      condition_.slow.push_back(part.speed);
  }
  std::sort(condition_.slow.begin(), condition_.slow.end());
  // Two slow parts on one GPU: the slower of each speed.
  std::vector<SlowPart> merged;
  for (const SlowPart& part : condition_.slow) {
    if (merged.empty() || merged.back().gpu != part.gpu) {
      merged.push_back(part);
      continue;
    }
    merged.back().compute_permille =
        std::min(merged.back().compute_permille, part.compute_permille);
    merged.back().nic_permille = std::min(merged.back().nic_permille, part.nic_permille);
  }
  condition_.slow = std::move(merged);
}

}  // namespace herdsim
