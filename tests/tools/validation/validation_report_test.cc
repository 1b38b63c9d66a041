#include "tools/validation/validation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "calibrate/profile/csv_table.h"

namespace herdsim {
namespace {

using nlohmann::json;

// Two rows that can be predicted, of which one has no target, and one that cannot.
const std::vector<RowPrediction>& predictions(int threads = 1) {
  static const RowParts kParts({});
  static std::vector<RowPrediction> rows;
  rows = predict_rows(
      parse_run_table("id,software,gpu,layers,hidden,ffn,heads,vocab,seq_len,num_gpus,global_batch,"
                      "target_step_time_s\n"
                      "\"a, first\",megatron-te,H100,8,2048,5632,16,32000,2048,8,16,0.2\n"
                      "b,torch-fsdp,H100,8,2048,5632,16,32000,2048,8,16,\n"
                      "c,torch-fsdp,TPU,8,2048,5632,16,32000,2048,8,16,1\n",
                      "runs.csv"),
      kParts, threads);
  return rows;
}

TEST(ValidationReport, json_has_exactly_the_documented_keys) {
  const json report = json::parse(validation_json(predictions()));
  std::vector<std::string> keys, row_keys;
  for (const auto& [key, value] : report.items()) keys.push_back(key);
  for (const auto& [key, value] : report["rows"][0].items()) row_keys.push_back(key);
  EXPECT_THAT(keys, testing::UnorderedElementsAre("rows", "predicted", "skipped",
                                                  "median_abs_error", "p90_abs_error", "bias"));
  EXPECT_THAT(row_keys, testing::UnorderedElementsAre(
                            "id", "predicted_step_time_s", "target_step_time_s", "error",
                            "time_account_s", "peak_memory_bytes", "reserved_memory_bytes",
                            "allocated_memory_bytes", "assumed", "skipped_because"));
  EXPECT_EQ(report["rows"].size(), 3U);
  EXPECT_EQ(report["predicted"], 2);
  EXPECT_EQ(report["skipped"], 1);
}

TEST(ValidationReport, the_account_of_a_row_sums_to_its_prediction) {
  for (const RowPrediction& row : predictions()) {
    double sum = 0;
    for (const double seconds : row.account_s) sum += seconds;
    EXPECT_NEAR(sum, row.predicted_step_time_s.value_or(0), 1e-9) << row.id;
  }
}

TEST(ValidationReport, errors_are_predicted_over_target_minus_one) {
  const json report = json::parse(validation_json(predictions()));
  const json& row = report["rows"][0];
  const double error =
      row["predicted_step_time_s"].get<double>() / row["target_step_time_s"].get<double>() - 1;
  EXPECT_DOUBLE_EQ(row["error"].get<double>(), error);
  EXPECT_DOUBLE_EQ(report["median_abs_error"].get<double>(), std::abs(error));
  EXPECT_DOUBLE_EQ(report["bias"].get<double>(), error);
  EXPECT_TRUE(report["rows"][1]["error"].is_null());
  EXPECT_GT(row["peak_memory_bytes"].get<int64_t>(), 0);
}

TEST(ValidationReport, csv_has_the_documented_columns_and_reads_back) {
  const CsvTable table(validation_csv(predictions()), "report.csv");
  EXPECT_THAT(table.columns(),
              testing::ElementsAre("id", "predicted_step_time_s", "target_step_time_s", "error",
                                   "peak_memory_bytes", "assumed", "skipped_because"));
  ASSERT_EQ(table.rows(), 3U);
  EXPECT_EQ(table.cell(0, 0), "a, first");
  EXPECT_EQ(table.cell(2, 1), "");
  EXPECT_EQ(table.cell(2, 6), "no profile of the GPU TPU");
}

TEST(ValidationReport, table_has_a_line_a_stack_and_the_reasons) {
  const std::string text = validation_table(predictions());
  EXPECT_THAT(text, testing::HasSubstr("megatron-te"));
  EXPECT_THAT(text, testing::HasSubstr("2 of 3 rows predicted"));
  EXPECT_THAT(text, testing::HasSubstr("no profile of the GPU TPU"));
}

// A table whose runs are repeated says of each row what a table of that row alone says.
TEST(ValidationReport, a_run_that_is_repeated_keeps_its_own_name_and_target) {
  const RowParts parts({});
  const std::string head =
      "id,source_where,software,gpu,layers,hidden,ffn,heads,vocab,seq_len,num_gpus,global_batch,"
      "micro_batch,target_step_time_s\n";
  const std::vector<std::string> lines = {
      "a,,torch-fsdp,H100,8,2048,5632,16,32000,2048,8,16,1,0.2\n",
      "b,elsewhere,torch-fsdp,H100,8,2048,5632,16,32000,2048,8,16,1,0.3\n",
      "c,,torch-fsdp,H100,8,2048,5632,16,32000,2048,8,16,2,\n",
      "d,,torch-fsdp,H100,8,2048,5632,16,32000,2048,8,16,1,\n",
      "e,,megatron-te,H100,8,2048,5632,16,32000,2048,8,16,1,0.2\n"};
  std::string all = head;
  for (const std::string& line : lines) all += line;
  const std::vector<RowPrediction> together = predict_rows(parse_run_table(all, "t"), parts, 2);
  ASSERT_EQ(together.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<RowPrediction> alone =
        predict_rows(parse_run_table(head + lines[i], "t"), parts, 1);
    EXPECT_EQ(validation_csv({together[i]}), validation_csv(alone));
  }
  EXPECT_EQ(*together[0].predicted_step_time_s, *together[3].predicted_step_time_s);
  EXPECT_NE(*together[0].predicted_step_time_s, *together[2].predicted_step_time_s);
  EXPECT_NE(*together[0].predicted_step_time_s, *together[4].predicted_step_time_s);
}

// Context and communicators lie beside the allocator; of what it serves some is lost to fragments.
TEST(ValidationReport, memory_is_compared_where_a_row_states_it) {
  const std::string head =
      "id,software,gpu,layers,hidden,ffn,heads,vocab,seq_len,num_gpus,global_batch,"
      "peak_mem_alloc_GB,peak_mem_reserved_GB\n";
  const std::string size = ",H100,8,2048,5632,16,32000,2048,8,16,";
  const std::vector<RowPrediction> rows = predict_rows(
      parse_run_table(head + "a,torch-fsdp" + size + "2,4\nb,torch-fsdp" + size +
                          "2,\nc,torch-fsdp" + size + ",70\nd,torch-fsdp" + size + ",\n",
                      "t"),
      RowParts({}), 1);
  for (const RowPrediction& row : rows) {
    EXPECT_LT(row.allocator->reserved, *row.peak_memory);
    EXPECT_LT(row.allocator->allocated, row.allocator->reserved);
  }
  EXPECT_EQ(rows[0].of_measured->predicted, rows[0].allocator->reserved);
  EXPECT_EQ(rows[0].of_measured->measured, gibibytes(4));
  EXPECT_EQ(rows[1].of_measured->predicted, rows[1].allocator->allocated);
  EXPECT_FALSE(rows[2].of_measured.has_value()) << "near the end of memory it says nothing";
  EXPECT_FALSE(rows[3].of_measured.has_value());
  EXPECT_EQ(memory_error_by_software(rows).front().count, 2U);
  EXPECT_THAT(validation_table(rows), testing::HasSubstr("of PyTorch's allocator"));
}

TEST(ValidationReport, threads_change_nothing) {
  const std::string one = validation_csv(predictions(1));
  EXPECT_EQ(validation_csv(predictions(3)), one);
}

}  // namespace
}  // namespace herdsim
