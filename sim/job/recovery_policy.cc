#include "sim/job/recovery_policy.h"

namespace herdsim {
namespace {

// ByteRobust, SOSP'25, at 16,384 GPUs: warm standby recovers 10.87 times, an in-place update 11.04
// times faster.
constexpr double kWarmStandby = 1 / 10.87;
constexpr double kInPlace = 1 / 11.04;

std::vector<RecoveryPolicy> make_rows() {
  return {
      {.name = "restart-with-spares",
       .help = "stop everything, swap lost hosts for spares, start everything",
       .source = "Llama 3, arXiv:2407.21783; phases as in PhaseTimes"},
      {.name = "wait-for-repair",
       .help = "no spares: the job waits until its hosts are mended",
       .replacement = Replacement::kRepair,
       .source = ""},
      {.name = "in-place-restart",
       .help = "failures that spare the hosts restart on them; others as with spares",
       .in_place = true,
       .reschedule = 1,
       .start = 1,
       .source = "ByteRobust, SOSP'25: hot update 11.04x"},
      {.name = "warm-standby",
       .help = "spares wait with images loaded and processes up",
       .in_place = true,
       .in_place_start = kInPlace,
       .reschedule = kWarmStandby,
       .start = kWarmStandby,
       .init = 1,
       .warmup = 1,
       .source = "ByteRobust, SOSP'25: warm standby 10.87x"},
      {.name = "elastic",
       .help = "no spare: train on with fewer data-parallel replicas, grow back later",
       .replacement = Replacement::kShrink,
       .evidence = Evidence::kAssumed,
       .source = "TorchElastic; phases assumed"},
      {.name = "replica-level",
       .help = "one replica restarts while the others train on without it",
       .replacement = Replacement::kShrink,
       .in_place = true,
       .in_place_start = kInPlace,
       .per_replica = true,
       .keeps_processes = true,
       .regroup_seconds = 30,
       .source = "FT-HSDP, arXiv:2602.00277: 3 min of stall at 100,000 GPUs, of which detection "
                 "and diagnosis"},
      {.name = "local-rollback",
       .help = "the lost host alone is replaced and reloads from a peer; the others keep "
               "their processes",
       .in_place = true,
       .in_place_start = kInPlace,
       .keeps_processes = true,
       .diagnosis = 0.5,
       .start = kInPlace,
       .init = 1,
       .warmup = 0.2,
       .evidence = Evidence::kAssumed,
       .source = "assumed; ByteRobust's in-place factor for the start"},
      {.name = "isolate-and-migrate",
       .help = "the whole rack of a lost host is taken out and its work moved",
       .moves_domain = true,
       .reschedule = 1.5,
       .evidence = Evidence::kAssumed,
       .source = "assumed"},
      {.name = "rail-failover",
       .help = "dead NICs and cables only slow the job down; others as with spares",
       .rail_failover = true,
       .source = "R2CCL: one NIC of 8 lost costs below 1 % of training"},
  };
}

}  // namespace

const std::vector<RecoveryPolicy>& recovery_policies() {
  static const std::vector<RecoveryPolicy> rows = make_rows();
  return rows;
}

const RecoveryPolicy* find_recovery_policy(std::string_view name) {
  for (const RecoveryPolicy& row : recovery_policies()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace herdsim
