// A network written out by hand: hosts, switches and the cables between them.
//
//   switches: leaf0, leaf1, spine (2 devices side by side)
//   hosts:    rack0 (4 of them), rack1 (4)
//   links:    rack0 - leaf0, rack1 - leaf1          every NIC of the four hosts, a cable each
//             leaf0 - spine, leaf1 - spine, 16 lanes
//
// The NIC of each GPU has its cables on one switch; a link may name one NIC of every host (`nic`),
// so that rails are written as they are built. Routes are shortest paths, in switches passed; where
// several are equally short the destination GPU's number, modulo how many there are, chooses the
// next switch, as destination-based tables of InfiniBand do (d-mod-k: Zahavi, Johnson, Kerbyson,
// Lang, "Optimized InfiniBand fat-tree routing for shift all-to-all communication patterns", 2010).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace herdsim {

struct NetworkGraph {
  struct Switch {
    std::string name;
    int64_t count = 1;  // devices side by side, which share the lanes of every link
    friend bool operator==(const Switch&, const Switch&) = default;
  };
  struct Hosts {
    std::string name;
    int64_t count = 1;  // consecutive hosts, all cabled alike
    friend bool operator==(const Hosts&, const Hosts&) = default;
  };
  struct Link {
    std::string from, to;  // of a switch or of hosts, not both of hosts
    int64_t nic = -1;      // of hosts: only the NIC of this GPU of each; -1: every NIC
    int64_t lanes = 1;     // of hosts: of each NIC
    Bandwidth lane;        // one lane, one direction; none: the NIC's
    friend bool operator==(const Link&, const Link&) = default;
  };
  std::vector<Switch> switches;
  std::vector<Hosts> hosts;
  std::vector<Link> links;

  bool empty() const { return switches.empty() && hosts.empty() && links.empty(); }
  friend bool operator==(const NetworkGraph&, const NetworkGraph&) = default;
};

struct ClusterSpec;
struct TopologyFacts;
class ClusterCheck;
class Fabric;

Fabric build_graph(const ClusterSpec& spec);
// Bisections are maximum flows between halves of the GPUs in their order.
// Complexity: beyond linear that of a maximum flow over the switches, and of a breadth-first search
// from each of them.
TopologyFacts graph_facts(const ClusterSpec& spec);
void append_graph_faults(const ClusterSpec& spec, ClusterCheck& check);

}  // namespace herdsim
