#include "tools/scenario/load_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "calibrate/profile/profile_file.h"
#include "tests/tools/scenario/scenario_text.h"
#include "tools/scenario/catalog.h"

namespace herdsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LoadScenario, the_run_of_the_54_days_has_the_published_configuration) {
  const Scenario s = load_scenario("llama3-405b-16384");
  EXPECT_EQ(s.name, "llama3-405b-16384");
  EXPECT_EQ(s.model.name, "llama3-405b");
  EXPECT_EQ(s.model.layers, 126);
  EXPECT_EQ(s.model.hidden, 16384);
  EXPECT_EQ(s.model.kv_heads, 8);
  EXPECT_EQ(s.cluster.name, "meta-roce-24k");
  EXPECT_EQ(s.cluster.topology, "clos3");
  EXPECT_EQ(s.cluster.gpus, 24576);
  EXPECT_EQ(s.cluster.nic, gigabits_per_second(400));
  EXPECT_EQ(s.cluster.nvlink, gigabytes_per_second(450));
  EXPECT_EQ(s.profile.name, "h100-sxm5-80gb");
  EXPECT_EQ(s.software.name, "meta-llama3");
  EXPECT_EQ(s.software.gradient_reduce_type, DataType::kFp32);
  EXPECT_EQ(s.gpus, 16384);
  EXPECT_EQ(s.plan.tp, 8);
  EXPECT_EQ(s.plan.pp, 16);
  EXPECT_EQ(s.plan.dp, 128);
  EXPECT_EQ(s.plan.virtual_stages, 8);
  EXPECT_EQ(s.plan.shard, Sharding::kFsdpKeep);
  EXPECT_EQ(s.training.tokens(), 16777216);
  EXPECT_EQ(s.training.schedule, "interleaved-1f1b");
  EXPECT_EQ(s.reliability.base, "llama3-54-days");
  EXPECT_EQ(s.checkpoint.policy, "async");
  EXPECT_EQ(s.checkpoint.interval_s, 300);
  EXPECT_EQ(s.recovery.spares, 32);
  EXPECT_EQ(s.run.days, 54);
  ASSERT_TRUE(s.published);
  EXPECT_EQ(s.published->model_tflops_per_gpu, 400);
  EXPECT_EQ(s.published->mfu, 0.41);
}

// The defaults of the language are those of the structs.
TEST(LoadScenario, sequence_parallelism_that_is_left_out_is_as_the_stack_has_it) {
  const auto splits = [](const char* more) {
    const std::string text = std::string("base: \"llama3-405b-8192\" ") + more;
    return load_scenario_text(text, "mine.textproto", {"parallel.sequence_parallel="}).plan.sequence_parallel;
  };
  EXPECT_TRUE(splits("software { base: \"megatron-te\" }"));
  EXPECT_FALSE(splits("software { base: \"megatron-2021\" }"));
  EXPECT_TRUE(splits("software { base: \"megatron-2021\" } model { experts: 8 experts_per_token: 2 }"))
      << "experts need it";
}

TEST(LoadScenario, the_effective_text_of_every_scenario_loads_to_itself) {
  const std::vector<std::vector<std::string>> changes = {
      {},
      {"cluster.degraded={gpu: 3 compute_factor: 0.9}", "seed=18446744073709551615",
       "reliability.rate_scale=0.1"}};
  for (const std::string& name : catalog_names(CatalogKind::kScenarios)) {
    for (const auto& sets : changes) {
      SCOPED_TRACE(name);
      const Scenario once = load_scenario(name, sets);
      const Scenario twice = load_scenario_text(once.effective_text, "effective.textproto");
      EXPECT_EQ(without_comments(once.effective_text), without_comments(twice.effective_text));
      EXPECT_EQ(once.cluster.degraded.size(), twice.cluster.degraded.size());
      EXPECT_EQ(once.seed, twice.seed);
      EXPECT_EQ(once.model.parameters(), twice.model.parameters());
      EXPECT_EQ(once.cluster.nic, twice.cluster.nic);
      EXPECT_EQ(once.checkpoint.interval_s, twice.checkpoint.interval_s);
      EXPECT_EQ(once.published.has_value(), twice.published.has_value());
    }
  }
}

std::string line_of(const std::string& text, const std::string& field) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(field + ":") != std::string::npos) return line;
  }
  return "";
}

// A host's way to the storage network is one, whatever it is called.
TEST(LoadScenario, a_port_to_the_storage_network_is_the_same_beside_a_step_and_in_weeks) {
  const auto ports = [](const std::vector<std::string>& sets) {
    const Scenario s = load_scenario("llama3-405b-16384", sets);
    return std::pair(s.cluster.storage.host, s.checkpoint.storage.frontend_gbit_per_s);
  };
  const std::string of_cluster = "cluster.storage_network.host_gigabits_per_second=",
                    of_store = "checkpoint.storage.frontend_gigabits_per_second=";
  EXPECT_EQ(ports({}), std::pair(gigabits_per_second(800), 800.0)) << "the catalogue's cluster";
  EXPECT_EQ(ports({of_cluster + "200"}), std::pair(gigabits_per_second(200), 200.0));
  EXPECT_EQ(ports({of_store + "100"}), std::pair(gigabits_per_second(100), 100.0));
  EXPECT_EQ(ports({of_store + "200", of_cluster + "200"}),
            std::pair(gigabits_per_second(200), 200.0));
  EXPECT_THROW(ports({of_store + "200", of_cluster + "201"}), SpecError);
  // Eight NICs of 400 Gb/s.
  EXPECT_EQ(ports({"cluster.storage_network.path=TRAINING"}).second, 3200.0);
  EXPECT_EQ(ports({"cluster.storage_network.path=TRAINING", of_store + "100"}).second, 100.0);
}

TEST(LoadScenario, every_field_of_the_effective_text_says_where_it_comes_from) {
  const Scenario s =
      load_scenario_text(kLargeScenario, "mine.textproto",
                         {"model.hidden=8192", "cluster={base: \"clos-1m\" queue_pairs: 2}"});
  std::istringstream lines(s.effective_text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(": ") == std::string::npos) continue;
    EXPECT_THAT(line, HasSubstr(" # "));
  }
  EXPECT_THAT(line_of(s.effective_text, "global_batch"), HasSubstr("# mine.textproto:9"));
  EXPECT_THAT(line_of(s.effective_text, "layers"), HasSubstr("# catalog model llama3-405b"));
  EXPECT_THAT(line_of(s.effective_text, "hidden"), HasSubstr("# --set"));
  EXPECT_THAT(line_of(s.effective_text, "queue_pairs"), HasSubstr("# --set"));
  EXPECT_THAT(line_of(s.effective_text, "topology"), HasSubstr("# catalog cluster clos-1m"));
  EXPECT_THAT(line_of(s.effective_text, "micro_batch"), HasSubstr("# default"));
  EXPECT_THAT(line_of(s.effective_text, "dp"), HasSubstr("# default: gpus / (tp * cp * pp)"));
}

TEST(LoadScenario, json_of_the_same_messages_gives_the_same_scenario) {
  const std::string json = R"({
    "model": {"base": "llama3-405b"}, "cluster": {"base": "meta-roce-24k"}, "profile": {"base": "h100-sxm5-80gb"},
    "software": {"base": "meta-llama3"}, "gpus": 16384,
    "parallel": {"tp": 8, "pp": "16", "virtualStages": 8, "shard": "FSDP_KEEP"},
    "training": {"sequence_length": 8192, "globalBatch": 2048, "schedule": "interleaved-1f1b"}
  })";
  // By content: the name says nothing.
  const Scenario from_json = load_scenario_text(json, "mine.textproto");
  const Scenario from_text = load_scenario_text(kLargeScenario, "mine.textproto");
  EXPECT_EQ(without_comments(from_json.effective_text), without_comments(from_text.effective_text));
  EXPECT_THAT(line_of(from_json.effective_text, "virtual_stages"), HasSubstr("# mine.textproto:4"));
}

TEST(LoadScenario, what_is_in_place_goes_above_its_base_and_lists_replace_lists) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "herdsim_bases";
  std::filesystem::create_directories(folder / "parts");
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  write("parts/slow.textproto",
        "base: \"meta-roce-24k\" queue_pairs: 5 degraded { gpu: 1 nic_factor: 0.5 } degraded { "
        "gpu: 2 }");
  std::string first = kLargeScenario;
  first.replace(first.find("cluster { base: \"meta-roce-24k\" }"), 33,
                "cluster { base: \"parts/slow.textproto\" nic_efficiency: 0.5 }");
  write("first.textproto", first);
  write("parts/second.textproto",
        "base: \"../first.textproto\" cluster { degraded { gpu: 9 } } parallel { micro_batch: 2 }");

  const Scenario one = load_scenario((folder / "first.textproto").string());
  EXPECT_EQ(one.cluster.name, "slow");
  EXPECT_EQ(one.cluster.gpus, 24576);
  EXPECT_EQ(one.cluster.queue_pairs, 5);
  EXPECT_EQ(one.cluster.nic_efficiency, 0.5);
  EXPECT_EQ(one.cluster.degraded.size(), 2U);

  const Scenario two = load_scenario((folder / "parts/second.textproto").string());
  EXPECT_EQ(two.plan.micro_batch, 2);
  EXPECT_EQ(two.plan.tp, 8);
  ASSERT_EQ(two.cluster.degraded.size(), 1U);
  EXPECT_EQ(two.cluster.degraded[0].gpu, 9);
}

TEST(LoadScenario, a_profile_is_named_changed_or_written_in_place) {
  const Scenario plain = load_scenario_text(kLargeScenario, "mine.textproto");
  const Scenario slow = load_scenario_text(
      kLargeScenario, "mine.textproto",
      {"profile.device.hbm_gigabytes_per_second=2400", "profile.device.board_watts=500"});
  EXPECT_EQ(slow.profile.hbm_bandwidth, gigabytes_per_second(2400));
  EXPECT_EQ(slow.profile.board_watts, 500);
  EXPECT_EQ(slow.profile.hbm, plain.profile.hbm);
  EXPECT_EQ(slow.profile.attention.size(), plain.profile.attention.size());
  const Scenario again = load_scenario_text(slow.effective_text, "effective.textproto");
  EXPECT_EQ(again.profile.hbm_bandwidth, slow.profile.hbm_bandwidth);

  std::string text = kLargeScenario;
  text.replace(text.find("base: \"h100-sxm5-80gb\""), 22, profile_text("h100-sxm5-80gb"));
  const Scenario in_place = load_scenario_text(text, "mine.textproto");
  EXPECT_EQ(in_place.profile.name, plain.profile.name);
  EXPECT_EQ(save_profile_text(in_place.profile), save_profile_text(plain.profile));

  EXPECT_THAT(faults_of(kLargeScenario, {"profile.device.sms=-1"}),
              HasSubstr("profile.device.sms"));
  EXPECT_THAT(faults_of(kLargeScenario, {"profile.device.smz=1"}),
              HasSubstr("did you mean \"sms\"?"));
  EXPECT_THAT(faults_of(kLargeScenario, {"profile.base="}), HasSubstr("profile.base: is missing"));
}

TEST(LoadScenario, bases_in_a_circle_are_an_error) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "herdsim_circle";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.textproto") << "base: \"b.textproto\"";
  std::ofstream(folder / "b.textproto") << "base: \"a.textproto\"";
  try {
    load_scenario((folder / "a.textproto").string());
    FAIL();
  } catch (const SpecError& error) {
    EXPECT_THAT(error.what(), HasSubstr("circle"));
  }
}

TEST(LoadScenario, a_tensor_parallel_group_beyond_a_host_is_a_warning) {
  const Scenario s = load_scenario_text(kLargeScenario, "mine.textproto", {"parallel.tp=16"});
  ASSERT_EQ(s.warnings.size(), 1U);
  EXPECT_THAT(s.warnings[0], HasSubstr("reaches beyond a host of 8 GPUs"));
}

TEST(LoadScenario, layers_lie_where_the_scenario_says) {
  const Scenario s =
      load_scenario_text(kLargeScenario, "mine.textproto",
                         {"model.layers=10", "parallel.pp=4", "parallel.virtual_stages=1",
                          "parallel.layers_per_chunk=[1, 3, 4, 2]", "training.schedule=1f1b"});
  EXPECT_THAT(s.plan.layers_per_chunk, ElementsAre(1, 3, 4, 2));
  EXPECT_THAT(s.effective_text, HasSubstr("layers_per_chunk: [1, 3, 4, 2]"));
  EXPECT_TRUE(load_scenario("llama3-405b-16384").plan.layers_per_chunk.empty());
}

TEST(LanguageHelp, states_every_field_with_its_meaning_range_and_default) {
  const std::string help = scenario_language_help();
  EXPECT_THAT(help, HasSubstr("\n  parallel.tp  whole number, from 1 up to 4194304, default 1\n"
                              "      Tensor parallel: ranks that share every matrix.\n"));
  EXPECT_THAT(help, HasSubstr("FSDP_KEEP: as Llama 3"));
  EXPECT_THAT(help, HasSubstr("cluster.degraded.compute_factor"));
  EXPECT_THAT(help, HasSubstr("\n  training.schedule  string, default \"1f1b\"\n"));
  // A field without a comment would be followed by the next field at once.
  std::istringstream lines(help);
  bool expects_meaning = false;
  int fields = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    const size_t indent = line.find_first_not_of(' ');
    if (expects_meaning && indent == 4) continue;  // type and range, where they need a line
    EXPECT_TRUE(!expects_meaning || indent == 6) << line;
    const size_t end = std::min(line.find(' ', 2), line.size());
    const bool path = line.substr(0, end).find('.') < end - 1;
    expects_meaning =
        indent == 2 && path && (end == line.size() || line.compare(end, 2, "  ") == 0);
    if (expects_meaning) ++fields;
  }
  EXPECT_GT(fields, 150);
}

}  // namespace
}  // namespace herdsim
