#include "tools/validation/row_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "tests/tools/validation/complete_row.h"

namespace herdsim {
namespace {

// Of two steps under one cap, the one that waits for tensor-parallel transfers clocks higher.
TEST(RowClock, the_clock_under_a_power_cap_is_that_of_what_the_step_does) {
  const auto settled = [](int64_t tp, std::optional<double> watts) {
    RunRow row = complete_row();
    row.overlap_notes = "no TP overlap";
    row.pp = row.vp = 1;
    row.tp = tp;
    row.gpu_power_watts = watts;
    RowScenario read = scenario_of_row(row, parts());
    MachineMemo machines;
    settle_clock(read, machines);
    return read.scenario.software.clock_factor;
  };
  EXPECT_DOUBLE_EQ(settled(8, std::nullopt), 1);
  EXPECT_LT(settled(1, 500), 0.83);
  EXPECT_GT(settled(8, 500), settled(1, 500) + 0.02);
}

// Whatever a step does with its clock: falls, rises, overshoots more at every round, jumps across.
TEST(RowClock, settles_where_a_clock_sustains_itself_or_where_it_jumps_across) {
  struct Case {
    std::string_view name;
    double (*sustained)(double);
    double at;
  };
  const Case cases[] = {
      {"always one", [](double) { return 1.0; }, 1},
      {"always the same", [](double) { return 0.6; }, 0.6},
      {"rises slowly", [](double x) { return 0.4 + 0.4 * x; }, 2.0 / 3},
      {"rises nearly as fast as the clock", [](double x) { return 0.01 + 0.98 * x; }, 0.5},
      {"goes round in a circle", [](double x) { return 1 - x; }, 0.5},
      {"overshoots more each round", [](double x) { return std::exp(-6 * x); }, 0.2387},
      {"jumps across", [](double x) { return x < 0.37 ? 0.9 : 0.2; }, 0.37},
      {"has none", [](double) { return 0.0; }, 0},
      {"has one that no GPU has", [](double x) { return 0.1 * x; }, 0},
      {"has it low", [](double x) { return x < 0.11 ? 1.0 : 0.0; }, 0.11},
  };
  for (const Case& test : cases) {
    for (const double first : {1.0, 0.9, 0.5, 0.12, 1e-3}) {
      int calls = 0;
      const double clock = settled_clock(first, [&](double x) {
        EXPECT_GT(x, 0) << test.name;
        EXPECT_LE(x, 1) << test.name;
        ++calls;
        return test.sustained(x);
      });
      EXPECT_LE(calls, 30) << test.name << " from " << first;
      EXPECT_EQ(clock == 0, test.at == 0) << test.name << " from " << first;
      // A slope near one leaves a wide place where the clock is its own to a thousandth.
      EXPECT_NEAR(clock, test.at, 0.06 * test.at) << test.name << " from " << first;
      if (test.name != "jumps across" && test.name != "has it low" && clock > 0) {
        EXPECT_NEAR(test.sustained(clock), clock, 8e-3 * clock) << test.name << " from " << first;
      }
    }
  }
}

TEST(RowClock, a_cap_under_which_nothing_runs_is_a_reason_to_leave_the_row_out) {
  for (const double watts : {1e-3, 50.0}) {
    RunRow row = complete_row();
    row.gpu_power_watts = watts;
    RowScenario read = scenario_of_row(row, parts());
    MachineMemo machines;
    settle_clock(read, machines);
    EXPECT_EQ(read.skipped_because.find("gpu_power_W: "), 0U) << watts << ": " << read.skipped_because;
  }
  RunRow row = complete_row();
  row.gpu_power_watts = 450;
  RowScenario read = scenario_of_row(row, parts());
  MachineMemo machines;
  settle_clock(read, machines);
  EXPECT_EQ(read.skipped_because, "");
}

}  // namespace
}  // namespace herdsim
