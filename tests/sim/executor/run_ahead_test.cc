// What a rank does by itself, run ahead of the clock, against the same op by op: equal to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>

#include "sim/base/error.h"
#include "sim/symmetry/shared_fabric.h"
#include "tests/sim/executor/job_cases.h"

namespace herdsim {
namespace {

using Sets = std::vector<std::string>;

std::vector<std::tuple<uint32_t, uint32_t, WorkId, int64_t>> runs_of(const StepOutcome& outcome) {
  std::vector<std::tuple<uint32_t, uint32_t, WorkId, int64_t>> runs;
  for (const TransferRuns& r : outcome.transfers)
    runs.emplace_back(r.lane, r.transfer, r.work, r.runs);
  return runs;
}

void expect_same(const StepOutcome& ahead, const StepOutcome& op_by_op) {
  EXPECT_EQ(ahead.makespan, op_by_op.makespan);
  EXPECT_EQ(ahead.account.values(), op_by_op.account.values());
  EXPECT_EQ(ahead.link_bytes.values(), op_by_op.link_bytes.values());
  EXPECT_EQ(runs_of(ahead), runs_of(op_by_op));
  EXPECT_EQ(ahead.deadlock.size(), op_by_op.deadlock.size());
  EXPECT_EQ(ahead.is_cut_off, op_by_op.is_cut_off);
  EXPECT_LE(ahead.events, op_by_op.events + 8 * static_cast<int64_t>(ahead.account.size()));
}

// Events that one took of those of the other.
double compare(const PlannedJob& job, const FoldedJob& folded, std::optional<TimeTerm> free = {}) {
  const StepOutcome ahead = job.run(folded, ExecutionChoice{.free_transfers = free});
  const StepOutcome op_by_op =
      job.run(folded, ExecutionChoice{.op_by_op = true, .free_transfers = free});
  expect_same(ahead, op_by_op);
  return static_cast<double>(ahead.events) / static_cast<double>(op_by_op.events);
}

TEST(RunAhead, gives_what_op_by_op_gives) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const FoldedJob folded = job.fold_with(job.classes());
    compare(job, folded);
    compare(job, folded, TimeTerm::kExposedTp);
    compare(job, folded, TimeTerm::kExposedPp);
  }
}

// One of each, drawn: how a step is cut, ordered, shared out and overlapped, and what is wrong with
// the machine.
class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {}

  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[std::uniform_int_distribution<size_t>(0, all.size() - 1)(random_)];
  }

  SmallPlan plan() {
    const std::vector<std::string> names = schedule_names();
    SmallPlan plan{
        .tp = one_of<int64_t>({1, 2, 4, 8}),
        .cp = one_of<int64_t>({1, 2, 4}),
        .pp = one_of<int64_t>({1, 2, 4}),
        .dp = one_of<int64_t>({1, 2, 8}),
        .micro_batches = one_of<int64_t>({4, 8, 16}),
        .schedule = names[std::uniform_int_distribution<size_t>(0, names.size() - 1)(random_)]};
    if (find_schedule(plan.schedule)->uses_virtual_stages) plan.virtual_stages = 2;
    return plan;
  }

  Sets sets() {
    Sets sets = {"software={base: \"" +
                 one_of<std::string>({"megatron-te", "megatron-te", "meta-llama3"}) + "\"}"};
    const auto add = [&](std::initializer_list<std::string> all) {
      if (std::string set = one_of(all); !set.empty()) sets.push_back(std::move(set));
    };
    add({"", "software.tp_overlap=CHUNKED", "software.tp_overlap=NONE"});
    add({"", "software.tp_backward_overlap=false", "software.tp_backward_overlap=true"});
    add({"", "software.dp_overlap=false"});
    add({"", "software.p2p_async=false", "software.p2p_async=true"});
    add({"", "", "software.pass_overlap=true"});
    add({"parallel.shard=NONE", "parallel.shard=ZERO1", "parallel.shard=ZERO2",
         "parallel.shard=ZERO3"});
    add({"", "", "parallel.sequence_parallel=false"});
    add({"", "parallel.context=RING", "parallel.context=ALL_TO_ALL"});
    add({"", "", "parallel.order=[CP,TP,DP,PP]"});
    add({"", "training.recompute=FULL", "training.recompute=SELECTIVE"});
    add({"", "", "cluster.nic_gigabits_per_second=20"});
    add({"", "", "cluster.degraded={gpu: 0 compute_factor: 0.8}"});
    add({"", "", "cluster.degraded={gpu: 1 nic_factor: 0.3}",
         "cluster.degraded={gpu: 1 nic_factor: 0.1 at_s: 0.002 for_s: 0.01}"});
    add({"", "", "training.documents={mean_tokens: 1000 sigma: 1.2}"});
    add({"", "", "other_traffic.tor_uplinks=0.5"});
    return sets;
  }

 private:
  std::mt19937 random_;
};

TEST(RunAhead, gives_what_op_by_op_gives_in_any_small_job) {
  int ran = 0;
  std::vector<unsigned> seeds(120);
  std::iota(seeds.begin(), seeds.end(), 0U);
  seeds.push_back(1101);  // ranks that are far behind when a transfer among them begins or ends
  for (const unsigned seed : seeds) {
    Drawn drawn(seed);
    const SmallPlan plan = drawn.plan();
    Sets sets = drawn.sets();
    sets.push_back("model.layers=" + std::to_string(plan.pp * plan.virtual_stages * 4));
    std::string text = "seed " + std::to_string(seed) + " " + plan.schedule;
    for (const std::string& set : sets) text += " " + set;
    SCOPED_TRACE(text);
    std::optional<Scenario> scenario;
    try {
      scenario = load_scenario(kSmallJobBase, small_job(plan, sets));
    } catch (const SpecError&) {
      continue;  // not every schedule takes every shape
    }
    ++ran;
    const PlannedJob job(std::move(*scenario));
    compare(job, job.fold_with(job.classes()));
  }
  EXPECT_GE(ran, 60);
}

// Jobs that repeat their steps beside each other.
TEST(RunAhead, gives_what_op_by_op_gives_beside_other_jobs) {
  for (const JobCase& c : job_cases()) {
    const Scenario& scenario = c.scenario();
    if (scenario.other_jobs.empty()) continue;
    SCOPED_TRACE(c.name);
    const MachineState machine = machine_of(scenario);
    std::vector<std::unique_ptr<JobOnMachine>> jobs;
    std::vector<JobMap> maps;
    std::vector<MappedJob> mapped;
    for (size_t j = 0; j < machine.placements.size(); ++j) {
      jobs.push_back(std::make_unique<JobOnMachine>(
          j == 0 ? scenario : scenario.other_jobs[j - 1].scenario, machine, j));
      maps.push_back(map_job(jobs[j]->graph, jobs[j]->machine));
    }
    for (size_t j = 0; j < jobs.size(); ++j)
      mapped.push_back({jobs[j]->graph, jobs[j]->machine, maps[j]});
    const std::vector<FoldedJob> folded = fold_together(mapped, classify_together(mapped));
    const auto run = [&](bool op_by_op) {
      std::vector<SharingJob> sharing;
      for (size_t j = 0; j < jobs.size(); ++j) {
        sharing.push_back({.graph = jobs[j]->graph,
                           .costs = jobs[j]->costs,
                           .job = folded[j],
                           .tuning = jobs[j]->tuning,
                           .sms = jobs[j]->sms,
                           .begins = j == 0 ? Duration::zero() : scenario.other_jobs[j - 1].begins,
                           .op_by_op = op_by_op});
      }
      return execute_steps(sharing).steps;
    };
    const std::vector<StepOutcome> ahead = run(false), op_by_op = run(true);
    for (size_t j = 0; j < jobs.size(); ++j) expect_same(ahead[j], op_by_op[j]);
  }
}

// Passes of many layers that nobody disturbs are a few events, and none of them is left out of the
// account.
TEST(RunAhead, leaves_out_the_events_of_passes) {
  for (const int64_t cp : {1, 2}) {
    const SmallPlan plan{.tp = 8, .cp = cp, .pp = 2, .dp = 2, .micro_batches = 16};
    for (const char* software : {"meta-llama3", "megatron-te"}) {
      SCOPED_TRACE(software);
      const PlannedJob job(load_scenario(
          kSmallJobBase, small_job(plan, {"model.layers=32",
                                          "software={base: \"" + std::string(software) + "\"}"})));
      EXPECT_LT(compare(job, job.fold_with(job.classes())), 0.2);
    }
  }
}

}  // namespace
}  // namespace herdsim
