#include "tools/simulation/step_length.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace herdsim {
namespace {

// Each repetition is a simulated step.
constexpr int64_t kMostRepeats = 1000;

[[noreturn]] void refuse(const Scenario& scenario, const std::string& problem) {
  throw SpecError({{.file = scenario.name,
                    .field = "step",
                    .problem = problem,
                    .allowed = fmt::format("up to {:.3g} s with {} GPUs: less work a step, or "
                                           "faster GPUs and links",
                                           longest_step(scenario).seconds(), scenario.gpus)}});
}

double slowest_factor(const TypedVector<RankId, double>& factors) {
  const std::vector<double>& all = factors.values();
  return *std::min_element(all.begin(), all.end());
}

// Of the work of the mean rank.
double largest_share(const OpGraph& graph) {
  double most = 1;
  for (const UnevenLoad& load : graph.uneven) {
    for (const double factor : load.factors) most = std::max(most, factor);
  }
  return most;
}

}  // namespace

Duration longest_step(const Scenario& scenario) {
  return nanoseconds(Duration::infinite().nanoseconds() /
                     std::max(scenario.gpus, scenario.profile.sms * Multiprocessors::kParts));
}

void check_work_length(const JobOnMachine& job) {
  const Scenario& scenario = job.scenario;
  const double slower = largest_share(job.graph) / slowest_factor(job.factors);
  for (const Program& program : job.graph.programs) {
    TypedVector<WorkId, int64_t> runs(job.graph.works.size(), 0);
    for (const Op& op : program.ops) ++runs[op.work];
    TypedVector<WorkId, double> seconds(job.graph.works.size(), 0.0);
    double sum = 0;
    for (size_t w = 0; w < seconds.size(); ++w) {
      const double once = job.costs.works[WorkId(w)].total.seconds();
      seconds[WorkId(w)] = slower * once * static_cast<double>(runs[WorkId(w)]);
      sum += seconds[WorkId(w)];
    }
    if (sum <= longest_step(scenario).seconds()) continue;
    size_t most = 0;
    for (size_t w = 1; w < seconds.size(); ++w) {
      if (seconds[WorkId(w)] > seconds[WorkId(most)]) most = w;
    }
    refuse(scenario, fmt::format("takes {:.3g} s or longer, \"{}\" alone {:.3g} s", sum,
                                 job.graph.works[WorkId(most)].name, seconds[WorkId(most)]));
  }
}

void check_step_length(const Scenario& scenario, Duration step) {
  if (step > longest_step(scenario))
    refuse(scenario, fmt::format("takes {:.3g} s", step.seconds()));
}

void check_repeated_steps(const Scenario& scenario, const std::vector<JobShare>& jobs) {
  const auto shortest =
      std::min_element(jobs.begin(), jobs.end(),
                       [](const JobShare& a, const JobShare& b) { return a.alone < b.alone; });
  for (size_t j = 0; j < jobs.size(); ++j) {
    const Duration end = jobs[j].begins + jobs[j].alone;
    if (end <= shortest->alone * kMostRepeats) continue;
    const bool begins_late = jobs[j].begins > jobs[j].alone;
    throw SpecError(
        {{.file = scenario.name,
          .field = j == 0 ? "other_jobs"
                          : fmt::format("other_jobs.{}{}", j - 1, begins_late ? ".begins_s" : ""),
          .problem = fmt::format(
              "{} ends its step after {:.3g} s, in which {} would repeat its own of {:.3g} s",
              jobs[j].name, end.seconds(), shortest->name, shortest->alone.seconds()),
          .allowed = fmt::format("an end before {} steps of the shortest", kMostRepeats)}});
  }
}

}  // namespace herdsim
