// Laws that every row of the schedule table keeps, over a grid of shapes. A new row is tested by
// being in the table.
#include "workloads/schedules/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "workloads/schedules/schedule_timeline.h"

namespace herdsim {
namespace {

constexpr PassTimes kUnit{nanoseconds(60), nanoseconds(60), nanoseconds(60), nanoseconds(0)};
// Prime to each other, so that coincidences of equal times do not hide a fault.
constexpr PassTimes kUneven{nanoseconds(101), nanoseconds(97), nanoseconds(53), nanoseconds(31)};

std::string name_of(const ScheduleRow& row, const ScheduleShape& s) {
  return std::string(row.name) + " stages " + std::to_string(s.stages) + " micro-batches " +
         std::to_string(s.micro_batches) + " virtual " + std::to_string(s.virtual_stages) +
         " consecutive " + std::to_string(s.consecutive_micro_batches);
}

bool is_valid(const ScheduleRow& row, const ScheduleShape& shape) {
  Faults faults;
  row.validate(shape, faults);
  return faults.empty();
}

// Calls body(shape) for every shape of the grid that the row runs; how many there were.
template <class Body>
int for_each_shape(const ScheduleRow& row, Body&& body) {
  int shapes = 0;
  for (const int64_t p : {1, 2, 3, 4, 5, 8, 12}) {
    for (const int64_t m : {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24}) {
      for (const int64_t v : {1, 2, 3, 5}) {
        if (v > 1 && !row.uses_virtual_stages) continue;
        for (const int64_t n : {0, 2, 5, 6, 8, 12, 24}) {
          if (n > 0 && !row.uses_virtual_stages) continue;
          const ScheduleShape shape{p, m, v, n};
          if (!is_valid(row, shape)) continue;
          ++shapes;
          body(shape);
        }
      }
    }
  }
  return shapes;
}

TEST(Schedules, names_are_unique_and_found_again) {
  std::set<std::string> seen;
  for (const std::string& name : schedule_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    ASSERT_NE(find_schedule(name), nullptr) << name;
    EXPECT_EQ(find_schedule(name)->name, name);
    EXPECT_FALSE(find_schedule(name)->help.empty()) << name;
    EXPECT_FALSE(find_schedule(name)->source.empty()) << name;
  }
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "breadth-first", "zb-h1", "zb-2p",
                           "zb-v", "dualpipe"}) {
    EXPECT_EQ(seen.count(name), 1u) << name;
  }
  EXPECT_EQ(find_schedule("1f1"), nullptr);
}

TEST(Schedules, every_micro_batch_passes_every_chunk_once_forward_and_once_backward) {
  for (const ScheduleRow& row : schedules()) {
    const int shapes = for_each_shape(row, [&row](const ScheduleShape& shape) {
      // Position of each pass in the order of its stage, by what it computes.
      std::map<std::tuple<PassKind, int64_t, int64_t>, std::pair<int64_t, size_t>> found;
      size_t total = 0;
      for (int64_t stage = 0; stage < shape.stages; ++stage) {
        const std::vector<Pass> order = row.order(shape, stage);
        for (size_t i = 0; i < order.size(); ++i) {
          const Pass& pass = order[i];
          const int64_t chunk = model_chunk_at(row, shape, {stage, pass.chunk});
          ASSERT_EQ(place_of_chunk(row, shape, pass.micro_batch, chunk),
                    (ChunkPlace{stage, pass.chunk}))
              << name_of(row, shape);
          const auto key = std::tuple(pass.kind, int64_t{pass.micro_batch}, chunk);
          ASSERT_TRUE(found.emplace(key, std::pair(stage, i)).second)
              << name_of(row, shape) << ": twice " << describe(pass, 2);
        }
        total += order.size();
      }
      size_t expected = 0;
      for (int64_t m = 0; m < shape.micro_batches; ++m) {
        for (int64_t c = 0; c < model_chunks(row, shape); ++c) {
          ASSERT_EQ(found.count({PassKind::kForward, m, c}), 1u) << name_of(row, shape);
          const size_t forward = found[{PassKind::kForward, m, c}].second;
          if (found.count({PassKind::kBackward, m, c}) == 1) {
            ASSERT_LT(forward, (found[{PassKind::kBackward, m, c}].second));
            expected += 2;
            continue;
          }
          ASSERT_TRUE(row.splits_backward) << name_of(row, shape);
          ASSERT_EQ(found.count({PassKind::kBackwardInput, m, c}), 1u) << name_of(row, shape);
          ASSERT_EQ(found.count({PassKind::kBackwardWeight, m, c}), 1u) << name_of(row, shape);
          const size_t input = found[{PassKind::kBackwardInput, m, c}].second;
          ASSERT_LT(forward, input);
          ASSERT_LT(input, (found[{PassKind::kBackwardWeight, m, c}].second));
          expected += 3;
        }
      }
      EXPECT_EQ(total, expected) << name_of(row, shape) << ": a pass beyond those of the model";
    });
    EXPECT_GT(shapes, 10) << row.name;
  }
}

TEST(Schedules, no_stage_deadlocks_overlaps_itself_or_starts_before_its_input) {
  for (const ScheduleRow& row : schedules()) {
    for_each_shape(row, [&row](const ScheduleShape& shape) {
      const ScheduleTimeline t = time_schedule(row, shape, kUneven);
      ASSERT_FALSE(t.deadlock.has_value()) << name_of(row, shape) << ": " << t.deadlock->text();
      std::map<std::tuple<bool, int64_t, int64_t>, Instant> done;  // backward?, micro-batch, chunk
      for (int64_t stage = 0; stage < shape.stages; ++stage) {
        Instant free = Instant::start();
        for (const TimedPass& timed : t.stages[static_cast<size_t>(stage)]) {
          ASSERT_GE(timed.start, free) << name_of(row, shape);
          free = timed.end;
          if (timed.pass.kind == PassKind::kBackwardWeight) continue;
          const bool backward = timed.pass.kind != PassKind::kForward;
          done[{backward, timed.pass.micro_batch,
                model_chunk_at(row, shape, {stage, timed.pass.chunk})}] = timed.end;
        }
      }
      for (int64_t stage = 0; stage < shape.stages; ++stage) {
        for (const TimedPass& timed : t.stages[static_cast<size_t>(stage)]) {
          if (timed.pass.kind == PassKind::kBackwardWeight) continue;
          const bool backward = timed.pass.kind != PassKind::kForward;
          const int64_t m = timed.pass.micro_batch;
          const int64_t chunk = model_chunk_at(row, shape, {stage, timed.pass.chunk});
          const int64_t before = backward ? chunk + 1 : chunk - 1;
          if (before < 0 || before == model_chunks(row, shape)) continue;
          const bool stays = place_of_chunk(row, shape, m, before).stage == stage;
          const Instant arrives = done[{backward, m, before}] + (stays ? Duration() : kUneven.p2p);
          ASSERT_GE(timed.start, arrives) << name_of(row, shape) << describe(timed.pass, 2);
        }
      }
    });
  }
}

TEST(Schedules, bubble_is_the_closed_form_with_equal_passes_and_no_smaller_with_transfers) {
  for (const ScheduleRow& row : schedules()) {
    for_each_shape(row, [&row](const ScheduleShape& shape) {
      const double bound = row.bubble_bound(shape);
      EXPECT_NEAR(time_schedule(row, shape, kUnit).bubble(), bound, 1e-9) << name_of(row, shape);
      PassTimes with_transfers = kUnit;
      with_transfers.p2p = nanoseconds(7);
      EXPECT_GE(time_schedule(row, shape, with_transfers).bubble(), bound - 1e-9)
          << name_of(row, shape);
    });
  }
}

TEST(Schedules, in_flight_chunks_reach_the_claimed_peak_whatever_the_pass_times) {
  for (const ScheduleRow& row : schedules()) {
    for_each_shape(row, [&row](const ScheduleShape& shape) {
      const ScheduleTimeline t = time_schedule(row, shape, kUneven);
      for (int64_t stage = 0; stage < shape.stages; ++stage) {
        EXPECT_EQ(t.in_flight[static_cast<size_t>(stage)], row.in_flight_bound(shape, stage))
            << name_of(row, shape) << " stage " << stage;
      }
    });
  }
}

TEST(Schedules, every_local_chunk_of_every_stage_is_one_place_of_the_model) {
  for (const ScheduleRow& row : schedules()) {
    for_each_shape(row, [&row](const ScheduleShape& shape) {
      std::map<int64_t, int> holders;
      for (int64_t stage = 0; stage < shape.stages; ++stage) {
        for (int64_t c = 0; c < chunks_per_stage(row, shape); ++c) {
          ++holders[model_chunk_at(row, shape, {stage, c})];
        }
      }
      EXPECT_EQ(static_cast<int64_t>(holders.size()), model_chunks(row, shape));
      const int copies = row.layout == ChunkLayout::kBidirectional ? 2 : 1;
      for (const auto& [chunk, count] : holders) EXPECT_EQ(count, copies) << name_of(row, shape);
    });
  }
}

TEST(Schedules, folded_rows_turn_round_on_the_last_stage_and_end_where_they_begin) {
  const ScheduleRow& row = *find_schedule("zb-v");
  const ScheduleShape shape{.stages = 4, .micro_batches = 8};
  std::vector<int64_t> path;
  for (int64_t c = 0; c < model_chunks(row, shape); ++c) {
    path.push_back(place_of_chunk(row, shape, 0, c).stage);
  }
  EXPECT_EQ(path, (std::vector<int64_t>{0, 1, 2, 3, 3, 2, 1, 0}));
}

TEST(Schedules, bidirectional_rows_send_half_of_the_micro_batches_the_other_way) {
  const ScheduleRow& row = *find_schedule("dualpipe");
  const ScheduleShape shape{.stages = 4, .micro_batches = 8};
  for (int64_t m = 0; m < 8; ++m) {
    for (int64_t c = 0; c < 4; ++c) {
      EXPECT_EQ(place_of_chunk(row, shape, m, c),
                (m < 4 ? ChunkPlace{c, 0} : ChunkPlace{3 - c, 1}));
    }
  }
}

// Narayanan et al. 2021, figure 4: 4 stages, 8 micro-batches, 2 chunks, the first stage's warm-up.
TEST(Schedules, interleaved_order_of_the_first_stage_is_that_of_the_paper) {
  const ScheduleShape shape{.stages = 4, .micro_batches = 8, .virtual_stages = 2};
  const std::vector<Pass> order = find_schedule("interleaved-1f1b")->order(shape, 0);
  const PassKind f = PassKind::kForward, b = PassKind::kBackward;
  const std::vector<Pass> begins = {{f, 0, 0}, {f, 1, 0}, {f, 2, 0}, {f, 3, 0}, {f, 0, 1},
                                    {f, 1, 1}, {f, 2, 1}, {f, 3, 1}, {f, 4, 0}, {f, 5, 0},
                                    {f, 6, 0}, {b, 0, 1}, {f, 7, 0}, {b, 1, 1}};
  ASSERT_GE(order.size(), begins.size());
  EXPECT_EQ(std::vector<Pass>(order.begin(), order.begin() + 14), begins);
}

TEST(Schedules, interleaved_with_one_chunk_is_a_1f1b_with_a_longer_warm_up) {
  const ScheduleRow& row = *find_schedule("interleaved-1f1b");
  const ScheduleShape shape{.stages = 4, .micro_batches = 6};
  EXPECT_TRUE(is_valid(row, shape));
  EXPECT_DOUBLE_EQ(row.bubble_bound(shape), find_schedule("1f1b")->bubble_bound(shape));
}

// What validate refuses is really broken: the order deadlocks, or waits longer than the row's
// bubble.
TEST(Schedules, interleaved_refuses_only_groups_that_deadlock_or_stall) {
  const ScheduleRow& row = *find_schedule("interleaved-1f1b");
  int deadlocks = 0, stalls = 0;
  for (const int64_t p : {2, 3, 4, 6, 8}) {
    for (const int64_t v : {2, 3, 4}) {
      for (int64_t n = 1; n <= 2 * p; ++n) {
        for (int64_t m = 1; m <= 3 * p; ++m) {
          const ScheduleShape shape{p, m, v, n};
          if (is_valid(row, shape)) continue;
          const ScheduleTimeline t = time_schedule(row, shape, kUnit);
          if (t.deadlock) {
            ++deadlocks;
          } else {
            ++stalls;
            EXPECT_GT(t.bubble(), row.bubble_bound(shape) + 1e-9) << name_of(row, shape);
          }
        }
      }
    }
  }
  EXPECT_GT(deadlocks, 100);
  EXPECT_GT(stalls, 10);
}

TEST(Schedules, faults_name_the_field_and_what_is_allowed) {
  const auto faults_of = [](std::string_view name, const ScheduleShape& shape) {
    Faults faults;
    find_schedule(name)->validate(shape, faults);
    return faults.list();
  };
  const auto few = faults_of("interleaved-1f1b", {8, 16, 2, 3});
  ASSERT_EQ(few.size(), 1u);
  EXPECT_EQ(few[0].field, "training.consecutive_micro_batches");
  EXPECT_NE(few[0].allowed.find("8 or more"), std::string::npos) << few[0].text();
  EXPECT_EQ(faults_of("interleaved-1f1b", {4, 6, 2, 0}).size(), 1u) << "a last group of 2";
  EXPECT_EQ(faults_of("dualpipe", {3, 5, 1, 0}).size(), 2u) << "odd stages and odd micro-batches";
  EXPECT_EQ(faults_of("1f1b", {4, 8, 2, 0}).size(), 1u) << "virtual stages it would ignore";
  EXPECT_EQ(faults_of("zb-v", {4, 8, 3, 0}).size(), 1u);
  EXPECT_TRUE(faults_of("zb-v", {4, 8, 2, 0}).empty());
  for (const ScheduleRow& row : schedules()) {
    Faults faults;
    row.validate({0, 0, 0, -1}, faults);
    EXPECT_GE(faults.list().size(), 4u)
        << row.name << " must name every field that is not positive";
  }
}

}  // namespace
}  // namespace herdsim
