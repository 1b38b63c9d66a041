#include "sim/job/campaign.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "sim/job/replica.h"
#include "sim/models/young_daly.h"

namespace herdsim {
namespace {

// `count` replicas, the first of the campaign's.
std::vector<ReplicaResult> run_replicas(const CampaignSpec& spec, const StepTimeModel& step_time,
                                        const CampaignOptions& options, int64_t count) {
  std::vector<ReplicaResult> results(static_cast<size_t>(count));
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  int64_t done = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) {
      try {
        Replica replica(spec, step_time, static_cast<uint64_t>(i),
                        i == 0 ? options.trace : nullptr);
        results[static_cast<size_t>(i)] = replica.run();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
        return;
      }
      const std::lock_guard lock(mutex);
      ++done;
      if (options.progress) options.progress(done, count);
    }
  };
  {
    const auto extra = std::clamp<int64_t>(options.threads, 1, count) - 1;
    std::vector<std::jthread> pool;
    for (int64_t i = 0; i < extra; ++i) pool.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  return results;
}

// Mean and standard error of the paired differences in effective training time, over as many
// replicas as were run again.
Contribution compared(std::string name, const std::vector<ReplicaResult>& changed,
                      const std::vector<ReplicaResult>& base) {
  const auto n = static_cast<double>(changed.size());
  double mean_changed = 0, mean = 0, square = 0;
  for (size_t i = 0; i < changed.size(); ++i) {
    const double difference =
        changed[i].effective_training_time() - base[i].effective_training_time();
    mean_changed += changed[i].effective_training_time() / n;
    mean += difference / n;
    square += difference * difference / n;
  }
  const double variance = std::max(0.0, square - mean * mean);
  return {.name = std::move(name),
          .if_changed = mean_changed,
          .gain = mean,
          .gain_stderr = n > 1 ? std::sqrt(variance / (n - 1)) : 0,
          .replicas = static_cast<int64_t>(changed.size())};
}

// Of the way up after an unplanned stop, without lost work: mean over classes by their rates.
double mean_restart_seconds(const CampaignSpec& spec, Duration load) {
  const PhaseTimes& p = spec.request.recovery.phases;
  double rate = 0, detection = 0, diagnosis = 0;
  for (const CampaignClass& c : spec.classes) {
    if (c.row.effect != Effect::kStop) continue;
    const FailureDomains& machine = spec.request.machine;
    const double r = c.row.rate_per_hour * c.scale * static_cast<double>(machine.units(c.row.per)) *
                     stopping_share(c.row, machine, spec.recovery.rail_failover);
    rate += r;
    detection += r * c.row.detection.mean_seconds;
    diagnosis += r * (c.row.diagnosis_seconds >= 0 ? c.row.diagnosis_seconds : p.diagnosis_s);
  }
  if (rate <= 0) return 0;
  const RecoveryPolicy& policy = spec.recovery;
  return (detection + diagnosis * policy.diagnosis) / rate + p.reschedule_s * policy.reschedule +
         p.start_s * policy.start + p.init_s * policy.init + p.warmup_s * policy.warmup +
         load.seconds();
}

bool is_straggler(const CampaignSlow& slow) {
  return slow.row.kind != SlowKind::kDiurnalClock && slow.scale > 0;
}

// Their names, "" without any.
std::string stragglers_of(const CampaignSpec& spec) {
  std::string names;
  for (const CampaignSlow& slow : spec.slow) {
    if (is_straggler(slow)) names += (names.empty() ? "" : ", ") + std::string(slow.row.name);
  }
  return names;
}

void warn_about(const CampaignSpec& spec, RunResult& result) {
  for (const ReplicaResult& replica : result.replicas) {
    if (spec.target_steps > 0 && replica.steps < spec.target_steps &&
        replica.horizon < spec.horizon) {
      result.warnings.push_back(
          "run.tokens: given up after 100 times the time without failures; the job does not get "
          "there");
      return;
    }
  }
}

}  // namespace

std::optional<CheckpointFigures> checkpoint_figures(const CampaignSpec& spec, Duration step) {
  const auto remote =
      std::find_if(spec.checkpoints.tiers.begin(), spec.checkpoints.tiers.end(),
                   [](const CheckpointTier& tier) { return tier.medium == Medium::kRemote; });
  if (remote == spec.checkpoints.tiers.end()) return std::nullopt;
  CheckpointFigures figures{.policy = spec.request.checkpoint.policy,
                            .rule = spec.request.checkpoint.rule,
                            .bytes = spec.request.checkpoint.bytes,
                            .interval_steps = remote->period_steps,
                            .interval_s = (step * remote->period_steps).seconds(),
                            .block_s = remote->block.seconds(),
                            .save_s = (remote->block + remote->persist).seconds(),
                            .load_s = remote->load.seconds()};
  for (const CheckpointTier& tier : spec.checkpoints.tiers) {
    figures.tiers.push_back({.medium = std::string(kMediumNames[static_cast<size_t>(tier.medium)]),
                             .every_steps = tier.period_steps,
                             .load_s = tier.load.seconds()});
  }
  figures.hbm_a_gpu = spec.checkpoints.hbm_a_gpu;
  const double rate = spec.unplanned_rate_per_hour();
  if (rate <= 0) return figures;
  const CheckpointProblem problem{.mtbf = 3600 / rate,
                                  .restart = mean_restart_seconds(spec, remote->load),
                                  .interval = figures.interval_s,
                                  .write = figures.block_s,
                                  .persist = remote->persist.seconds()};
  figures.restart_s = problem.restart;
  figures.young_s = young_interval(problem);
  figures.daly_s = daly_interval(problem);
  figures.young_with_restart_s = young_interval_with_restart(problem);
  figures.period_including_write_s = period_including_write(problem);
  figures.effective_first_order = ettr_first_order(problem);
  return figures;
}

RunResult run_campaign(const CampaignSpec& spec, const StepTimeModel& step_time,
                       const CampaignOptions& options) {
  RunResult result;
  result.scenario = spec.request.scenario;
  result.gpus = spec.request.machine.gpus;
  for (const CampaignClass& c : spec.classes) {
    result.class_names.emplace_back(c.row.name);
    result.class_planned.push_back(c.row.effect == Effect::kPlannedStop);
  }
  result.nominal_step = step_time.step_time(Condition{});
  result.expected_rate_per_hour = spec.unplanned_rate_per_hour();
  result.checkpoint = checkpoint_figures(spec, result.nominal_step);
  result.tokens_per_step = spec.request.tokens_per_step;
  result.target_tokens = spec.request.run.tokens;
  result.warnings = spec.warnings;
  result.replicas = run_replicas(spec, step_time, options, spec.request.run.replicas);
  warn_about(spec, result);
  return result;
}

int64_t ranked_replicas(const CampaignSpec& spec) {
  return std::min(spec.request.run.replicas, kMostRankedReplicas);
}

int64_t ranked_campaigns(const CampaignSpec& spec) {
  const auto rows = static_cast<int64_t>(spec.classes.size() + spec.slow.size());
  return rows + (stragglers_of(spec).empty() ? 0 : 1);
}

void rank_contributions(const CampaignSpec& spec, const StepTimeModel& step_time,
                        const CampaignOptions& options, RunResult& result) {
  const int64_t count = ranked_replicas(spec);
  int64_t before = 0;
  const int64_t rows = ranked_campaigns(spec);
  CampaignOptions inner{.threads = options.threads};
  if (options.progress) {
    inner.progress = [&](int64_t done, int64_t) { options.progress(before + done, rows * count); };
  }
  const auto contribution = [&](std::string name, const CampaignSpec& changed) {
    const Contribution part =
        compared(std::move(name), run_replicas(changed, step_time, inner, count), result.replicas);
    before += count;
    return part;
  };
  for (size_t i = 0; i < spec.classes.size(); ++i) {
    CampaignSpec changed = spec;
    changed.classes[i].scale /= 2;
    result.contributions.push_back(contribution(spec.classes[i].row.name, changed));
  }
  for (size_t i = 0; i < spec.slow.size(); ++i) {
    CampaignSpec changed = spec;
    changed.slow[i].scale /= 2;
    result.contributions.push_back(contribution(std::string(spec.slow[i].row.name), changed));
  }
  if (const std::string names = stragglers_of(spec); !names.empty())
    result.without_stragglers = contribution(names, without_stragglers(spec));
  std::stable_sort(result.contributions.begin(), result.contributions.end(),
                   [](const Contribution& a, const Contribution& b) { return a.gain > b.gain; });
}

CampaignSpec without_stragglers(const CampaignSpec& spec) {
  CampaignSpec changed = spec;
  for (CampaignSlow& slow : changed.slow) {
    if (is_straggler(slow)) slow.scale = 0;
  }
  return changed;
}

}  // namespace herdsim
