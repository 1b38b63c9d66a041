#include "sim/job/campaign.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "sim/job/replica.h"

namespace herdsim {
namespace {

std::vector<ReplicaResult> run_replicas(const CampaignSpec& spec, MemoisedStepTime& step_time,
                                        const CampaignOptions& options) {
  const int64_t count = spec.request.replicas;
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

// Mean and standard error of the paired differences in effective training time.
Contribution compared(std::string name, const std::vector<ReplicaResult>& changed,
                      const std::vector<ReplicaResult>& base) {
  const auto n = static_cast<double>(base.size());
  double mean_changed = 0, mean = 0, square = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    const double difference =
        changed[i].effective_training_time() - base[i].effective_training_time();
    mean_changed += changed[i].effective_training_time() / n;
    mean += difference / n;
    square += difference * difference / n;
  }
  const double variance = std::max(0.0, square - mean * mean);
  return {.name = std::move(name),
          .if_halved = mean_changed,
          .gain = mean,
          .gain_stderr = std::sqrt(variance / n)};
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

RunResult run_campaign(const CampaignSpec& spec, const StepTimeModel& model,
                       const CampaignOptions& options) {
  MemoisedStepTime step_time(model);
  RunResult result;
  result.scenario = spec.request.scenario;
  result.gpus = spec.request.machine.gpus;
  for (const CampaignClass& c : spec.classes) {
    result.class_names.emplace_back(c.row.name);
    result.class_planned.push_back(c.row.effect == Effect::kPlannedStop);
  }
  result.nominal_step = step_time(Condition{});
  result.tokens_per_step = spec.request.tokens_per_step;
  result.warnings = spec.warnings;
  result.replicas = run_replicas(spec, step_time, options);
  result.distinct_conditions = static_cast<int64_t>(step_time.distinct_conditions());
  warn_about(spec, result);
  return result;
}

void rank_contributions(const CampaignSpec& spec, const StepTimeModel& model,
                        const CampaignOptions& options, RunResult& result) {
  MemoisedStepTime step_time(model);
  CampaignOptions silent = options;
  silent.trace = nullptr;
  silent.progress = {};
  for (size_t i = 0; i < spec.classes.size(); ++i) {
    CampaignSpec changed = spec;
    changed.classes[i].scale /= 2;
    result.contributions.push_back(compared(std::string(spec.classes[i].row.name),
                                            run_replicas(changed, step_time, silent),
                                            result.replicas));
  }
  for (size_t i = 0; i < spec.slow.size(); ++i) {
    CampaignSpec changed = spec;
    changed.slow[i].scale /= 2;
    result.contributions.push_back(compared(std::string(spec.slow[i].row.name),
                                            run_replicas(changed, step_time, silent),
                                            result.replicas));
  }
  std::stable_sort(result.contributions.begin(), result.contributions.end(),
                   [](const Contribution& a, const Contribution& b) { return a.gain > b.gain; });
}

CampaignSpec without_stragglers(const CampaignSpec& spec) {
  CampaignSpec changed = spec;
  for (CampaignSlow& slow : changed.slow) {
    if (slow.row.kind != SlowKind::kDiurnalClock) slow.scale = 0;
  }
  return changed;
}

}  // namespace herdsim
