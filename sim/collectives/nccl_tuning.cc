#include "sim/collectives/nccl_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "sim/collectives/nccl_measurements.h"

namespace herdsim {
namespace {

// What differs between releases, read from src/graph/tuning.cc at their tags.
struct Release {
  int minor;  // of 2.minor
  double tree_simple_base, tree_simple_nvlink, tree_simple_net;
  double nvls_nvlink, nvls_tree_net;
  double early_nvls_ratio;
  double ring_ll_factor, ring_ll_most_in_node;
  bool has_pat;
  int64_t p2p_network_channels;  // a peer
};

constexpr std::array<Release, 5> kReleases = {{
    {.minor = 19,
     .tree_simple_base = 0,
     .tree_simple_nvlink = 28,
     .tree_simple_net = 28,
     .nvls_nvlink = 23,
     .nvls_tree_net = 14,
     .early_nvls_ratio = 5.0 / 6,
     .ring_ll_factor = 0.25,
     .ring_ll_most_in_node = 87.7,
     .has_pat = false,
     .p2p_network_channels = 2},
    {.minor = 20,
     .tree_simple_base = 0,
     .tree_simple_nvlink = 28,
     .tree_simple_net = 28,
     .nvls_nvlink = 23,
     .nvls_tree_net = 14,
     .early_nvls_ratio = 5.0 / 6,
     .ring_ll_factor = 0.25,
     .ring_ll_most_in_node = 87.7,
     .has_pat = false,
     .p2p_network_channels = 2},
    {.minor = 22,
     .tree_simple_base = 8.4,
     .tree_simple_nvlink = 4,
     .tree_simple_net = 14,
     .nvls_nvlink = 25,
     .nvls_tree_net = 20.9,
     .early_nvls_ratio = 0,
     .ring_ll_factor = 0.5,
     .ring_ll_most_in_node = 141,
     .has_pat = false,
     .p2p_network_channels = 2},
    {.minor = 27,
     .tree_simple_base = 8.4,
     .tree_simple_nvlink = 4,
     .tree_simple_net = 14,
     .nvls_nvlink = 25,
     .nvls_tree_net = 20.9,
     .early_nvls_ratio = 0,
     .ring_ll_factor = 0.5,
     .ring_ll_most_in_node = 141,
     .has_pat = true,
     .p2p_network_channels = 4},
    {.minor = 30,
     .tree_simple_base = 8.4,
     .tree_simple_nvlink = 4,
     .tree_simple_net = 14,
     .nvls_nvlink = 25,
     .nvls_tree_net = 20.9,
     .early_nvls_ratio = 0,
     .ring_ll_factor = 0.5,
     .ring_ll_most_in_node = 141,
     .has_pat = true,
     .p2p_network_channels = 4},
}};

// Parallel aggregated trees came between two rows of the table.
constexpr int kFirstPatMinor = 23;
constexpr int kOldestMinor = 19;

// The minor number of "2.minor" or "2.minor.patch".
std::optional<int> minor_version(std::string_view text) {
  if (!text.starts_with("2.")) return std::nullopt;
  int minor = 0, patch = 0;
  const char* const end = text.data() + text.size();
  auto [next, error] = std::from_chars(text.data() + 2, end, minor);
  if (error != std::errc() || minor < 0) return std::nullopt;
  if (next == end) return minor;
  if (*next != '.') return std::nullopt;
  const auto [last, patch_error] = std::from_chars(next + 1, end, patch);
  if (patch_error != std::errc() || last != end || patch < 0) return std::nullopt;
  return minor;
}

const Release& release_of(int minor) {
  const Release* row = &kReleases.front();
  for (const Release& release : kReleases) {
    if (release.minor <= minor) row = &release;
  }
  return *row;
}

}  // namespace

double SizeCurve::at(Bytes bytes) const {
  if (bytes.count() <= (int64_t{1} << kFirstLog2)) return values.front();
  const double position = std::log2(static_cast<double>(bytes.count())) - kFirstLog2;
  const auto index = static_cast<size_t>(position);
  if (index + 1 >= kPoints) return values.back();
  const double share = position - static_cast<double>(index);
  if (values[index] <= 0) return values[index] + share * (values[index + 1] - values[index]);
  return values[index] * std::pow(values[index + 1] / values[index], share);
}

double ring_step(double wire, double hop, double slice) {
  const double way = hop + std::min(wire, slice);
  return std::cbrt(wire * wire * wire + way * way * way);
}

double ring_hop(double step, double wire, double slice) {
  const double way = std::cbrt(step * step * step - wire * wire * wire);
  return std::max(0.0, way - std::min(wire, slice));
}

Duration MeasuredCollective::at(Bytes size) const {
  size_t above = 1;
  while (above < points.size() && points[above].size < size) ++above;
  if (above == points.size()) return points.back().time;
  const Point& a = points[above - 1];
  const Point& b = points[above];
  const double share = static_cast<double>((size - a.size).count()) /
                       static_cast<double>((b.size - a.size).count());
  return seconds_rounded_up(a.time.seconds() + share * (b.time.seconds() - a.time.seconds()));
}

NcclTuning h100_tuning(std::string_view nccl_version) {
  const int minor = minor_version(nccl_version).value_or(kOldestMinor);
  const Release& release = release_of(minor);
  NcclTuning t;
  t.version = fmt::format("2.{}", release.minor);
  t.tree_base = {.ll = 6.8, .ll128 = 14.0, .simple = release.tree_simple_base};
  t.tree_nvlink = {.ll = 0.6, .ll128 = 1.25, .simple = release.tree_simple_nvlink};
  t.tree_net = {.ll = 5.0, .ll128 = 8.5, .simple = release.tree_simple_net};
  t.ring_base = {.ll = 6.6, .ll128 = 14.0, .simple = 8.4};
  t.ring_nvlink = {.ll = 0.6, .ll128 = 1.9, .simple = 3.4};
  t.ring_net = {.ll = 2.7, .ll128 = 4.0, .simple = 14.0};
  // NCCL books these hops since 2.22, as a tree's. The wire was no faster before, so they hold for
  // every release.
  t.ring_net_one_rank = {.ll = 5.0, .ll128 = 8.5, .simple = 14.0};
  t.nvls_nvlink = release.nvls_nvlink;
  t.nvls_tree_net = release.nvls_tree_net;
  t.early_nvls_ratio = release.early_nvls_ratio;
  t.has_pat = release.has_pat || minor >= kFirstPatMinor;
  t.ring_ll_factor = release.ring_ll_factor;
  t.ll_most = {release.ring_ll_most_in_node, 39.0, 20.4};
  t.p2p_network_channels = release.p2p_network_channels;
  // Half the difference of round trips against hosts of one pod (10 us): 4 us under one ToR, 25 us
  // across the aggregation layer's deep buffers.
  t.hop_extra[static_cast<size_t>(HopClass::kSameTor)] = -3.0;
  t.hop_extra[static_cast<size_t>(HopClass::kCrossPod)] = 7.5;
  add_h100_corrections(t);
  return t;
}

std::vector<std::string> nccl_versions() {
  std::vector<std::string> versions;
  for (const Release& release : kReleases) versions.push_back(fmt::format("2.{}", release.minor));
  return versions;
}

void append_nccl_version_faults(std::string_view nccl_version, std::string_view field,
                                Faults& faults) {
  const std::optional<int> minor = minor_version(nccl_version);
  if (minor && *minor >= kOldestMinor) return;
  faults.add({.field = std::string(field),
              .problem = fmt::format("\"{}\" is no NCCL release that is known", nccl_version),
              .allowed = fmt::format("2.{} or later, such as 2.20 or 2.20.5", kOldestMinor),
              .nearest = nearest_name(nccl_version, nccl_versions())});
}

}  // namespace herdsim
