// Every way to spread a model over a number of GPUs.
//
// The space: tp * cp * pp * dp = gpus with
//   tp               divisors that divide heads, feed-forward width, hidden and vocabulary, up to
//   one
//                    host (beyond it every layer waits for the network)
//   cp               the sequence falls into 2 cp chunks, each of which tp splits
//   pp               up to layers + 2 stages
//   micro-batch      every divisor of the sequences of one replica
//   schedule         every row that runs the shape; with one stage "1f1b" stands for all
//   virtual stages   2 and more, where the chunks are equal or one layer less on the first and last
//   shard, recompute all; ZERO1 stands for FSDP_KEEP, whose step and memory are the same, and for
//                    all where no two ranks hold the same parameters
// Sequence length, global batch, precision, software and expert parallelism are the scenario's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/scenario/scenario.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {

struct PlanCandidate {
  ParallelPlan plan;
  Recompute recompute = Recompute::kNone;
  const ScheduleRow* schedule = nullptr;

  // "TP8 CP1 PP16 DP128 v8 mb1 FSDP_KEEP none interleaved-1f1b"
  std::string text() const;
};

// What the user holds fixed; empty: searched.
struct PlanPins {
  std::optional<int64_t> tp, cp, pp, dp, virtual_stages, micro_batch;
  std::optional<Sharding> shard;
  std::optional<Recompute> recompute;
  std::string schedule;
};

// Takes "parallel.tp=8", "training.schedule=1f1b", ... out of `sets`; the rest is for the scenario.
// Throws: SpecError for values that are none.
PlanPins take_pins(std::vector<std::string>& sets);

// Valid candidates in a fixed order. Requires: base.gpus GPUs in the cluster.
std::vector<PlanCandidate> plan_space(const Scenario& base, const PlanPins& pins);

// Where a number of GPUs has no candidate: the nearest numbers of whole hosts below and above that
// have one, at most one each, none farther than half or twice as many.
std::vector<int64_t> gpus_with_plans_near(const Scenario& base, const PlanPins& pins);

// The scenario of a candidate.
Scenario scenario_of(const Scenario& base, const PlanCandidate& candidate);

}  // namespace herdsim
