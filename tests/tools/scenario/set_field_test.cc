#include "tools/scenario/set_field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/scenario/scenario_text.h"
#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Scenario loaded(const std::vector<std::string>& sets) {
  return load_scenario_text(kLargeScenario, "mine.textproto", sets);
}

TEST(SetField, takes_numbers_names_truth_and_strings_without_quotes) {
  const Scenario s =
      loaded({"name=my run = \"two\"", "parallel.shard=zero1", "parallel.sequence_parallel=false",
              "reliability.rate_scale=2.5", "seed=7", "training.recompute=full"});
  EXPECT_EQ(s.name, "my run = \"two\"");
  EXPECT_EQ(s.plan.shard, Sharding::kZero1);
  EXPECT_FALSE(s.plan.sequence_parallel);
  EXPECT_EQ(s.reliability.rate_scale, 2.5);
  EXPECT_EQ(s.seed, 7U);
  EXPECT_EQ(s.training.recompute, Recompute::kFull);
}

TEST(SetField, goes_above_the_base_and_the_last_one_wins) {
  EXPECT_EQ(loaded({"model.hidden=8192", "model.hidden=4096"}).model.hidden, 4096);
  EXPECT_EQ(loaded({"model.hidden=4096", "model.base=llama3-70b", "parallel.virtual_stages=5"})
                .model.hidden,
            4096);
  EXPECT_EQ(loaded({"model.base=llama3-70b", "parallel.virtual_stages=5"}).model.hidden, 8192);
}

TEST(SetField, appends_to_lists_and_reaches_into_them) {
  const Scenario s =
      loaded({"cluster.degraded={gpu: 3 compute_factor: 0.9}", "cluster.degraded={gpu: 4}",
              "cluster.degraded.1.nic_factor=0.5", "cluster.degraded.0={gpu: 5}"});
  ASSERT_EQ(s.cluster.degraded.size(), 2U);
  EXPECT_EQ(s.cluster.degraded[0].gpu, 5);
  EXPECT_EQ(s.cluster.degraded[0].compute_factor, 1);
  EXPECT_EQ(s.cluster.degraded[1].nic_factor, 0.5);
}

TEST(SetField, an_empty_value_takes_a_field_back_to_its_default) {
  const Scenario s = loaded({"parallel.dp=5", "parallel.dp=", "gpus=8192"});
  EXPECT_EQ(s.plan.dp, 64);
}

TEST(SetField, says_what_is_wrong_with_the_option) {
  const std::pair<std::string, std::string> rows[] = {
      {"parallel.tpp=4",
       "parallel.tpp: there is no field \"tpp\" in Parallel; did you mean \"tp\"?"},
      {"paralel.tp=4", "did you mean \"parallel\"?"},
      {"parallel.q=4", "allowed: tp, cp, ep, pp, dp"},
      {"parallel.tp=four", "parallel.tp: Expected integer, got: four; allowed: a whole number"},
      {"parallel.tp=1.5", "allowed: a whole number"},
      {"parallel.tp=8 pp: 3", "is more than one value"},
      {"cluster.degraded={gpu: 3} gpus: 8", "is more than one value"},
      {"cluster.degraded={gpu: 3} degraded {gpu: 4}", "is more than one value"},
      {"parallel.tp=99999999999999999999", "out of range"},
      {"parallel.sequence_parallel=perhaps", "\"perhaps\" is neither; allowed: true or false"},
      {"parallel.shard=zero9",
       "\"ZERO9\" is not one of its values; allowed: NONE, ZERO1, ZERO2, ZERO3, FSDP_KEEP"},
      {"parallel.shard.x=1", "shard has no fields"},
      {"parallel=4", "is a part with fields of its own"},
      {"cluster.degraded.0.gpu=3",
       "degraded has 0 elements; allowed: append one with degraded={...}"},
      {"cluster.degraded.x.gpu=3", "degraded has 0 elements"},
      {"cluster.degraded={gpu: 3 fan: 1}", "there is no field \"fan\" here"},
      {"parallel.layers_per_chunk.0=3", "the whole list, as [...]"},
      {"cluster.degraded={gpu: 3", "degraded"},
      {"parallel.tp", "is not an assignment"},
      {"=4", "is not an assignment"},
      {".=4", "there is no field \"\""},
      {"base=llama3-405b-16384", "base: cannot be set"},
  };
  for (const auto& [set, says] : rows) {
    const std::string all = faults_of(kLargeScenario, {set});
    EXPECT_THAT(all, StartsWith("--set " + set + ":")) << set;
    EXPECT_THAT(all, HasSubstr(says)) << set;
  }
}

TEST(SetField, every_wrong_option_is_reported) {
  EXPECT_EQ(fault_list(kLargeScenario, {"a=1", "parallel.b=2", "gpus=c"}).size(), 3U);
}

}  // namespace
}  // namespace herdsim
