// The examples of docs/extending.md, held to the laws that rows of the tables are held to.
// reference_test.py holds the page to this file.
#include <gtest/gtest.h>

#include "sim/fabric/graph_algorithms.h"
#include "sim/reliability/reliability_base.h"
#include "topologies/clos.h"
#include "workloads/schedules/pass_order.h"
#include "workloads/schedules/schedule_timeline.h"

namespace herdsim {
namespace {

// Every ToR meets every other in one layer of spines.
ClosShape leaf_spine_shape(const ClusterSpec& spec) {
  const int64_t tors = (spec.gpus + spec.gpus_per_tor - 1) / spec.gpus_per_tor;
  return {.gpus = spec.gpus,
          .gpus_per_host = spec.gpus_per_host,
          .gpus_per_group = spec.gpus_per_tor,
          .gpus_per_pod = tors * spec.gpus_per_tor,
          .tor_uplinks = spec.tor_uplinks,
          .nvlink = spec.nvlink,
          .pcie = spec.pcie,
          .nic = spec.nic};
}

Topology leaf_spine_topology() {
  Topology row{};
  row.name = "leaf-spine";
  row.help = "Racks under one layer of spines; no pods.";
  row.build = [](const ClusterSpec& spec) { return build_clos(leaf_spine_shape(spec)); };
  row.facts = [](const ClusterSpec& spec) { return clos_facts(leaf_spine_shape(spec)); };
  return row;
}

// One micro-batch at a time, through the pipeline and back.
std::vector<Pass> one_at_a_time_order(const ScheduleShape& shape, int64_t) {
  PassOrder order(2 * shape.micro_batches);
  for (int64_t m = 0; m < shape.micro_batches; ++m) {
    order.add(PassKind::kForward, m);
    order.add(PassKind::kBackward, m);
  }
  return order.take();
}

void validate_one_at_a_time(const ScheduleShape& shape, Faults& faults) {
  require_positive_shape(shape, faults);
  require_chunks_a_stage(shape, 1, "one-at-a-time", faults);
}

ScheduleRow one_at_a_time_schedule() {
  ScheduleRow row;
  row.name = "one-at-a-time";
  row.help = "a micro-batch enters when the one before has left";
  row.source = "no pipelining at all";
  row.order = &one_at_a_time_order;
  // A stage waits for the p - 1 others, three passes of each for three of its own.
  row.bubble_bound = [](const ScheduleShape& shape) {
    return static_cast<double>(shape.stages - 1);
  };
  row.in_flight_bound = [](const ScheduleShape&, int64_t) { return int64_t{1}; };
  row.validate = &validate_one_at_a_time;
  return row;
}

FailureClass dirty_optics() {
  FailureClass row;
  row.name = "dirty_optics";
  row.help = "a transceiver that must be cleaned";
  row.effect = Effect::kStop;
  row.per = Exposure::kNicLink;
  row.rate_per_hour = 2e-7;
  row.scope = Scope::kJob;  // the cable is cleaned where it is
  row.remedy = Remedy::kRestart;
  row.detection = {.mean_seconds = 60};
  row.rate_evidence = Evidence::kAssumed;
  row.source = "an example";
  return row;
}

TEST(Extending, the_topology_agrees_with_its_closed_forms) {
  const Topology row = leaf_spine_topology();
  for (const int64_t gpus : {16, 64, 200}) {
    ClusterSpec spec;
    spec.gpus = gpus;
    const Fabric fabric = row.build(spec);
    const TopologyFacts facts = row.facts(spec);
    EXPECT_EQ(network_components(fabric), 1) << gpus;
    EXPECT_EQ(facts.gpus, gpus);
    EXPECT_EQ(facts.pods, 1) << gpus;
    EXPECT_EQ(network_diameter(fabric), facts.diameter) << gpus;
  }
}

TEST(Extending, the_schedule_reaches_its_bounds) {
  const ScheduleRow row = one_at_a_time_schedule();
  for (const int64_t stages : {1, 2, 4, 7}) {
    for (const int64_t micro_batches : {1, 3, 8}) {
      const ScheduleShape shape{.stages = stages, .micro_batches = micro_batches};
      Faults faults;
      row.validate(shape, faults);
      ASSERT_TRUE(faults.empty());
      const ScheduleTimeline timeline = time_schedule(
          row, shape, {microseconds(1), microseconds(1), microseconds(1), Duration::zero()});
      ASSERT_FALSE(timeline.deadlock) << timeline.deadlock->text();
      EXPECT_DOUBLE_EQ(timeline.bubble(), row.bubble_bound(shape))
          << stages << " " << micro_batches;
      for (int64_t stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(timeline.in_flight[static_cast<size_t>(stage)],
                  row.in_flight_bound(shape, stage));
      }
    }
  }
}

TEST(Extending, the_failure_class_adds_its_rate_to_a_fleet) {
  const FailureDomains domains{.gpus = 16'384};
  std::vector<FailureClass> classes = classes_of(*find_reliability_base("llama3-54-days"));
  const double before = unplanned_rate_per_hour(classes, domains);
  classes.push_back(dirty_optics());
  EXPECT_NEAR(unplanned_rate_per_hour(classes, domains) - before, 2e-7 * 16'384, 1e-12);
}

}  // namespace
}  // namespace herdsim
