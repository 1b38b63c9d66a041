#include "sim/job/form_targets.h"

#include <algorithm>
#include <cmath>

#include "sim/job/campaign.h"
#include "sim/job/renewal_campaign.h"
#include "sim/models/gaussian.h"
#include "sim/models/queueing.h"
#include "sim/models/young_daly.h"

namespace herdsim {
namespace {

using Targets = std::vector<ReliabilityTarget>;

constexpr std::string_view kRenewal = "renewal reward";

Estimate simulate(const RenewalCampaign& campaign, int threads) {
  return effective_training_time_of(run_renewal_campaign(campaign, threads));
}

// Long intervals spread most.
double failures_for(const CheckpointProblem& p) { return p.interval >= 1800 ? 120'000 : 15'000; }

// False alarms: 28 two-sided comparisons at 4 sigma, 2e-3 for a seed; it is fixed.
void add_reference(Targets& rows, int threads) {
  double agree = 0, worst = 0, worst_failing = 0;
  for (const ReferencePoint& point : reference_points()) {
    const CheckpointProblem& p = point.problem;
    const RenewalCampaign campaign{.problem = p, .failures = failures_for(p)};
    const Estimate ours = simulate(campaign, threads);
    const double sigma = std::hypot(ours.standard_error, point.monte_carlo_error);
    const double off = std::abs(ours.mean / ettr_exact(p) - 1);
    agree += std::abs(ours.mean - point.monte_carlo) <= 4 * sigma || off <= 0.003 ? 1 : 0;
    worst = std::max(worst, off);
    RenewalCampaign failing = campaign;
    failing.restarts_can_fail = true;
    const double with = simulate(failing, threads).mean;
    worst_failing = std::max(worst_failing, std::abs(with / ettr_exact_failing_restarts(p) - 1));
  }
  rows.push_back({"reference-points",
                  "of 28 points, within 4 sigma of their Monte Carlo or 0.3 % of the exact form",
                  28, 28, 28, agree, "", "independent Monte Carlo"});
  rows.push_back({"reference-exact", "largest distance of the 28 from the exact form", 0, 0, 0.003,
                  worst, "", kRenewal});
  rows.push_back({"reference-exact-failing", "the same where restarts can fail", 0, 0, 0.003,
                  worst_failing, "", kRenewal});
}

// Failures that spare the hosts find their snapshot on the local disks, the others in the remote
// store: form 5, first order.
void add_tiers(Targets& rows, int threads) {
  constexpr double kRate = 0.05;  // an hour, of each kind: rare, as the form wants
  CampaignRequest request{.scenario = "tiers", .machine = {.gpus = 16'384}};
  request.reliability.base = "none";
  request.reliability.classes = {
      {.name = "software_bug", .rate_per_hour = kRate / 16'384, .detection_s = 0},
      {.name = "cpu", .rate_per_hour = kRate / 16'384, .detection_s = 0}};
  request.reliability.restarts_can_fail = false;
  request.checkpoint.policy = "local-disk";
  request.recovery.spares = 2048;
  request.nominal_step = seconds(2);
  request.data_parallel = 128;
  request.run = {.days = 54, .replicas = 40};
  const CampaignSpec spec = resolve(request);
  const RunResult result =
      run_campaign(spec, PaceOfTheSlowest({.nominal = request.nominal_step}), {.threads = threads});
  std::vector<CheckpointTierProblem> tiers;
  for (const CheckpointTier& tier : spec.checkpoints.tiers) {
    const PhaseTimes& phases = request.recovery.phases;
    tiers.push_back(
        {.problem = {.mtbf = 3600 / kRate,
                     .restart = phases.diagnosis_s + phases.reschedule_s + phases.start_s +
                                phases.init_s + phases.warmup_s + tier.load.seconds(),
                     .interval = 2.0 * static_cast<double>(tier.period_steps),
                     .write = tier.block.seconds(),
                     .persist = tier.persist.seconds()}});
  }
  // 5,000 failures: 4 sigma of their loss is 6 % of it.
  const double loss = tiered_loss(tiers);
  rows.push_back({"form-tiers", "lost with local disks and a remote store", loss, 0.94 * loss,
                  1.06 * loss, 1 - result.effective_training_time(), "",
                  "sum over tiers, first order"});
}

// Failures, lasting slowness and the day's heat multiply.
void add_composition(Targets& rows, int threads) {
  CampaignRequest request{.scenario = "composition", .machine = {.gpus = 16'384}};
  request.reliability.base = "rsc-1";
  request.recovery.spares = 2048;
  request.nominal_step = seconds(6);
  request.data_parallel = 128;
  request.run = {.days = 5, .replicas = 2000};
  const auto effective = [&] {
    return run_campaign(resolve(request),
                        PaceOfTheSlowest({.nominal = request.nominal_step, .network_share = 0}),
                        {.threads = threads})
        .effective_training_time();
  };
  const double failures = effective();
  request.reliability.slow = {{.name = "diurnal_clock"}, {.name = "job_slowdown"}};
  const double all = effective();
  request.reliability.base = "none";
  const double slowness = effective();
  rows.push_back({"form-composition", "failures, stragglers and heat together, over their product",
                  1, 0.99, 1.01, all / (failures * slowness), "", "product of the three"});
}

void add_corruption(Targets& rows, int threads) {
  CampaignRequest request{.scenario = "corruption", .machine = {.gpus = 16'384}};
  request.reliability.base = "none";
  request.reliability.classes = {{.name = "silent_data_corruption", .scale = 20.0 / 6}};
  request.nominal_step = milliseconds(6'200);
  request.data_parallel = 128;
  request.run = {.days = 54, .replicas = 600};
  const RunResult result = run_campaign(
      resolve(request), PaceOfTheSlowest({.nominal = request.nominal_step}), {.threads = threads});
  const double lost = result.time_account_seconds()[static_cast<size_t>(RunTerm::kLostWork)];
  const double form = corruption_loss({.interval = 300}, 4 * 3600);
  // 12,000 latencies whose spread is 2.9 times their mean: 4 sigma is 11 %.
  rows.push_back({"form-corruption", "work lost to one silent corruption: latency and half a save",
                  form, form * 0.89, form * 1.11, lost / result.interruptions(0), "s",
                  "latency + interval / 2"});
}

void add_delay(Targets& rows, int threads) {
  const CheckpointProblem with{
      .mtbf = 11'135, .restart = 300, .interval = 600, .write = 0.5, .persist = 300};
  CheckpointProblem without = with;
  without.persist = 0;
  const double form = ettr_first_order(without) - ettr_first_order(with);
  const double gap =
      simulate({.problem = without}, threads).mean - simulate({.problem = with}, threads).mean;
  rows.push_back({"form-async", "lost to snapshots that are durable 300 s late", form, form * 0.88,
                  form * 1.12, gap, "", "P more than D/2, first order"});
}

void add_replica_level(Targets& rows, int threads) {
  CampaignRequest request{.scenario = "replica-level", .machine = {.gpus = 16'384}};
  request.reliability.base = "none";
  request.reliability.classes = {{.name = "cpu", .rate_per_hour = 1.0 / 16'384}};
  request.recovery.spares = 400;
  request.recovery.policy = "replica-level";
  request.nominal_step = milliseconds(6'200);
  request.data_parallel = 128;
  request.run = {.days = 54, .replicas = 40};
  const RunResult result = run_campaign(
      resolve(request), PaceOfTheSlowest({.nominal = request.nominal_step, .data_parallel = 128}),
      {.threads = threads});
  const double restart = 180 + 60 + 30 + 60 + 129, stall = 10 + 120 + 30;
  const double form = ettr_replica_level({.mtbf = 3600, .restart = restart}, stall, 128);
  // Half a step and the second regroup of a returning replica are not in the form.
  rows.push_back({"form-replica-level", "one replica of 128 restarts: effective training time",
                  form, form - 0.016, form, result.effective_training_time(), "",
                  "1 - (s + u / replicas) / M"});
}

// Printed points of forms that need no campaign.
void add_points(Targets& rows) {
  double worst = 0;
  for (const auto& [write, printed] :
       {std::pair{0.6, 116.0}, {10, 472}, {30, 817}, {51, 1066}, {300, 2585}}) {
    worst =
        std::max(worst, std::abs(young_interval({.mtbf = 11'135, .write = write}) / printed - 1));
  }
  rows.push_back({"form-young", "Young's interval at five write times: largest distance", 0, 0,
                  0.005, worst, "", "Young 1974, sqrt(2 w M)"});
  rows.push_back({"form-period", "period that counts the write: M 6,000 s, u 600 s, w 10 s", 373.5,
                  373.4, 373.6, period_including_write({.mtbf = 6000, .restart = 600, .write = 10}),
                  "s", "SPARe, arXiv:2603.00357"});
  rows.push_back({"form-slowest", "slowest of 16,384 normal GPUs, in sigma", 3.95, 3.91, 3.99,
                  expected_normal_maximum(16'384), "", "order statistics"});
  const double away = 2048 * 3.79 / 1000 / 24 * 40.4;
  rows.push_back({"form-spares", "hosts away, 99 % of the time at most: 2,048 at 3.79", 22, 22, 22,
                  static_cast<double>(poisson_quantile(away, 0.99)), "hosts", "M/G/infinity"});
  rows.push_back({"form-storage", "wait for a store: a save of 60 s every 100 s, both at random",
                  122.3, 122.2, 122.4,
                  shared_storage_wait(0.01, 60, lognormal_squared_variation(1)), "s",
                  "M/G/1, Pollaczek-Khinchine"});
}

}  // namespace

void append_form_targets(Targets& rows, int threads) {
  add_reference(rows, threads);
  add_delay(rows, threads);
  add_tiers(rows, threads);
  add_replica_level(rows, threads);
  add_corruption(rows, threads);
  add_composition(rows, threads);
  add_points(rows);
}

}  // namespace herdsim
