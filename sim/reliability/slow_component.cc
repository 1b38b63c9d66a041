#include "sim/reliability/slow_component.h"

namespace herdsim {
namespace {

constexpr std::string_view kGreyhound =
    "Greyhound, ATC'25, incidence, mean duration and delay; one such job a day and sigma 1.2 are "
    "assumed";

constexpr RandomDuration lasting(double mean_seconds) {
  return {.shape = DurationShape::kLognormal, .mean_seconds = mean_seconds, .parameter = 1.2};
}

// Jobs that met at least one episode, as a Poisson rate an hour of a one-day job.
constexpr double kEpisodesSingleNode = 0.0154 / 24;  // -ln(1 - 6/392)
constexpr double kEpisodesFourNodes = 0.498 / 24;    // -ln(1 - 42/107)
constexpr double kEpisodesLarge = 0.898 / 24;        // -ln(1 - 16/27)

std::vector<SlowComponent> make_rows() {
  return {
      {.name = "diurnal_clock",
       .help = "afternoon heat lowers every clock",
       .kind = SlowKind::kDiurnalClock,
       .source = "Llama 3, arXiv:2407.21783v3, 3.3.4: 1-2 % daily; mechanism by POLCA's power law, "
                 "leakage assumed"},
      {.name = "silicon_spread",
       .help = "GPU speeds spread normally; the slowest of all sets the pace",
       .kind = SlowKind::kSiliconSpread,
       .mean_slowdown = 0.01,
       .evidence = Evidence::kAssumed,
       .source = "assumed 1 %; SC'22 arXiv:2208.11035 finds 8 % between extremes"},
      {.name = "slow_hosts",
       .help = "a few hosts are slower from the start",
       .kind = SlowKind::kSlowHosts,
       .per = Exposure::kHost,
       .share = 0.005,
       .mean_slowdown = 0.10,
       .source = "MegaScale, NSDI'24: about 0.5 % of machines, 10 % on the forward pass"},
      {.name = "bad_worker",
       .help = "one badly broken worker in the job",
       .kind = SlowKind::kSlowHosts,
       .per = Exposure::kJob,
       .share = 0.0072,
       .mean_slowdown = 2.04,
       .source = "OSDI'25 Lin et al.: 1.7 % of the 42.5 % straggling jobs, mean slowdown 3.04"},
      {.name = "fail_slow_compute",
       .help = "one GPU slow for minutes",
       .kind = SlowKind::kEpisodes,
       .per = Exposure::kHost,
       .rate_per_hour = kEpisodesSingleNode,
       .duration = lasting(600),
       .mean_slowdown = 0.1179,
       .sigma = 0.5,
       .evidence = Evidence::kAssumed,
       .source = kGreyhound},
      {.name = "fail_slow_network",
       .help = "one NIC slow for minutes (shared fabric)",
       .kind = SlowKind::kEpisodes,
       .per = Exposure::kJob,
       .rate_per_hour = kEpisodesFourNodes,
       .duration = lasting(1440),
       .mean_slowdown = 0.1545,
       .sigma = 0.5,
       .network = true,
       .evidence = Evidence::kAssumed,
       .source = kGreyhound},
      {.name = "fail_slow_large_job",
       .help = "any part of a large job slow for an hour",
       .kind = SlowKind::kEpisodes,
       .per = Exposure::kJob,
       .rate_per_hour = kEpisodesLarge,
       .duration = lasting(4320),
       .mean_slowdown = 0.3459,
       .sigma = 0.5,
       .evidence = Evidence::kAssumed,
       .source = kGreyhound},
      {.name = "job_slowdown",
       .help = "imbalance and other lasting causes, whole jobs",
       .kind = SlowKind::kWholeJob,
       .mean_slowdown = 0.1316,
       .sigma = 0.94,
       .source = "OSDI'25 Lin et al., 3,079 jobs: S - 1 lognormal, mu -2.47, sigma 0.94 fits its "
                 "five quantiles"},
      {.name = "unplanned_gc",
       .help = "garbage collection not synchronised between workers",
       .kind = SlowKind::kWholeJob,
       .mean_slowdown = 0.126,
       .source = "OSDI'25 Lin et al.: planned collection gained 12.6 % at 128 data-parallel ranks"},
  };
}

}  // namespace

double SlowComponent::draw_slowdown(double u) const {
  const RandomDuration law{
      .shape = sigma > 0 ? DurationShape::kLognormal : DurationShape::kConstant,
      .mean_seconds = mean_slowdown,
      .parameter = sigma};
  return law.draw_seconds(u);
}

const std::vector<SlowComponent>& slow_components() {
  static const std::vector<SlowComponent> rows = make_rows();
  return rows;
}

const SlowComponent* find_slow_component(std::string_view name) {
  for (const SlowComponent& row : slow_components()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace herdsim
