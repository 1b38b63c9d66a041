#include "calibrate/nccl_tests/link_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace herdsim {
namespace {

// NVLink and NICs a GPU: NVIDIA's data sheets of the boards and of DGX/HGX systems (vendor).
constexpr std::array<GpuLinks, 17> kGpus = {{
    {"GB200", "GB200", 900, 50, false, true, 72, "gb200-186gb"},
    {"B200", "B200", 900, 50, false, true, 8, "b200-sxm-180gb"},
    {"H200 NVL", "H200 NVL", 450, 0, true, false, 4, ""},
    {"H200", "H200 SXM", 450, 50, false, true, 8, "h200-sxm-141gb"},
    {"H100 PCIe", "H100 PCIe", 300, 0, true, false, 2, "h100-pcie-80gb"},
    {"H100 NVL", "H100 NVL", 300, 0, true, false, 2, ""},
    {"H100 80GB HBM3", "H100 SXM", 450, 50, false, true, 8, "h100-sxm5-80gb"},
    {"H100 SXM", "H100 SXM", 450, 50, false, true, 8, "h100-sxm5-80gb"},
    {"H100-SXM", "H100 SXM", 450, 50, false, true, 8, "h100-sxm5-80gb"},
    {"H800", "H800 SXM", 200, 50, false, true, 8, ""},
    {"A100-SXM4-80GB", "A100 SXM 80 GB", 300, 25, false, false, 8, "a100-sxm4-80gb"},
    {"A100-SXM", "A100 SXM 40 GB", 300, 25, false, false, 8, ""},
    {"A100-PCIE", "A100 PCIe", 300, 0, true, false, 2, ""},
    {"A100 80GB PCIe", "A100 PCIe", 300, 0, true, false, 2, ""},
    {"A800-SXM", "A800 SXM", 200, 25, false, false, 8, ""},
    {"V100-SXM", "V100 SXM", 150, 12.5, false, false, 8, ""},
    {"L40S", "L40S", 0, 0, true, false, 8, ""},
}};

// NCCL's rings reach about 370 of H100's 450 GB/s and 235 of A100's 300; 46 to 48 of a 400 Gb/s
// NIC's 50. Less than these shares of a bound asks for a reason.
constexpr double kNormalInNode = 0.70;
constexpr double kNormalAcross = 0.75;
// Below this a size does not show a link's speed.
constexpr Bytes kShowsBandwidth = mebibytes(64);

double of(int64_t n) { return static_cast<double>(n); }

std::string nic_words(double nic, bool assumed, double nics = 1) {
  return fmt::format("{} of {:.0f} Gb/s{}", nics == 1 ? "a NIC" : fmt::format("{:.0f} NICs", nics),
                     nic * 8, assumed ? " (assumed)" : "");
}

struct Bound {
  double value = 0;
  std::string words;
  double ring = 0;  // of a ring over the same links
};

Bound bound_in_node(const NcclTest& t, const GpuLinks& gpu, double measured) {
  Bound bound{gpu.nvlink,
              fmt::format("{:.0f} GB/s of NVLink in one direction{}", gpu.nvlink,
                          gpu.bridge ? ", over a bridge of two cards" : ""),
              gpu.nvlink};
  // A ring of H100s reaches 370: what is well above a ring's share is made in the switch.
  const bool in_switch = t.collective == "all_reduce" && gpu.switch_sums && t.ranks > 2 &&
                         (t.algorithm == "NVLS" || measured > 0.85 * gpu.nvlink);
  if (in_switch && t.algorithm != "Ring" && t.algorithm != "Tree") {
    bound.value = gpu.nvlink * 2 * of(t.ranks - 1) / of(t.ranks + 1);
    bound.words += fmt::format(" x 2(n-1)/(n+1): sums made in the switch, n = {}", t.ranks);
  }
  return bound;
}

// Two nodes and more.
Bound bound_across(const NcclTest& t, const GpuLinks& gpu, double nic, bool assumed,
                   double measured) {
  const double n = of(t.ranks), nodes = of(t.nodes), g = n / nodes;
  if (t.collective == "send_recv") return {nic, nic_words(nic, assumed), nic};
  if (t.collective == "all_to_all") {
    const double value = nic * (n - 1) / (n - g);
    return {value,
            fmt::format("{} x (n-1)/(n-g), n = {}, g = {:.0f}: part of the traffic stays in a node",
                        nic_words(nic, assumed), t.ranks, g),
            value};
  }
  const double by_nvlink = g > 1 ? gpu.nvlink * g / (g - 1) : 1e9;
  const double ring = std::min(g * nic, by_nvlink);
  Bound bound{ring,
              g * nic <= by_nvlink
                  ? fmt::format("a ring over {} a node", nic_words(nic, assumed, g))
                  : fmt::format("a ring over {:.0f} GB/s of NVLink, of whose {:.0f} edges a node "
                                "{:.0f} are NVLink's",
                                gpu.nvlink, g, g - 1),
              ring};
  if (t.collective == "all_reduce" && measured > ring * 1.01 && t.algorithm != "Ring") {
    const double leaves = g * nic * (n - 1) / n * nodes / (nodes - 1);
    const double port = g > 1 ? gpu.nvlink * 2 * (n - 1) / n * g / (g + 1) : 1e9;
    bound.value = std::min(leaves, port);
    bound.words = fmt::format("what must leave a node by {}, x (n-1)/n N/(N-1), n = {}, N = {}",
                              nic_words(nic, assumed, g), t.ranks, t.nodes);
    if (port < leaves)
      bound.words = fmt::format("{:.0f} GB/s of NVLink x 2(n-1)/n g/(g+1)", gpu.nvlink);
  }
  return bound;
}

void find_bound(const NcclTest& t, const VerdictOptions& options, LinkVerdict& v) {
  // A log that does not say its GPU is judged as the profile it shall be used for.
  const GpuLinks* gpu = gpu_links(t.gpu.empty() ? options.used_as : t.gpu);
  if (gpu == nullptr) {
    v.derivation = t.gpu.empty()
                       ? "no bound: the log does not name the GPU; --set gpu=NAME"
                       : fmt::format("no bound: the links of \"{}\" are not known", t.gpu);
    return;
  }
  if (t.ranks == 0 || t.nodes == 0) {
    v.derivation = t.ranks == 0 ? "no bound: the ranks are not known; --set ranks=N"
                                : "no bound: the nodes are not known; --set nodes=N";
    return;
  }
  const bool assumed = options.nic_gigabits_per_second <= 0;
  const double nic = assumed ? gpu->nic : options.nic_gigabits_per_second / 8;
  if (t.nodes > 1 && nic <= 0) {
    v.derivation = "no bound: the NICs are not known; --set nic_gigabits_per_second=N";
    return;
  }
  if (t.nodes == 1 && gpu->nvlink <= 0) {
    v.derivation = fmt::format("no bound: {} has no NVLink and its PCIe is not known", gpu->name);
    return;
  }
  const Bound bound = t.nodes == 1 ? bound_in_node(t, *gpu, v.bus_bandwidth)
                                   : bound_across(t, *gpu, nic, assumed, v.bus_bandwidth);
  v.bound = bound.value;
  v.derivation = bound.words;
  v.above_ring = v.bus_bandwidth > bound.ring * 1.01;
}

void judge_speed(const NcclTest& t, LinkVerdict& v) {
  if (v.bound <= 0 || v.at < kShowsBandwidth) return;
  const double share = v.share();
  if (share > 1.02) {
    v.suspicious.push_back(
        "is above what these links can carry: the ranks, the nodes, the NIC's speed or "
        "the GPU are not what they seem");
  } else if (v.above_ring && t.nodes == 1) {
    v.fine.push_back(
        "above the line rate of a port is normal for sums in the switch (NVLS): it is no speed "
        "of a wire, and stands for all-reduce alone, not for all-gather or reduce-scatter");
  } else if (v.above_ring) {
    v.suspicious.push_back(
        fmt::format("is above what a ring carries: a tree over {} nodes passes each byte "
                    "{}; this is no speed of the network, which a ring would show "
                    "(NCCL_ALGO=Ring)",
                    t.nodes, t.nodes == 2 ? "once" : "less often"));
  }
  const double normal = t.nodes == 1 ? kNormalInNode : kNormalAcross;
  // Sums in the switch have a bound that nobody reaches: 476 of 700 GB/s on eight H100s.
  const bool tree_bound = v.above_ring;
  if (share < normal && !tree_bound) {
    v.suspicious.push_back(
        t.nodes == 1
            ? fmt::format("is {:.0f} % of NVLink, where 80 % is usual: a PCIe card, a bridge, or "
                          "peer access "
                          "that is off",
                          100 * share)
            : fmt::format(
                  "is {:.0f} % of the network, where 90 % is usual: fewer NICs or slower ones, no "
                  "GPUDirect RDMA, too few channels, or links shared above the pod",
                  100 * share));
  }
}

// A fall of the bandwidth after its peak, beyond noise.
void judge_shape(const NcclTest& t, LinkVerdict& v) {
  const NcclTestsRow& last = t.rows.back();
  if (last.size > v.at && v.at >= kShowsBandwidth &&
      last.best_bus_bandwidth() < 0.9 * v.bus_bandwidth) {
    v.suspicious.push_back(fmt::format(
        "falls beyond its peak: {:.1f} GB/s at the largest size, {:.0f} % less",
        last.best_bus_bandwidth(), 100 * (1 - last.best_bus_bandwidth() / v.bus_bandwidth)));
  }
  size_t apart = 0, pairs = 0, falls = 0;
  double before = 0;
  for (const NcclTestsRow& row : t.rows) {
    if (row.out_of_place && row.in_place) {
      ++pairs;
      const double a = row.out_of_place->microseconds, b = row.in_place->microseconds;
      apart += std::max(a, b) > 1.2 * std::min(a, b) ? 1 : 0;
    }
    if (row.size <= Bytes()) continue;
    falls += row.seconds() < 0.8 * before ? 1 : 0;
    before = row.seconds();
  }
  if (pairs > 0 && apart * 5 > pairs) {
    v.suspicious.push_back(
        fmt::format("out of place and in place differ by more than a fifth in {} of {} "
                    "rows: the machine was disturbed",
                    apart, pairs));
  }
  if (falls > 1) {
    v.suspicious.push_back(
        fmt::format("takes a fifth less time for more bytes in {} places: noise, or a "
                    "change of algorithm that came late",
                    falls));
  }
}

void judge_correctness(const NcclTest& t, LinkVerdict& v) {
  double worst = 0;
  bool checked = false;
  for (const NcclTestsRow& row : t.rows) {
    for (const auto& half : {row.out_of_place, row.in_place}) {
      if (!half || !half->wrong) continue;
      checked = true;
      worst = std::max(worst, *half->wrong);
    }
  }
  if (worst >= 1) {
    v.loud.push_back(
        fmt::format("WRONG RESULTS: up to {:.0f} elements of a size were wrong; this machine "
                    "computes nonsense and its times mean nothing",
                    worst));
  } else if (t.out_of_bounds) {
    v.loud.push_back("WRONG RESULTS: the log says FAILED below its table");
  }
  if (!checked) v.fine.push_back("results were not checked (N/A)");
  if (!t.finished && t.had_header)
    v.fine.push_back("has no footer: the run or the log may have been cut");
}

void judge_variant(const NcclTest& t, const VerdictOptions& options, LinkVerdict& v) {
  if (options.used_as.empty()) return;
  const GpuLinks* as = gpu_links(options.used_as);
  const GpuLinks* is = gpu_links(t.gpu);
  if (as != nullptr && is != nullptr && as->name != is->name) {
    v.suspicious.push_back(
        fmt::format("was measured on {} and shall be used as {}: the same name with other "
                    "links is another machine",
                    t.gpu, options.used_as));
  } else if (t.gpu.empty() && as != nullptr && v.bound > 0 && t.nodes == 1 &&
             v.at >= kShowsBandwidth && v.share() < 0.5) {
    v.suspicious.push_back(fmt::format(
        "is no number of {}: two PCIe cards on a bridge reach about this much", options.used_as));
  }
}

}  // namespace

const GpuLinks* gpu_links(std::string_view gpu) {
  if (gpu.empty()) return nullptr;
  for (const GpuLinks& row : kGpus) {
    if (gpu.find(row.driver_name) != std::string_view::npos || gpu == row.name ||
        (!row.profile.empty() && gpu == row.profile)) {
      return &row;
    }
  }
  return nullptr;
}

std::vector<std::string> known_gpus() {
  std::vector<std::string> names;
  for (const GpuLinks& row : kGpus) {
    if (names.empty() || names.back() != row.name) names.emplace_back(row.name);
  }
  return names;
}

LinkVerdict judge_links(const NcclTest& test, const VerdictOptions& options) {
  LinkVerdict v;
  for (const NcclTestsRow& row : test.rows) {
    const double us = row.seconds() * 1e6;
    double& least = row.size > Bytes() ? v.smallest_us : v.launch_us;
    if (us > 0 && (least <= 0 || us < least)) least = us;
    if (row.size > Bytes()) v.bus_bandwidth = std::max(v.bus_bandwidth, row.best_bus_bandwidth());
  }
  // On a plateau, its far end: what small messages reach says nothing of a link.
  constexpr double kPlateau = 0.999;
  for (const NcclTestsRow& row : test.rows) {
    if (row.size > Bytes() && row.best_bus_bandwidth() >= kPlateau * v.bus_bandwidth)
      v.at = std::max(v.at, row.size);
  }
  find_bound(test, options, v);
  judge_correctness(test, v);
  judge_speed(test, v);
  judge_variant(test, options, v);
  judge_shape(test, v);
  for (const std::string& note : test.notes) v.suspicious.push_back(note);
  return v;
}

}  // namespace herdsim
