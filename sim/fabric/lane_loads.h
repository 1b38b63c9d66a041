// Subflows of connections on the lanes of bundles, one by one: which lanes each takes, and what it
// gets of them. What lane_spread.h answers from.
//
//   LaneLoads lanes(fabric, bundles, spread, seed);
//   lanes.assign(connections);
//   for (const Connection& c : connections) slowest = std::min(slowest, lanes.rate(c, fill));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/fabric/fabric.h"
#include "sim/fabric/lane_spread.h"

namespace herdsim {

// The bundles a connection crosses above its ToRs: up and down inside a pod, or by way of the core.
constexpr size_t kMostHops = 4;
struct BundlePath {
  std::array<LinkId, kMostHops> links;
  size_t count = 0;
};

BundlePath bundles_between(const Fabric& fabric, const Connection& c);

class LaneDraws;

class LaneLoads {
 public:
  // All must outlive this object.
  LaneLoads(const Fabric& fabric, const LaneBundles& bundles, const LaneSpread& spread,
            uint64_t seed);

  // Puts the subflows of all connections on lanes. Once.
  void assign(std::span<const Connection> connections);

  // What connection `c` gets of its part of a NIC, 1 without collisions, where so many subflows at
  // their part of a NIC fill a lane. Called in the order of the connections.
  double rate(const Connection& c, double lane_in_subflows);

  // The lanes of each of its subflows, instead of its rate.
  void append_hops(const Connection& c, std::vector<std::vector<LaneHop>>& out);

 private:
  struct Hop {
    uint32_t first_slot, lanes;  // of the bundle
    uint32_t lane;               // of the subflow at hand
  };
  using Hops = std::array<Hop, kMostHops>;

  Hops hops_of(const BundlePath& path) const;
  void number_ports();

  // One copy a rule: this is the inner loop.
  template <SpreadRule rule>
  void assign_by(std::span<const Connection> connections);
  template <SpreadRule rule>
  uint32_t lane_by(const Connection& c, std::span<const Hop> hops, size_t h,
                   LaneDraws& draws) const;
  // Of the lanes of a bundle; inside a pod the spine's other side counts too.
  uint32_t least_loaded(std::span<const Hop> hops, size_t h) const;

  // The subflows of a connection on lanes that follow one another: of its slots only those of its
  // first subflow are kept, and load_ counts by how much a lane differs from the one before.
  void assign_rows(std::span<const Connection> connections);
  // From the lane on, round and round the bundle. Counts below zero wrap around as sums of them do.
  void count_row(const Hop& hop, uint32_t subflows);

  size_t entries_of(const BundlePath& path) const {
    return in_rows_ ? path.count : path.count * static_cast<size_t>(spread_.subflows);
  }
  // Of the next connection, by subflow and hop. Valid until the next call.
  std::span<const uint32_t> slots_of(const BundlePath& path);
  void list_shares(double lane_in_subflows);

  const Fabric& fabric_;
  const LaneBundles& bundles_;
  const LaneSpread& spread_;
  const uint64_t seed_;
  const bool in_rows_;           // subflows of a connection take lanes one after another
  std::vector<uint32_t> load_;   // subflows on each lane, and none at the end
  std::vector<uint32_t> most_;   // of the lanes of each bundle
  std::vector<uint32_t> slots_;  // by connection, subflow and hop: the lane in load_
  std::vector<uint32_t> row_;    // the same of a connection that takes lanes in a row
  std::vector<uint32_t> port_;   // of a GPU at its ToR
  double shares_of_ = 0;         // how many subflows fill a lane, in the list below
  std::vector<double> share_;    // by load of a lane: what a subflow gets
  size_t read_ = 0;
};

}  // namespace herdsim
