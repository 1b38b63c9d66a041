#include "tools/calibrate/scenario_probes.h"

#include <algorithm>
#include <array>
#include <set>

#include "workloads/lowering.h"

namespace herdsim {
namespace {

class ProbeList {
 public:
  void add(const Probe& probe) {
    if (seen_.insert(probe_key(probe)).second) probes_.push_back(probe);
  }
  std::vector<Probe> take() { return std::move(probes_); }

 private:
  std::set<std::string> seen_;
  std::vector<Probe> probes_;
};

}  // namespace

OpGraph graph_of(const Scenario& scenario) {
  const WorkloadSpec workload{scenario.model, scenario.plan, scenario.training, scenario.software};
  const ScheduleRow& schedule = *find_schedule(scenario.training.schedule);
  return lower_step(workload, schedule, layout_stages(scenario.model, scenario.plan, schedule));
}

Probe probe_of(const Kernel& kernel) {
  return std::visit([](const auto& work) { return Probe(work); }, kernel.work);
}

Probe probe_of_transfer(const Work& work) {
  constexpr std::array<std::string_view, kCollectiveKinds> kKinds = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_gather", "send_recv"};
  return CollectiveProbe{std::string(kKinds[static_cast<size_t>(work.collective)]), work.bytes};
}

std::vector<Probe> probes_of(const OpGraph& graph) {
  ProbeList list;
  list.add(LaunchProbe{});
  list.add(PeakProbe{});
  for (size_t w = 0; w < graph.works.size(); ++w) {
    const Work& work = graph.works[WorkId(w)];
    for (const Kernel& kernel : work.kernels) {
      const Probe probe = probe_of(kernel);
      if (const auto* g = std::get_if<GemmShape>(&probe)) {
        if (g->m <= 0 || g->n <= 0 || g->k <= 0) continue;
        GemmShape forward = *g;
        forward.pass = GemmPass::kForward;
        list.add(forward);
      }
      if (const auto* s = std::get_if<MemoryTraffic>(&probe)) {
        if (s->moved <= Bytes()) continue;
        list.add(MemoryTraffic{s->moved * 4, s->stream});
        if (s->moved > Bytes(4)) list.add(MemoryTraffic{s->moved / 4, s->stream});
      }
      list.add(probe);
    }
    if (work.kind == WorkKind::kCollective && work.bytes > Bytes()) {
      const auto probe = std::get<CollectiveProbe>(probe_of_transfer(work));
      for (const int64_t bytes :
           {probe.bytes.count() / 4, probe.bytes.count(), probe.bytes.count() * 4}) {
        if (bytes > 0) list.add(CollectiveProbe{probe.kind, Bytes(bytes)});
      }
    }
  }
  return list.take();
}

}  // namespace herdsim
