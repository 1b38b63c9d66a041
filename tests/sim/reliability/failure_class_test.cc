// Laws of the tables: every row, every base.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sim/base/rng.h"
#include "sim/reliability/corruption_detector.h"
#include "sim/reliability/reliability_base.h"

namespace herdsim {
namespace {

template <class Rows>
void expect_named_and_sourced(const Rows& rows) {
  std::set<std::string_view> names;
  for (const auto& row : rows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " appears twice";
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_FALSE(row.source.empty() && row.name != "none") << row.name;
  }
}

TEST(Tables, every_row_has_its_own_name_a_help_and_a_source) {
  expect_named_and_sourced(failure_classes());
  expect_named_and_sourced(slow_components());
  expect_named_and_sourced(corruption_detectors());
  expect_named_and_sourced(reliability_bases());
}

TEST(Tables, every_name_in_a_base_exists) {
  for (const ReliabilityBase& base : reliability_bases()) {
    for (const BaseClass& entry : base.classes)
      EXPECT_NE(find_failure_class(entry.name), nullptr) << entry.name;
    for (const std::string_view name : base.slow)
      EXPECT_NE(find_slow_component(name), nullptr) << name;
  }
}

TEST(FailureClass, rates_are_positive_and_lost_hosts_go_to_repair) {
  for (const FailureClass& row : failure_classes()) {
    EXPECT_GT(row.rate_per_hour, 0) << row.name;
    EXPECT_GE(row.wider_share, 0) << row.name;
    EXPECT_LT(row.wider_share, 1) << row.name;
    EXPECT_EQ(row.remedy == Remedy::kReplace, row.scope != Scope::kJob) << row.name;
    if (row.remedy == Remedy::kReplace) {
      EXPECT_GT(row.mean_repair_seconds(), 0) << row.name;
    }
  }
}

TEST(FailureClass, the_window_of_llama_3_has_its_419_and_47) {
  const FailureDomains machine{.gpus = 16'384};
  const auto classes = classes_of(*find_reliability_base("llama3-54-days"));
  EXPECT_EQ(classes.size(), 19u);
  EXPECT_NEAR(unplanned_rate_per_hour(classes, machine) * 54 * 24, 419, 1e-9);
  EXPECT_NEAR(find_failure_class("planned_maintenance")->rate_per_hour * 16'384 * 54 * 24, 47,
              1e-9);
  const auto fewer = classes_of(*find_reliability_base("llama3-126-gpu-faults"));
  EXPECT_NEAR(unplanned_rate_per_hour(fewer, machine) * 54 * 24, 397, 1e-9);
}

TEST(FailureClass, fleets_have_the_mean_time_to_failure_they_publish) {
  const auto hours = [](std::string_view base, int64_t gpus) {
    return 1 / unplanned_rate_per_hour(classes_of(*find_reliability_base(base)), {.gpus = gpus});
  };
  EXPECT_NEAR(hours("rsc-1", 16'384), 1.80, 0.036);
  EXPECT_NEAR(hours("rsc-1", 131'072), 0.225, 0.0045);
  EXPECT_NEAR(hours("rsc-1", 1'024), 28.8, 0.1);
  EXPECT_NEAR(hours("ft-hsdp-100k", 100'000) * 60, 18, 0.1);
}

TEST(FailureClass, agrees_with_the_published_counts_file) {
  std::ifstream file(HERDSIM_SOURCE_DIR "/../shared/data/reliability/failures.csv");
  if (!file) GTEST_SKIP() << "the data file is not part of a clone";
  std::string line;
  std::getline(file, line);
  int rows = 0;
  while (std::getline(file, line)) {
    std::stringstream cells(line);
    std::string name, count, rate, detection, repair;
    for (std::string* cell : {&name, &count, &rate, &detection, &repair})
      std::getline(cells, *cell, ',');
    const FailureClass* row = find_failure_class(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_NEAR(row->rate_per_hour * kLlama3GpuHours, std::stod(count), 1e-9) << name;
    EXPECT_NEAR(row->detection.mean_seconds, std::stod(detection), 0.2) << name;
    EXPECT_NEAR(row->mean_repair_seconds(), std::stod(repair), 1) << name;
    ++rows;
  }
  EXPECT_EQ(rows, 19);
}

TEST(FailureDomains, a_scope_never_takes_more_than_the_job_has) {
  for (const int64_t gpus : {1, 8, 24, 16'384, 131'072}) {
    const FailureDomains machine{.gpus = gpus};
    for (const Scope scope :
         {Scope::kJob, Scope::kHost, Scope::kTor, Scope::kPowerDomain, Scope::kPod}) {
      EXPECT_LE(machine.hosts_lost(scope), machine.hosts()) << gpus;
      EXPECT_EQ(machine.hosts_lost(scope) == 0, scope == Scope::kJob) << gpus;
    }
  }
  const FailureDomains machine{.gpus = 16'384};
  EXPECT_EQ(machine.hosts_lost(Scope::kTor), 2);
  EXPECT_EQ(machine.units(Exposure::kTor), 1024);
  EXPECT_EQ(machine.units(Exposure::kHost), 2048);
}

// A ToR of a rack holds all NICs of a few hosts; one of a rail holds a NIC of many.
TEST(FailureDomains, a_tor_reaches_the_hosts_that_are_cabled_to_it) {
  const FailureDomains racks{.gpus = 1024, .gpus_per_tor = 16};
  const FailureDomains rails{.gpus = 1024, .gpus_per_tor = 32, .rails = 8};
  const FailureDomains ports{.gpus = 1024, .gpus_per_tor = 128, .rails = 8, .planes = 2};
  EXPECT_EQ(racks.hosts_lost(Scope::kTor), 2);
  EXPECT_EQ(rails.hosts_lost(Scope::kTor), 32);
  EXPECT_EQ(ports.hosts_lost(Scope::kTor), 128);
  EXPECT_EQ(rails.units(Exposure::kTor), 32);
  EXPECT_EQ(ports.units(Exposure::kTor), 16);
  EXPECT_EQ(ports.units(Exposure::kNicLink), 2048);
  EXPECT_EQ(racks.gpus_under_tor_of(21).size(), 16U);
  EXPECT_EQ(racks.gpus_under_tor_of(21).front(), 16);
  for (const FailureDomains& machine : {racks, rails, ports}) {
    for (const int64_t gpu : {0, 21, 300, 1023}) {
      const std::vector<int64_t> under = machine.gpus_under_tor_of(gpu);
      EXPECT_EQ(static_cast<int64_t>(under.size()), machine.gpus_per_tor) << gpu;
      EXPECT_TRUE(std::find(under.begin(), under.end(), gpu) != under.end()) << gpu;
      // Whoever is under it sees the same ToR.
      EXPECT_EQ(machine.gpus_under_tor_of(under.back()), under) << gpu;
    }
  }
  const FailureDomains part{.gpus = 40, .gpus_per_tor = 32, .rails = 8};
  EXPECT_EQ(part.gpus_under_tor_of(10), (std::vector<int64_t>{2, 10, 18, 26, 34}));
}

TEST(Laws, quantiles_are_monotone_and_have_the_mean_they_are_given) {
  for (const DurationShape shape : {DurationShape::kConstant, DurationShape::kExponential,
                                    DurationShape::kLognormal, DurationShape::kWeibull}) {
    const RandomDuration law{.shape = shape, .mean_seconds = 100, .parameter = 0.8};
    constexpr int kPoints = 200'000;
    double sum = 0, last = law.draw_seconds(0.5 / kPoints);
    for (int i = 0; i < kPoints; ++i) {
      const double x = law.draw_seconds((i + 0.5) / kPoints);
      EXPECT_LE(x, last) << static_cast<int>(shape);
      last = x;
      sum += x;
    }
    EXPECT_NEAR(sum / kPoints, 100, 0.1) << kDurationShapeNames[static_cast<size_t>(shape)];
    EXPECT_TRUE(std::isfinite(law.draw_seconds(1))) << static_cast<int>(shape);
    EXPECT_TRUE(std::isfinite(law.draw_seconds(0x1p-53))) << static_cast<int>(shape);
  }
}

TEST(Laws, gaps_keep_the_rate_of_their_class) {
  ArrivalLaw empirical{.shape = ArrivalShape::kEmpirical, .gaps = {1, 2, 3, 10, 50}};
  RngStream stream(7, "test/gaps", 0);
  double sum = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) sum += draw_gap_seconds(empirical, 1000, stream.uniform());
  // Interpolation between the points shifts the mean of so short a log; the standard error is 4,
  // the bound 40 of them.
  EXPECT_NEAR(sum / kDraws, 1000 * (1.5 + 2.5 + 6.5 + 30) / 4 / 13.2, 16);
  for (const ArrivalShape shape : {ArrivalShape::kExponential, ArrivalShape::kWeibull}) {
    const ArrivalLaw law{.shape = shape};
    double mean = 0;
    for (int i = 0; i < kDraws; ++i)
      mean += draw_gap_seconds(law, 1000, (i + 0.5) / kDraws) / kDraws;
    EXPECT_NEAR(mean, 1000, 3);
  }
}

TEST(Detectors, a_checksum_never_sees_wrong_arithmetic) {
  for (const std::string_view name : {"transfer_checksum", "parameter_checksum"}) {
    EXPECT_EQ(find_corruption_detector(name)->arithmetic_recall, 0) << name;
    EXPECT_GT(find_corruption_detector(name)->transfer_recall, 0) << name;
  }
  for (const CorruptionDetector& row : corruption_detectors()) {
    EXPECT_GE(row.arithmetic_recall, 0) << row.name;
    EXPECT_LE(row.arithmetic_recall, 1) << row.name;
    EXPECT_LE(row.transfer_recall, 1) << row.name;
    EXPECT_LT(row.step_overhead, 0.1) << row.name;
  }
}

TEST(SlowComponents, the_slowdowns_of_whole_jobs_have_the_published_quantiles) {
  // OSDI'25: 42.5 % of jobs at 1.1 or more; waste 1 - 1/S of 7.8, 21.3, 45.0 % at p50, p90, p99;
  // mean 10.4 %.
  const SlowComponent& row = *find_slow_component("job_slowdown");
  constexpr int kPoints = 100'000;
  std::vector<double> waste;
  double mean = 0, slow = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double s = 1 + row.draw_slowdown(1 - (i + 0.5) / kPoints);
    waste.push_back(1 - 1 / s);
    mean += waste.back() / kPoints;
    slow += s >= 1.1 ? 1.0 / kPoints : 0;
  }
  EXPECT_NEAR(slow, 0.425, 0.01);
  EXPECT_NEAR(waste[kPoints / 2], 0.078, 0.005);
  EXPECT_NEAR(waste[kPoints * 9 / 10], 0.213, 0.015);
  EXPECT_NEAR(waste[kPoints * 99 / 100], 0.450, 0.03);
  EXPECT_NEAR(mean, 0.104, 0.005);
}

TEST(FailureClass, an_assumed_rate_has_a_range_that_holds_it_and_no_other_has) {
  int assumed = 0;
  for (const FailureClass& row : failure_classes()) {
    ASSERT_EQ(row.rate_range.has_value(), row.rate_evidence == Evidence::kAssumed) << row.name;
    if (!row.rate_range) continue;
    ++assumed;
    EXPECT_GE(row.rate_range->low, 0) << row.name;
    EXPECT_LT(row.rate_range->low, 1) << row.name;
    EXPECT_GT(row.rate_range->high, 1) << row.name;
    EXPECT_FALSE(row.rate_range->source.empty()) << row.name;
  }
  EXPECT_GT(assumed, 0);
}

}  // namespace
}  // namespace herdsim
