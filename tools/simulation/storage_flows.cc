#include "tools/simulation/storage_flows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/checkpoint/checkpoint_policy.h"

namespace herdsim {
namespace {

// A GPU's part of what bounds the job and the client of its host; ports are links.
Bandwidth rate_of_gpu(const Scenario& s, StoreAccess access) {
  const StorageModel& storage = s.checkpoint.storage;
  // Data loaders are no load after a failure: what they ask for is a bound of their own.
  const double pipeline = access == StoreAccess::kWrite
                              ? storage.write_gb_per_s
                              : std::max(storage.read_gb_per_s, storage.data_loading_gb_per_s);
  const auto gpus = static_cast<double>(s.gpus);
  const auto on_a_host = static_cast<double>(std::min(s.gpus, s.cluster.gpus_per_host));
  constexpr double kMost = 1e6;  // gigabytes a second of a GPU: no bound
  const double rate = std::min({pipeline / gpus, storage.client_gb_per_s / on_a_host, kMost});
  return std::max(Bandwidth::from_bytes_per_second(1), bytes_per_second(rate * 1e9));
}

OpGraph storage_graph(const Scenario& s, StoreAccess access, Bytes bytes) {
  const bool write = access == StoreAccess::kWrite;
  const double amplified = write ? s.checkpoint.storage.write_amplification : 1;
  OpGraph graph;
  // Groups of tensor-parallel ranks are single ranks here.
  graph.grid = RankGrid({.dp = s.gpus});
  Work flow;
  flow.kind = WorkKind::kCollective;
  flow.stream = Stream::kDp;
  flow.name = write ? "save" : "read";
  flow.communicator = Communicator::kTensor;
  flow.bytes = bytes / s.gpus;
  flow.store = Work::StoreFlow{.access = access,
                               .most = rate_of_gpu(s, access),
                               .disk_crossings = std::llround(kDiskCrossings * amplified)};
  const WorkId work = graph.works.push_back(std::move(flow));
  ProgramBuilder program(graph.works);
  program.add(work, {});
  graph.programs.push_back(program.build());
  return graph;
}

Machine machine_beside(const Machine& of_job) {
  Machine machine = of_job;
  machine.is_shared = true;
  return machine;
}

}  // namespace

StorageJob::StorageJob(const JobOnMachine& job, size_t its_job, StoreAccess its_access,
                       Bytes its_bytes, Duration its_begin)
    : of_job(its_job),
      access(its_access),
      bytes(its_bytes),
      begins(its_begin),
      graph(storage_graph(job.scenario, access, bytes)),
      machine(machine_beside(job.machine)),
      map(map_job(graph, machine)) {}

BackgroundFlow StorageJob::flow(const FoldedJob& folded, bool keeps_rates) const {
  BackgroundFlow flow{
      .job = folded, .plans = {}, .begins = begins, .of_job = of_job, .keeps_rates = keeps_rates};
  for (const GroupShape& shape : folded.lanes.front().shapes) {
    flow.plans.push_back(plan_of(graph.works[WorkId(0)], shape, machine.tuning));
  }
  return flow;
}

bool has_storage_flows(const Scenario& scenario) {
  return scenario.other_traffic.has_storage() ||
         std::any_of(
             scenario.other_jobs.begin(), scenario.other_jobs.end(),
             [](const OtherJob& other) { return other.scenario.other_traffic.has_storage(); });
}

Scenario without_storage_flows(Scenario scenario) {
  scenario.other_traffic.saving = scenario.other_traffic.loading = false;
  for (OtherJob& other : scenario.other_jobs) {
    other.scenario.other_traffic.saving = other.scenario.other_traffic.loading = false;
  }
  return scenario;
}

std::vector<std::unique_ptr<StorageJob>> storage_jobs(const JobOnMachine& job, size_t of_job,
                                                      Duration begins, Duration step) {
  const OtherTraffic& traffic = job.scenario.other_traffic;
  const CheckpointRequest& checkpoint = job.scenario.checkpoint;
  std::vector<std::unique_ptr<StorageJob>> jobs;
  const auto add = [&](StoreAccess access, double bytes, Duration after) {
    const auto whole = Bytes(std::llround(bytes));
    if (whole <= Bytes()) return;
    jobs.push_back(std::make_unique<StorageJob>(job, of_job, access, whole, begins + after));
  };
  if (traffic.saving) {
    add(StoreAccess::kWrite, static_cast<double>(checkpoint.bytes.count()) * traffic.save_left,
        traffic.save_begins);
  }
  if (traffic.loading) {
    add(StoreAccess::kRead, checkpoint.storage.data_loading_gb_per_s * 1e9 * step.seconds(),
        Duration::zero());
  }
  return jobs;
}

void set_disk_rates(const Scenario& scenario, MachineState& state) {
  const LinkId disks = state.fabric.nodes()[state.fabric.storage()->disks].down();
  const BurstRates rates = burst_rates(shared_store(scenario.checkpoint.storage), kDiskCrossings);
  state.links.capacity[disks] = rates.depth > Bytes() ? rates.peak : rates.sustained;
}

std::optional<Burst> disk_burst(const Scenario& scenario, const Fabric& fabric,
                                const FoldedJob& folded) {
  const BurstRates rates = burst_rates(shared_store(scenario.checkpoint.storage), kDiskCrossings);
  if (rates.depth <= Bytes()) return std::nullopt;
  const std::vector<LinkId>& links = folded.representative_link;
  const auto at =
      std::find(links.begin(), links.end(), fabric.nodes()[fabric.storage()->disks].down());
  if (at == links.end()) return std::nullopt;
  return Burst{LinkId(static_cast<size_t>(at - links.begin())), rates};
}

}  // namespace herdsim
