#include "tools/study/sweep_axes.h"

#include <gmock/gmock.h>

#include "sim/base/error.h"

namespace herdsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> labels_of(const std::vector<std::string>& axes) {
  const SweepGrid grid(parse_axes(axes));
  std::vector<std::string> labels;
  for (int64_t i = 0; i < grid.size(); ++i) labels.push_back(grid.label(i));
  return labels;
}

std::string message_of(const std::vector<std::string>& axes) {
  try {
    parse_axes(axes);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

TEST(SweepAxes, a_list_is_its_values_in_order) {
  EXPECT_THAT(labels_of({"parallel.tp=4,1,2"}),
              ElementsAre("parallel.tp=4", "parallel.tp=1", "parallel.tp=2"));
}

TEST(SweepAxes, brackets_and_quotes_keep_their_commas) {
  EXPECT_THAT(
      labels_of({"cluster.degraded={gpu: 3, nic_factor: 0.5},{gpu: 4}"}),
      ElementsAre("cluster.degraded={gpu: 3, nic_factor: 0.5}", "cluster.degraded={gpu: 4}"));
  EXPECT_THAT(labels_of({"name=\"a,b\",c"}), ElementsAre("name=\"a,b\"", "name=c"));
}

TEST(SweepAxes, a_range_includes_its_last_value_where_a_step_reaches_it) {
  EXPECT_THAT(labels_of({"seed=1:4:1"}), ElementsAre("seed=1", "seed=2", "seed=3", "seed=4"));
  EXPECT_THAT(labels_of({"seed=1:4:2"}), ElementsAre("seed=1", "seed=3"));
  EXPECT_THAT(labels_of({"seed=4:1:-3"}), ElementsAre("seed=4", "seed=1"));
  EXPECT_THAT(labels_of({"seed=5:5:1"}), ElementsAre("seed=5"));
}

TEST(SweepAxes, decimal_steps_leave_no_residue) {
  EXPECT_THAT(labels_of({"x=0.1:0.4:0.1"}), ElementsAre("x=0.1", "x=0.2", "x=0.3", "x=0.4"));
  EXPECT_EQ(SweepGrid(parse_axes({"x=0:1:0.01"})).size(), 101);
}

TEST(SweepAxes, factors_make_a_logarithmic_axis) {
  EXPECT_THAT(labels_of({"x=0.25..4*2"}), ElementsAre("x=0.25", "x=0.5", "x=1", "x=2", "x=4"));
  EXPECT_THAT(labels_of({"x=1e3..1e6*10"}),
              ElementsAre("x=1000", "x=10000", "x=100000", "x=1000000"));
  EXPECT_THAT(labels_of({"x=8..1*0.5"}), ElementsAre("x=8", "x=4", "x=2", "x=1"));
}

TEST(SweepAxes, tied_fields_change_together) {
  EXPECT_THAT(labels_of({"a.x,a.y=(1,8),(2,4)", "seed=1,2"}),
              ElementsAre("a.x=1 a.y=8 seed=1", "a.x=1 a.y=8 seed=2", "a.x=2 a.y=4 seed=1",
                          "a.x=2 a.y=4 seed=2"));
}

TEST(SweepAxes, every_point_has_a_label_of_its_own) {
  std::vector<std::string> labels = labels_of({"a=1:10:1", "b,c=(1,2),(2,1),(2,2)", "d=1..64*2"});
  EXPECT_EQ(labels.size(), 10u * 3 * 7);
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(std::adjacent_find(labels.begin(), labels.end()), labels.end());
}

TEST(SweepAxes, what_is_wrong_with_each_axis_is_said_at_once) {
  struct Case {
    std::string axis, problem;
  };
  const std::vector<Case> cases = {
      {"parallel.tp", "is not an axis"},
      {"=1,2", "is not an axis"},
      {"parallel.tp=", "has no value"},
      {"parallel.tp=1,,2", "has an empty value"},
      {"a,=(1,2)", "has an empty path"},
      {"a=8:1:1", "holds no value"},
      {"a=1:8:0", "does not advance"},
      {"a=1:1e9:0.5", "holds more than a million values"},
      {"a=1..8*1", "does not advance"},
      {"a=1..8*0.5", "holds no value"},
      {"a=-1..8*2", "does not advance"},
      {"a=[1,2", "does not close"},
      {"a,b=1,2", "is no tuple"},
      {"a,b=(1,2),(3)", "another number of values"},
      {"a=1,2,1", "twice"},
  };
  std::vector<std::string> all;
  for (const Case& c : cases) {
    EXPECT_THAT(message_of({c.axis}), HasSubstr(c.problem)) << c.axis;
    all.push_back(c.axis);
  }
  EXPECT_THAT(message_of({"a=1", "b,a=(1,2)"}), HasSubstr("a is already on an axis"));
  EXPECT_THAT(message_of({}), HasSubstr("at least one axis"));
  const std::string every = message_of(all);
  for (const Case& c : cases) EXPECT_THAT(every, HasSubstr(c.problem)) << c.axis;
}

TEST(SweepAxes, a_grid_that_nobody_can_run_is_refused) {
  EXPECT_THROW(SweepGrid(parse_axes({"a=1:100000:1", "b=1:100000:1"})), SpecError);
}

}  // namespace
}  // namespace herdsim
