#include "tools/validation/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace herdsim {
namespace {

using testing::HasSubstr;

std::string faults_of(const std::string& text) {
  try {
    parse_run_table(text, "runs.csv");
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

TEST(RunTable, reads_columns_in_any_order_and_ignores_others) {
  const auto rows = parse_run_table(
      "hidden,notes,software,id,layers\n4096,\"mine, of today\",megatron-te,a,32\n", "runs.csv");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].id, "a");
  EXPECT_EQ(rows[0].software, "megatron-te");
  EXPECT_EQ(rows[0].hidden, 4096);
  EXPECT_EQ(rows[0].layers, 32);
  EXPECT_FALSE(rows[0].vocab.has_value());
}

TEST(RunTable, reads_quotes_line_ends_of_windows_and_a_byte_order_mark) {
  const auto rows = parse_run_table(
      "\xEF\xBB\xBFid,software,fsdp_zero,micro_batch\r\n"
      "a,torch-fsdp,\"FULL_SHARD (FSDP, \"\"DEFAULT\"\")\",2\r\n"
      "b,torch-fsdp,\"two\r\nlines\",4\r\n",
      "runs.csv");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].fsdp_zero, "FULL_SHARD (FSDP, \"DEFAULT\")");
  EXPECT_EQ(rows[1].micro_batch, 4);
}

TEST(RunTable, takes_blank_and_padded_cells) {
  const auto rows = parse_run_table("id,software,tp,gpu_power_W\n, x , 8 ,\n", "runs.csv");
  EXPECT_EQ(rows[0].id, "row 1");
  EXPECT_EQ(rows[0].software, "x");
  EXPECT_EQ(rows[0].tp, 8);
  EXPECT_FALSE(rows[0].gpu_power_watts.has_value());
}

TEST(RunTable, layers_of_stages_stand_in_a_column_or_in_the_notes) {
  const auto layers = [](const std::string& column, const std::string& notes) {
    return parse_run_table(
               "id,software,layers_per_stage,notes\na,x,\"" + column + "\",\"" + notes + "\"\n",
               "runs.csv")[0]
        .layers_per_stage;
  };
  EXPECT_EQ(layers("4 4", "layers per stage [3, 5]"), "4 4");
  EXPECT_EQ(layers("", "peak 17 GB; layers per stage (from the file) [3, 5]; 10th step"), "3, 5");
  for (const char* none :
       {"", "layers per stage", "[3, 5] before layers per stage", "layers per stage [3, 5"}) {
    EXPECT_EQ(layers("", none), "") << none;
  }
}

TEST(RunTable, takes_counts_written_with_a_point) {
  EXPECT_EQ(parse_run_table("id,software,layers\na,x,32.0\n", "runs.csv")[0].layers, 32);
}

TEST(RunTable, names_line_and_column_of_every_bad_cell) {
  const std::string text = faults_of(
      "id,software,layers,sp,target_step_time_s\n"
      "a,x,thirty,1,1.5\n"
      "b,x,32.5,yes,-1\n"
      "c,x,0,,nan\n");
  EXPECT_THAT(text, HasSubstr("runs.csv:2:1: layers: \"thirty\" is no positive number"));
  EXPECT_THAT(text, HasSubstr("runs.csv:3:1: layers: \"32.5\" is no count"));
  EXPECT_THAT(text, HasSubstr("runs.csv:3:1: sp: \"yes\" is neither yes nor no"));
  EXPECT_THAT(text, HasSubstr("runs.csv:3:1: target_step_time_s: \"-1\""));
  EXPECT_THAT(text, HasSubstr("runs.csv:4:1: layers: \"0\""));
  EXPECT_THAT(text, HasSubstr("runs.csv:4:1: target_step_time_s: \"nan\""));
}

TEST(RunTable, names_a_missing_column_and_the_nearest) {
  EXPECT_THAT(faults_of("id,sofware\na,x\n"), HasSubstr("there is no column \"software\""));
  EXPECT_THAT(faults_of("id,sofware\na,x\n"), HasSubstr("sofware"));
}

TEST(RunTable, refuses_what_is_no_table) {
  EXPECT_NE(faults_of(""), "");
  EXPECT_THAT(faults_of("id,software\na\n"), HasSubstr("runs.csv:2"));
  EXPECT_THAT(faults_of("id,software\n\"a,x\n"), HasSubstr("never closed"));
  EXPECT_EQ(faults_of("id,software\n"), "runs.csv: has no rows; allowed: a run a line below the header");
  EXPECT_THAT(faults_of("id,software,tp,pp,tp\na,x,1,1,2\n"),
              HasSubstr("runs.csv:1:1: tp: is the name of two columns"));
  EXPECT_EQ(faults_of("id,software,,\na,x,,\n"), "") << "columns without a name are nobody's";
  EXPECT_THAT(faults_of(std::string("id,software\na\0,x\n", 17)), HasSubstr("runs.csv:2:1: is not text"));
  EXPECT_THROW(read_run_table("/no/such/table.csv"), SpecError);
  EXPECT_THROW(read_run_table(::testing::TempDir()), SpecError);
}

// As a scenario bounds them: beyond, a row would take hours to be found impossible.
TEST(RunTable, sizes_have_the_bounds_that_they_have_in_a_scenario) {
  EXPECT_EQ(faults_of("id,software,layers,num_gpus\na,x,100000,4194304\n"), "");
  const std::string text = faults_of("id,software,layers,hidden,num_gpus\na,x,100001,1e8,4194305\n");
  EXPECT_THAT(text, HasSubstr("layers: \"100001\" is no count; allowed: a whole number up to 100,000, or blank"));
  EXPECT_THAT(text, HasSubstr("hidden: \"1e8\""));
  EXPECT_THAT(text, HasSubstr("num_gpus: \"4194305\""));
}

}  // namespace
}  // namespace herdsim
