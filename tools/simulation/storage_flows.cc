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

StorageJob::StorageJob(const JobOnMachine& job, StoreAccess its_access, Bytes its_bytes,
                       Duration its_begin)
    : access(its_access),
      bytes(its_bytes),
      begins(its_begin),
      graph(storage_graph(job.scenario, access, bytes)),
      costs(cost_graph(graph, job.scenario.profile, job.scenario.software)),
      machine(machine_beside(job.machine)),
      map(map_job(graph, machine)),
      sms(job.sms) {}

SharingJob StorageJob::sharing(const FoldedJob& folded) const {
  return {.graph = graph,
          .costs = costs,
          .job = folded,
          .tuning = machine.tuning,
          .sms = sms,
          .traced = {},
          .begins = begins,
          .is_background = true};
}

std::vector<std::unique_ptr<StorageJob>> storage_jobs(const JobOnMachine& job, Duration step) {
  const OtherTraffic& traffic = job.scenario.other_traffic;
  const CheckpointRequest& checkpoint = job.scenario.checkpoint;
  std::vector<std::unique_ptr<StorageJob>> jobs;
  const auto add = [&](StoreAccess access, double bytes, Duration begins) {
    const auto whole = Bytes(std::llround(bytes));
    if (whole > Bytes()) jobs.push_back(std::make_unique<StorageJob>(job, access, whole, begins));
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
  const SharedStore store = shared_store(scenario.checkpoint.storage);
  const StoragePart& part = *state.fabric.storage();
  const LinkId disks = state.fabric.nodes()[part.disks].down();
  const bool peaks = store.burst > Duration::zero() && store.burst_factor > 1;
  // A peak of more than 2^63 / 100 bytes a second is none.
  const auto counted = [](Bandwidth rate) {
    constexpr auto kMost = int64_t{1} << 56;
    return Bandwidth::from_bytes_per_second(std::min(rate.bytes_per_second(), kMost)) *
           kDiskCrossings;
  };
  state.links.capacity[disks] = counted(peaks ? store.peak() : store.sustained);
  if (!peaks) return;
  // The credit lasts at least that long, whenever the flows begin.
  std::vector<CapacityChange>& changes = state.links.changes;
  changes.push_back({store.burst, disks, counted(store.sustained)});
  std::stable_sort(changes.begin(), changes.end(),
                   [](const CapacityChange& a, const CapacityChange& b) {
                     return std::pair(a.at, a.link) < std::pair(b.at, b.link);
                   });
}

}  // namespace herdsim
