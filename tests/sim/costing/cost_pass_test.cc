#include "sim/costing/cost_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tools/scenario/load_scenario.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

const std::vector<std::string> kSmall = {"gpus=64",
                                         "parallel.tp=4",
                                         "parallel.pp=4",
                                         "parallel.dp=4",
                                         "parallel.virtual_stages=2",
                                         "training.global_batch=16",
                                         "model.layers=8",
                                         "recovery.spares=0"};

struct Costed {
  OpGraph graph;
  CostedGraph costs;
};

Costed costed(const std::vector<std::string>& sets) {
  std::vector<std::string> all = kSmall;
  all.insert(all.end(), sets.begin(), sets.end());
  const Scenario s = load_scenario("llama3-405b-16384", all);
  const ScheduleRow& row = *find_schedule(s.training.schedule);
  Costed out;
  out.graph = lower_step({s.model, s.plan, s.training, s.software}, row,
                         layout_stages(s.model, s.plan, row));
  out.costs = cost_graph(out.graph, s.profile, s.software);
  return out;
}

Duration sum(const WorkCost& cost) {
  return std::accumulate(cost.terms.begin(), cost.terms.end(), Duration::zero());
}

TEST(SlowestOfMany, is_the_expected_maximum_of_normals) {
  EXPECT_EQ(expected_slowest_sigmas(0), 0);
  EXPECT_EQ(expected_slowest_sigmas(1), 0);
  EXPECT_NEAR(expected_slowest_sigmas(2048), 3.41, 0.01 * 3.41);
  EXPECT_NEAR(expected_slowest_sigmas(16384), 3.95, 0.01 * 3.95);
}

// Against the integral of 1 - Phi(x)^n - (1 - Phi(x))^n from 0 up, which is exact.
TEST(SlowestOfMany, is_within_five_per_cent_of_the_integral_for_any_number) {
  const auto phi = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  double before = 0;
  for (int64_t n = 2; n <= 4'194'304; n *= 2) {
    double exact = 0;
    constexpr double kStep = 1e-3;
    for (double x = kStep / 2; x < 9; x += kStep) {
      const double below = std::exp(static_cast<double>(n) * std::log(phi(x)));
      const double above = std::exp(static_cast<double>(n) * std::log(phi(-x)));
      exact += (1 - below - above) * kStep;
    }
    const double blom = expected_slowest_sigmas(n);
    EXPECT_NEAR(blom, exact, (n < 8 ? 0.05 : 0.015) * exact) << n;
    EXPECT_GT(blom, before) << n;
    before = blom;
  }
}

TEST(CostPass, terms_add_up_to_the_total_whatever_the_stack) {
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {},
           {"software.clock_factor=0.87"},
           {"software.gpu_speed_sigma=0.013"},
           {"software.host_milliseconds_per_step=5"},
           {"software.tp_overlap=CHUNKED", "software.tp_overlap_chunks=3"},
           {"software.clock_factor=1.05", "software.gpu_speed_sigma=0.02",
            "software.host_milliseconds_per_step=1", "training.precision=FP8"}}) {
    const Costed c = costed(sets);
    ASSERT_EQ(c.costs.works.size(), c.graph.works.size());
    for (size_t w = 0; w < c.costs.works.size(); ++w) {
      const WorkCost& cost = c.costs.works[WorkId(w)];
      const Work& work = c.graph.works[WorkId(w)];
      EXPECT_EQ(sum(cost), cost.total) << work.name;
      for (const Duration term : cost.terms) EXPECT_GE(term, Duration::zero()) << work.name;
      EXPECT_EQ(cost.kernels.size(), work.kernels.size());
      EXPECT_GE(cost.total, work.host_floor);
      const bool transfers = work.kind == WorkKind::kCollective || work.kind == WorkKind::kSend ||
                             work.kind == WorkKind::kReceive;
      if (!transfers) continue;
      EXPECT_EQ(cost.total, Duration::zero()) << work.name;
    }
  }
}

TEST(CostPass, a_nominal_stack_takes_the_profile_s_times_to_the_nanosecond) {
  const Costed c = costed({"profile.clock.training_factor=1", "software.gpu_speed_sigma=0"});
  int kernels = 0;
  for (size_t w = 0; w < c.costs.works.size(); ++w) {
    const WorkCost& cost = c.costs.works[WorkId(w)];
    Duration device;
    for (const KernelLine& line : cost.kernels) {
      EXPECT_EQ(line.time, line.cost.time) << c.graph.works[WorkId(w)].name;
      device += line.time;
      ++kernels;
    }
    EXPECT_EQ(cost.terms[static_cast<size_t>(TimeTerm::kStraggler)], Duration::zero());
    if (cost.kernels.empty()) continue;
    EXPECT_EQ(cost.total, device) << c.graph.works[WorkId(w)].name;
  }
  EXPECT_GT(kernels, 40);
}

TEST(CostPass, the_clock_slows_cores_and_not_memory) {
  const Costed nominal = costed({"profile.clock.training_factor=1", "software.clock_factor=1"});
  const Costed slow = costed({"profile.clock.training_factor=1", "software.clock_factor=0.8"});
  const Costed hot = costed({"profile.clock.training_factor=0.8", "software.clock_factor=1"});
  EXPECT_EQ(hot.costs.works[WorkId(0)].total, slow.costs.works[WorkId(0)].total);
  for (size_t w = 0; w < nominal.graph.works.size(); ++w) {
    const Work& work = nominal.graph.works[WorkId(w)];
    for (size_t k = 0; k < work.kernels.size(); ++k) {
      const double before = nominal.costs.works[WorkId(w)].kernels[k].time.seconds();
      const double after = slow.costs.works[WorkId(w)].kernels[k].time.seconds();
      const bool memory = std::holds_alternative<MemoryTraffic>(work.kernels[k].work);
      EXPECT_NEAR(after, memory ? before : before / 0.8, 1.5e-9) << work.kernels[k].name;
    }
  }
}

TEST(CostPass, slower_fp8_products_slow_nothing_else) {
  const std::string fp8 = "training.precision=FP8";
  const Costed plain = costed({fp8}), slow = costed({fp8, "software.fp8_product_slowdown=1.5"});
  int slowed = 0;
  for (size_t w = 0; w < plain.graph.works.size(); ++w) {
    const WorkId work(w);
    for (size_t k = 0; k < plain.graph.works[work].kernels.size(); ++k) {
      const Kernel& kernel = plain.graph.works[work].kernels[k];
      const auto* gemm = std::get_if<GemmShape>(&kernel.work);
      const bool is_slowed = gemm != nullptr && gemm->dtype == DataType::kFp8;
      const Duration before = plain.costs.works[work].kernels[k].cost.time,
                     after = slow.costs.works[work].kernels[k].cost.time;
      EXPECT_NEAR(after.seconds(), before.seconds() * (is_slowed ? 1.5 : 1), 2e-9) << kernel.name;
      slowed += is_slowed;
    }
  }
  EXPECT_GT(slowed, 0);
}

TEST(CostPass, the_straggler_s_share_is_the_spread_times_the_expected_slowest) {
  const Costed c = costed({"software.gpu_speed_sigma=0.02"});
  const double share = 0.02 * expected_slowest_sigmas(64);
  for (const WorkCost& cost : c.costs.works) {
    if (cost.kernels.empty()) continue;
    const Duration straggler = cost.terms[static_cast<size_t>(TimeTerm::kStraggler)];
    const Duration device =
        cost.total - straggler - cost.terms[static_cast<size_t>(TimeTerm::kOther)];
    EXPECT_NEAR(straggler.seconds(), device.seconds() * share, 1.5e-9);
  }
}

TEST(CostPass, kernels_outside_the_profile_are_warned_of_once_a_name) {
  const Costed c = costed({"training.precision=FP8", "training.sequence_length=1048576"});
  std::vector<std::string> warnings = c.costs.warnings;
  EXPECT_FALSE(warnings.empty());
  std::sort(warnings.begin(), warnings.end());
  EXPECT_EQ(std::unique(warnings.begin(), warnings.end()), warnings.end());
}

}  // namespace
}  // namespace herdsim
