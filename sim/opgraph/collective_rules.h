// How a scenario says that collectives run, put into the graph of its step.
//
// A collective that a rule is about becomes its phases: ops that follow each other on the stream of
// the one they replace, each a collective of the same communicator. So all that knows of
// collectives - costs, links, contention, folding, the account, traces - knows of phases, and
// nothing else has to.
//
//   apply_rules({{.kind = CollectiveKind::kAllReduce, .phases = ...}}, graph);
#pragma once

#include <bitset>
#include <span>
#include <vector>

#include "sim/collectives/collective_phases.h"
#include "sim/opgraph/op_graph.h"

namespace herdsim {

// Requires: phases_fault(kind, phases) is "".
struct CollectiveRule {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::bitset<kCommunicators> communicators;  // by Communicator
  std::vector<CollectivePhase> phases;
};

// The first rule about such collectives; null if there is none.
const CollectiveRule* rule_about(std::span<const CollectiveRule> rules, CollectiveKind kind,
                                 Communicator communicator);

// Of several rules about a collective the first counts. Barriers and others of no bytes stay as
// they are. Complexity: linear in the ops, nothing without a rule.
void apply_rules(std::span<const CollectiveRule> rules, OpGraph& graph);

}  // namespace herdsim
