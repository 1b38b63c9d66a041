#include "tools/simulation/simulate_step.h"

#include <algorithm>
#include <chrono>

#include "sim/base/error.h"
#include "sim/executor/step_executor.h"
#include "sim/symmetry/folded_job.h"
#include "tools/simulation/link_use.h"
#include "tools/simulation/network_tuning.h"
#include "tools/simulation/schedule_passes.h"
#include "tools/simulation/step_path.h"
#include "tools/simulation/step_trace.h"
#include "tools/simulation/trace_layers.h"
#include "topologies/link_capacity.h"
#include "topologies/routing.h"
#include "workloads/lowering.h"
#include "workloads/memory/memory_footprint.h"

namespace herdsim {
namespace {

TypedVector<RankId, double> compute_factors(const Scenario& scenario) {
  TypedVector<RankId, double> factors(static_cast<size_t>(scenario.gpus), 1.0);
  for (const Degradation& part : scenario.cluster.degraded) {
    if (part.gpu < 0) continue;
    factors[RankId(static_cast<size_t>(part.gpu))] *= part.compute_factor;
  }
  return factors;
}

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
    for (const std::string& part : dead_parts(scenario)) parts += (parts.empty() ? "" : ", ") + part;
    const BlockedOp& op = blocked.front();
    faults.add({.file = scenario.name,
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

// A loader that may be ahead hides behind the step, and limits its rate where it is slower; one that may not comes on top.
void wait_for_loader(const Training& training, StepResult& result) {
  if (training.loader.tokens_per_second <= 0) return;
  const Duration loads = seconds_rounded_up(static_cast<double>(training.tokens()) /
                                            training.loader.tokens_per_second);
  const Duration hidden = training.loader.prefetch > 0 ? result.step_time : Duration::zero();
  const Duration wait = std::max(Duration::zero(), loads - hidden);
  constexpr auto kLoader = static_cast<size_t>(TimeTerm::kLoader);
  result.step_time += wait;
  result.account_rank_nanoseconds[kLoader] += wait.nanoseconds() * result.gpus;
  for (TimeAccount& stage : result.stage_account) stage[kLoader] += wait;
  for (RankClassTime& alike : result.class_account) {
    alike.nanoseconds[kLoader] += wait.nanoseconds();
  }
}

std::vector<TransferLine> transfer_lines(const OpGraph& graph, const JobMap& map,
                                         const NcclTuning& tuning) {
  std::vector<TransferLine> lines;
  for (size_t w = 0; w < graph.works.size(); ++w) {
    const Work& work = graph.works[WorkId(w)];
    if (work.kind == WorkKind::kCollective) {
      const GroupShape& shape = map.lanes[map.lane_of_work[WorkId(w)]].shapes.front();
      if (shape.ranks == 1) continue;
      lines.push_back({WorkId(w), shape,
                       plan_collective(work.collective, work.bytes, shape, tuning)});
    } else if (work.kind == WorkKind::kSend && !map.message_lane.empty()) {
      const GroupShape& shape = map.lanes[map.message_lane.front()].shapes.back();
      lines.push_back({WorkId(w), shape,
                       plan_collective(CollectiveKind::kSendRecv, work.bytes, shape, tuning)});
    }
  }
  return lines;
}

// What the scenario asks for and the step leaves out: said, never silently ignored.
std::vector<std::string> unmodelled_parts(const Scenario& scenario) {
  std::vector<std::string> parts;
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
    if (!line.plan.extrapolated || work.bytes < kibibytes(64)) continue;
    const std::string text = std::string(collective_kind_name(work.collective)) + " of " +
                             std::to_string(line.group.ranks) + " ranks on " +
                             std::to_string(line.group.nodes) +
                             " hosts is outside the measured sizes and groups";
    if (std::find(seen.begin(), seen.end(), text) == seen.end()) seen.push_back(text);
  }
  warnings.insert(warnings.end(), seen.begin(), seen.end());
}

}  // namespace

TypedVector<RankId, GpuId> placement_of(const Scenario& scenario) {
  const ParallelPlan& p = scenario.plan;
  return place_ranks(scenario.cluster, {.ranks = scenario.gpus,
                                        .seed = scenario.seed,
                                        .ranks_per_replica = p.tp * p.cp * p.pp});
}

StepSimulation simulate_step(const Scenario& scenario, const StepOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const WorkloadSpec workload{scenario.model, scenario.plan, scenario.training, scenario.software};
  const ScheduleRow& schedule = *find_schedule(scenario.training.schedule);
  const std::vector<StageLayout> layouts = layout_stages(scenario.model, scenario.plan, schedule);

  StepSimulation out;
  out.graph = lower_step(workload, schedule, layouts);
  out.costs = cost_graph(out.graph, scenario.profile, scenario.software);

  Fabric fabric = find_topology(scenario.cluster.topology)->build(scenario.cluster);
  const auto placement = placement_of(scenario);
  const LinkConditions links = link_conditions(fabric, scenario.cluster, placement);
  fabric.let_bind(links.impaired);
  const auto factors = compute_factors(scenario);
  const NcclTuning tuning = network_tuning(scenario, fabric, placement);
  const Machine machine{.fabric = fabric,
                        .placement = placement,
                        .capacity = links.capacity,
                        .compute_factor = factors,
                        .tuning = tuning,
                        .sms_per_gpu = scenario.profile.sms,
                        .spread = lane_spread(scenario.cluster),
                        .seed = scenario.seed,
                        .line_share = scenario.cluster.nic_efficiency,
                        .changes = links.changes};
  const JobMap map = map_job(out.graph, machine);
  const JobClasses classes =
      options.fold ? classify(out.graph, machine, map) : no_classes(out.graph, machine, map);
  const FoldedJob job = fold(out.graph, machine, map, classes);

  std::vector<RankClassId> traced;
  for (const RankId rank : options.traced_ranks) {
    const RankClassId c(job.class_of_rank[rank.index()]);
    if (std::find(traced.begin(), traced.end(), c) == traced.end()) traced.push_back(c);
  }
  const bool keep_records = options.critical_path && keeps_records(out.graph, job);
  const StepOutcome outcome = execute_step(out.graph, out.costs, map, job, tuning,
                                           scenario.profile.sms,
                                           {.traced = traced, .keep_records = keep_records});
  throw_deadlock(scenario, outcome.deadlock, outcome.is_cut_off);

  StepResult& result = out.result;
  result.scenario = scenario.name;
  result.gpus = scenario.gpus;
  result.step_time = outcome.makespan;
  result.tokens_per_step = scenario.training.tokens();
  const ModelFlops flops = model_flops(scenario.model, scenario.training);
  result.model_flops_causal = flops.causal;
  result.model_flops_full = flops.full;
  result.peak = scenario.profile.peak_of(scenario.training.precision);
  result.dtype = scenario.training.precision == DataType::kFp8 ? "fp8" : "bf16";
  fill_account(job, outcome, scenario.plan.pp, result);
  wait_for_loader(scenario.training, result);
  const ScheduleShape shape = schedule_shape(scenario.plan, scenario.training);
  const MemoryQuestion memory{scenario.model,    scenario.plan, scenario.training,
                              scenario.software, schedule,      shape, layouts};
  result.memory = memory_footprint(memory);
  result.memory_capacity = scenario.profile.hbm;
  result.simulated_ranks = static_cast<int64_t>(job.ranks.size());
  result.events = outcome.events;
  const RunStep run{out.graph, map, job, fabric, placement, links.capacity, tuning, outcome};
  fill_link_use(run, result);
  fill_collisions(run, result);
  out.transfers = transfer_lines(out.graph, map, tuning);
  result.warnings = scenario.warnings;
  const std::vector<std::string> left_out = unmodelled_parts(scenario);
  result.warnings.insert(result.warnings.end(), left_out.begin(), left_out.end());
  result.warnings.insert(result.warnings.end(), out.costs.warnings.begin(),
                         out.costs.warnings.end());
  warn_of_transfers(out.graph, out.transfers, result.warnings);
  if (keep_records) out.critical_path = critical_ops(run, out.costs);
  if (options.without) out.without = steps_without(run, out.costs, scenario.profile.sms, result);
  if (!options.traced_ranks.empty()) {
    out.trace = make_step_trace(scenario, out.graph, out.costs, map, job, fabric, placement,
                                options.traced_ranks, traced, outcome);
    out.trace.counters = link_counters(run);
    out.passes = schedule_passes(out.trace, memory);
    add_counters(out.passes, out.trace);
  }
  result.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace herdsim
