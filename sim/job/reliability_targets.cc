#include "sim/job/reliability_targets.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/job/campaign.h"
#include "sim/job/campaign_trace.h"
#include "sim/job/form_targets.h"
#include "sim/job/renewal_campaign.h"
#include "sim/models/clock_power.h"
#include "sim/models/queueing.h"
#include "sim/models/young_daly.h"
#include "sim/reliability/reliability_base.h"

namespace herdsim {
namespace {

using Targets = std::vector<ReliabilityTarget>;

constexpr std::string_view kLlama3 = "Llama 3, arXiv:2407.21783v3";
constexpr std::string_view kKokolis = "Kokolis et al., arXiv:2410.21680";
constexpr std::string_view kByteCheckpoint = "ByteCheckpoint, NSDI'25, Table 8";
constexpr std::string_view kHpn = "HPN, SIGCOMM'24";
constexpr std::string_view kStragglers = "Lin et al., OSDI'25";

CampaignRequest request_of(int64_t gpus, double days, int64_t replicas) {
  return {.scenario = "validation",
          .machine = {.gpus = gpus},
          .run = {.days = days, .replicas = replicas},
          .nominal_step = milliseconds(6'200),
          .data_parallel = std::max<int64_t>(1, gpus / 128),
          .tokens_per_step = 2048 * 8192};
}

RunResult run(const CampaignRequest& request, int threads) {
  const PaceOfTheSlowest model(
      {.nominal = request.nominal_step, .data_parallel = request.data_parallel});
  return run_campaign(resolve(request), model, {.threads = threads});
}

// A fleet of one failure rate, one restart time and one checkpoint cost, as the closed forms see
// it.
double simulated(std::string_view base, int64_t gpus, const CheckpointProblem& p, int threads) {
  CampaignRequest request = request_of(gpus, 200, 12);
  request.reliability.base = base;
  request.reliability.restarts_can_fail = false;
  request.reliability.corruption_detectors = {};
  request.recovery.spares = request.machine.hosts();
  request.checkpoint.interval_s = p.interval;
  request.checkpoint.storage = {
      .write_gb_per_s = 1e9,
      .read_gb_per_s = 1e9,
      .shared_cap_gb_per_s = 1e12,
      .copy_out_gb_per_s_per_gpu = p.write > 0 ? 5290.0 / static_cast<double>(gpus) / p.write : 1e9,
      .client_gb_per_s = 1e9,
      .frontend_gbit_per_s = 1e9,
      .files_per_gpu = 0};
  request.recovery.phases = {
      .diagnosis_s = p.restart, .reschedule_s = 0, .start_s = 0, .init_s = 0, .warmup_s = 0};
  request.nominal_step = milliseconds(500);
  return run(request, threads).effective_training_time();
}

double mtbf_hours(std::string_view base, int64_t gpus) {
  return 1 / unplanned_rate_per_hour(classes_of(*find_reliability_base(base)), {.gpus = gpus});
}

// The smallest share of runs, over classes of more than `above` and at most `most` events, whose
// count is in its band.
double worst_share_in_band(const RunResult& window, double above, double most) {
  double worst = 1;
  for (size_t c = 0; c < window.class_names.size(); ++c) {
    const double published =
        std::round(find_failure_class(window.class_names[c])->rate_per_hour * kLlama3GpuHours);
    if (window.class_planned[c] || published <= above || published > most) continue;
    const Band band = poisson_band(published);
    double inside = 0;
    for (const ReplicaResult& replica : window.replicas) {
      const auto count = static_cast<double>(replica.by_class[c]);
      inside += count >= band.low && count <= band.high ? 1 : 0;
    }
    worst = std::min(worst, inside / static_cast<double>(window.replicas.size()));
  }
  return worst;
}

void add_llama3(Targets& rows, int threads) {
  const RunResult window = run(request_of(16'384, 54, 1500), threads);
  const double effective = window.effective_training_time();
  rows.push_back({"llama3-unexpected", "unexpected interruptions in 54 days", 419, 419 * 0.99,
                  419 * 1.01, window.unexpected(), "", kLlama3});
  rows.push_back({"llama3-planned", "planned interruptions in 54 days", 47, 46.5, 47.5,
                  window.planned(), "", kLlama3});
  rows.push_back({"llama3-class-bands",
                  "classes of 3 or more: worst share of runs inside the 95 % band", 0.93, 0.92, 1,
                  worst_share_in_band(window, 2, 1e9), "", kLlama3});
  // Exact: a band around 2 starts above 0, and 13.5 % of Poisson numbers of mean 2 are 0.
  rows.push_back({"llama3-class-bands-of-2", "classes of 2: worst share of runs inside the band",
                  0.864, 0.83, 1, worst_share_in_band(window, 0, 2), "", "Poisson, exact"});
  rows.push_back({"llama3-mtbi-unexpected", "hours between unexpected interruptions", 3.09,
                  3.09 * 0.98, 3.09 * 1.02, 54 * 24 / window.unexpected(), "h", kLlama3});
  rows.push_back({"llama3-mtbi", "hours between interruptions", 2.78, 2.78 * 0.98, 2.78 * 1.02,
                  window.mean_time_between_interruptions_seconds() / 3600, "h", kLlama3});
  rows.push_back({"llama3-effective", "effective training time, all defaults", 0.90, 0.90, 0.95,
                  effective, "", kLlama3});
  // 3.8e25 FLOP in 30.84 M GPU-hours is 342 TFLOP/s, of 380 to 430 measured in steps: 0.80 to 0.90,
  // within 5 %.
  rows.push_back({"llama3-gpu-hours", "share of the measured step rate the whole run kept", 0.855,
                  0.76, 0.945, effective, "", "Llama 3.1 model card"});
  const auto corruption =
      std::find(window.class_names.begin(), window.class_names.end(), "silent_data_corruption");
  rows.push_back(
      {"sdc-spacing", "days between silent corruptions at 16,384", 9, 7, 14,
       54 / window.interruptions(static_cast<size_t>(corruption - window.class_names.begin())),
       "days", "Llama 3; Gemini, arXiv:2312.11805: one in 7 to 14 days"});
}

void add_fleets(Targets& rows, int threads) {
  const CheckpointProblem five{.restart = 300, .interval = 300},
      sixty{.restart = 300, .interval = 3600};
  rows.push_back({"rsc1-16k-5min", "RSC-1, 16,000 GPUs, restart and interval 5 min", 0.93, 0.92,
                  0.94, simulated("rsc-1", 16'000, five, threads), "", kKokolis});
  rows.push_back({"rsc1-16k-60min", "the same with an interval of 60 min; exact 0.72", 0.70, 0.65,
                  0.73, simulated("rsc-1", 16'000, sixty, threads), "", kKokolis});
  rows.push_back(
      {"rsc1-12k-10s", "RSC-1, 12,000 GPUs, 10 s blocked", 0.921, 0.911, 0.931,
       simulated("rsc-1", 12'000, {.restart = 300, .interval = 421, .write = 10}, threads), "",
       kKokolis});
  rows.push_back(
      {"rsc1-12k-5min", "RSC-1, 12,000 GPUs, 5 min blocked", 0.740, 0.730, 0.750,
       simulated("rsc-1", 12'000, {.restart = 300, .interval = 2305.8, .write = 300}, threads), "",
       kKokolis});
  const CheckpointProblem rf1{.mtbf = 57'600, .restart = 300, .interval = 5878.8, .write = 300};
  rows.push_back({"rf1-12k-5min", "one failure a 1,000 node-days, 12,000 GPUs, 5 min blocked",
                  0.898, 0.888, 0.908,
                  run_renewal_campaign({.problem = rf1}, threads).effective_training_time(), "",
                  kKokolis});
  rows.push_back({"rsc1-mttf-16k", "hours between failures at 16,384", 1.80, 1.764, 1.836,
                  mtbf_hours("rsc-1", 16'384), "h", kKokolis});
  rows.push_back({"rsc1-mttf-131k", "hours between failures at 131,072", 0.225, 0.2205, 0.2295,
                  mtbf_hours("rsc-1", 131'072), "h", kKokolis});
  const CheckpointProblem sync{.mtbf = 1080, .restart = 600, .interval = 60},
      ft{.mtbf = 1080, .restart = 180, .interval = 60};
  rows.push_back({"ft-hsdp-sync",
                  "100,000 GPUs, 10 min of stall; first order, outside its range (exact 0.63)",
                  0.44, 0.39, 0.49, ettr_first_order(sync), "", "FT-HSDP, arXiv:2602.00277"});
  rows.push_back({"ft-hsdp-ft", "100,000 GPUs, 3 min of stall; first order", 0.80, 0.75, 0.85,
                  ettr_first_order(ft), "", "FT-HSDP, arXiv:2602.00277"});
  // Without lost work, as the first-order figure has it.
  const auto renewal = [&](double stall) {
    return run_renewal_campaign({.problem = {.mtbf = 1080, .restart = stall, .interval = 0.1}},
                                threads)
        .effective_training_time();
  };
  rows.push_back({"ft-hsdp-sync-renewal", "the same simulated: 10 min", 0.64, 0.59, 0.69,
                  renewal(600), "", "FT-HSDP, arXiv:2602.00277; renewal reward"});
  rows.push_back({"ft-hsdp-ft-renewal", "the same simulated: 3 min", 0.86, 0.81, 0.91, renewal(180),
                  "", "FT-HSDP, arXiv:2602.00277; renewal reward"});
  rows.push_back({"opt-machines", "machines lost a day by 992 GPUs", 2, 1.5, 2.5,
                  24 / mtbf_hours("opt-175b", 992), "", "metaseq chronicles"});
  CampaignRequest links = request_of(16'384, 54, 200);
  links.reliability.base = "hpn-links";
  // 200 runs: 5 sigma of the mean.
  const RunResult lost = run(links, threads);
  rows.push_back({"hpn-links", "NIC-ToR links lost in 54 days by 16,384", 16.6, 16.6 - 1.5,
                  16.6 + 1.5, lost.interruptions(0), "", kHpn});
  rows.push_back({"hpn-tors", "ToRs lost in 54 days by 16,384", 0.93, 0.93 - 0.35, 0.93 + 0.35,
                  lost.interruptions(1), "", kHpn});
}

void add_policies(Targets& rows, int threads) {
  // Its ETTR is productive over elapsed time, slow steps included.
  CampaignRequest robust = request_of(9'600, 90, 100);
  robust.recovery.policy = "warm-standby";
  robust.checkpoint.policy = "in-memory";
  rows.push_back({"byterobust", "9,600 GPUs for 90 days, warm standby, a save every step", 0.97,
                  0.96, 0.98, run(robust, threads).kept_step_share(), "", "ByteRobust, SOSP'25"});
  CampaignRequest megascale = request_of(12'288, 54, 100);
  rows.push_back({"megascale-restarts", "days to 100 restarts above 10,000 GPUs", 19, 19 * 0.7,
                  19 * 1.3, 100 / (run(megascale, threads).unexpected() / 54), "days",
                  "MegaScale, NSDI'24: several weeks"});
  // The published pair does not say its intervals; half an hour is the old practice (ByteRobust).
  CampaignRequest remote = request_of(16'384, 54, 60);
  remote.reliability.corruption_detectors = {};
  remote.checkpoint.interval_s = 1800;
  rows.push_back({"gemini-remote", "remote checkpoints every 30 min", 0.85, 0.82, 0.88,
                  run(remote, threads).effective_training_time(), "", "Gemini, arXiv:2312.11805"});
  CampaignRequest memory = remote;
  memory.recovery.policy = "local-rollback";
  memory.checkpoint.policy = "peer-replica";
  rows.push_back({"gemini-memory", "state from a peer's memory", 0.97, 0.94, 1.0,
                  run(memory, threads).effective_training_time(), "", "Gemini, arXiv:2312.11805"});
}

void add_stragglers(Targets& rows) {
  const SlowComponent& job = *find_slow_component("job_slowdown");
  constexpr int kPoints = 50'000;
  std::vector<double> waste;
  double mean = 0, slow = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double s = 1 + job.draw_slowdown(1 - (i + 0.5) / kPoints);
    waste.push_back(1 - 1 / s);
    mean += waste.back() / kPoints;
    slow += s >= 1.1 ? 1.0 / kPoints : 0;
  }
  rows.push_back({"straggling-jobs", "jobs slower by 10 % or more", 0.425, 0.415, 0.435, slow, "",
                  kStragglers});
  rows.push_back({"straggler-waste-p50", "time wasted, median", 0.078, 0.073, 0.083,
                  waste[kPoints / 2], "", kStragglers});
  rows.push_back({"straggler-waste-p90", "time wasted, 90th percentile", 0.213, 0.198, 0.228,
                  waste[kPoints * 9 / 10], "", kStragglers});
  rows.push_back({"straggler-waste-p99", "time wasted, 99th percentile", 0.450, 0.420, 0.480,
                  waste[kPoints * 99 / 100], "", kStragglers});
  rows.push_back(
      {"straggler-waste-mean", "GPU-hours wasted", 0.104, 0.099, 0.109, mean, "", kStragglers});
  const ClockPowerModel model{.leakage_w = kDiurnalLeakageW,
                              .leakage_per_kelvin = kDiurnalLeakagePerKelvin};
  const double swing = (kDiurnalSwingLowKelvin + kDiurnalSwingHighKelvin) / 2;
  rows.push_back({"diurnal", "daily swing of throughput", 0.015, 0.01, 0.02,
                  diurnal_amplitude(model, swing), "", kLlama3});
}

// 1.33 % of the nodes carry 10 of 14 failures; jobs of 512 GPUs that fail in 4 % of cases without
// them.
void add_lemons(Targets& rows, int threads) {
  CampaignRequest job = request_of(512, -std::log1p(-0.04) / 64 / (6.5 / 1000), 4000);
  job.reliability.base = "rsc-1";
  job.recovery.spares = 64;
  const auto failing = [&](double share) {
    job.reliability.lemon_share = share;
    job.reliability.lemon_factor = 190;
    double failed = 0;
    for (const ReplicaResult& replica : run(job, threads).replicas)
      failed += replica.by_class[0] > 0 ? 1.0 / 4000 : 0;
    return failed;
  };
  rows.push_back({"lemons", "jobs of 512 GPUs that fail, before lemons were removed", 0.14, 0.12,
                  0.16, failing(40.0 / 3000), "", kKokolis});
  rows.push_back({"lemons-removed", "and after", 0.04, 0.02, 0.06, failing(0), "", kKokolis});
}

void add_checkpoints(Targets& rows, int threads) {
  const CheckpointSize at_8960{.total = gigabytes(5'290), .gpus = 8'960};
  const CheckpointTier tier = plan_checkpoints(*find_checkpoint_policy("async"), seconds(300),
                                               at_8960, StorageModel{}, seconds(6))
                                  .tiers[0];
  const auto within_15_percent = [&](std::string_view id, std::string_view what, double published,
                                     Duration predicted) {
    rows.push_back({id, what, published, published * 0.85, published * 1.15, predicted.seconds(),
                    "s", kByteCheckpoint});
  };
  within_15_percent("405b-block", "405B on 8,960 GPUs: training stopped", 0.59, tier.block);
  within_15_percent("405b-save", "until durable", 51.06, tier.persist);
  within_15_percent("405b-load", "load", 129.49, tier.load);
  CampaignRequest bloom = request_of(384, 10, 1);
  bloom.reliability.base = "none";
  bloom.nominal_step = seconds(105);
  bloom.checkpoint = {.policy = "sync", .interval_s = 3 * 3600, .bytes = gigabytes(2'300)};
  bloom.checkpoint.storage.measured_block_s = 40;
  rows.push_back({"bloom-saves", "share of the time: 40 s in every 3 h", 0.0037, 0.0035, 0.0039,
                  1 - run(bloom, threads).effective_training_time(), "", "BLOOM chronicles"});
}

// Between failures that strike the job, whatever it does, over 60 windows in a row.
GapShape gaps_of_a_long_run(CampaignRequest request) {
  request.run = {.days = 54 * 60, .replicas = 1};
  CampaignTrace trace;
  const PaceOfTheSlowest model(
      {.nominal = request.nominal_step, .data_parallel = request.data_parallel});
  run_campaign(resolve(request), model, {.trace = &trace});
  std::vector<double> gaps;
  std::optional<Instant> last;
  for (const CampaignTrace::Incident& incident : trace.incidents) {
    if (!incident.stops || incident.planned) continue;
    if (last) gaps.push_back((incident.at - *last).seconds());
    last = incident.at;
  }
  return shape_of_gaps(gaps);
}

// Failures that repeat: the gaps of one long run, and the counts of many.
void add_repeats(Targets& rows, int threads) {
  CampaignRequest clustered = request_of(16'384, 54, 200);
  clustered.reliability.law = "clustered";
  const RunResult result = run(clustered, threads);
  const GapShape gaps = gaps_of_a_long_run(clustered);
  rows.push_back({"clustered-shape", "Weibull shape of the gaps, repeats with probability 1/4",
                  0.75, 0.72 - 0.05, 0.78 + 0.05, gaps.weibull_k, "",
                  "Titan's logs, SC'20: 0.72 to 0.78"});
  rows.push_back({"clustered-variation", "variation of the gaps", 1.2, 1.1 - 0.05, 1.3 + 0.05,
                  gaps.variation, "", "Titan's logs, SC'20: 1.1 to 1.3"});
  double mean = 0, square = 0;
  for (const ReplicaResult& replica : result.replicas) {
    double count = -static_cast<double>(replica.planned);
    for (const int64_t c : replica.by_class) count += static_cast<double>(c);
    mean += count / 200;
    square += count * count / 200;
  }
  rows.push_back({"clustered-dispersion",
                  "variance over mean of the count, repeats with probability 1/4", 1.78, 1.3, 2.3,
                  (square - mean * mean) / mean, "", "branching process, exact 1/(1 - 1/4)^2"});
}

}  // namespace

std::vector<ReliabilityTarget> reliability_targets(int threads) {
  Targets rows;
  add_llama3(rows, threads);
  add_fleets(rows, threads);
  add_policies(rows, threads);
  add_stragglers(rows);
  add_lemons(rows, threads);
  add_checkpoints(rows, threads);
  add_repeats(rows, threads);
  append_form_targets(rows, threads);
  return rows;
}

}  // namespace herdsim
