#include "tools/simulation/link_use.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// The parallelism that a transfer serves, by where waiting for it is booked.
std::string parallelism(const Work& work) {
  switch (work.exposed_as) {
    case TimeTerm::kExposedTp:
      return "TP";
    case TimeTerm::kExposedCp:
      return "CP";
    case TimeTerm::kExposedEp:
      return "EP";
    case TimeTerm::kExposedPp:
      return "PP";
    case TimeTerm::kExposedDp:
      return "DP";
    case TimeTerm::kCompute:
    case TimeTerm::kMemoryBound:
    case TimeTerm::kBubble:
    case TimeTerm::kOptimizer:
    case TimeTerm::kStraggler:
    case TimeTerm::kLoader:
    case TimeTerm::kOther:
      break;
  }
  return "job";
}

std::string label_of(const FoldedLane& lane, const Work& work) {
  return parallelism(work) + " " +
         (lane.is_message ? "send" : std::string(collective_kind_name(work.collective)));
}

Bytes volume_of(const RunStep& step, const FoldedLane& lane, uint32_t transfer, WorkId work) {
  const Work& w = step.graph.works[work];
  const GroupShape& shape = lane.shapes[lane.transfers[transfer].shape];
  if (!lane.is_message) return plan_of(w, shape, step.tuning).volume;
  return plan_collective(CollectiveKind::kSendRecv, w.bytes, shape, step.tuning).volume;
}

constexpr std::string_view kOtherJobs = "other jobs";

// Capacity and loads of disks are counted in crossings, as many as this a byte.
int64_t counts_a_byte(LinkKind kind) { return kind == LinkKind::kDisks ? kDiskCrossings : 1; }

// Names links by what is at their lower end.
class LinkNames {
 public:
  explicit LinkNames(const Fabric& fabric) : fabric_(fabric) {
    number_.reserve(fabric.nodes().size());
    std::array<size_t, kNodeKinds> next{};
    for (const Node& node : fabric.nodes()) {
      number_.push_back(next[static_cast<size_t>(node.kind)]++);
    }
  }

  std::string name(LinkId id, bool both_ways) const {
    const Link& link = fabric_.links()[id];
    const bool up = link.from < link.to;
    const NodeId lower = up ? link.from : link.to;
    const std::string number = std::to_string(number_[lower.index()]);
    const std::string way = both_ways ? " both ways" : up ? " up" : " down";
    switch (link.kind) {
      case LinkKind::kNvLink:
        return "NVLink of GPU " + number + way;
      case LinkKind::kPcie:
        return "PCIe of GPU " + number + way;
      case LinkKind::kNicToTor:
        return "NIC of GPU " + number + way;
      case LinkKind::kTorToPod:
        return "ToR " + number + way;
      case LinkKind::kPodToCore:
        return "pod " + number + way;
      case LinkKind::kFrontendPort:
        return "frontend port of host " + number + way;
      case LinkKind::kFrontendUplink:
        return "frontend switch " + number + way;
      case LinkKind::kStorageServer:
        return "storage servers, " +
               std::string(link.from == fabric_.storage()->servers ? "reads" : "writes");
      case LinkKind::kDisks:
        return "disks of the storage servers";
      case LinkKind::kSwitchToSwitch:
      case LinkKind::kGroupToGroup: {
        const std::string end = fabric_.torus() ? "chip " : "ToR ";
        return end + std::to_string(number_[link.from.index()]) + " to " +
               std::to_string(number_[link.to.index()]) + (both_ways ? " and back" : "");
      }
    }
    return "";
  }

 private:
  const Fabric& fabric_;
  std::vector<size_t> number_;  // of a node among its kind
};

using Loads = std::map<std::string, int64_t>;  // bytes, by label

// Links that carry the same.
struct Alike {
  LinkId first;
  size_t order = 0;
  FoldedJob::Directions links;
};

class LinkUses {
 public:
  explicit LinkUses(const RunStep& step) : step_(step) {
    loads_.resize(step.job.representative_link.size());
    rounding_.resize(loads_.size());
    for (const TransferRuns& runs : step.outcome.transfers) add(runs);
    for (const BesideFlow& flow : step.flows) add(flow);
    if (step.shares) add_others();
    for (size_t l = 0; l < loads_.size(); ++l) {
      const LinkId link = step.job.representative_link[l];
      add_links(link, link.index(), step.job.links_of_class[l], loads_[l]);
    }
    for (auto& [key, loads] : own_) {
      const auto [lane, transfer, kind] = key;
      const FoldedTransfer& t = step.job.lanes[lane].transfers[transfer];
      const FoldedLane& whole = step.job.lanes[lane];
      // Half of the links of a port are each way.
      const auto each = static_cast<int64_t>(own_links(whole, kind).links / whole.instances / 2);
      const int64_t links = each * t.instances;
      add_links(own_link(whole, t.instance, kind), t.instance, {links, links}, loads);
    }
  }

  std::vector<std::pair<Alike, LinkUse>> list() const {
    const LinkNames names(step_.fabric);
    std::vector<std::pair<Alike, LinkUse>> uses;
    for (const auto& [key, alike] : alike_) {
      const auto& [kind, capacity, loads] = key;
      LinkUse use{.tier = std::string(link_kind_name(kind)),
                  .first = names.name(alike.first, alike.links.up > 0 && alike.links.down > 0),
                  .links = alike.links.up + alike.links.down,
                  .capacity = Bandwidth::from_bytes_per_second(capacity / counts_a_byte(kind))};
      for (const auto& [label, bytes] : loads) {
        use.loads.push_back({label, Bytes(bytes / counts_a_byte(kind))});
        use.carried += use.loads.back().carried;
      }
      std::stable_sort(use.loads.begin(), use.loads.end(),
                       [](const auto& a, const auto& b) { return a.carried > b.carried; });
      uses.emplace_back(alike, std::move(use));
    }
    return uses;
  }

 private:
  using OwnKey = std::tuple<uint32_t, uint32_t, LinkKind>;
  using AlikeKey = std::tuple<LinkKind, int64_t, Loads>;

  static const OwnLinks& own_links(const FoldedLane& lane, LinkKind kind) {
    return *std::find_if(lane.own_links.begin(), lane.own_links.end(),
                         [kind](const OwnLinks& own) { return own.kind == kind; });
  }

  void add(const TransferRuns& runs) {
    const FoldedLane& lane = step_.job.lanes[runs.lane];
    const int64_t bytes = runs.runs * volume_of(step_, lane, runs.transfer, runs.work).count();
    if (bytes == 0) return;
    const std::string label = label_of(lane, step_.graph.works[runs.work]);
    for (const Crossing& crossing : lane.path(lane.transfers[runs.transfer])) {
      loads_[crossing.link.index()][label] += bytes * crossing.count;
    }
    for (const OwnLinks& own : lane.own_links) {
      own_[{runs.lane, runs.transfer, own.kind}][label] += bytes * own.count;
    }
  }

  void add(const BesideFlow& beside) {
    const FoldedLane& lane = beside.flow.job.lanes.front();
    for (size_t t = 0; t < lane.transfers.size(); ++t) {
      const int64_t moved = beside.outcome.moved[t].count();
      if (moved == 0) continue;
      for (const Crossing& crossing : lane.path(lane.transfers[t])) {
        loads_[crossing.link.index()][std::string(beside.label)] += moved * crossing.count;
        rounding_[crossing.link.index()] += crossing.count;
      }
    }
  }
  // On links that this job uses.
  void add_others() {
    for (size_t l = 0; l < loads_.size(); ++l) {
      if (loads_[l].empty()) continue;
      int64_t others = step_.outcome.link_bytes[LinkId(l)].count();
      for (const auto& [_, bytes] : loads_[l]) others -= bytes;
      if (others > rounding_[l]) loads_[l][std::string(kOtherJobs)] = others;
    }
  }

  // Of a link that is down when the step begins, and comes back, what it is built for.
  Bandwidth capacity_of(LinkId link) const {
    const Bandwidth at_begin = step_.capacity[link];
    return at_begin > Bandwidth() ? at_begin : step_.fabric.links()[link].capacity;
  }

  // The first member's port.
  LinkId own_link(const FoldedLane& lane, uint32_t instance, LinkKind kind) const {
    const RankId rank = step_.graph.grid.member(CommGroupId(instance), lane.communicator, 0);
    const GpuId gpu = step_.placement[rank];
    if (kind == LinkKind::kNvLink) return step_.fabric.nvlink_out(gpu);
    NodeId node = step_.fabric.node_of(gpu);
    while (step_.fabric.links()[step_.fabric.nodes()[node].up].kind != kind) {
      node = step_.fabric.nodes()[node].parent;
    }
    return step_.fabric.nodes()[node].up;
  }

  // `order` is the same for a class and for the first of its members alone.
  void add_links(LinkId first, size_t order, const FoldedJob::Directions& links,
                 const Loads& loads) {
    if (loads.empty()) return;
    const LinkKind kind = step_.fabric.links()[first].kind;
    Alike& alike = alike_[{kind, capacity_of(first).bytes_per_second(), loads}];
    if (alike.links.up + alike.links.down == 0 || order < alike.order) {
      alike.first = first;
      alike.order = order;
    }
    alike.links.up += links.up;
    alike.links.down += links.down;
  }

  const RunStep& step_;
  std::vector<Loads> loads_;  // of one link, by link class
  // Bytes that flows on their way may have moved more than is counted: one a crossing.
  std::vector<int64_t> rounding_;
  std::map<OwnKey, Loads> own_;
  std::map<AlikeKey, Alike> alike_;
};

}  // namespace

void fill_link_use(const RunStep& step, StepResult& result) {
  std::vector<std::pair<Alike, LinkUse>> uses = LinkUses(step).list();
  std::map<std::string, TierUse> tiers;
  for (const auto& [_, use] : uses) {
    TierUse& tier = tiers[use.tier];
    const double share = use.use(result.step_time);
    tier.mean_use += share * static_cast<double>(use.links);
    tier.highest_use = std::max(tier.highest_use, share);
    tier.links += use.links;
  }
  for (size_t k = 0; k < kLinkKinds; ++k) {
    const auto kind = static_cast<LinkKind>(k);
    const auto found = tiers.find(std::string(link_kind_name(kind)));
    if (found == tiers.end()) continue;
    TierUse tier = found->second;
    tier.tier = found->first;
    tier.mean_use /= static_cast<double>(tier.links);
    result.tiers.push_back(std::move(tier));
  }
  std::stable_sort(uses.begin(), uses.end(), [&](const auto& a, const auto& b) {
    return std::pair(-a.second.use(result.step_time), a.first.first) <
           std::pair(-b.second.use(result.step_time), b.first.first);
  });
  for (size_t i = 0; i < std::min(uses.size(), kMostLinkUses); ++i) {
    result.links.push_back(std::move(uses[i].second));
  }
}

// Several lanes of one parallelism, such as sends forward and backward, are one row: the slower.
void fill_collisions(const RunStep& step, StepResult& result) {
  const auto name_of = [&](size_t lane) -> std::string {
    if (step.job.lanes[lane].is_message) return "PP";
    for (size_t w = 0; w < step.graph.works.size(); ++w) {
      const Work& work = step.graph.works[WorkId(w)];
      const bool of_lane =
          work.kind == WorkKind::kCollective && step.job.lane_of_work[WorkId(w)] == lane;
      if (of_lane) return parallelism(work);
    }
    return "job";
  };
  constexpr double kTooLittleToTell = 1.0005;
  for (size_t l = 0; l < step.job.lanes.size(); ++l) {
    const SpreadEffect& effect = step.job.lanes[l].spread;
    if (effect.connections == 0 || effect.worst <= kTooLittleToTell) continue;
    const Collisions lane{.transfers = name_of(l),
                          .slowest_factor = 1 / effect.worst,
                          .mean_factor = 1 / effect.mean,
                          .error = effect.error / (effect.worst * effect.worst),
                          .connections = effect.connections};
    const auto same =
        std::find_if(result.collisions.begin(), result.collisions.end(),
                     [&](const Collisions& c) { return c.transfers == lane.transfers; });
    if (same == result.collisions.end()) {
      result.collisions.push_back(lane);
    } else if (lane.slowest_factor < same->slowest_factor) {
      *same = lane;
    }
  }
}

namespace {

// Changes of the load of one link, GB/s, by instant.
class LinkLoad {
 public:
  LinkLoad(const RunStep& step, LinkId link) : step_(step), link_(link) {
    for (const TransferSpan& move : step.outcome.moves) add(move);
    for (const BesideFlow& flow : step.flows) add(flow);
  }

  std::vector<CounterSample> samples() const {
    std::vector<CounterSample> samples;
    double load = 0;
    for (const auto& [at, change] : changes_) {
      load += change;
      samples.push_back({at, std::max(0.0, load)});
    }
    return samples;
  }

 private:
  void add(const TransferSpan& move) {
    const FoldedLane& lane = step_.job.lanes[move.lane];
    const double seconds = (move.end - move.begin).seconds();
    const int64_t count = crossings(lane, move.transfer);
    if (count == 0 || seconds <= 0) return;
    const Bytes volume = volume_of(step_, lane, move.transfer, move.work);
    const double rate = static_cast<double>(volume.count() * count) / seconds * 1e-9;
    changes_[move.begin] += rate;
    changes_[move.end] -= rate;
  }
  void add(const BesideFlow& beside) {
    const FoldedLane& lane = beside.flow.job.lanes.front();
    std::vector<double> rates(lane.transfers.size(), 0);
    for (const RateChange& change : beside.outcome.rates) {
      const int64_t count = crossings(lane, change.transfer);
      if (count == 0) continue;
      const double rate =
          change.rate.gigabytes_per_second() * static_cast<double>(count) /
          static_cast<double>(counts_a_byte(
              step_.fabric.links()[step_.job.representative_link[link_.index()]].kind));
      changes_[change.at] += rate - rates[change.transfer];
      rates[change.transfer] = rate;
    }
  }
  int64_t crossings(const FoldedLane& lane, uint32_t transfer) const {
    for (const Crossing& crossing : lane.path(lane.transfers[transfer])) {
      if (crossing.link == link_) return crossing.count;
    }
    return 0;
  }

  const RunStep& step_;
  const LinkId link_;
  std::map<Instant, double> changes_;
};

}  // namespace

std::vector<Counter> link_counters(const RunStep& step) {
  // The class that carried most for its capacity, by tier.
  const FoldedJob& job = step.job;
  std::map<LinkKind, size_t> busiest;
  const auto use = [&](size_t l) {
    return static_cast<double>(step.outcome.link_bytes[LinkId(l)].count()) /
           static_cast<double>(std::max<int64_t>(1, job.capacity[LinkId(l)].bytes_per_second()));
  };
  for (size_t l = 0; l < job.representative_link.size(); ++l) {
    const LinkKind kind = step.fabric.links()[job.representative_link[l]].kind;
    const auto [at, is_new] = busiest.emplace(kind, l);
    if (!is_new && use(l) > use(at->second)) at->second = l;
  }
  const LinkNames names(step.fabric);
  std::vector<Counter> counters;
  for (const auto& [kind, l] : busiest) {
    Counter counter{.of_cluster = true,
                    .name = std::string(link_kind_name(kind)) + ": " +
                            names.name(job.representative_link[l], kind == LinkKind::kDisks),
                    .unit = "GB/s",
                    .samples = LinkLoad(step, LinkId(l)).samples()};
    if (!counter.samples.empty()) counters.push_back(std::move(counter));
  }
  return counters;
}

std::vector<ClusterSpan> storage_spans(const RunStep& step) {
  std::vector<ClusterSpan> spans;
  for (const BesideFlow& beside : step.flows) {
    const FoldedLane& lane = beside.flow.job.lanes.front();
    Bytes bytes;
    for (const FoldedTransfer& t : lane.transfers)
      bytes += beside.flow.plans[t.shape].volume * t.instances;
    const Instant begin = Instant::start() + beside.flow.begins;
    spans.push_back({std::string(beside.label), begin, begin + beside.outcome.took, bytes});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const ClusterSpan& a, const ClusterSpan& b) { return a.begin < b.begin; });
  return spans;
}

}  // namespace herdsim
