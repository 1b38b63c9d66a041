#include "tools/simulation/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

std::string shape_text(const Kernel& kernel) {
  if (const auto* g = std::get_if<GemmShape>(&kernel.work)) {
    return fmt::format("{}x{}x{}", g->m, g->n, g->k);
  }
  if (const auto* a = std::get_if<AttentionShape>(&kernel.work)) {
    return a->query_tokens == a->kv_tokens
               ? fmt::format("{} tokens, {} heads", a->query_tokens, a->heads)
               : fmt::format("{}x{} tokens, {} heads", a->query_tokens, a->kv_tokens, a->heads);
  }
  return to_text(std::get<MemoryTraffic>(kernel.work).moved);
}

std::string pass_of(const Kernel& kernel) {
  if (const auto* g = std::get_if<GemmShape>(&kernel.work)) {
    switch (g->pass) {
      case GemmPass::kForward:
        return "";
      case GemmPass::kDgrad:
        return " dgrad";
      case GemmPass::kWgrad:
        return " wgrad";
    }
  }
  const auto* a = std::get_if<AttentionShape>(&kernel.work);
  return a != nullptr && a->pass == AttentionPass::kBackward ? " backward" : "";
}

int64_t busiest_stage(const StepResult& result) {
  const auto busy = [](const TimeAccount& account) {
    return account[static_cast<size_t>(TimeTerm::kCompute)] +
           account[static_cast<size_t>(TimeTerm::kMemoryBound)];
  };
  const auto at = std::max_element(
      result.stage_account.begin(), result.stage_account.end(),
      [&](const TimeAccount& x, const TimeAccount& y) { return busy(x) < busy(y); });
  return at - result.stage_account.begin();
}

std::vector<double> calls_by_work(const OpGraph& graph, int64_t stage) {
  std::vector<double> calls(graph.works.size(), 0);
  for (const Op& op : graph.programs[ProgramId(static_cast<size_t>(stage))].ops) {
    calls[op.work.index()] += 1;
  }
  return calls;
}

// Kernels of one name and shape are one line, whatever pass or template they are in.
std::vector<ExplainedKernel> explain_kernels(const StepSimulation& step,
                                             const std::vector<double>& calls) {
  std::map<std::pair<std::string, std::string>, ExplainedKernel> lines;
  for (size_t w = 0; w < step.graph.works.size(); ++w) {
    if (calls[w] == 0) continue;
    const Work& work = step.graph.works[WorkId(w)];
    const WorkCost& cost = step.costs.works[WorkId(w)];
    for (size_t k = 0; k < work.kernels.size(); ++k) {
      const Kernel& kernel = work.kernels[k];
      const std::string name = kernel.name + pass_of(kernel);
      const std::string shape = shape_text(kernel);
      ExplainedKernel& line = lines[{name, shape}];
      line.name = name;
      line.shape = shape;
      line.calls += calls[w] * kernel.repeats;
      line.time = seconds_rounded_up(cost.kernels[k].time.seconds() / kernel.repeats);
      line.seconds += calls[w] * cost.kernels[k].time.seconds();
      line.of_bound = cost.kernels[k].cost.of_peak;
      line.memory_bound = std::holds_alternative<MemoryTraffic>(kernel.work);
      line.evidence = cost.kernels[k].cost.evidence;
      line.extrapolated = cost.kernels[k].cost.extrapolated;
    }
  }
  std::vector<ExplainedKernel> out;
  for (auto& [key, line] : lines) out.push_back(std::move(line));
  std::stable_sort(out.begin(), out.end(), [](const ExplainedKernel& a, const ExplainedKernel& b) {
    return a.seconds > b.seconds;
  });
  return out;
}

// nccl-tests' bus bandwidth: size over time, times what a rank has to send of it.
double bus_factor(CollectiveKind kind, int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * share;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return share;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendRecv:
      return 1;
  }
  return 1;
}

std::vector<ExplainedTransfer> explain_transfers(const Scenario& scenario,
                                                 const StepSimulation& step,
                                                 const std::vector<double>& calls) {
  std::map<std::pair<std::string, int64_t>, ExplainedTransfer> lines;
  for (const TransferLine& transfer : step.transfers) {
    const Work& work = step.graph.works[transfer.work];
    const double count = calls[transfer.work.index()];
    if (count == 0) continue;
    const bool is_send = work.kind == WorkKind::kSend;
    const CollectiveKind kind = is_send ? CollectiveKind::kSendRecv : work.collective;
    // Collectives of layers are named by their kind alone.
    const std::string axis = work.stream == Stream::kTp   ? "TP "
                             : work.stream == Stream::kCp ? "CP "
                                                          : "";
    const std::string name = axis + work.name;
    ExplainedTransfer& line = lines[{name, work.bytes.count()}];
    line.name = name;
    line.calls += count;
    line.group = transfer.group;
    line.plan = transfer.plan;
    line.bytes = work.bytes;
    const double seconds = transfer.plan.alone().seconds();
    line.seconds += count * seconds;
    line.bus_gigabytes = static_cast<double>(work.bytes.count()) * 1e-9 / seconds *
                         bus_factor(kind, transfer.group.ranks);
    const auto width = static_cast<double>(transfer.group.ranks_per_node());
    line.bound_gigabytes =
        transfer.group.nodes == 1
            ? scenario.cluster.nvlink.gigabytes_per_second()
            : std::min(scenario.cluster.nic.gigabytes_per_second() * std::max(1.0, width),
                       scenario.cluster.nvlink.gigabytes_per_second());
  }
  std::vector<ExplainedTransfer> out;
  for (auto& [key, line] : lines) out.push_back(std::move(line));
  std::stable_sort(
      out.begin(), out.end(),
      [](const ExplainedTransfer& a, const ExplainedTransfer& b) { return a.seconds > b.seconds; });
  return out;
}

std::string calls_text(double calls) {
  return calls == static_cast<double>(static_cast<int64_t>(calls))
             ? count_text(static_cast<int64_t>(calls))
             : fmt::format("{:.1f}", calls);
}

}  // namespace

Explanation explain_step(const Scenario& scenario, const StepSimulation& step) {
  Explanation out;
  out.busiest_stage = busiest_stage(step.result);
  const std::vector<double> calls = calls_by_work(step.graph, out.busiest_stage);
  out.kernels = explain_kernels(step, calls);
  out.transfers = explain_transfers(scenario, step, calls);
  out.bubble = step.result.bubble_fraction();
  const ScheduleShape shape = schedule_shape(scenario.plan, scenario.training);
  out.bubble_bound = find_schedule(scenario.training.schedule)->bubble_bound(shape);
  return out;
}

std::string explanation_table(const Scenario& scenario, const StepSimulation& step) {
  const Explanation e = explain_step(scenario, step);
  const double whole = step.result.step_time.seconds();
  std::string text = fmt::format("Kernels of one rank of stage {}, the busiest, in a step of {}\n\n",
                                 e.busiest_stage, to_text(step.result.step_time));
  TextTable kernels({{"kernel"},
                     {"shape"},
                     {"calls", Align::kRight},
                     {"one call", Align::kRight},
                     {"of step", Align::kRight},
                     {"of bound", Align::kRight},
                     {"label"}});
  for (const ExplainedKernel& k : e.kernels) {
    if (k.seconds < 0.0005 * whole) continue;
    kernels.add_row({k.name, k.shape, calls_text(k.calls), to_text(k.time),
                     fmt::format("{:.1f} %", 100 * k.seconds / whole),
                     fmt::format("{:.0f} % {}", 100 * k.of_bound.value(),
                                 k.memory_bound ? "HBM" : "peak"),
                     std::string(evidence_name(k.evidence)) + (k.extrapolated ? "*" : "")});
  }
  text += kernels.text();
  text += "  * outside the range that was measured\n\nTransfers, without contention\n\n";
  TextTable transfers({{"transfer"},
                       {"size", Align::kRight},
                       {"group", Align::kRight},
                       {"calls", Align::kRight},
                       {"algorithm"},
                       {"one call", Align::kRight},
                       {"bus / bound", Align::kRight}});
  for (const ExplainedTransfer& t : e.transfers) {
    transfers.add_row({t.name, to_text(t.bytes),
                       fmt::format("{} on {}", t.group.ranks, t.group.nodes), calls_text(t.calls),
                       fmt::format("{} {}", algorithm_name(t.plan.algorithm),
                                   protocol_name(t.plan.protocol)),
                       to_text(t.plan.alone()),
                       fmt::format("{:.1f} / {:.0f} GB/s", t.bus_gigabytes, t.bound_gigabytes)});
  }
  text += transfers.text();
  text += fmt::format(
      "\nBubble: {:.1f} % of the step; {}'s closed form is {:.1f} % of a stage's compute\n"
      "with free transfers.\n",
      100 * e.bubble, scenario.training.schedule, 100 * e.bubble_bound);
  return text;
}

std::string explanation_json(const Scenario& scenario, const StepSimulation& step) {
  const Explanation e = explain_step(scenario, step);
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const ExplainedKernel& k : e.kernels) {
    kernels.push_back({{"kernel", k.name},
                       {"shape", k.shape},
                       {"calls", k.calls},
                       {"call_s", k.time.seconds()},
                       {"total_s", k.seconds},
                       {"of_bound", k.of_bound.value()},
                       {"bound", k.memory_bound ? "hbm" : "peak"},
                       {"evidence", evidence_name(k.evidence)},
                       {"extrapolated", k.extrapolated}});
  }
  nlohmann::ordered_json transfers = nlohmann::ordered_json::array();
  for (const ExplainedTransfer& t : e.transfers) {
    transfers.push_back({{"transfer", t.name},
                         {"bytes", t.bytes.count()},
                         {"ranks", t.group.ranks},
                         {"hosts", t.group.nodes},
                         {"calls", t.calls},
                         {"algorithm", algorithm_name(t.plan.algorithm)},
                         {"protocol", protocol_name(t.plan.protocol)},
                         {"call_s", t.plan.alone().seconds()},
                         {"total_s", t.seconds},
                         {"bus_bandwidth_GBps", t.bus_gigabytes},
                         {"bound_GBps", t.bound_gigabytes}});
  }
  const nlohmann::ordered_json all = {{"scenario", step.result.scenario},
                                      {"step_time_s", step.result.step_time.seconds()},
                                      {"busiest_stage", e.busiest_stage},
                                      {"bubble_fraction", e.bubble},
                                      {"bubble_closed_form_of_compute", e.bubble_bound},
                                      {"kernels", kernels},
                                      {"transfers", transfers}};
  return all.dump(2) + "\n";
}

}  // namespace herdsim
