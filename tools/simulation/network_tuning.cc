#include "tools/simulation/network_tuning.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/collectives/group_path.h"
#include "sim/collectives/nccl_model.h"
#include "sim/models/compute_time.h"
#include "topologies/torus.h"

namespace herdsim {
namespace {

// Of the hosts the tables were measured on.
constexpr double kNvlink = 450e9;
constexpr double kNic = 50e9;
constexpr Bytes kMeasuredSize = gibibytes(1);

// Microseconds. A fabric whose ring steps take this much longer than the bytes on the wire is one of a cloud. Its
// figures are of the jobs of a published grid of runs, 16 to 512 GPUs: each measured its own all-gather, and its steps
// of many small micro-batches are mostly rings over two or four hosts.
constexpr double kSlowStep = 15;
// Gigabytes per second: bus bandwidth of rings over 2 to 4 hosts at 1 GiB, which eight NICs carry together.
constexpr double kCloudRing = 275;
constexpr double kNicsOfAHost = 8;
// The hop of a step. One bandwidth at 1 GiB tells a hop of 40 from one of 50 badly and from one of 150 well: a fabric
// is healthy until the job's own figure says at least twice this.
constexpr double kCloudHop = 38;
// Bytes a channel has under way, of the 512 KiB of one of NCCL's eight steps.
constexpr double kCloudSlice = 410e3;
// An all-reduce of some KiB over the 16 or 32 ranks of two or four hosts takes 3.6 and 14 ms: what steps take beyond
// their rings, three times a micro-batch in the loss and once a norm at the end. Why is not known.
constexpr double kCloudReducePair = 14;
// Up to this many ranks the bytes of a step at 1 GiB outlast any hop.
constexpr int64_t kFewRanks = 32;

void scale(SizeCurve& curve, double factor) {
  for (double& value : curve.values) value *= factor;
}

void scale_to_links(const ClusterSpec& cluster, NcclTuning& tuning) {
  const double nvlink = static_cast<double>(cluster.nvlink.bytes_per_second()) / kNvlink;
  const double nic = static_cast<double>(cluster.nic.bytes_per_second()) / kNic;
  tuning.nvlink_port = cluster.nvlink.gigabytes_per_second();
  tuning.nic_port = cluster.nic.gigabytes_per_second() * cluster.nic_efficiency;
  tuning.ring_bandwidth *= nvlink;
  tuning.nvls_channel *= nvlink;
  tuning.nic_bandwidth *= nic;
  tuning.in_network_nic *= nic;
}

// Microseconds. Half a round trip across groups of a dragonfly, over one inside a group: two
// switches of 350 ns more and some 100 m of fibre (De Sensi et al., "An in-depth analysis of the
// Slingshot interconnect", SC 2020).
constexpr double kAcrossGroups = 1.2;

void take_fabric(const ClusterSpec& cluster, NcclTuning& tuning) {
  tuning.has_in_network = cluster.in_network_reduction;
  const Topology& topology = *find_topology(cluster.topology);
  if (!topology.is_mesh) return;
  tuning.hop_extra[static_cast<size_t>(HopClass::kCrossPod)] = kAcrossGroups;
  if (cluster.torus.empty()) return;
  tuning.torus_link = torus_link(cluster).gigabytes_per_second() * cluster.nic_efficiency;
}

void bound_by_windows(const ClusterSpec& cluster, NcclTuning& tuning) {
  tuning.send_window = cluster.send_window;
  tuning.collective_window = cluster.collective_window;
  const auto at = [&](HopClass hop) -> double& {
    return tuning.round_trip[static_cast<size_t>(hop)];
  };
  at(HopClass::kSameTor) = cluster.tor_round_trip_us;
  at(HopClass::kSamePod) = cluster.pod_round_trip_us;
  at(HopClass::kCrossPod) = cluster.core_round_trip_us;
}

// Seconds of the whole job's collective at 1 GiB, measured; and what the stack measures beside it: of lists of tensors
// the whole result, or the whole input, is read and written once more.
double measured_seconds(CollectiveKind kind, int64_t ranks, Bandwidth bus, const Scenario& scenario) {
  const auto r = static_cast<double>(ranks);
  const double passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const double seconds =
      static_cast<double>(kMeasuredSize.count()) * passes * (r - 1) / r / static_cast<double>(bus.bytes_per_second());
  if (!scenario.software.measures_lists || kind == CollectiveKind::kAllReduce) return seconds;
  const MemoryTraffic copy{kMeasuredSize * 2, StreamClass::kFused};
  // A figure too good for that had no copy in it.
  return std::max(seconds / 2, seconds - stream_cost(copy, scenario.profile).time.seconds());
}

void calibrate_host(CollectiveKind kind, double faster, NcclTuning& tuning) {
  for (CollectiveCorrection& correction : tuning.in_node[static_cast<size_t>(kind)]) {
    scale(correction.efficiency, faster);
  }
}

void calibrate(CollectiveKind kind, Bandwidth measured, const GroupShape& job, const Scenario& scenario,
               NcclTuning& tuning) {
  if (measured <= Bandwidth() || job.ranks <= 1) return;
  const double predicted = plan_collective(kind, kMeasuredSize, job, tuning).alone().seconds();
  const double seconds = measured_seconds(kind, job.ranks, measured, scenario);
  const double faster = predicted / seconds;
  if (job.nodes == 1) return calibrate_host(kind, faster, tuning);
  if (kind == CollectiveKind::kAllReduce) {
    scale(tuning.tree.efficiency, faster);
    scale(tuning.tree_two_nodes.efficiency, faster);
    return;
  }
  const double step = seconds / static_cast<double>(job.ranks - 1) * 1e6;
  const auto chunk = static_cast<double>(kMeasuredSize.count()) / static_cast<double>(job.ranks);
  const double ring = ring_bus_bandwidth(job, tuning);
  if (step <= chunk / (1e3 * ring) + kSlowStep) return;
  tuning.ring_step_bandwidth = std::min(ring, kCloudRing);
  tuning.nic_bandwidth = std::min(tuning.nic_bandwidth, kCloudRing / kNicsOfAHost);
  tuning.small_reduce_pair = kCloudReducePair;
  tuning.ring_step_slice = kCloudSlice;
  const double microsecond = 1e3 * tuning.ring_step_bandwidth;  // bytes in one
  const double slice = kCloudSlice * static_cast<double>(ring_channels(job, tuning)) / microsecond;
  const double hop = job.ranks > kFewRanks ? ring_hop(step, chunk / microsecond, slice) : 0;
  tuning.ring_step_hop = std::max(tuning.ring_step_hop, hop > 2 * kCloudHop ? hop : kCloudHop);
}

std::optional<CollectiveKind> kind_of_curve(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, CollectiveKind>, 5> kKinds = {
      {{"all_reduce", CollectiveKind::kAllReduce},
       {"all_gather", CollectiveKind::kAllGather},
       {"reduce_scatter", CollectiveKind::kReduceScatter},
       {"all_to_all", CollectiveKind::kAllToAll},
       {"send_recv", CollectiveKind::kSendRecv}}};
  for (const auto& [known, kind] : kKinds) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

// The user's own. Published curves are what the tables of sim/collectives were made from.
void take_measured_curves(const DeviceProfile& profile, NcclTuning& tuning) {
  for (const CollectiveCurve& curve : profile.collectives) {
    const std::optional<CollectiveKind> kind = kind_of_curve(curve.kind);
    if (curve.provenance.evidence != Evidence::kMeasured || !kind) continue;
    MeasuredCollective measured{.kind = *kind, .ranks = curve.ranks, .nodes = curve.nodes};
    for (const CollectiveCurve::Point& p : curve.points)
      measured.points.push_back({p.size, p.time});
    tuning.measured.push_back(std::move(measured));
  }
}

}  // namespace

NcclTuning network_tuning(const Scenario& scenario, const Fabric& fabric,
                          const TypedVector<RankId, GpuId>& placement) {
  NcclTuning tuning = h100_tuning(scenario.cluster.nccl_version);
  scale_to_links(scenario.cluster, tuning);
  take_fabric(scenario.cluster, tuning);
  bound_by_windows(scenario.cluster, tuning);
  take_measured_curves(scenario.profile, tuning);
  const MeasuredNetwork& measured = scenario.measured_network;
  if (std::max({measured.all_reduce, measured.all_gather, measured.reduce_scatter}) > Bandwidth()) {
    std::vector<GpuId> members(placement.values().begin(), placement.values().end());
    const GroupShape job = group_shape(fabric, members);
    calibrate(CollectiveKind::kAllGather, measured.all_gather, job, scenario, tuning);
    calibrate(CollectiveKind::kReduceScatter, measured.reduce_scatter, job, scenario, tuning);
    // By then the NICs are known.
    calibrate(CollectiveKind::kAllReduce, measured.all_reduce, job, scenario, tuning);
  }
  return tuning;
}

}  // namespace herdsim
