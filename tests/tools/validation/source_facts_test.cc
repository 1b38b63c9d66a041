#include "tools/validation/source_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tools/validation/row_scenario.h"

namespace herdsim {
namespace {

using testing::Contains;
using testing::HasSubstr;

// One row of a table that has all columns a fact may fill, and what a 405B needs.
RunRow row_of(const std::string& source_where, const std::string& model,
              const std::string& gpu = "H100", const std::string& software_set = "",
              const std::string& precision = "", const std::string& pp = "9") {
  return parse_run_table(
             "id,software,source_where,model,gpu,software_set,precision,layers,hidden,ffn,heads,kv_"
             "heads,"
             "vocab,seq_len,"
             "num_gpus,tp,cp,pp,vp,global_batch,attention_kernel,recompute,expert_capacity,fsdp_zero\n"
             "one,megatron-te," +
                 source_where + "," + model + "," + gpu + "," + software_set + "," + precision +
                 ",126,16384,53248,128,8,128256,8192,576,8,2," + pp + ",7,252,cudnn9,,,\n",
             "runs.csv")
      .front();
}

TEST(SourceFacts, each_is_found_is_read_as_cells_would_be_and_says_where) {
  for (const SourceFact& fact : source_facts()) {
    SCOPED_TRACE(fact.where);
    const std::string where = "github " + std::string(fact.where) + " table 2";
    const std::string model = std::string(fact.model) + "-proxy-L2",
                      gpu = std::string(fact.gpu) + "-80GB";
    const std::string precision(fact.precision.empty() ? "fp16" : fact.precision);
    EXPECT_EQ(facts_of_source(where, model, gpu, precision, fact.pipelined), &fact);
    EXPECT_EQ(facts_of_source(where, "another model", gpu, precision, fact.pipelined), nullptr);
    EXPECT_THAT(fact.stated, HasSubstr(":"));
    ASSERT_FALSE(fact.cells.empty());
    const RunRow row =
        row_of(where, model, gpu, "", std::string(fact.precision), fact.pipelined ? "9" : "1");
    EXPECT_EQ(row.by_source.size(), fact.cells.size());
    EXPECT_EQ(row.stated, fact.stated);
  }
  EXPECT_EQ(facts_of_source("", "Llama3.1-405B", "H100", "bf16", true), nullptr);
  EXPECT_TRUE(row_of("", "Llama3.1-405B").by_source.empty());
}

TEST(SourceFacts, the_tokenizer_that_ran_is_padded_and_named_with_where_it_is_said) {
  const RowParts parts({});
  const std::string where = "github NVIDIA/dgxc-benchmarking@v25.02 llama3.1/README_405b.md";
  const RowScenario read = scenario_of_row(row_of(where, "Llama3.1-405B"), parts);
  EXPECT_EQ(read.skipped_because, "");
  EXPECT_EQ(read.scenario.model.vocab, 51200);
  EXPECT_THAT(read.assumed, Contains(HasSubstr("vocab = 50257 (README_405b.md")));
  EXPECT_EQ(scenario_of_row(row_of("a paper", "Llama3.1-405B"), parts).scenario.model.vocab,
            128256);
}

TEST(SourceFacts, recomputed_modules_are_read_as_the_column_would_be) {
  const std::string where = "github NVIDIA-NeMo/Megatron-Bridge@0a25f91 docs";
  const RowScenario read = scenario_of_row(row_of(where, "GPT OSS 120B"), RowParts({}));
  EXPECT_EQ(read.scenario.training.recompute, Recompute::kElementwise);
  const RowScenario other = scenario_of_row(row_of(where, "GPT OSS 120B", "B200"), RowParts({}));
  EXPECT_EQ(other.scenario.training.recompute, Recompute::kNone);
}

TEST(SourceFacts, a_run_on_another_stack_than_its_column_says_has_the_record_of_that_stack) {
  const std::string where =
      "github FlagOpen/FlagPerf@1b5a030398 training/nvidia/llama1_7B-paddle/README.md";
  const RunRow row = row_of(where, "LLaMA-7B");
  EXPECT_EQ(row.software, "paddlenlp");
  const RowScenario read = scenario_of_row(row, RowParts({}));
  EXPECT_EQ(read.scenario.software.name, "paddlenlp");
  EXPECT_THAT(read.assumed,
              Contains(HasSubstr("software = paddlenlp, sp = 0 (README.md: paddle-2.5.1")));
}

// A table of one's own says the same in its columns.
TEST(SourceFacts, fields_set_by_a_cell_are_those_of_this_row_alone_and_give_way_to_what_is_set) {
  const RunRow row = row_of("", "mine", "H100", "logit_bytes=52; logit_stream=FRAMEWORK ;");
  EXPECT_THAT(row.software_sets, testing::ElementsAre("logit_bytes=52", "logit_stream=FRAMEWORK"));
  EXPECT_DOUBLE_EQ(scenario_of_row(row, RowParts({})).scenario.software.logit_bytes, 52);
  EXPECT_DOUBLE_EQ(
      scenario_of_row(row, RowParts({"software.logit_bytes=7"})).scenario.software.logit_bytes, 7);
  try {
    row_of("", "mine", "H100", "logit_bites=52");
    FAIL() << "no such field";
  } catch (const SpecError& error) {
    EXPECT_THAT(error.what(), HasSubstr("runs.csv:2"));
    EXPECT_THAT(error.what(), HasSubstr("software_set"));
    EXPECT_THAT(error.what(), HasSubstr("logit_bites"));
  }
}

TEST(SourceFacts, a_capacity_is_read_beside_a_stated_kernel_and_loss) {
  const std::string where = "github NVIDIA/dgxc-benchmarking@v25.04 grok1/README_314b.md";
  const RunRow row =
      parse_run_table(
          "id,software,source_where,model,gpu,layers,num_gpus,tp,ep,seq_len,global_batch\n"
          "one,megatron-te," +
              where + ",Grok1-314B-proxy-L4,H100,4,32,4,8,8192,1024\n",
          "runs.csv")
          .front();
  const RowScenario read = scenario_of_row(row, RowParts({}));
  EXPECT_EQ(read.skipped_because, "");
  EXPECT_EQ(read.scenario.software.attention_kernel, "fa2");
  EXPECT_DOUBLE_EQ(read.scenario.software.logit_bytes, 52);
  EXPECT_DOUBLE_EQ(read.scenario.training.expert_capacity_factor, 1);
}

}  // namespace
}  // namespace herdsim
