#include "tools/validation/row_causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

using testing::HasSubstr;

RunRow row_with(const std::string& column, const std::string& value) {
  std::string names =
      "id,software,gpu,layers,hidden,ffn,heads,vocab,seq_len,num_gpus,global_batch,micro_batch";
  std::string cells = "mine,megatron-te,H100,8,2048,5632,16,32000,2048,8,16,1";
  if (!column.empty()) {
    names += "," + column;
    cells += "," + value;
  }
  return parse_run_table(names + "\n" + cells + "\n", "runs.csv").front();
}

std::string refusal_of(const std::vector<std::string>& ids, const std::string& which) {
  try {
    index_of_row(ids, which);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

TEST(RowCauses, rows_have_ids_and_numbers) {
  const std::vector<std::string> ids = {"dgxc-001", "dgxc-002", "3", "nanotron-001"};
  EXPECT_EQ(index_of_row(ids, "dgxc-002"), 1u);
  EXPECT_EQ(index_of_row(ids, "4"), 3u);
  EXPECT_EQ(index_of_row(ids, "3"), 2u) << "an id before a number";
  EXPECT_THAT(refusal_of(ids, "dgxc-003"), HasSubstr("did you mean \"dgxc-00"));
  EXPECT_THAT(refusal_of(ids, "nano"), HasSubstr("nanotron-001"));
  for (const char* none : {"0", "5", "-1", "1x", ""}) EXPECT_NE(refusal_of(ids, none), "") << none;
}

TEST(RowCauses, what_a_row_leaves_blank_may_explain_its_error) {
  const RowParts parts({});
  RunRow row = row_with("", "");
  RunRow recomputing = row;
  recomputing.recompute = "full";
  row.target_step_time_s =
      simulate_step(scenario_of_row(recomputing, parts).scenario, {}).result.step_time.seconds();
  const ErrorCauses causes = error_causes(question_of_row(row, parts), 2);
  bool found = false;
  for (const ErrorCause& cause : causes.causes) {
    if (cause.bar.input.path != "row.recompute" || cause.bar.input.high != "full") continue;
    found = true;
    EXPECT_TRUE(cause.holds_published());
    EXPECT_EQ(cause.towards, "full");
    EXPECT_EQ(cause.bar.input.evidence, "blank");
  }
  EXPECT_TRUE(found);
  EXPECT_THAT(error_causes_table(causes), HasSubstr("the run does not state"));
}

TEST(RowCauses, what_a_row_states_and_what_the_user_chose_are_no_uncertainties) {
  const RowParts parts({"software.host_milliseconds_per_step=7"});
  RunRow row = row_with("recompute", "none");
  row.target_step_time_s = 1;
  const ErrorQuestion question = question_of_row(row, parts);
  EXPECT_GT(question.inputs.size(), 3u);
  for (const UncertainInput& input : question.inputs) {
    EXPECT_NE(input.path, "row.recompute");
    EXPECT_NE(input.path, "software.host_milliseconds_per_step");
    EXPECT_NO_THROW(question.variant(input.path + "=" + input.high)) << input.path;
  }
}

TEST(RowCauses, a_row_without_a_published_time_or_prediction_is_refused) {
  const RowParts parts({});
  RunRow row = row_with("", "");
  EXPECT_THROW(question_of_row(row, parts), SpecError);
  row.target_step_time_s = 1;
  row.gpu = "abacus";
  EXPECT_THROW(question_of_row(row, parts), SpecError);
}

}  // namespace
}  // namespace herdsim
