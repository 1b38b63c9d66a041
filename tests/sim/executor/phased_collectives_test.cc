// Collectives that run as the scenario says, in the step: each phase for itself, and a plan as the
// row it spells.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/executor/planned_job.h"

namespace herdsim {
namespace {

// 64 GPUs of 8 hosts under rails, whose gradients nothing hides.
StepSimulation exposed_step(const std::vector<std::string>& sets) {
  std::vector<std::string> all = {"gpus=64",
                                  "parallel.dp=64",
                                  "training.global_batch=128",
                                  "software.dp_overlap=false",
                                  "recovery.spares=0",
                                  "model.layers=2"};
  all.insert(all.end(), sets.begin(), sets.end());
  return simulate_step(load_scenario("llama3-8b-1024", all), {.critical_path = true});
}

const char* const kByRow =
    "collectives={kind: REDUCE_SCATTER communicator: DP algorithm: \"hierarchical\"}";
const char* const kByPhases =
    "collectives={kind: REDUCE_SCATTER communicator: DP phases {kind: REDUCE_SCATTER group: NODE} "
    "phases {kind: "
    "REDUCE_SCATTER group: RAIL}}";

TEST(PhasedCollectives, take_as_long_as_each_phase_takes_alone) {
  const StepSimulation step = exposed_step({kByRow});
  int64_t in_hosts = 0, over_rails = 0;
  for (const CriticalOp& op : step.critical_path) {
    const Work& work = step.graph.works[op.work];
    if (!work.phase) continue;
    const Duration took = op.end - op.begin;
    for (const TransferLine& line : step.transfers) {
      if (line.work != op.work) continue;
      if (work.phase->phase.part == GroupPart::kNode) {
        ++in_hosts;
        EXPECT_EQ(took, line.plan.alone()) << work.name;
      } else {
        ++over_rails;
        // Spraying loses 3 % of the NIC.
        EXPECT_GE(took, line.plan.alone()) << work.name;
        EXPECT_LE(took.seconds(), 1.05 * line.plan.alone().seconds()) << work.name;
      }
    }
  }
  EXPECT_GT(in_hosts, 0);
  EXPECT_EQ(in_hosts, over_rails);
}

TEST(PhasedCollectives, of_a_plan_written_out_are_those_of_the_row) {
  const StepResult row = exposed_step({kByRow}).result, phases = exposed_step({kByPhases}).result;
  EXPECT_EQ(row.fingerprint(), phases.fingerprint());
  EXPECT_EQ(row.events, phases.events);
  EXPECT_NE(row.fingerprint(), exposed_step({}).result.fingerprint());
}

TEST(PhasedCollectives, as_nccl_chooses_are_as_without_a_rule) {
  const StepResult plain = exposed_step({}).result;
  const StepResult ruled =
      exposed_step({"collectives={kind: REDUCE_SCATTER algorithm: \"nccl\"}",
                    "collectives={kind: ALL_GATHER phases {kind: ALL_GATHER}}"})
          .result;
  EXPECT_EQ(plain.fingerprint(), ruled.fingerprint());
  EXPECT_EQ(plain.events, ruled.events);
}

TEST(PhasedCollectives, say_where_an_algorithm_cannot_do_a_group) {
  const auto has = [](const StepResult& r, const std::string& text) {
    for (const std::string& warning : r.warnings) {
      if (warning.find(text) != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(has(exposed_step({"collectives={kind: REDUCE_SCATTER algorithm: \"pat\"}"}).result,
                  "pat cannot reduce-scatter 64 ranks on 8 hosts: they run as NCCL chooses"));
  EXPECT_FALSE(has(exposed_step({"collectives={kind: REDUCE_SCATTER algorithm: \"ring\"}"}).result,
                   "cannot"));
}

}  // namespace
}  // namespace herdsim
