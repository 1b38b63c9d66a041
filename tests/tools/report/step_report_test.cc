#include "tools/report/step_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/golden/golden_file.h"
#include "tests/tools/report/synthetic_step.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

const PublishedFigures kPublished = {
    .source = "The Llama 3 Herd of Models, table 4", .model_tflops_per_gpu = 400.0, .mfu = 0.41};

StepResult bare_step() {
  StepResult r = implausible_step();
  r.memory.clear();
  r.peak = FlopRate();
  r.warnings.clear();
  return r;
}

void expect_columns(const std::string& text, size_t limit) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), limit) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << "trailing space: " << line;
  }
}

TEST(StepTable, says_what_traffic_to_the_store_costs) {
  StepResult r = large_step();
  EXPECT_THAT(step_table(r), Not(HasSubstr("storage")));
  EXPECT_FALSE(Json::parse(step_json(r)).contains("storage"));
  r.without_storage = r.step_time - milliseconds(100);
  r.storage = {{.what = "save", .bytes = gigabytes(5670), .begins = milliseconds(500), .took = seconds(50)}};
  const std::string text = step_table(r);
  expect_columns(text, 80);
  EXPECT_THAT(text, HasSubstr("save     5.67 TB  0.5000 s  50.0000 s  113.4 GB/s"));
  EXPECT_THAT(text, HasSubstr("it costs +1."));
  const Json storage = Json::parse(step_json(r))["storage"];
  EXPECT_EQ(storage["flows"][0]["flow"], "save");
  EXPECT_NEAR(storage["costs_s"].get<double>(), 0.1, 1e-9);
}

TEST(StepTable, reads_as_the_golden_files) {
  EXPECT_TRUE(matches_golden("step_table.txt", step_table(large_step(), kPublished)));
  EXPECT_TRUE(matches_golden("step_table_implausible.txt", step_table(implausible_step())));
}

TEST(StepTable, fits_a_terminal_whatever_the_result) {
  StepResult huge = large_step();
  huge.gpus = 1'000'000;
  huge.tokens_per_step = 999'999'999'999;
  huge.memory[0].moment = std::string(30, 'm') + " " + std::string(60, 'n');
  for (const StepResult& r : {large_step(), implausible_step(), bare_step(), huge}) {
    expect_columns(step_table(r, kPublished), 80);
  }
}

TEST(StepTable, says_the_convention_of_its_mfu_in_words) {
  std::istringstream words(step_table(large_step()));
  std::string table, word;
  while (words >> word) table += word + " ";
  EXPECT_THAT(table, HasSubstr("41.2 % of 989.4 TFLOP/s bf16 dense, causal attention counted half; "
                               "42.9 % counting the full square "));
  EXPECT_THAT(table, Not(HasSubstr("published")));
}

TEST(StepTable, shows_what_was_published_with_the_difference_in_points) {
  const std::string table = step_table(large_step(), kPublished);
  EXPECT_THAT(table, HasSubstr("+0.2 points"));
  EXPECT_THAT(table, HasSubstr("table 4"));
  const std::string without = step_table(bare_step(), PublishedFigures{.source = "x", .mfu = 0.4});
  EXPECT_THAT(without, Not(HasSubstr("points"))) << "no peak, no MFU to compare";
}

TEST(StepJson, has_exactly_the_documented_keys_in_their_order) {
  const Json parsed = Json::parse(step_json(large_step()));
  std::vector<std::string> keys, terms;
  for (const auto& [key, value] : parsed.items()) keys.push_back(key);
  for (const auto& [key, value] : parsed["time_account_s"].items()) terms.push_back(key);
  EXPECT_THAT(keys, ::testing::ElementsAre(
                        "scenario", "gpus", "step_time_s", "tokens_per_step",
                        "tokens_per_second_per_gpu", "model_tflops_per_gpu", "mfu",
                        "mfu_convention", "mfu_full_attention", "time_account_s", "bubble_fraction",
                        "peak_memory_bytes", "peak_memory_stage", "peak_memory_moment", "fits",
                        "link_tiers", "top_links", "collisions", "simulated_ranks", "events", "wall_s", "fingerprint", "warnings"));
  EXPECT_THAT(terms, ::testing::ElementsAreArray(kTimeTermNames));
  EXPECT_EQ(parsed["mfu_convention"].dump(),
            R"({"attention_flops":"causal","peak_tflops":989.4,"dtype":"bf16"})");
}

TEST(StepJson, keeps_full_precision_and_an_account_that_sums_to_the_step) {
  const StepResult r = large_step();
  const Json parsed = Json::parse(step_json(r));
  EXPECT_EQ(parsed["mfu"].get<double>(), r.mfu_causal());
  EXPECT_EQ(parsed["step_time_s"].get<double>(), r.step_time.seconds());
  double sum = 0;
  for (const auto& [key, value] : parsed["time_account_s"].items()) sum += value.get<double>();
  EXPECT_LT(std::abs(sum - parsed["step_time_s"].get<double>()), 0.5e-9);
}

TEST(StepJson, reads_as_the_golden_files) {
  EXPECT_TRUE(matches_golden("step.json", step_json(large_step())));
  EXPECT_TRUE(matches_golden("step_implausible.json", step_json(implausible_step())));
}

TEST(StepJson, what_is_unknown_is_null_and_warnings_are_all_there) {
  const Json parsed = Json::parse(step_json(bare_step()));
  for (const char* key : {"mfu", "mfu_full_attention", "peak_memory_bytes", "peak_memory_stage",
                          "peak_memory_moment"}) {
    EXPECT_TRUE(parsed[key].is_null()) << key;
  }
  EXPECT_EQ(Json::parse(step_json(implausible_step()))["warnings"].size(), 3u);
}

TEST(StepJson, text_that_is_not_utf8_still_gives_json) {
  StepResult r = large_step();
  r.scenario = "bad \xff";
  EXPECT_TRUE(Json::accept(step_json(r)));
}

TEST(StepJson, several_steps_are_an_array_of_the_same_objects) {
  const std::vector<StepResult> steps = {large_step(), implausible_step()};
  const Json all = Json::parse(steps_json(steps));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1], Json::parse(step_json(steps[1])));
}

TEST(StepCsv, reads_as_the_golden_file) {
  const std::vector<StepResult> steps = {large_step(), implausible_step(), bare_step()};
  EXPECT_TRUE(matches_golden("steps.csv", steps_csv(steps)));
}

// Fields of one line, by RFC 4180.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

TEST(StepCsv, every_row_has_a_value_for_every_column) {
  const std::vector<StepResult> steps = {large_step(), implausible_step(), bare_step()};
  std::istringstream lines(steps_csv(steps));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = fields(line);
  size_t rows = 0;
  for (; std::getline(lines, line); ++rows) EXPECT_EQ(fields(line).size(), names.size()) << line;
  EXPECT_EQ(rows, steps.size());
  EXPECT_EQ(steps_csv({}), "");
}

}  // namespace
}  // namespace herdsim
