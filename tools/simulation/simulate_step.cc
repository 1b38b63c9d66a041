#include "tools/simulation/simulate_step.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "sim/executor/step_executor.h"
#include "sim/symmetry/folded_job.h"
#include "sim/symmetry/job_map.h"
#include "sim/symmetry/rank_classes.h"
#include "sim/symmetry/shared_fabric.h"
#include "tools/simulation/steady_step.h"
#include "tools/simulation/step_answer.h"
#include "tools/simulation/step_length.h"
#include "tools/simulation/step_path.h"
#include "tools/simulation/storage_flows.h"

namespace herdsim {
namespace {

FoldedJob folded_alone(const JobOnMachine& job, bool fold_it) {
  const JobMap map = map_job(job.graph, job.machine);
  return fold(
      job.graph, job.machine, map,
      fold_it ? classify(job.graph, job.machine, map) : no_classes(job.graph, job.machine, map));
}

StepSimulation simulate_alone(JobOnMachine& job, const MachineState& machine,
                              const FoldedJob& folded, const StepOptions& options) {
  const bool keep_records = options.critical_path && keeps_records(job.graph, folded);
  const StepOutcome outcome =
      execute_step(job.graph, job.costs, folded, job.tuning, job.sms,
                   {.traced = traced_classes(folded, options), .keep_records = keep_records});
  return answer(job.scenario, job, machine, folded, outcome, options);
}

// A flow that no rate finishes, or that makes the step longer than anybody counts.
void throw_endless(const StepResult& result, const StorageJob& flow, const std::string& how_long) {
  Faults faults;
  const bool write = flow.access == StoreAccess::kWrite;
  faults.add(
      {.file = result.scenario,
       .field = write ? "other_traffic.saving" : "other_traffic.loading",
       .problem = std::string(write ? "the save " : "reading the next batch ") + how_long,
       .allowed = "more of checkpoint.storage.shared_gigabytes_per_second, or less to move"});
  faults.throw_if_any();
}

std::string_view label_of(const StorageJob& flow) {
  return flow.access == StoreAccess::kWrite ? "save" : "read";
}

// What flows to and from the store of one job did beside its step. Its next step waits for its
// data.
void fill_storage(const Scenario& scenario, const std::vector<std::unique_ptr<StorageJob>>& flows,
                  std::span<const BackgroundOutcome> outcomes, size_t of_job, StepResult& result) {
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows[f]->of_job != of_job) continue;
    const Duration took = outcomes[f].took;
    if (outcomes[f].is_stalled) {
      throw_endless(result, *flows[f], "never ends: a GPU gets less than a byte a second");
    }
    result.storage.push_back({.what = std::string(label_of(*flows[f])),
                              .job = of_job == 0 ? "" : result.scenario,
                              .bytes = flows[f]->bytes,
                              .begins = flows[f]->begins,
                              .took = took});
    if (flows[f]->access == StoreAccess::kWrite) continue;
    const Duration wait = std::max(Duration::zero(), took - result.step_time);
    if (result.step_time + wait > longest_step(scenario)) {
      throw_endless(result, *flows[f], "takes " + to_text(took));
    }
    add_wait(wait, result);
  }
}

// All jobs of the machine at once, after each of them alone: what sharing costs is the difference,
// and a job that cannot end its step says so instead of holding the others up for ever.
StepSimulation simulate_together(const Scenario& scenario, const MachineState& machine,
                                 const StepOptions& asked) {
  // What decides a step, and what it would be without a loss, is answered only of a job alone.
  StepOptions options = asked;
  options.critical_path = options.without = false;
  const StepOptions untraced{.fold = asked.fold, .traced_ranks = {}};
  std::vector<JobShare> shares;
  std::vector<std::unique_ptr<JobOnMachine>> jobs;
  for (size_t j = 0; j < machine.placements.size(); ++j) {
    const OtherJob* other = j == 0 ? nullptr : &scenario.other_jobs[j - 1];
    const Scenario& of = other == nullptr ? scenario : other->scenario;
    JobOnMachine alone(of, machine, j);
    check_work_length(alone);
    const FoldedJob folded = folded_alone(alone, asked.fold);
    const StepResult result = simulate_alone(alone, machine, folded, untraced).result;
    shares.push_back({.name = of.name,
                      .gpus = of.gpus,
                      .begins = other == nullptr ? Duration::zero() : other->begins,
                      .alone = result.step_time,
                      .mfu_alone = result.mfu_causal()});
    jobs.push_back(std::make_unique<JobOnMachine>(of, machine, j));
  }
  check_repeated_steps(scenario, shares);
  std::vector<std::unique_ptr<StorageJob>> flows;
  for (size_t j = 0; j < jobs.size(); ++j) {
    for (auto& flow : storage_jobs(*jobs[j], j, shares[j].begins, shares[j].alone))
      flows.push_back(std::move(flow));
  }
  std::vector<JobMap> maps;
  for (const auto& job : jobs) maps.push_back(map_job(job->graph, job->machine));
  std::vector<MappedJob> mapped;
  for (size_t j = 0; j < jobs.size(); ++j) {
    mapped.push_back({jobs[j]->graph, jobs[j]->machine, maps[j]});
  }
  for (const auto& flow : flows) mapped.push_back(flow->mapped());
  std::vector<JobClasses> classes;
  if (options.fold) {
    classes = classify_together(mapped);
  } else {
    for (const MappedJob& job : mapped)
      classes.push_back(no_classes(job.graph, job.machine, job.map));
  }
  const std::vector<FoldedJob> folded = fold_together(mapped, classes);
  std::vector<SharingJob> sharing;
  for (size_t j = 0; j < jobs.size(); ++j) {
    sharing.push_back({jobs[j]->graph, jobs[j]->costs, folded[j], jobs[j]->tuning,
                       jobs[j]->sms,
                       traced_classes(folded[j], j == 0 ? options : untraced), shares[j].begins});
  }
  const bool traces = !options.traced_ranks.empty();
  BesideSteps beside;
  for (size_t f = 0; f < flows.size(); ++f) {
    beside.flows.push_back(
        flows[f]->flow(folded[jobs.size() + f], traces && flows[f]->of_job == 0));
  }
  if (!flows.empty()) {
    if (const auto burst = disk_burst(scenario, machine.fabric, folded.front()))
      beside.bursts.push_back(*burst);
  }
  const SharedOutcome outcomes = execute_steps(sharing, beside);
  StepSimulation out;
  for (size_t j = 0; j < jobs.size(); ++j) {
    std::vector<BesideFlow> own;
    for (size_t f = 0; f < flows.size(); ++f) {
      if (flows[f]->of_job == j)
        own.push_back({label_of(*flows[f]), beside.flows[f], outcomes.flows[f]});
    }
    StepSimulation of_job =
        answer(jobs[j]->scenario, *jobs[j], machine, folded[j], outcomes.steps[j],
               j == 0 ? options : untraced,
               {.flows = own, .other_jobs = j == 0 && jobs.size() > 1});
    fill_storage(jobs[j]->scenario, flows, outcomes.flows, j, of_job.result);
    shares[j].step_time = of_job.result.step_time;
    shares[j].mfu = of_job.result.mfu_causal();
    if (j == 0) {
      out = std::move(of_job);
    } else {
      const std::vector<StorageFlow>& storage = of_job.result.storage;
      out.result.storage.insert(out.result.storage.end(), storage.begin(), storage.end());
      out.others.push_back(std::move(of_job.result));
    }
  }
  if (!flows.empty()) {
    out.result.without_storage =
        jobs.size() == 1 ? shares.front().alone
                         : simulate_step(without_storage_flows(scenario), {.fold = options.fold})
                               .result.step_time;
  }
  if (jobs.size() > 1) out.result.jobs = std::move(shares);
  return out;
}

StepSimulation simulate_on(MachineMemo::Known& machine, const Scenario& scenario,
                           const StepOptions& options) {
  if (options.result_alone && options.fold) {
    std::optional<StepSimulation> steady = simulate_steady(machine, scenario, options);
    if (steady) return std::move(*steady);
  }
  JobOnMachine job(scenario, machine.state, 0);
  check_work_length(job);
  const FoldedJob folded =
      options.fold ? machine.jobs.of(job.graph, job.machine) : folded_alone(job, false);
  return simulate_alone(job, machine.state, folded, options);
}

}  // namespace

StepSimulation simulate_step(const Scenario& scenario, const StepOptions& options,
                             MachineMemo& machines) {
  const auto begin = std::chrono::steady_clock::now();
  const bool is_alone = scenario.other_jobs.empty() && !has_storage_flows(scenario);
  StepSimulation out = is_alone
                           ? simulate_on(*machines.of(scenario), scenario, options)
                           : simulate_together(scenario, machine_of(scenario), options);
  out.result.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

StepSimulation simulate_step(const Scenario& scenario, const StepOptions& options) {
  MachineMemo machines;
  return simulate_step(scenario, options, machines);
}

}  // namespace herdsim
