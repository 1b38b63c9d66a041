// Jobs that share a machine: nobody notices another that it never meets, each answer is a job's own
// whoever asks, and what they take from each other is what max-min sharing says. Folded against
// unfolded: job_cases.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/symmetry/shared_fabric.h"
#include "tests/sim/executor/planned_job.h"

namespace herdsim {
namespace {

using Sets = std::vector<std::string>;

Scenario scenario_of(const SmallPlan& plan, const Sets& more) {
  return load_scenario(kSmallJobBase, small_job(plan, more));
}

Sets joined(Sets a, const Sets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Four pods of 8 hosts; pods that send 20 times what their uplinks carry.
const Sets kMachine = {"cluster.gpus=256", "cluster.gpus_per_pod=64",
                       "cluster.pod_oversubscription=20"};
const Sets kEvenHosts = {"cluster.unavailable_hosts=[1,3,5,7,9,11,13,15]"};
const Sets kOddHosts = {"cluster.unavailable_hosts=[0,2,4,6,8,10,12,14]"};
// Eight hosts in two pods, whose rings and messages cross the pods' uplinks.
const SmallPlan kRings{.tp = 8, .pp = 1, .dp = 8, .micro_batches = 2};
const SmallPlan kStages{.tp = 4, .pp = 4, .dp = 4, .micro_batches = 8};

TEST(SharedJobs, that_meet_nowhere_answer_as_if_they_were_alone) {
  // Pods of their own.
  const StepSimulation both =
      simulate_step(scenario_of(kRings, joined(kMachine, {other_job(kStages, {})})), {});
  const StepResult first = simulate_step(scenario_of(kRings, kMachine), {}).result;
  const StepResult second =
      simulate_step(
          scenario_of(kStages, joined(kMachine, {"cluster.unavailable_hosts=[0,1,2,3,4,5,6,7]"})),
          {})
          .result;
  ASSERT_EQ(both.others.size(), 1U);
  EXPECT_EQ(both.result.fingerprint(), first.fingerprint());
  EXPECT_EQ(both.others[0].fingerprint(), second.fingerprint());
  EXPECT_EQ(both.result.simulated_ranks, first.simulated_ranks);
  ASSERT_EQ(both.result.jobs.size(), 2U);
  for (const JobShare& job : both.result.jobs) EXPECT_EQ(job.step_time, job.alone) << job.gpus;
}

TEST(SharedJobs, give_the_same_answers_whoever_names_whom) {
  const StepSimulation a = simulate_step(
      scenario_of(kRings, joined(joined(kMachine, kEvenHosts), {other_job(kStages, kOddHosts)})),
      {});
  const StepSimulation b = simulate_step(
      scenario_of(kStages, joined(joined(kMachine, kOddHosts), {other_job(kRings, kEvenHosts)})),
      {});
  EXPECT_EQ(a.result.fingerprint(), b.others[0].fingerprint());
  EXPECT_EQ(b.result.fingerprint(), a.others[0].fingerprint());
  EXPECT_EQ(a.result.jobs[0].alone, b.result.jobs[1].alone);
  // They do meet.
  EXPECT_GT(a.result.jobs[0].step_time, a.result.jobs[0].alone);
  EXPECT_GT(a.result.jobs[1].step_time, a.result.jobs[1].alone);
}

// Twins in phase halve what is full, as constant traffic of half the links does; what sharing adds
// is what their rings waited for alone, but for latency.
TEST(SharedJobs, that_are_twins_in_phase_have_half_of_a_full_link_each) {
  const Sets serial = {"software.dp_overlap=false", "parallel.shard=NONE"};
  const Sets first = joined(joined(kMachine, kEvenHosts), serial);
  const StepSimulation both = simulate_step(
      scenario_of(kRings, joined(first, {other_job(kRings, joined(kOddHosts, serial))})), {});
  const StepResult half =
      simulate_step(scenario_of(kRings, joined(first, {"other_traffic.pod_uplinks=0.5"})), {})
          .result;
  EXPECT_EQ(both.result.fingerprint(), half.fingerprint());
  EXPECT_EQ(both.result.fingerprint(), both.others[0].fingerprint());
  const double alone = both.result.jobs[0].alone.seconds();
  const double waited =
      simulate_step(scenario_of(kRings, first), {})
          .result.time_account_seconds()[static_cast<size_t>(TimeTerm::kExposedDp)];
  EXPECT_GT(waited, 0.01);
  EXPECT_NEAR((both.result.step_time.seconds() - alone) / waited, 1, 0.1);
}

TEST(SharedJobs, a_job_that_begins_later_is_met_later) {
  const auto step_beside = [](double begins) {
    return simulate_step(scenario_of(kRings, joined(joined(kMachine, kEvenHosts),
                                                    {other_job(kRings, kOddHosts, begins)})),
                         {})
        .result.jobs;
  };
  const std::vector<JobShare> together = step_beside(0);
  // After the first job's step has ended, it meets nothing of that step.
  const std::vector<JobShare> later = step_beside(100);
  EXPECT_EQ(later[0].step_time, later[0].alone);
  EXPECT_GT(together[0].step_time, together[0].alone);
  EXPECT_EQ(later[1].begins, seconds(100));
}

TEST(SharedJobs, constant_traffic_of_half_the_uplinks_is_as_half_the_uplinks) {
  Sets half = joined(kMachine, kEvenHosts);
  for (int pod = 0; pod < 4; ++pod) {
    half.push_back("cluster.degraded={pod: " + std::to_string(pod) + " uplink_factor: 0.5}");
  }
  const StepResult degraded = simulate_step(scenario_of(kRings, half), {}).result;
  const StepResult busy =
      simulate_step(scenario_of(kRings, joined(joined(kMachine, kEvenHosts),
                                               {"other_traffic.pod_uplinks=0.5"})),
                    {})
          .result;
  EXPECT_EQ(busy.fingerprint(), degraded.fingerprint());
  EXPECT_GT(busy.step_time,
            simulate_step(scenario_of(kRings, joined(kMachine, kEvenHosts)), {}).result.step_time);
}

// Gangidi et al., SIGCOMM 2024: E-ECMP with 16 queue pairs makes all-reduces up to 40 % faster than
// ECMP, whose channels are about 4 flows. 32 racks with twice the uplinks, as there; a ring of each
// GPU number over 64 hosts in random order, so that all of a rack send to others.
TEST(EEcmp, with_16_flows_makes_an_all_reduce_30_to_50_percent_faster_than_ecmp) {
  const auto seconds_of = [](const Sets& more) {
    double sum = 0;
    constexpr int kSeeds = 10;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      Sets sets =
          joined({"cluster.tor_uplinks=32", "cluster.gpus=512", "cluster.placement=RANDOM_HOSTS",
                  "parallel.shard=NONE", "seed=" + std::to_string(seed)},
                 more);
      const PlannedJob job(scenario_of({.tp = 8, .dp = 64, .micro_batches = 1}, sets));
      for (const Lane& lane : job.map.lanes) {
        if (lane.is_message || lane.communicator != Communicator::kGradient) continue;
        const CollectivePlan plan = plan_collective(CollectiveKind::kAllReduce, gibibytes(1),
                                                    lane.shapes.front(), job.tuning);
        sum += (plan.latency + plan.volume / std::min(plan.rate_cap, lane.own_bound.front()))
                   .seconds() /
               kSeeds;
        break;
      }
    }
    return sum;
  };
  const double gain = seconds_of({"cluster.routing=ecmp", "cluster.queue_pairs=4"}) /
                          seconds_of({"cluster.routing=e-ecmp", "cluster.queue_pairs=16"}) -
                      1;
  EXPECT_GE(gain, 0.3);
  EXPECT_LE(gain, 0.5);
}

// One table for all: every link that a job crosses is there, with what it carries on the machine.
TEST(FoldTogether, gives_all_jobs_one_table_of_links) {
  const Scenario scenario =
      scenario_of(kRings, joined(joined(kMachine, kEvenHosts), {other_job(kStages, kOddHosts)}));
  const MachineState machine = machine_of(scenario);
  const JobOnMachine a(scenario, machine, 0), b(scenario.other_jobs[0].scenario, machine, 1);
  const JobMap map_a = map_job(a.graph, a.machine), map_b = map_job(b.graph, b.machine);
  const std::vector<MappedJob> jobs = {{a.graph, a.machine, map_a}, {b.graph, b.machine, map_b}};
  const std::vector<JobClasses> classes = classify_together(jobs);
  const std::vector<FoldedJob> folded = fold_together(jobs, classes);
  ASSERT_EQ(folded[0].representative_link, folded[1].representative_link);
  EXPECT_EQ(folded[0].capacity.values(), folded[1].capacity.values());
  // Some of the classes are of both jobs.
  size_t crossed_by_both = 0;
  for (size_t l = 0; l < folded[0].representative_link.size(); ++l) {
    const auto crosses = [&](const FoldedJob& job) {
      return std::any_of(job.lanes.begin(), job.lanes.end(), [&](const FoldedLane& lane) {
        return std::any_of(lane.crossings.begin(), lane.crossings.end(),
                           [&](const Crossing& c) { return c.link == LinkId(l); });
      });
    };
    EXPECT_TRUE(crosses(folded[0]) || crosses(folded[1]));
    crossed_by_both += crosses(folded[0]) && crosses(folded[1]) ? 1 : 0;
    EXPECT_EQ(folded[0].capacity[LinkId(l)],
              machine.links.capacity[folded[0].representative_link[l]]);
  }
  EXPECT_GT(crossed_by_both, 0U);
  EXPECT_LT(folded[0].ranks.size(), 64U);
}

TEST(SharedJobs, faults_name_the_job_and_what_is_allowed) {
  const auto fault_of = [](const Sets& more) {
    try {
      scenario_of(kRings, joined(kMachine, more));
    } catch (const SpecError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(fault_of({"other_jobs={name: \"b\"}"}).find("other_jobs.0.scenario: is missing"),
            std::string::npos);
  EXPECT_NE(fault_of({"other_jobs={scenario: \"llama3-405b-16385\"}"}).find("llama3-405b-16384"),
            std::string::npos);
  EXPECT_NE(fault_of({"other_jobs={scenario: \"llama3-405b-16384\"}"}).find("leave 192"),
            std::string::npos);
  EXPECT_NE(fault_of({other_job(kRings, {"cluster.tor_uplinks=2"})}).find("changes the machine"),
            std::string::npos);
  EXPECT_NE(
      fault_of({other_job(kRings, {"cluster.unavailable_hosts=[32]"})}).find("there is no host 32"),
      std::string::npos);
  EXPECT_NE(fault_of({other_job(kRings, {"parallel.tp=3"})}).find("parallel"), std::string::npos);
}

}  // namespace
}  // namespace herdsim
