// What any simulated step must obey, whatever the job.
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/sim/executor/job_cases.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {


StepResult simulated(const SmallPlan& plan, const std::vector<std::string>& more = {}) {
  return simulate_step(load_scenario(kSmallJobBase, small_job(plan, more)), {}).result;
}

Duration computed(const PlannedJob& job, const Program& program) {
  Duration sum;
  for (const Op& op : program.ops) {
    if (job.graph.works[op.work].kind == WorkKind::kCompute) sum += job.costs.works[op.work].total;
  }
  return sum;
}

// Launches that no kernel waits for.
const std::vector<std::string> kFastHost = {"software.host_microseconds_per_layer_forward=0",
                                            "software.host_microseconds_per_layer_backward=0"};

int64_t term(const StepResult& result, TimeTerm t) {
  return result.account_rank_nanoseconds[static_cast<size_t>(t)];
}

TEST(Step, is_at_least_as_long_as_the_compute_of_each_stage_at_the_pace_of_its_slowest_gpu) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const StepOutcome outcome = job.run(job.fold_with(job.classes()));
    std::vector<double> slowest(job.graph.programs.size(), 1.0);
    for (size_t r = 0; r < job.factors.size(); ++r) {
      double& factor = slowest[job.graph.program_of(RankId(r)).index()];
      factor = std::min(factor, job.factors[RankId(r)]);
    }
    for (size_t p = 0; p < slowest.size(); ++p) {
      const double least = computed(job, job.graph.programs[ProgramId(p)]).seconds();
      EXPECT_GE(outcome.makespan.seconds(), least / slowest[p] * (1 - 1e-12)) << "stage " << p;
    }
  }
}

TEST(Step, books_every_nanosecond_of_every_rank_once) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const StepOutcome outcome = job.run(job.fold_with(job.classes()));
    for (const auto& account : outcome.account) {
      int64_t sum = 0;
      for (const int64_t time : account) {
        EXPECT_GE(time, 0);
        sum += time;
      }
      EXPECT_EQ(sum, outcome.makespan.nanoseconds());
    }
  }
}

TEST(Step, is_the_same_each_time) {
  for (const JobCase& c : job_cases()) {
    const StepResult a = simulate_step(c.scenario(), {}).result;
    const StepResult b = simulate_step(c.scenario(), {}).result;
    EXPECT_EQ(a.fingerprint(), b.fingerprint()) << c.name;
    EXPECT_EQ(a.events, b.events) << c.name;
  }
}

TEST(Step, of_one_gpu_is_the_sum_of_its_kernels) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const PlannedJob job(load_scenario(kSmallJobBase, small_job({.schedule = schedule}, kFastHost)));
    const StepOutcome outcome = job.run(job.fold_with(job.classes()));
    EXPECT_EQ(outcome.makespan, computed(job, job.graph.programs[ProgramId(0)]));
  }
}

TEST(Step, of_tensor_parallel_ranks_without_overlap_is_the_sum_of_kernels_and_transfers) {
  std::vector<std::string> serial = kFastHost;
  serial.push_back("software.tp_backward_overlap=false");
  const PlannedJob job(load_scenario(kSmallJobBase, small_job({.tp = 8}, serial)));
  const StepOutcome outcome = job.run(job.fold_with(job.classes()));
  Duration sum = computed(job, job.graph.programs[ProgramId(0)]);
  for (const Op& op : job.graph.programs[ProgramId(0)].ops) {
    const Work& work = job.graph.works[op.work];
    if (work.kind != WorkKind::kCollective) continue;
    const Lane& lane = job.map.lanes[job.map.lane_of_work[op.work]];
    const CollectivePlan plan =
        plan_collective(work.collective, work.bytes, lane.shapes.front(), job.tuning);
    if (plan.volume == Bytes(0) && plan.latency == Duration::zero()) continue;
    sum += plan.latency + plan.volume / std::min(plan.rate_cap, lane.own_bound.front());
  }
  EXPECT_EQ(outcome.makespan, sum);
}

// Where transfers share pod uplinks, or cables of a dragonfly, this is no law: a slower NIC leaves
// its share of them to others, and one of those may be what the step waits for. Such a gain stays
// below a per cent.
TEST(Step, is_never_faster_for_a_slower_part) {
  for (const JobCase& c : job_cases()) {
    const Scenario& nominal = c.scenario();
    const bool shares =
        nominal.cluster.gpus_per_pod == 64 || nominal.cluster.topology == "dragonfly";
    const double tolerance = shares ? 0.01 : 0;
    const Duration before = simulate_step(nominal, {}).result.step_time;
    for (const Degradation& how : {Degradation{.compute_factor = 0.6}, Degradation{.nic_factor = 0.2}}) {
      for (const int64_t gpu : {int64_t{0}, nominal.gpus / 2, nominal.gpus - 1}) {
        Scenario worse = nominal;
        worse.cluster.degraded.push_back(how);
        worse.cluster.degraded.back().gpu = gpu;
        EXPECT_GE(simulate_step(worse, {}).result.step_time.seconds(),
                  before.seconds() * (1 - tolerance))
            << c.name << ", GPU " << gpu << (how.nic_factor < 1 ? ", its NIC" : "");
      }
    }
  }
}

// Alibaba HPN 7.0: losing one of a pair of ToRs costs 6.25 % of a host's bandwidth, hence 16 / 15
// of what gradients take where nothing hides them and NICs are slow beside latencies. On one plane
// the same loss halts the job.
TEST(Step, loses_a_sixteenth_of_its_network_with_one_of_a_pair_of_tors) {
  const auto waits = [](const std::string& cluster, const std::vector<std::string>& more) {
    std::vector<std::string> sets = {"cluster.base=" + cluster, "gpus=1024", "parallel.dp=1024",
                                     "software.dp_overlap=false",
                                     "cluster.nic_gigabits_per_second=4"};
    sets.insert(sets.end(), more.begin(), more.end());
    return term(simulate_step(load_scenario("llama3-8b-1024", sets), {}).result,
                TimeTerm::kExposedDp);
  };
  const std::vector<std::string> lost = {"cluster.degraded={tor: 0 down: true}"};
  EXPECT_NEAR(
      static_cast<double>(waits("hpn7-15k", lost)) / static_cast<double>(waits("hpn7-15k", {})),
      16.0 / 15, 0.003);
  EXPECT_THROW(waits("meta-roce-24k", lost), SpecError);
}

TEST(Step, utilisation_rises_with_micro_batches) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "dualpipe"}) {
    double before = 0;
    for (const int64_t m : {8, 16, 32}) {
      const StepResult result =
          simulated({.tp = 2, .pp = 4, .dp = 2, .micro_batches = m, .schedule = schedule});
      EXPECT_GT(result.mfu_causal(), before) << schedule << ", " << m;
      before = result.mfu_causal();
    }
  }
}

TEST(Step, of_equal_stages_and_free_transfers_idles_as_its_schedule_s_closed_form_says) {
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "breadth-first"}) {
    const ScheduleRow& row = *find_schedule(name);
    for (const int64_t stages : {2, 4, 8}) {
      const SmallPlan plan{.pp = stages,
                           .virtual_stages = row.uses_virtual_stages ? 2 : 1,
                           .micro_batches = 16,
                           .schedule = name};
      // A vocabulary of one word: the embedding and the head cost next to nothing.
      const StepResult result = simulated(
          plan, {"model.vocab=1", "cluster.nic_gigabits_per_second=1000000",
                 "cluster.nvlink_gigabytes_per_second=1000000", "software.optimizer_bytes=0",
                 "software.gpu_speed_sigma=0", "software.host_milliseconds_per_step=0"});
      const double work = static_cast<double>(term(result, TimeTerm::kCompute) +
                                              term(result, TimeTerm::kMemoryBound));
      const double all = static_cast<double>(result.step_time.nanoseconds() * result.gpus);
      const ScheduleShape shape{
          .stages = stages, .micro_batches = 16, .virtual_stages = plan.virtual_stages};
      EXPECT_NEAR((all - work) / work, row.bubble_bound(shape), 0.02) << name << ", " << stages;
    }
  }
}

TEST(Step, traces_only_what_is_asked_and_is_not_changed_by_it) {
  const Scenario& scenario = job_cases().front().scenario();
  const StepSimulation plain = simulate_step(scenario, {});
  const StepSimulation traced = simulate_step(scenario, {.traced_ranks = {RankId(0), RankId(9)}});
  EXPECT_TRUE(plain.trace.spans.empty());
  EXPECT_EQ(traced.trace.ranks.size(), 2u);
  EXPECT_EQ(plain.result.fingerprint(), traced.result.fingerprint());
}

// -- Hand-made graphs -----------------------------------------------------------------------------

// Two stages of one rank each on a small cluster; programs are written by the test.
class HandMade {
 public:
  HandMade() : scenario_(load_scenario(kSmallJobBase, small_job({.pp = 2}))) {
    graph.grid = RankGrid({.pp = 2});
    work = graph.works.push_back({.kind = WorkKind::kCompute, .name = "product"});
    send = graph.works.push_back({.kind = WorkKind::kSend,
                                  .stream = Stream::kSendForward,
                                  .name = "send",
                                  .bytes = mebibytes(1)});
    receive = graph.works.push_back({.kind = WorkKind::kReceive,
                                     .stream = Stream::kReceive,
                                     .name = "message",
                                     .bytes = mebibytes(1)});
    for (WorkId* meeting : {&first_meeting, &second_meeting}) {
      *meeting = graph.works.push_back({.kind = WorkKind::kCollective,
                                        .stream = Stream::kDp,
                                        .name = "meeting",
                                        .communicator = Communicator::kWorld,
                                        .collective = CollectiveKind::kAllReduce,
                                        .bytes = mebibytes(1)});
    }
  }

  StepOutcome run(double lost_per_transfer_sm = 1) {
    const Fabric fabric = find_topology(scenario_.cluster.topology)->build(scenario_.cluster);
    const auto placement = place_ranks(scenario_.cluster, 2, 1);
    const auto capacity = link_capacities(fabric, scenario_.cluster, placement);
    const TypedVector<RankId, double> factors(2, 1.0);
    const NcclTuning tuning = h100_tuning(scenario_.cluster.nccl_version);
    const Machine machine{fabric, placement, capacity, factors, tuning};
    const CostedGraph costs = cost_graph(graph, scenario_.profile, scenario_.software);
    const JobMap map = map_job(graph, machine);
    const FoldedJob job = fold(graph, machine, map, classify(graph, machine, map));
    return execute_step(graph, costs, job, tuning,
                        {scenario_.profile.sms, lost_per_transfer_sm}, {});
  }

  OpGraph graph;
  WorkId work, send, receive, first_meeting, second_meeting;

 private:
  Scenario scenario_;
};

TEST(Executor, names_ranks_and_ops_that_wait_for_each_other) {
  HandMade job;
  for (size_t stage = 0; stage < 2; ++stage) {
    ProgramBuilder builder(job.graph.works);
    const OpId arrived = builder.add(job.receive, {}, 7, 2);
    const OpId product = builder.add(job.work, std::array{arrived}, 7, 2);
    Op& sent = builder.op(builder.add(job.send, std::array{product}, 7, 2));
    sent.peer = ProgramId(1 - stage);
    sent.receive = arrived;
    job.graph.programs.push_back(builder.build());
  }
  const StepOutcome outcome = job.run();
  ASSERT_EQ(outcome.deadlock.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const BlockedOp& blocked = outcome.deadlock[i];
    EXPECT_EQ(blocked.rank, RankId(i / 2));
    EXPECT_EQ(blocked.op, i % 2 == 0 ? "product" : "send");
    EXPECT_EQ(blocked.micro_batch, 7);
    EXPECT_EQ(blocked.chunk, 2);
    EXPECT_EQ(blocked.waits_for, (i % 2 == 0 ? std::string("message") : std::string("product")) +
                                     " of micro-batch 7, chunk 2");
  }
}

// A product longer than the transfer beside it.
TEST(Executor, loses_to_a_transfer_beside_a_kernel_in_proportion_to_its_sms) {
  HandMade job;
  const GemmShape product{.m = 8192, .n = 8192, .k = 8192, .dtype = DataType::kBf16};
  const WorkId work = job.graph.works.push_back(
      {.kind = WorkKind::kCompute, .name = "product", .kernels = {{.name = "product", .work = product}}});
  for (size_t stage = 0; stage < 2; ++stage) {
    ProgramBuilder builder(job.graph.works);
    builder.add(work, {});
    builder.add(job.first_meeting, {});
    job.graph.programs.push_back(builder.build());
  }
  const auto nanoseconds_at = [&](double lost) { return job.run(lost).makespan.nanoseconds(); };
  const int64_t none = nanoseconds_at(0);
  const int64_t own = nanoseconds_at(1) - none;
  EXPECT_GT(own, 0);
  constexpr double kRounding = 2;  // nanoseconds
  EXPECT_NEAR(static_cast<double>(nanoseconds_at(2) - none), static_cast<double>(2 * own), kRounding);
  EXPECT_NEAR(static_cast<double>(nanoseconds_at(0.5) - none), 0.5 * static_cast<double>(own), kRounding);
}

TEST(Executor, counts_works_and_dependencies_beyond_sixteen_bits) {
  constexpr size_t kMany = 70'000;
  HandMade job;
  std::vector<WorkId> many;
  for (size_t i = 0; i < kMany; ++i) {
    many.push_back(job.graph.works.push_back(
        {.kind = WorkKind::kHost, .stream = Stream::kHost, .name = "launch", .host_floor = microseconds(1)}));
  }
  for (size_t stage = 0; stage < 2; ++stage) {
    ProgramBuilder builder(job.graph.works);
    std::vector<OpId> all;
    for (const WorkId work : many) all.push_back(builder.add(work, {}));
    builder.add(job.work, all);
    job.graph.programs.push_back(builder.build());
  }
  const StepOutcome outcome = job.run();
  EXPECT_TRUE(outcome.deadlock.empty());
  EXPECT_GE(outcome.makespan, microseconds(1) * static_cast<int64_t>(kMany));
}

TEST(Executor, names_a_collective_that_a_member_never_joins) {
  HandMade job;
  for (size_t stage = 0; stage < 2; ++stage) {
    ProgramBuilder builder(job.graph.works);
    builder.add(job.work, {});
    if (stage == 1) builder.add(job.first_meeting, {});
    job.graph.programs.push_back(builder.build());
  }
  const StepOutcome outcome = job.run();
  ASSERT_EQ(outcome.deadlock.size(), 1u);
  EXPECT_EQ(outcome.deadlock[0].rank, RankId(1));
  EXPECT_EQ(outcome.deadlock[0].op, "meeting");
  EXPECT_EQ(outcome.deadlock[0].waits_for, "other members of its group");
}

TEST(Executor, stops_where_members_of_a_group_disagree) {
  HandMade job;
  for (size_t stage = 0; stage < 2; ++stage) {
    ProgramBuilder builder(job.graph.works);
    builder.add(stage == 0 ? job.first_meeting : job.second_meeting, {});
    job.graph.programs.push_back(builder.build());
  }
  EXPECT_DEATH(job.run(), "disagree");
}

}  // namespace
}  // namespace herdsim
