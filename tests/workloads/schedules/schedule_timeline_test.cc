#include "workloads/schedules/schedule_timeline.h"

#include <gtest/gtest.h>

namespace herdsim {
namespace {

using enum PassKind;

TEST(ScheduleTimeline, names_the_stage_and_pass_of_a_deadlock) {
  const ScheduleRow& row = *find_schedule("1f1b");
  const ScheduleShape shape{.stages = 2, .micro_batches = 1};
  const std::vector<std::vector<Pass>> orders = {{{kBackward, 0, 0}, {kForward, 0, 0}},
                                                 {{kForward, 0, 0}, {kBackward, 0, 0}}};
  const ScheduleTimeline t = time_orders(row, shape, orders, {});
  ASSERT_TRUE(t.deadlock.has_value());
  EXPECT_EQ(t.deadlock->text(),
            "stage 0: backward of micro-batch 0, chunk 0 waits for stage 0: forward of micro-batch "
            "0, chunk 0");
}

TEST(ScheduleTimeline, names_what_another_stage_owes) {
  const ScheduleRow& row = *find_schedule("zb-h1");
  const ScheduleShape shape{.stages = 2, .micro_batches = 1};
  const std::vector<std::vector<Pass>> orders = {
      {{kForward, 0, 0}, {kBackwardInput, 0, 0}, {kBackwardWeight, 0, 0}},
      {{kBackwardWeight, 0, 0}, {kForward, 0, 0}, {kBackwardInput, 0, 0}}};
  const ScheduleTimeline t = time_orders(row, shape, orders, {});
  ASSERT_TRUE(t.deadlock.has_value());
  EXPECT_EQ(t.deadlock->stage, 0);
  EXPECT_EQ(t.deadlock->waits_for_stage, 1);
  EXPECT_EQ(t.deadlock->waits_for, (Pass{kBackwardInput, 0, 0}));
}

TEST(ScheduleTimeline, a_transfer_delays_other_stages_and_occupies_none) {
  const ScheduleRow& row = *find_schedule("gpipe");
  const PassTimes times{nanoseconds(10), nanoseconds(10), nanoseconds(10), nanoseconds(3)};
  const ScheduleTimeline t = time_schedule(row, {.stages = 2, .micro_batches = 2}, times);
  EXPECT_EQ(t.stages[0][1].start, Instant::from_nanoseconds(10));
  EXPECT_EQ(t.stages[1][0].start, Instant::from_nanoseconds(13));
  EXPECT_EQ(t.stages[1][1].start, Instant::from_nanoseconds(23));
  EXPECT_EQ(t.stages[0][2].start, Instant::from_nanoseconds(33 + 20 + 3));
  EXPECT_EQ(t.makespan, nanoseconds(33 + 40 + 3 + 20));
  EXPECT_EQ(t.busy[0], nanoseconds(60));
}

// Qi et al. 2023, table 2: idle (p - 1)(F + B + W) for 1f1b, (p - 1)(F + B - W) for ZB-H1, where W
// is no longer than F and B.
TEST(ScheduleTimeline, idle_time_is_the_papers_for_passes_of_unequal_cost) {
  const PassTimes times{nanoseconds(12), nanoseconds(13), nanoseconds(9), nanoseconds(0)};
  for (const int64_t p : {2, 4, 7}) {
    const ScheduleShape shape{.stages = p, .micro_batches = 3 * p};
    const ScheduleTimeline plain = time_schedule(*find_schedule("1f1b"), shape, times);
    const ScheduleTimeline h1 = time_schedule(*find_schedule("zb-h1"), shape, times);
    EXPECT_EQ(plain.span(0) - plain.busy[0], nanoseconds((p - 1) * (12 + 13 + 9)));
    EXPECT_EQ(h1.span(0) - h1.busy[0], nanoseconds((p - 1) * (12 + 13 - 9)));
  }
}

TEST(ScheduleTimeline, zero_bubble_stages_have_no_gap_but_do_not_start_together) {
  for (const char* name : {"zb-2p", "zb-v"}) {
    const PassTimes times{nanoseconds(10), nanoseconds(10), nanoseconds(10), nanoseconds(0)};
    const ScheduleTimeline t =
        time_schedule(*find_schedule(name), {.stages = 4, .micro_batches = 7}, times);
    for (int64_t stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(t.span(stage), t.busy[static_cast<size_t>(stage)]) << name << " stage " << stage;
    }
    EXPECT_EQ(t.makespan, t.busy[0] + nanoseconds(30)) << name;
  }
}

}  // namespace
}  // namespace herdsim
