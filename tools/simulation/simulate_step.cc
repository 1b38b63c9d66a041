#include "tools/simulation/simulate_step.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "sim/executor/steady_state.h"
#include "sim/executor/step_executor.h"
#include "sim/models/data_type_names.h"
#include "sim/symmetry/folded_job.h"
#include "sim/symmetry/job_map.h"
#include "sim/symmetry/rank_classes.h"
#include "sim/symmetry/shared_fabric.h"
#include "tools/simulation/link_use.h"
#include "tools/simulation/power_counters.h"
#include "tools/simulation/schedule_passes.h"
#include "tools/simulation/shorter_steps.h"
#include "tools/simulation/step_length.h"
#include "tools/simulation/step_path.h"
#include "tools/simulation/step_trace.h"
#include "tools/simulation/storage_flows.h"
#include "tools/simulation/trace_layers.h"
#include "topologies/routing.h"
#include "workloads/lowering.h"
#include "workloads/memory/memory_footprint.h"

namespace herdsim {
namespace {

std::string name_of(const Degradation& part) {
  if (part.gpu >= 0) return "the NIC of rank " + std::to_string(part.gpu);
  if (part.tor >= 0) return "ToR " + std::to_string(part.tor);
  if (part.pod >= 0) return "pod " + std::to_string(part.pod);
  return "plane " + std::to_string(part.plane);
}

// Parts that carry nothing and do not come back.
std::vector<std::string> dead_parts(const Scenario& scenario) {
  std::vector<std::string> dead;
  for (size_t i = 0; i < scenario.cluster.degraded.size(); ++i) {
    const Degradation& part = scenario.cluster.degraded[i];
    const bool carries_nothing = part.down || part.nic_factor == 0 || part.uplink_factor == 0;
    if (carries_nothing && part.lasts == Duration::infinite()) dead.push_back(name_of(part));
  }
  return dead;
}

// What cannot start, and whom it is for. `cut_off`: the network is why.
void throw_deadlock(const Scenario& scenario, const std::vector<BlockedOp>& blocked, bool cut_off) {
  Faults faults;
  if (cut_off && !blocked.empty()) {
    std::string parts;
    for (const std::string& part : dead_parts(scenario))
      parts += (parts.empty() ? "" : ", ") + part;
    const BlockedOp& op = blocked.front();
    faults.add(
        {.file = scenario.name,
         .field = "cluster.degraded",
         .problem = "the job halts: " + parts + " cut off ranks that others wait for: rank " +
                    std::to_string(op.rank.index()) + " never gets past " + op.op +
                    (op.micro_batch < 0 ? std::string()
                                        : " of micro-batch " + std::to_string(op.micro_batch)),
         .allowed = "a part that comes back (for_s), or a job beside it "
                    "(cluster.unavailable_hosts)"});
    faults.throw_if_any();
  }
  for (const BlockedOp& op : blocked) {
    faults.add({.file = scenario.name,
                .field = "training.schedule",
                .problem = "deadlock: rank " + std::to_string(op.rank.index()) + " cannot start " +
                           op.op + " of micro-batch " + std::to_string(op.micro_batch) +
                           ", chunk " + std::to_string(op.chunk) + ": it waits for " +
                           op.waits_for});
  }
  faults.throw_if_any();
}

// Sums classes up to ranks, and to a mean rank of each stage.
void fill_account(const FoldedJob& job, const StepOutcome& outcome, int64_t stages,
                  StepResult& result) {
  std::vector<std::array<int64_t, kTimeTerms>> sums(static_cast<size_t>(stages));
  std::vector<int64_t> members(static_cast<size_t>(stages), 0);
  for (size_t c = 0; c < job.ranks.size(); ++c) {
    const FoldedRank& rank = job.ranks[RankClassId(c)];
    const size_t stage = rank.program.index();
    members[stage] += rank.members;
    result.class_account.push_back({.stage = static_cast<int64_t>(stage),
                                    .first_rank = static_cast<int64_t>(rank.representative.index()),
                                    .ranks = rank.members,
                                    .nanoseconds = outcome.account[RankClassId(c)]});
    for (size_t t = 0; t < kTimeTerms; ++t) {
      const int64_t time = outcome.account[RankClassId(c)][t] * rank.members;
      result.account_rank_nanoseconds[t] += time;
      sums[stage][t] += time;
    }
  }
  for (size_t stage = 0; stage < sums.size(); ++stage) {
    TimeAccount mean;
    for (size_t t = 0; t < kTimeTerms; ++t) mean[t] = nanoseconds(sums[stage][t] / members[stage]);
    result.stage_account.push_back(mean);
  }
}

void add_wait(Duration wait, StepResult& result) {
  constexpr auto kLoader = static_cast<size_t>(TimeTerm::kLoader);
  result.step_time += wait;
  result.account_rank_nanoseconds[kLoader] += wait.nanoseconds() * result.gpus;
  for (TimeAccount& stage : result.stage_account) stage[kLoader] += wait;
  for (RankClassTime& alike : result.class_account) {
    alike.nanoseconds[kLoader] += wait.nanoseconds();
  }
}

std::vector<TransferLine> transfer_lines(const OpGraph& graph, const FoldedJob& job,
                                         const NcclTuning& tuning) {
  std::vector<TransferLine> lines;
  for (size_t w = 0; w < graph.works.size(); ++w) {
    const Work& work = graph.works[WorkId(w)];
    if (work.kind == WorkKind::kCollective) {
      const GroupShape& shape = job.lanes[job.lane_of_work[WorkId(w)]].shapes.front();
      const GroupShape part = part_of(work, shape);
      if (part.ranks == 1) continue;
      lines.push_back({WorkId(w), part, bytes_in(work, shape), plan_of(work, shape, tuning)});
    } else if (work.kind == WorkKind::kSend && !job.message_lane.empty()) {
      const GroupShape& shape = job.lanes[job.message_lane.front()].shapes.back();
      lines.push_back({WorkId(w), shape, work.bytes,
                       plan_collective(CollectiveKind::kSendRecv, work.bytes, shape, tuning)});
    }
  }
  return lines;
}

void wait_for_loader(const Scenario& scenario, StepResult& result) {
  const Duration wait = loader_wait(scenario, result.step_time);
  if (wait > Duration::zero()) add_wait(wait, result);
}

// What the scenario asks for and the step leaves out: said, never silently ignored.
std::vector<std::string> unmodelled_parts(const Scenario& scenario) {
  std::vector<std::string> parts;
  const ClusterSpec& cluster = scenario.cluster;
  if (find_topology(cluster.topology)->is_mesh && cluster.torus.empty() &&
      find_routing(cluster.routing)->rule != SpreadRule::kEven) {
    parts.push_back("cluster.routing: " + cluster.routing + " hashes nothing on a " +
                    cluster.topology + ": paths are fixed, cables side by side shared evenly");
  }
  const bool is_dragonfly = cluster.topology == "dragonfly";
  if (!is_dragonfly && find_routing(cluster.routing)->detours != Routing::Detours::kNone) {
    parts.push_back("cluster.routing: a " + cluster.topology + " has no third group for " +
                    cluster.routing + " to go by: it is adaptive");
  }
  const MeasuredNetwork& measured = scenario.measured_network;
  if (!cluster.torus.empty() &&
      std::max({measured.all_reduce, measured.all_gather, measured.reduce_scatter}) > Bandwidth()) {
    parts.push_back("measured_network changes nothing on a torus, which runs no NCCL");
  }
  if (!find_routing(scenario.cluster.routing)->uses_queue_pairs &&
      scenario.cluster.queue_pairs != ClusterSpec{}.queue_pairs) {
    parts.push_back("cluster.queue_pairs changes nothing: " + scenario.cluster.routing +
                    " does not choose paths by queue pair");
  }
  return parts;
}

// A plan outside what was measured, once a collective; transfers of nothing are no news.
void warn_of_transfers(const OpGraph& graph, const std::vector<TransferLine>& lines,
                       std::vector<std::string>& warnings) {
  std::vector<std::string> seen;
  for (const TransferLine& line : lines) {
    const Work& work = graph.works[line.work];
    if (!line.plan.extrapolated || line.bytes < kibibytes(64)) continue;
    const std::string text = std::string(collective_kind_name(work.collective)) + " of " +
                             std::to_string(line.group.ranks) + " ranks on " +
                             std::to_string(line.group.nodes) +
                             " hosts is outside the measured sizes and groups";
    if (std::find(seen.begin(), seen.end(), text) == seen.end()) seen.push_back(text);
  }
  warnings.insert(warnings.end(), seen.begin(), seen.end());
}

// An algorithm that was asked for and cannot do the group, once each.
void warn_of_algorithms(const OpGraph& graph, const std::vector<TransferLine>& lines,
                        std::vector<std::string>& warnings) {
  std::vector<std::string> seen;
  for (const TransferLine& line : lines) {
    const Work& work = graph.works[line.work];
    if (!work.phase || !work.phase->phase.algorithm ||
        line.plan.algorithm == *work.phase->phase.algorithm)
      continue;
    const std::string text =
        "collectives: " + std::string(algorithm_name(*work.phase->phase.algorithm)) + " cannot " +
        std::string(collective_kind_name(work.collective)) + " " +
        std::to_string(line.group.ranks) + " ranks on " + std::to_string(line.group.nodes) +
        (line.group.nodes > 1 ? " hosts" : " host") + ": they run as NCCL chooses";
    if (std::find(seen.begin(), seen.end(), text) == seen.end()) seen.push_back(text);
  }
  warnings.insert(warnings.end(), seen.begin(), seen.end());
}

std::vector<RankClassId> traced_classes(const FoldedJob& folded, const StepOptions& options) {
  std::vector<RankClassId> traced;
  for (const RankId rank : options.traced_ranks) {
    const RankClassId c(folded.class_of_rank[rank.index()]);
    if (std::find(traced.begin(), traced.end(), c) == traced.end()) traced.push_back(c);
  }
  return traced;
}

std::vector<double> clocks_of(const StepTrace& trace, const FoldedJob& folded) {
  std::vector<double> clocks;
  for (const RankPlace& place : trace.ranks) {
    const RankClassId c(folded.class_of_rank[place.rank.index()]);
    clocks.push_back(folded.ranks[c].compute_factor);
  }
  return clocks;
}

std::string dtype_of(const Training& training) {
  return lower_case(data_type_name(training.precision));
}

// What is on the links beside a job's own step.
struct Company {
  std::span<const BesideFlow> flows = {};
  bool other_jobs = false;
};

// What the step of one job says. Takes the job's graph and costs: nothing needs them any more. The job may be a shorter
// one that the outcome was found by: what does not depend on the number of micro-batches is its.
StepSimulation answer(const Scenario& scenario, JobOnMachine& job, const MachineState& machine, const FoldedJob& folded,
                      const StepOutcome& outcome, const StepOptions& options,
                      const Company& company = {}) {
  throw_deadlock(scenario, outcome.deadlock, outcome.is_cut_off);
  check_step_length(scenario, outcome.makespan);
  StepSimulation out;
  StepResult& result = out.result;
  result.scenario = scenario.name;
  result.gpus = scenario.gpus;
  result.step_time = outcome.makespan;
  result.tokens_per_step = scenario.training.tokens();
  const ModelFlops flops = model_flops(scenario.model, scenario.training);
  result.model_flops_causal = flops.causal;
  result.model_flops_full = flops.full;
  result.peak = scenario.profile.peak_of(scenario.training.precision);
  result.dtype = dtype_of(scenario.training);
  fill_account(folded, outcome, scenario.plan.pp, result);
  wait_for_loader(scenario, result);
  const ScheduleShape shape = schedule_shape(scenario.plan, scenario.training);
  const MemoryQuestion memory{scenario.model, scenario.plan, scenario.training, scenario.software,
                              job.schedule,   shape,         job.layouts};
  result.memory = memory_footprint(memory);
  result.memory_capacity = scenario.profile.hbm;
  result.simulated_ranks = static_cast<int64_t>(folded.ranks.size());
  result.events = outcome.events;
  const RunStep run{job.graph,  folded,  machine.fabric, job.placement,     machine.links.capacity,
                    job.tuning, outcome, company.flows,  company.other_jobs};
  fill_link_use(run, result);
  fill_collisions(run, result);
  out.transfers = transfer_lines(job.graph, folded, job.tuning);
  result.warnings = scenario.warnings;
  const std::vector<std::string> left_out = unmodelled_parts(scenario);
  result.warnings.insert(result.warnings.end(), left_out.begin(), left_out.end());
  result.warnings.insert(result.warnings.end(), job.costs.warnings.begin(),
                         job.costs.warnings.end());
  warn_of_algorithms(job.graph, out.transfers, result.warnings);
  warn_of_transfers(job.graph, out.transfers, result.warnings);
  if (!outcome.records.empty()) out.critical_path = critical_ops(run, job.costs);
  if (options.without) out.without = steps_without(run, job.costs, job.sms, result);
  if (!options.traced_ranks.empty()) {
    out.trace =
        make_step_trace(scenario, job.graph, job.costs, folded, machine.fabric, job.placement,
                        options.traced_ranks, traced_classes(folded, options), outcome);
    out.trace.counters = link_counters(run);
    out.trace.of_cluster = storage_spans(run);
    out.passes = schedule_passes(out.trace, memory);
    add_counters(out.passes, out.trace);
    add_power(scenario.profile, scenario.gpus, clocks_of(out.trace, folded), out.trace);
  }
  out.graph = std::move(job.graph);
  out.costs = std::move(job.costs);
  return out;
}

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

Scenario with_micro_batches(Scenario scenario, int64_t micro_batches) {
  scenario.training.global_batch = micro_batches * scenario.plan.dp * scenario.plan.micro_batch;
  return scenario;
}

// Whether each micro-batch is worth as much as any other.
bool has_even_micro_batches(const OpGraph& graph) {
  return std::all_of(graph.uneven.begin(), graph.uneven.end(),
                     [](const UnevenLoad& load) { return load.columns == 1; });
}

// A shorter step on the machine, with records.
struct ShorterStep {
  ShorterStep(const Scenario& whole, int64_t micro_batches, MachineMemo::Known& machine)
      : scenario(with_micro_batches(whole, micro_batches)),
        job(scenario, machine.state, 0),
        folded(machine.jobs.of(job.graph, job.machine)) {}

  void run() {
    check_work_length(job);
    outcome = execute_step(job.graph, job.costs, folded, job.tuning, job.sms,
                           {.traced = {}, .keep_records = true});
  }
  RecordedStep recorded() const { return {job.graph, folded, outcome}; }

  const Scenario scenario;
  JobOnMachine job;
  const FoldedJob folded;
  StepOutcome outcome;
};

// The step by two shorter ones; nothing where that is not exact, or saves little.
std::optional<StepSimulation> simulate_steady(MachineMemo::Known& machine, const Scenario& scenario,
                                              const StepOptions& options) {
  // Parts may break inside the step, and replicas run away from one that is slower.
  if (!scenario.cluster.degraded.empty()) return std::nullopt;
  const ScheduleShape shape = schedule_shape(scenario.plan, scenario.training);
  for (const ShorterSteps& shorter : shorter_steps(*find_schedule(scenario.training.schedule), shape)) {
    ShorterStep fewer(scenario, shorter.micro_batches, machine);
    if (!has_even_micro_batches(fewer.job.graph)) return std::nullopt;
    fewer.run();
    ShorterStep more(scenario, shorter.micro_batches + shorter.period, machine);
    more.run();
    const Duration pace = more.outcome.makespan - fewer.outcome.makespan;
    const double whole = fewer.outcome.makespan.seconds() + pace.seconds() * static_cast<double>(shorter.periods);
    if (whole > longest_step(scenario).seconds()) return std::nullopt;  // as long as it takes to say so
    if (!is_steady(fewer.recorded(), more.recorded())) continue;
    const StepOutcome outcome = extended(fewer.outcome, more.outcome, shorter.periods);
    return answer(scenario, fewer.job, machine.state, fewer.folded, outcome, options);
  }
  return std::nullopt;
}

StepSimulation simulate_on(MachineMemo::Known& machine, const Scenario& scenario,
                           const StepOptions& options) {
  if (options.result_alone) {
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

Duration loader_wait(const Scenario& scenario, Duration step) {
  const Training& training = scenario.training;
  if (training.loader.tokens_per_second <= 0) return Duration::zero();
  const Duration loads = seconds_rounded_up(static_cast<double>(training.tokens()) /
                                            training.loader.tokens_per_second);
  const Duration hidden = training.loader.prefetch > 0 ? step : Duration::zero();
  const Duration wait = std::max(Duration::zero(), loads - hidden);
  check_step_length(scenario, step + wait);
  return wait;
}

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
