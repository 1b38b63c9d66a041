#include "tools/simulation/step_answer.h"

#include <algorithm>
#include <string>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "sim/models/data_type_names.h"
#include "tools/simulation/power_counters.h"
#include "tools/simulation/schedule_passes.h"
#include "tools/simulation/step_length.h"
#include "tools/simulation/step_path.h"
#include "tools/simulation/step_trace.h"
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

}  // namespace

void add_wait(Duration wait, StepResult& result) {
  constexpr auto kLoader = static_cast<size_t>(TimeTerm::kLoader);
  result.step_time += wait;
  result.account_rank_nanoseconds[kLoader] += wait.nanoseconds() * result.gpus;
  for (TimeAccount& stage : result.stage_account) stage[kLoader] += wait;
  for (RankClassTime& alike : result.class_account) {
    alike.nanoseconds[kLoader] += wait.nanoseconds();
  }
}

std::vector<RankClassId> traced_classes(const FoldedJob& folded, const StepOptions& options) {
  std::vector<RankClassId> traced;
  for (const RankId rank : options.traced_ranks) {
    const RankClassId c(folded.class_of_rank[rank.index()]);
    if (std::find(traced.begin(), traced.end(), c) == traced.end()) traced.push_back(c);
  }
  return traced;
}

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

StepSimulation answer(const Scenario& scenario, JobOnMachine& job, const MachineState& machine, const FoldedJob& folded,
                      const StepOutcome& outcome, const StepOptions& options,
                      const Company& company) {
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

}  // namespace herdsim
