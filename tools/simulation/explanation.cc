#include "tools/simulation/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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
               ? fmt::format("{}x{}h", a->query_tokens, a->heads)
               : fmt::format("{}x{}x{}h", a->query_tokens, a->kv_tokens, a->heads);
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

// Of the tensors of a product: read once, written once.
Bytes operands_of(const GemmShape& g) {
  return Bytes((g.m * g.k + g.k * g.n + g.m * g.n) * g.groups * bytes_per_element(g.dtype));
}

// Operations over bytes, where the kernel has both.
std::optional<double> intensity_of(const Kernel& kernel) {
  const auto* gemm = std::get_if<GemmShape>(&kernel.work);
  if (gemm == nullptr) return std::nullopt;
  const auto bytes = static_cast<double>(operands_of(*gemm).count());
  return bytes > 0 ? std::optional(gemm->flops().count() / bytes) : std::nullopt;
}

double flops_of(const Kernel& kernel) {
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.work)) return gemm->flops().count();
  if (const auto* a = std::get_if<AttentionShape>(&kernel.work)) return a->flops().count();
  return 0;
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
      line.term = kernel.term;
      line.flops = flops_of(kernel);
      line.intensity = intensity_of(kernel);
      if (const auto* stream = std::get_if<MemoryTraffic>(&kernel.work)) line.moved = stream->moved;
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

// The bus bandwidth at which the links are full, gigabytes a second. Across hosts a ring leaves
// each by every NIC that its members have there; in an all-to-all each NIC carries what its own
// rank sends to other hosts.
double bus_bound(const ClusterSpec& cluster, CollectiveKind kind, const GroupShape& group) {
  const double nvlink = cluster.nvlink.gigabytes_per_second();
  const double nic = cluster.nic.gigabytes_per_second();
  if (group.nodes == 1) return nvlink;
  const auto ranks = static_cast<double>(group.ranks);
  const auto width = static_cast<double>(std::max<int64_t>(1, group.ranks_per_node()));
  if (kind == CollectiveKind::kAllToAll) return nic * (ranks - 1) / (ranks - width);
  return std::min(nic * width, nvlink);
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
    const std::string name = transfer_name(work);
    ExplainedTransfer& line = lines[{name, transfer.bytes.count()}];
    line.name = name;
    line.exposed_as = work.exposed_as;
    line.calls += count;
    line.group = transfer.group;
    line.plan = transfer.plan;
    line.bytes = transfer.bytes;
    const double seconds = transfer.plan.alone().seconds();
    line.seconds += count * seconds;
    line.bus_gigabytes = static_cast<double>(transfer.bytes.count()) * 1e-9 / seconds *
                         bus_factor(kind, transfer.group.ranks);
    line.bound_gigabytes = bus_bound(scenario.cluster, kind, transfer.group);
  }
  std::vector<ExplainedTransfer> out;
  for (auto& [key, line] : lines) out.push_back(std::move(line));
  std::stable_sort(
      out.begin(), out.end(),
      [](const ExplainedTransfer& a, const ExplainedTransfer& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace

// Collectives of layers are named by their kind alone.
std::string transfer_name(const Work& work) {
  const std::string axis = work.stream == Stream::kTp   ? "TP "
                           : work.stream == Stream::kCp ? "CP "
                                                        : "";
  return axis + work.name;
}

std::string rate_text(double gigabytes) {
  return gigabytes >= 9.95 ? fmt::format("{:.0f}", gigabytes) : fmt::format("{:.1f}", gigabytes);
}

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

}  // namespace herdsim
