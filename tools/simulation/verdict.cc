#include "tools/simulation/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/text.h"
#include "sim/metrics/term_labels.h"
#include "tools/simulation/explanation.h"
#include "tools/simulation/path_summary.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

class Judge {
 public:
  Judge(const Scenario& scenario, const StepSimulation& step)
      : scenario_(scenario),
        step_(step),
        explained_(explain_step(scenario, step)),
        path_(path_summary(step)) {}

  Verdict judge() {
    if (!step_.result.jobs.empty()) return sharing();
    if (!step_.result.storage.empty()) return beside_storage();
    if (step_.without.empty()) return products();
    const StepWithout& most = step_.without.front();
    out_.gain = 1 - most.step.seconds() / whole();
    if (out_.gain < kLeastGain) return products();
    out_.term = most.term;
    out_.of_step = share(most.term);
    out_.sentence = sentence_of(most.term);
    return std::move(out_);
  }

 private:
  double whole() const { return step_.result.step_time.seconds(); }
  double share(TimeTerm term) const {
    return step_.result.time_account_seconds()[static_cast<size_t>(term)] / whole();
  }

  // Nothing is taken away from a job among others to see what the step would be.
  Verdict sharing() {
    const Duration alone = step_.result.jobs.front().alone;
    const size_t others = step_.result.jobs.size() - 1;
    out_.term = TimeTerm::kOther;
    out_.gain = out_.of_step = 1 - alone.seconds() / whole();
    out_.sentence = fmt::format(
        "Beside {} other job{} the step takes {}, alone {}: sharing takes {} of it. What limits "
        "the rest is answered of the job alone: leave out other_jobs.",
        others, others == 1 ? "" : "s", to_text(step_.result.step_time), to_text(alone),
        percent(out_.gain));
    return std::move(out_);
  }

  Verdict beside_storage() {
    const Duration without = step_.result.without_storage;
    out_.term = TimeTerm::kOther;
    out_.gain = out_.of_step = 1 - without.seconds() / whole();
    out_.sentence = fmt::format(
        "Beside what goes to the store and comes from it the step takes {}, without {}: that takes "
        "{} of it. What limits "
        "the rest is answered of the step alone: leave out other_traffic.saving and loading.",
        to_text(step_.result.step_time), to_text(without), percent(out_.gain));
    return std::move(out_);
  }

  std::string sentence_of(TimeTerm term) const {
    switch (term) {
      case TimeTerm::kExposedTp:
        return transfers("TP", term);
      case TimeTerm::kExposedCp:
        return transfers("CP", term);
      case TimeTerm::kExposedEp:
        return transfers("EP", term);
      case TimeTerm::kExposedPp:
        return transfers("PP", term);
      case TimeTerm::kExposedDp:
        return transfers("DP", term);
      case TimeTerm::kBubble:
        return bubble();
      case TimeTerm::kMemoryBound:
      case TimeTerm::kOptimizer:
        return streams(term);
      case TimeTerm::kStraggler:
        return stragglers();
      case TimeTerm::kLoader:
        return loader();
      case TimeTerm::kOther:
      case TimeTerm::kCompute:
        break;
    }
    return host();
  }

  // The transfer of this kind that takes most of the path, with the rate that it reached there.
  std::string transfers(std::string_view axis, TimeTerm term) const {
    const auto named = [axis](const std::string& name) {
      return name.find(axis) == std::string::npos ? fmt::format("{} {}", axis, name) : name;
    };
    std::string moves;
    const auto say = [&](const ExplainedTransfer& t, double reached) {
      moves = fmt::format("{} reaches {} of {} GB/s of {}{}; ", named(t.name), rate_text(reached),
                          rate_text(t.bound_gigabytes),
                          t.group.nodes == 1 ? "NVLink" : "the network", slow_nic(t.group));
    };
    for (const PathLine& line : path_.lines) {
      if (line.term != term || !line.transfer || !moves.empty()) continue;
      for (const ExplainedTransfer& t : explained_.transfers) {
        if (t.name != line.what || !moves.empty()) continue;
        // Contention makes it slower than it would be alone.
        say(t, t.bus_gigabytes * line.alone.seconds() / line.time.seconds());
      }
    }
    // Where the path has none of them, what it would reach alone.
    for (const ExplainedTransfer& t : explained_.transfers) {
      if (moves.empty() && t.exposed_as == term) say(t, t.bus_gigabytes);
    }
    return fmt::format(
        "{}waiting for {} takes {} of the step, and hiding all of it would make the step {} "
        "shorter at most.",
        moves, axis, percent(share(term)), percent(out_.gain));
  }

  // The slowest NIC that is degraded: a collective across hosts runs at its pace.
  std::string slow_nic(const GroupShape& group) const {
    const Degradation* slowest = nullptr;
    for (const Degradation& part : scenario_.cluster.degraded) {
      if (part.gpu < 0 || part.nic_factor >= 1) continue;
      if (slowest == nullptr || part.nic_factor < slowest->nic_factor) slowest = &part;
    }
    if (slowest == nullptr || group.nodes == 1) return "";
    return fmt::format(", with the NIC of rank {} at {:.0f} %", slowest->gpu,
                       100 * slowest->nic_factor);
  }

  std::string bubble() const {
    const ScheduleShape shape = schedule_shape(scenario_.plan, scenario_.training);
    return fmt::format(
        "The pipeline bubble takes {} of the step: with {} stages and {} micro-batches {} idles "
        "for "
        "at least {} of what a stage computes; without any bubble the step would be {} shorter at "
        "most.",
        percent(share(TimeTerm::kBubble)), shape.stages, shape.micro_batches,
        scenario_.training.schedule, percent(explained_.bubble_bound), percent(out_.gain));
  }

  std::string streams(TimeTerm term) const {
    double of_bound = 0, seconds = 0;
    for (const ExplainedKernel& kernel : explained_.kernels) {
      if (!kernel.memory_bound || kernel.term != term) continue;
      of_bound += kernel.of_bound.value() * kernel.seconds;
      seconds += kernel.seconds;
    }
    const double hbm = scenario_.profile.hbm_bandwidth.gigabytes_per_second();
    return fmt::format(
        "{} reach {:.0f} of {:.0f} GB/s of HBM and take {} of the step; with all of them fused "
        "away "
        "the step would be {} shorter at most.",
        term == TimeTerm::kOptimizer ? "The optimizer's kernels" : "Memory-bound kernels",
        seconds > 0 ? hbm * of_bound / seconds : 0, hbm, percent(share(term)), percent(out_.gain));
  }

  // The slow GPU that is longest on the path; else how far the slowest of many is expected to lag.
  std::string stragglers() const {
    std::map<RankId, Duration> slow;
    for (const CriticalOp& op : step_.critical_path) {
      slow[op.rank] += op.terms[static_cast<size_t>(TimeTerm::kStraggler)];
    }
    std::string who;
    double most = 0;
    for (const Degradation& part : scenario_.cluster.degraded) {
      if (part.gpu < 0 || part.compute_factor >= 1) continue;
      const RankId rank(static_cast<size_t>(part.gpu));
      const auto found = slow.find(rank);
      const double seconds = found == slow.end() ? 0 : found->second.seconds();
      if (!who.empty() && seconds <= most) continue;
      most = seconds;
      who = fmt::format("rank {} computes at {:.0f} % of the nominal speed", part.gpu,
                        100 * part.compute_factor);
    }
    if (who.empty()) {
      who = fmt::format(
          "the slowest of {} GPUs is expected to compute {} slower than the mean",
          count_text(scenario_.gpus),
          percent(scenario_.software.gpu_speed_sigma * expected_slowest_sigmas(scenario_.gpus)));
    }
    return fmt::format(
        "Stragglers: {}, and all others wait for it; with every GPU at the nominal speed the step "
        "would be {} shorter.",
        who, percent(out_.gain));
  }

  std::string loader() const {
    const double most =
        static_cast<double>(scenario_.training.tokens()) / (whole() * (1 - out_.gain));
    return fmt::format(
        "The data loader delivers {} of the {} tokens a second that the GPUs could train; waiting "
        "for it takes {} of the step.",
        count_text(static_cast<int64_t>(scenario_.training.loader.tokens_per_second)),
        count_text(static_cast<int64_t>(most)), percent(share(TimeTerm::kLoader)));
  }

  std::string host() const {
    return fmt::format(
        "The host and kernels slowed by transfers take {} of the step; with a host that launches "
        "in "
        "no time the step would be {} shorter at most.",
        percent(share(TimeTerm::kOther)), percent(out_.gain));
  }

  Verdict products() {
    double of_peak = 0, seconds = 0;
    for (const ExplainedKernel& kernel : explained_.kernels) {
      if (kernel.memory_bound) continue;
      of_peak += kernel.of_bound.value() * kernel.seconds;
      seconds += kernel.seconds;
    }
    if (seconds > 0) of_peak /= seconds;
    out_.term = TimeTerm::kCompute;
    out_.of_step = share(TimeTerm::kCompute);
    out_.gain = out_.of_step * (1 - of_peak);
    const double peak = step_.result.peak.teraflops();
    out_.sentence = fmt::format(
        "GEMMs and attention limit the step: they reach {:.0f} of {:.0f} TFLOP/s and take {} of "
        "it; "
        "at the peak it would be {} shorter, and no other loss gives {}.",
        of_peak * peak, peak, percent(out_.of_step), percent(out_.gain), percent(kLeastGain));
    return std::move(out_);
  }

  const Scenario& scenario_;
  const StepSimulation& step_;
  const Explanation explained_;
  const PathSummary path_;
  Verdict out_;
};

}  // namespace

Verdict verdict(const Scenario& scenario, const StepSimulation& step) {
  return Judge(scenario, step).judge();
}

}  // namespace herdsim
