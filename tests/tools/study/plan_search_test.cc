#include "tools/study/plan_search.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "sim/base/error.h"
#include "tests/tools/study/small_scenario.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/least_memory.h"
#include "tools/study/step_bound.h"
#include "workloads/memory/memory_footprint.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

Scenario small_base(std::vector<std::string> more = {}) {
  std::vector<std::string> sets = small_sets();
  sets.emplace_back("parallel.sequence_parallel=");  // as the stack has it
  sets.insert(sets.end(), more.begin(), more.end());
  return load_scenario(kSmallScenario, sets);
}

// Spaces small enough to simulate whole, unlike in what bounds the step.
struct SpaceCase {
  std::string name;
  std::vector<std::string> sets, pins;
  double mean_tightness;  // of the timeline bound: one of nothing would pass as well
};
const std::vector<SpaceCase>& small_spaces() {
  static const std::vector<SpaceCase> kCases = {
      {"one host", {}, {"parallel.micro_batch=2", "training.recompute=NONE"}, 0.93},
      {"two hosts",
       {"gpus=16", "training.global_batch=32"},
       {"parallel.micro_batch=1", "parallel.shard=ZERO1", "training.recompute=FULL"},
       0.94},
      {"two hosts that share out parameters",
       {"gpus=16"},
       {"parallel.micro_batch=1", "parallel.shard=ZERO3", "training.recompute=SELECTIVE"},
       0.86},
      {"transfers that hide",
       {"gpus=16", "software={base: \"megatron-te\"}"},
       {"parallel.micro_batch=1", "parallel.shard=ZERO2", "training.recompute=NONE"},
       0.92},
      {"a host that is slow to launch",
       {"gpus=16", "software={base: \"torch-fsdp2\"}"},
       {"parallel.micro_batch=1", "parallel.shard=ZERO3", "training.recompute=NONE"},
       0.82},
      {"experts over two hosts, the first layer without",
       {"gpus=16", "model.experts=8", "model.experts_per_token=2", "model.first_dense_layers=1",
        "parallel.ep=2"},
       {"parallel.micro_batch=1", "parallel.shard=ZERO1", "training.recompute=NONE"},
       0.67},
      {"pairs of passes",
       {"gpus=16", "software.pass_overlap=true"},
       {"parallel.micro_batch=1", "parallel.shard=ZERO1", "training.recompute=NONE"},
       0.88},
      {"pairs of passes in loops, ends without a layer",
       {"gpus=32", "model.layers=8", "training.sequence_length=2048", "training.global_batch=32",
        "software={base: \"megatron-te\" pass_overlap: true}", "model.experts=8",
        "model.experts_per_token=2", "parallel.ep=2"},
       {"parallel.micro_batch=2", "parallel.shard=ZERO2", "training.recompute=SELECTIVE",
        "training.schedule=interleaved-1f1b"},
       0.6},
      {"collectives as the scenario says, slow ones",
       {"gpus=16", "software.dp_overlap=false",
        "collectives=[{kind: ALL_REDUCE communicator: DP algorithm: \"hierarchical\"}, "
        "{kind: REDUCE_SCATTER phases {kind: REDUCE_SCATTER group: NODE efficiency: 0.02} "
        "phases {kind: REDUCE_SCATTER group: RAIL efficiency: 0.1}}, "
        "{kind: ALL_GATHER communicator: TP algorithm: \"ring\"}]"},
       {"parallel.micro_batch=1", "parallel.shard=ZERO1", "training.recompute=NONE"},
       0.9},
      {"transfers that take many SMs",
       {"gpus=16", "software={base: \"megatron-te\" tp_overlap: CHUNKED}",
        "profile.sharing.sms_lost_per_transfer_sm=3"},
       {"parallel.micro_batch=1", "parallel.shard=ZERO2", "training.recompute=NONE"},
       0.88},
      {"nothing hides",
       {"gpus=16", "software.dp_overlap=false"},
       {"parallel.micro_batch=1", "training.schedule=interleaved-1f1b", "training.recompute=NONE"},
       0.97},
  };
  return kCases;
}

TEST(PlanSpace, every_candidate_is_a_scenario) {
  std::vector<std::string> none;
  const Scenario base = small_base();
  const std::vector<PlanCandidate> space = plan_space(base, take_pins(none));
  ASSERT_GT(space.size(), 100u);
  std::set<std::string> seen;
  for (size_t i = 0; i < space.size(); ++i) {
    const PlanCandidate& c = space[i];
    EXPECT_EQ(c.plan.ranks(), base.gpus) << c.text();
    EXPECT_TRUE(seen.insert(c.text()).second) << c.text();
    if (i % 29 != 0) continue;  // the loader takes milliseconds
    const Scenario again = load_scenario(
        kSmallScenario,
        {"gpus=8", "model.layers=4", "training.sequence_length=1024", "recovery.spares=0",
         "training.global_batch=16", "parallel.tp=" + std::to_string(c.plan.tp),
         "parallel.cp=" + std::to_string(c.plan.cp), "parallel.pp=" + std::to_string(c.plan.pp),
         "parallel.dp=" + std::to_string(c.plan.dp),
         "parallel.virtual_stages=" + std::to_string(c.plan.virtual_stages),
         "parallel.micro_batch=" + std::to_string(c.plan.micro_batch),
         "training.schedule=" + std::string(c.schedule->name)});
    EXPECT_EQ(again.plan.ranks(), base.gpus) << c.text();
  }
}

TEST(PlanSpace, splits_the_sequence_as_the_stack_has_it_or_the_user_says) {
  const auto splitting = [](const std::vector<std::string>& sets) {
    std::vector<std::string> pin = {"parallel.tp=2"};
    const auto space = plan_space(small_base(sets), take_pins(pin));
    EXPECT_FALSE(space.empty());
    return std::count_if(space.begin(), space.end(), [](const PlanCandidate& c) { return c.plan.sequence_parallel; }) ==
           static_cast<std::ptrdiff_t>(space.size());
  };
  EXPECT_TRUE(splitting({}));
  EXPECT_FALSE(splitting({"software={base: \"megatron-2021\"}"}));
  EXPECT_FALSE(splitting({"parallel.sequence_parallel=false"}));
}

TEST(PlanSpace, pins_hold_fields_and_leave_the_rest) {
  std::vector<std::string> sets = {"parallel.tp=2", "training.schedule=1f1b", "model.layers=4",
                                   "parallel.shard=ZERO1", "training.recompute=FULL"};
  const PlanPins pins = take_pins(sets);
  EXPECT_EQ(sets, std::vector<std::string>{"model.layers=4"});
  const auto space = plan_space(small_base(), pins);
  EXPECT_FALSE(space.empty());
  for (const PlanCandidate& c : space) {
    EXPECT_EQ(c.plan.tp, 2);
    EXPECT_EQ(c.schedule->name, "1f1b");
    EXPECT_EQ(c.plan.shard, Sharding::kZero1);
    EXPECT_EQ(c.recompute, Recompute::kFull);
  }
  for (const std::string bad :
       {"parallel.tp=two", "parallel.shard=ZERO9", "training.schedule=1f2b", "parallel.pp=0"}) {
    std::vector<std::string> one = {bad};
    EXPECT_THROW(take_pins(one), SpecError) << bad;
  }
}

TEST(StepBounds, are_below_the_simulation_over_whole_small_spaces) {
  for (const SpaceCase& test : small_spaces()) {
    const Scenario base = small_base(test.sets);
    std::vector<std::string> pins = test.pins;
    const auto space = plan_space(base, take_pins(pins));
    ASSERT_GT(space.size(), 10u) << test.name;
    const StepBounds bounds(base, space);
    LeastMemory memory(base);
    double sum = 0;
    for (const PlanCandidate& c : space) {
      const StepResult step = simulate_step(scenario_of(base, c), {}).result;
      EXPECT_LE(bounds.quick(c), step.step_time) << test.name << ": " << c.text();
      EXPECT_LE(bounds.passes(c), step.step_time) << test.name << ": " << c.text();
      EXPECT_LE(bounds.timeline(c), step.step_time) << test.name << ": " << c.text();
      EXPECT_LE(memory.of(c), step.peak_stage()->peak) << test.name << ": " << c.text();
      sum += bounds.timeline(c).seconds() / step.step_time.seconds();
    }
    EXPECT_GT(sum / static_cast<double>(space.size()), test.mean_tightness) << test.name;
  }
}

// Stacks, shares of SMs, experts and what hides, in random company.
TEST(StepBounds, are_below_the_simulation_of_random_plans) {
  static const std::vector<std::string> kStacks = {"megatron-te", "torch-fsdp",    "torch-fsdp2", "nanotron",
                                                   "jax-xla",     "megatron-2021", "deepspeed",   "meta-llama3"};
  std::mt19937 random(20'240'901);
  const auto one_of = [&](size_t n) { return static_cast<size_t>(random() % n); };
  size_t tried = 0;
  for (int job = 0; job < 40; ++job) {
    std::vector<std::string> sets = {
        "software={base: \"" + kStacks[one_of(kStacks.size())] + "\"}",
        "gpus=" + std::to_string(16 << one_of(2)),
        "training.sequence_length=" + std::to_string(1024 << one_of(3)),
        "model.layers=" + std::to_string(4 + 2 * one_of(4)),
        "training.global_batch=" + std::to_string(32 << one_of(2)),
        "profile.sharing.sms_lost_per_transfer_sm=" + std::to_string(1 + one_of(4))};
    if (one_of(3) == 0) {
      sets.insert(sets.end(), {"model.experts=8", "model.experts_per_token=2", "parallel.ep=2"});
    }
    if (one_of(3) == 0) sets.push_back("software.tp_overlap=CHUNKED");
    if (one_of(3) == 0) sets.push_back("software.pass_overlap=true");
    if (one_of(4) == 0) sets.push_back("software.dp_overlap=false");
    const Scenario base = small_base(sets);
    std::vector<std::string> none;
    const auto space = plan_space(base, take_pins(none));
    const StepBounds bounds(base, space);
    MachineMemo machines;
    for (int plan = 0; plan < 25; ++plan, ++tried) {
      const PlanCandidate& c = space[one_of(space.size())];
      const Duration step =
          simulate_step(scenario_of(base, c), {.result_alone = true}, machines).result.step_time;
      EXPECT_LE(bounds.quick(c), step) << c.text() << " of " << ::testing::PrintToString(sets);
      EXPECT_LE(bounds.passes(c), step) << c.text() << " of " << ::testing::PrintToString(sets);
      EXPECT_LE(bounds.timeline(c), step) << c.text() << " of " << ::testing::PrintToString(sets);
    }
  }
  EXPECT_EQ(tried, 1000u);
}

TEST(PlanSearch, finds_what_simulating_everything_finds) {
  for (const SpaceCase& test : small_spaces()) {
    const Scenario base = small_base(test.sets);
    std::vector<std::string> pins = test.pins;
    const PlanPins fixed = take_pins(pins);
    std::vector<std::pair<Duration, std::string>> all;
    for (const PlanCandidate& c : plan_space(base, fixed)) {
      const StepResult step = simulate_step(scenario_of(base, c), {}).result;
      if (step.fits()) all.push_back({step.step_time, c.text()});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const PlanSearch search = search_plans(base, fixed, {.keep = 3});
    ASSERT_EQ(search.best.size(), std::min<size_t>(3, all.size())) << test.name;
    for (size_t i = 0; i < search.best.size(); ++i) {
      EXPECT_EQ(search.best[i].step.step_time, all[i].first) << test.name;
      EXPECT_EQ(search.best[i].candidate.text(), all[i].second) << test.name;
    }
    EXPECT_EQ(search.candidates, search.over_memory() + search.outbid() + search.simulated)
        << test.name;
  }
}

TEST(PlanSearch, threads_change_neither_answer_nor_counts) {
  const Scenario base = small_base();
  const PlanSearch one = search_plans(base, {}, {.keep = 4, .threads = 1});
  const PlanSearch three = search_plans(base, {}, {.keep = 4, .threads = 3});
  EXPECT_EQ(one.simulated, three.simulated);
  EXPECT_EQ(one.outbid(), three.outbid());
  EXPECT_LT(one.simulated, one.candidates / 4);
  ASSERT_EQ(one.best.size(), three.best.size());
  for (size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(one.best[i].candidate.text(), three.best[i].candidate.text());
    EXPECT_EQ(one.best[i].step.fingerprint(), three.best[i].step.fingerprint());
  }
}

// Megatron-LM issue 1000: 18 bytes a parameter are 1.27 TB, and the host has 640 GB.
TEST(PlanSearch, a_70b_on_eight_gpus_of_80_gb_does_not_fit_and_says_by_how_much) {
  const Scenario base =
      load_scenario("llama3-70b-8192",
                    {"gpus=8", "parallel={tp: 8 pp: 1 cp: 1 shard: ZERO1}",
                     "training.global_batch=8", "training.schedule=1f1b", "recovery.spares=0"});
  const PlanSearch search = search_plans(base, {}, {});
  EXPECT_GT(search.candidates, 50);
  EXPECT_TRUE(search.best.empty());
  EXPECT_EQ(search.simulated, 0);
  EXPECT_EQ(search.over_memory(), search.candidates);
  ASSERT_TRUE(search.closest);
  // 16 bytes a parameter of state at least, evenly spread.
  EXPECT_GT(search.closest->stage.peak.count(), 16 * base.model.parameters() / 8);
  EXPECT_GT(search.closest->stage.peak, search.capacity);
}

TEST(PlanSpace, sharding_in_two_names_is_one_step_and_one_memory) {
  std::vector<std::string> zero1 = {"parallel.shard=ZERO1"}, keep = {"parallel.shard=FSDP_KEEP"};
  const Scenario base = small_base();
  const auto a = plan_space(base, take_pins(zero1)), b = plan_space(base, take_pins(keep));
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i += 7) {
    const StepResult one = simulate_step(scenario_of(base, a[i]), {}).result;
    const StepResult other = simulate_step(scenario_of(base, b[i]), {}).result;
    EXPECT_EQ(one.fingerprint(), other.fingerprint()) << a[i].text();
  }
}

TEST(PlanSpace, counts_near_one_without_plans_have_some) {
  const Scenario base = small_base({"gpus=8", "model.layers=4"});
  Scenario odd = base;
  odd.gpus = 8 * 11;  // 11 divides neither the batch of 16 nor what else is split
  odd.cluster.gpus = 1'024;
  PlanPins pins;
  pins.pp = 1;
  pins.cp = 1;
  ASSERT_TRUE(plan_space(odd, pins).empty());
  const std::vector<int64_t> near = gpus_with_plans_near(odd, pins);
  ASSERT_FALSE(near.empty());
  for (const int64_t gpus : near) {
    Scenario other = odd;
    other.gpus = gpus;
    EXPECT_FALSE(plan_space(other, pins).empty()) << gpus;
  }
}

}  // namespace
}  // namespace herdsim
