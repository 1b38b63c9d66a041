// Input that is no scenario at all: one clear error each, and never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/tools/scenario/scenario_text.h"
#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

std::string error_of_file(const std::string& path) {
  try {
    load_scenario(path);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

std::string file_with(const std::string& content) {
  const std::string path = ::testing::TempDir() + "herdsim_malformed.textproto";
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(MalformedInput, is_told_apart_by_what_it_is) {
  EXPECT_THAT(error_of_file(file_with("")), HasSubstr("is empty"));
  EXPECT_THAT(error_of_file(file_with(" \n\t ")), HasSubstr("is empty"));
  EXPECT_THAT(error_of_file(file_with(std::string("gpus: 3\n\0", 9))),
              HasSubstr(":2:1: is not text"));
  EXPECT_THAT(error_of_file(file_with("name: \"\xff\"")), HasSubstr(":1:8: is not text"));
  EXPECT_THAT(error_of_file(file_with(repeated("gpus: 3\n", 200'000))),
              HasSubstr("is longer than 1 MiB"));
  EXPECT_THAT(error_of_file("/dev/zero"), HasSubstr("is longer than 1 MiB"));
  EXPECT_THAT(error_of_file(::testing::TempDir()), HasSubstr("is a directory"));
  EXPECT_THAT(error_of_file(::testing::TempDir() + "nobody.textproto"),
              HasSubstr("cannot be opened"));
  EXPECT_THAT(error_of_file(""), HasSubstr("there is no scenario"));
}

TEST(MalformedInput, deep_nesting_is_refused_before_a_parser_recurses) {
  for (const char* open : {"a {", "a: [", "a <", "model {", "{\"a\":", "["}) {
    EXPECT_THAT(faults_of(repeated(open, 100'000)),
                HasSubstr("is nested too deeply; allowed: 32 levels"))
        << open;
  }
  // Brackets in strings and comments are text.
  EXPECT_THAT(faults_of("# " + repeated("{", 100) + "\nname: \"" + repeated("[", 100) + "\""),
              ::testing::Not(HasSubstr("nested")));
}

TEST(MalformedInput, text_that_does_not_parse_has_its_place) {
  EXPECT_EQ(
      faults_of("parallel {\n  tp: \"a\"\n}"),
      "mine.textproto:2:7: parallel.tp: Expected integer, got: \"a\"; allowed: a whole number\n");
  EXPECT_EQ(faults_of("parallel { shard: ZERO9 }"),
            "mine.textproto:1:19: parallel.shard: \"ZERO9\" is not one of its values; allowed: "
            "NONE, ZERO1, ZERO2, "
            "ZERO3, FSDP_KEEP\n");
  EXPECT_EQ(faults_of("parallel { tp: 1 tp: 2 }"),
            "mine.textproto:1:20: parallel.tp: is given twice\n");
  EXPECT_THAT(faults_of("gpus: 8\nparallel { tp: 1"), HasSubstr("mine.textproto:2:17: "));
  EXPECT_THAT(faults_of("name: \"abc"), HasSubstr("mine.textproto:1:"));
  EXPECT_THAT(faults_of("@@@"), HasSubstr("mine.textproto:1:1: "));
}

TEST(MalformedInput, every_unknown_field_is_found_with_its_nearest_name) {
  EXPECT_EQ(
      faults_of("modle { base: \"x\" }\nparallel { tpp: 3 dp: 4\n  virtual_stage: 3 }\ngpu: 3"),
      "mine.textproto:1:1: modle: there is no field \"modle\" here; did you mean \"model\"?\n"
      "mine.textproto:2:12: parallel.tpp: there is no field \"tpp\" here; did you mean \"tp\"?\n"
      "mine.textproto:3:3: parallel.virtual_stage: there is no field \"virtual_stage\" here; did "
      "you mean "
      "\"virtual_stages\"?\n"
      "mine.textproto:4:1: gpu: there is no field \"gpu\" here; did you mean \"gpus\"?\n");
}

TEST(MalformedInput, json_faults_have_their_place_too) {
  EXPECT_EQ(
      faults_of("{\"modle\": {\"base\": \"x\"},\n \"parallel\": {\"tpp\": 3, \"pp\": \"x\"}}"),
      "mine.textproto:1:2: modle: there is no field \"modle\" here; did you mean \"model\"?\n"
      "mine.textproto:2:15: parallel.tpp: there is no field \"tpp\" here; did you mean \"tp\"?\n"
      "mine.textproto:2:25: parallel.pp: invalid value \"x\"; allowed: a whole number\n");
  EXPECT_EQ(faults_of("{\"parallel\":\n {\"tp\": 1.5}}"),
            "mine.textproto:2:3: parallel.tp: invalid value 1.5; allowed: a whole number\n");
  EXPECT_THAT(faults_of("{\"cluster\": {\"degraded\": [{\"gpu\": 1},\n {\"gpu\": true}]}}"),
              HasSubstr("mine.textproto:2:3: cluster.degraded.1.gpu: invalid value"));
  EXPECT_THAT(faults_of("{\"gpus\": 8,\n \"name\" \"x\"}"), HasSubstr("mine.textproto:2:"));
  EXPECT_THAT(faults_of("{\"gpus\": 8"), HasSubstr("mine.textproto:1:"));
  EXPECT_THAT(faults_of("[1, 2]"), HasSubstr("Root element must be a message"));
  EXPECT_THAT(faults_of("{\"gpus\": 8} trailing"), HasSubstr("mine.textproto:1:"));
}

TEST(MalformedInput, json_says_a_field_once_and_with_a_number_that_there_is) {
  EXPECT_EQ(faults_of("{\"gpus\": 8,\n \"parallel\": {\"microBatch\": 1, \"micro_batch\": 2}, \"gpus\": 16}"),
            "mine.textproto:2:32: parallel.micro_batch: is given twice\n"
            "mine.textproto:2:51: gpus: is given twice\n");
  EXPECT_THAT(faults_of("{\"run\": {\"tokens\": 1e3,\n \"days\": 1e400}}"),
              HasSubstr("mine.textproto:2:2: run.days: is beyond what a number can be"));
}

TEST(MalformedInput, a_byte_order_mark_is_no_text) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(error_of_file(file_with(mark + kLargeScenario)), "");
  EXPECT_THAT(error_of_file(file_with(mark + "@@@")), HasSubstr(":1:1: "));
  EXPECT_THAT(error_of_file(file_with(mark + "{\"gpu\": 8}")), HasSubstr(":1:2: gpu: there is no field"));
  EXPECT_THAT(error_of_file(file_with(mark)), HasSubstr("is empty"));
}

TEST(MalformedInput, a_flood_of_faults_is_counted_and_cut) {
  const std::string text = repeated("x: 3\n", 100'000);
  const std::vector<Fault> faults = fault_list(text);
  ASSERT_EQ(faults.size(), 51U);
  EXPECT_EQ(faults.back().problem, "and 99950 more faults");
  EXPECT_LT(faults_of(repeated("x", 900'000) + ": 3").size(), 2000U);
}

TEST(MalformedInput, strings_with_control_characters_are_refused) {
  EXPECT_THAT(faults_of("name: \"a\\001b\" " + std::string(kLargeScenario)),
              HasSubstr("name: is not one line of text"));
  EXPECT_THAT(faults_of("name: \"\\377\" " + std::string(kLargeScenario)),
              HasSubstr("name: is not UTF-8 text"));
}

}  // namespace
}  // namespace herdsim
