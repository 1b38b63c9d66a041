#include "tools/validation/source_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tools/scenario/load_scenario.h"
#include "tools/validation/row_scenario.h"

namespace herdsim {
namespace {

using testing::Contains;
using testing::HasSubstr;

RunRow row_of(std::string_view source_where, std::string_view model) {
  RunRow row;
  row.id = "one";
  row.source_where = source_where;
  row.model = model;
  row.software = "megatron-te";
  row.gpu = "H100";
  row.layers = 126;
  row.hidden = 16384;
  row.ffn = 53248;
  row.heads = 128;
  row.kv_heads = 8;
  row.vocab = 128256;
  row.seq_len = 8192;
  row.num_gpus = 576;
  row.tp = 8;
  row.cp = 2;
  row.pp = 9;
  row.vp = 7;
  row.global_batch = 252;
  row.attention_kernel = "cudnn9";
  return row;
}

TEST(SourceFacts, each_is_found_says_something_and_says_where) {
  for (const SourceFact& fact : source_facts()) {
    SCOPED_TRACE(fact.where);
    RunRow row;
    row.source_where = "github " + std::string(fact.where) + " table 2";
    row.model = std::string(fact.model) + "-proxy-L2";
    row.gpu = std::string(fact.gpu) + "-80GB";
    EXPECT_EQ(facts_of_source(row), &fact);
    row.model = "another model";
    EXPECT_EQ(facts_of_source(row), nullptr);
    EXPECT_TRUE(fact.vocab || !fact.attention_kernel.empty() || !fact.recompute.empty() ||
                !fact.software.empty());
    EXPECT_THAT(fact.stated, HasSubstr(":"));
    EXPECT_NO_THROW(load_software("megatron-te", fact.software));
  }
  RunRow row;
  row.model = "Llama3.1-405B";
  EXPECT_EQ(facts_of_source(row), nullptr);
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
  RunRow row = row_of(where, "GPT OSS 120B");
  const RowScenario read = scenario_of_row(row, RowParts({}));
  EXPECT_EQ(read.scenario.training.recompute, Recompute::kElementwise);
  row.gpu = "B200";
  EXPECT_EQ(scenario_of_row(row, RowParts({})).scenario.training.recompute, Recompute::kNone);
}

TEST(SourceFacts, a_stated_kernel_and_loss_replace_those_of_the_stack_but_not_what_is_set) {
  const std::string where = "github NVIDIA/dgxc-benchmarking@v25.04 grok1/README_314b.md";
  RunRow row = row_of(where, "Grok1-314B-proxy-L4");
  row.layers = 4;
  row.vocab = row.vp = row.pp = row.cp = std::nullopt;
  row.hidden = row.ffn = row.heads = row.kv_heads = std::nullopt;
  row.num_gpus = 32;
  row.tp = 4;
  row.ep = 8;
  row.attention_kernel = "";
  row.global_batch = 1024;
  const RowScenario read = scenario_of_row(row, RowParts({}));
  EXPECT_EQ(read.skipped_because, "");
  EXPECT_EQ(read.scenario.software.attention_kernel, "fa2");
  EXPECT_DOUBLE_EQ(read.scenario.software.logit_bytes, 52);
  EXPECT_DOUBLE_EQ(read.scenario.training.expert_capacity_factor, 1);
  const RowScenario set = scenario_of_row(row, RowParts({"software.logit_bytes=7"}));
  EXPECT_DOUBLE_EQ(set.scenario.software.logit_bytes, 7);
}

}  // namespace
}  // namespace herdsim
