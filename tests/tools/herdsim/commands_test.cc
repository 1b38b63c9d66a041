#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/tools/herdsim/run_command.h"

namespace herdsim {
namespace {

using nlohmann::json;

json step_json_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const CommandOutput run = run_command(arguments);
  EXPECT_EQ(run.status, kExitDone) << run.err;
  return json::parse(run.out);
}

// Table 4 of arXiv:2407.21783, MFU with causal attention counted half. The tolerances in points.
struct PublishedRow {
  std::string scenario;
  double mfu, tolerance;
};
const std::vector<PublishedRow> kLlama3 = {{"llama3-405b-16384", 0.41, 0.015},
                                           {"llama3-405b-8192", 0.43, 0.015},
                                           {"llama3-405b-131072ctx", 0.38, 0.02}};

TEST(StepCommand, published_llama_3_steps_are_within_their_tolerances) {
  std::vector<double> tflops;
  for (const PublishedRow& row : kLlama3) {
    const json step = step_json_of({"step", row.scenario});
    std::printf("%-24s predicted %.1f %%, published %.1f %%\n", row.scenario.c_str(),
                100 * step["mfu"].get<double>(), 100 * row.mfu);
    EXPECT_NEAR(step["mfu"].get<double>(), row.mfu, row.tolerance) << row.scenario;
    tflops.push_back(step["model_tflops_per_gpu"]);
  }
  EXPECT_NEAR(tflops[1] / tflops[0], 1.075, 0.02);
}

TEST(StepCommand, json_has_exactly_the_documented_keys_and_an_account_that_sums) {
  const json step = step_json_of({"step", "llama3-405b-16384"});
  const std::vector<std::string> keys = {
      "bubble_fraction", "collisions", "dtype", "events", "fingerprint", "fits", "gpus",
      "link_tiers", "mfu", "mfu_convention", "top_links",
      "mfu_full_attention", "model_tflops_per_gpu", "peak_memory_bytes", "peak_memory_moment",
      "peak_memory_stage", "scenario", "simulated_ranks", "step_time_s", "time_account_s",
      "tokens_per_second_per_gpu", "tokens_per_step", "wall_s", "warnings"};
  for (const std::string& key : keys) {
    if (key != "dtype") {
      EXPECT_TRUE(step.contains(key)) << key;
    }
  }
  EXPECT_EQ(step.size(), keys.size() - 1);
  double sum = 0;
  for (const auto& term : step["time_account_s"]) sum += term.get<double>();
  EXPECT_EQ(step["time_account_s"].size(), 12U);
  EXPECT_NEAR(sum, step["step_time_s"].get<double>(), 1e-9);
}

TEST(StepCommand, every_catalogue_scenario_gives_a_plausible_step) {
  const json catalog = json::parse(run_command({"catalog", "scenarios", "--format", "json"}).out);
  for (const auto& entry : catalog["scenarios"]) {
    const std::string name = entry["name"];
    const json step = step_json_of({"step", name});
    // DeepSeek-V3 is published at 17 % of the fp8 peak, with activations kept in fp8, which the memory
    // model does not know.
    const bool small_experts = name.starts_with("deepseek");
    EXPECT_GT(step["mfu"].get<double>(), small_experts ? 0.15 : 0.2) << name;
    EXPECT_LT(step["mfu"].get<double>(), 0.65) << name;
    EXPECT_TRUE(step["fits"].get<bool>() || small_experts) << name;
  }
}

TEST(StepCommand, folding_changes_nothing_but_the_work) {
  const std::vector<std::string> small = {
      "step", "llama3-405b-16384", "--set", "parallel.dp=2", "--set", "gpus=256",
      "--set", "training.global_batch=32", "--set", "recovery.spares=0",
      "--set", "cluster.degraded={gpu:37 compute_factor:0.9}"};
  std::vector<std::string> unfolded = small;
  unfolded.emplace_back("--no-fold");
  const json a = step_json_of(small);
  const json b = step_json_of(unfolded);
  EXPECT_EQ(a["fingerprint"], b["fingerprint"]);
  EXPECT_EQ(b["simulated_ranks"], 256);
  EXPECT_LT(a["simulated_ranks"], 100);
}

// Names of what the step leaves out, in the warnings of a scenario that asks for it.
TEST(StepCommand, what_is_not_modelled_is_said) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"cluster.routing=adaptive", "cluster.queue_pairs=1"}, "changes nothing"},
  };
  for (const auto& [sets, text] : cases) {
    std::vector<std::string> line = {"step", "llama3-405b-16384", "--ignore-memory"};
    for (const std::string& set : sets) line.insert(line.end(), {"--set", set});
    const json step = step_json_of(line);
    EXPECT_THAT(step["warnings"].dump(), testing::HasSubstr(text)) << sets.front();
  }
}

// 16 hosts of one pod, two a ToR.
const std::vector<std::string> kSmallStep = {
    "step", "llama3-405b-16384", "--set", "parallel.dp=1", "--set", "gpus=128",
    "--set", "training.global_batch=16", "--set", "recovery.spares=0"};

std::vector<std::string> small_step(const std::vector<std::string>& sets) {
  std::vector<std::string> line = kSmallStep;
  for (const std::string& set : sets) line.insert(line.end(), {"--set", set});
  return line;
}

TEST(StepCommand, a_lost_tor_halts_the_job_and_a_flap_delays_it) {
  const CommandOutput halted = run_command(small_step({"cluster.degraded={tor: 3 down: true}"}));
  EXPECT_EQ(halted.status, kExitBadInput);
  EXPECT_THAT(halted.err, testing::HasSubstr("the job halts: ToR 3 cut off ranks"));
  const double whole = step_json_of(small_step({}))["step_time_s"];
  const double flapped = step_json_of(
      small_step({"cluster.degraded={tor: 3 down: true at_s: 1 for_s: 9}"}))["step_time_s"];
  // What crosses the ToR waits; everybody else waits for that.
  EXPECT_GT(flapped, whole + 8.5);
  EXPECT_LT(flapped, whole + 9.5);
}

TEST(StepCommand, slow_uplinks_and_few_flows_cost_time) {
  const std::vector<std::string> slow_nics = {"cluster.nic_gigabits_per_second=25"};
  const auto seconds = [&](const std::string& set) {
    std::vector<std::string> sets = slow_nics;
    sets.push_back(set);
    return step_json_of(small_step(sets))["step_time_s"].get<double>();
  };
  const double whole = seconds("seed=1");
  EXPECT_GT(seconds("cluster.degraded={tor: 3 uplink_factor: 0.05}"), whole);
  EXPECT_GT(seconds("cluster.degraded={gpu: 9 nic_factor: 0}"), whole);
  EXPECT_GT(seconds("cluster.queue_pairs=1"), whole);
  EXPECT_GT(seconds("cluster.degraded={plane: 0 down: true at_s: 1 for_s: 1}"), whole + 0.5);
}

TEST(StepCommand, tells_what_loads_the_links) {
  const json step = step_json_of(small_step({}));
  ASSERT_FALSE(step["link_tiers"].empty());
  for (const json& link : step["top_links"]) {
    int64_t sum = 0;
    for (const auto& [transfer, bytes] : link["carried_bytes_by_transfer"].items()) {
      sum += bytes.get<int64_t>();
    }
    EXPECT_EQ(sum, link["carried_bytes"].get<int64_t>());
    EXPECT_LE(link["use"].get<double>(), 1.0) << link.dump();
  }
}

TEST(StepCommand, requirements_decide_between_0_and_1) {
  const std::vector<std::string> step = {"step", "llama3-8b-1024", "--require"};
  auto with = [&](const std::string& condition) {
    std::vector<std::string> line = step;
    line.push_back(condition);
    return run_command(line);
  };
  EXPECT_EQ(with("mfu>=0.1").status, kExitDone);
  EXPECT_EQ(with("mfu>=0.9").status, kExitOutOfBounds);
  EXPECT_EQ(with("step_time_s<=0.001").status, kExitOutOfBounds);
  EXPECT_THAT(with("mfu>=0.9").err, testing::HasSubstr("mfu"));
}

TEST(ExplainCommand, terms_of_two_scenarios_sum_to_their_difference) {
  const json explain = json::parse(run_command({"explain", "llama3-405b-8192", "llama3-405b-16384",
                                                "--format", "json", "--quiet"})
                                       .out);
  double sum = 0, points = 0;
  for (const auto& term : explain["terms"]) {
    sum += term["difference"].get<double>();
    points += term["mfu_points"].get<double>();
  }
  EXPECT_NEAR(sum, explain["gpu_seconds_per_million_tokens"]["difference"].get<double>(), 1e-6);
  const double mfu = explain["mfu"]["b"].get<double>() - explain["mfu"]["a"].get<double>();
  EXPECT_NEAR(points, 100 * mfu, 1e-9);
  EXPECT_EQ(explain["terms"][0]["term"], "bubble");
}

TEST(Commands, every_row_has_help_and_prints_it) {
  for (const Command& command : commands()) {
    EXPECT_NE(command.help, "") << command.name;
    const CommandOutput run = run_command({std::string(command.name), "--help"});
    EXPECT_EQ(run.status, kExitDone) << command.name;
    EXPECT_THAT(run.out, testing::HasSubstr(std::string(command.help))) << command.name;
  }
  EXPECT_EQ(run_command({"--version"}).status, kExitDone);
  EXPECT_EQ(run_command({}).status, kExitDone);
}

TEST(CompareCommand, a_change_stands_for_the_first_scenario_with_it) {
  const std::vector<std::string> small = {"--set", "gpus=256", "--set", "parallel.dp=2",
                                          "--set", "training.global_batch=32",
                                          "--set", "recovery.spares=0", "--format", "json"};
  std::vector<std::string> change = {"compare", "llama3-405b-16384",
                                     "training.precision=FP8;parallel.micro_batch=2"};
  change.insert(change.end(), small.begin(), small.end());
  const CommandOutput run = run_command(change);
  ASSERT_EQ(run.status, kExitDone) << run.err;
  const json both = json::parse(run.out);
  EXPECT_EQ(both["b"], "training.precision=FP8;parallel.micro_batch=2");
  std::vector<std::string> whole = {"step", "llama3-405b-16384", "--set", "training.precision=FP8",
                                    "--set", "parallel.micro_batch=2"};
  whole.insert(whole.end(), small.begin(), small.end() - 2);
  EXPECT_EQ(both["step_time_s"]["b"], step_json_of(whole)["step_time_s"]);
  EXPECT_EQ(run_command({"compare", "llama3-405b-16384", "training.precison=FP8"}).status,
            kExitBadInput);
}

TEST(PlanCommand, the_whiteboard_answers_without_a_cluster) {
  const CommandOutput rate = run_command({"plan", "--formulas", "--tflops-per-gpu", "400"});
  EXPECT_EQ(rate.status, kExitDone) << rate.err;
  EXPECT_NE(rate.out.find("40.4  bf16 dense"), std::string::npos) << rate.out;
  const CommandOutput model =
      run_command({"plan", "--formulas", "--model", "llama3-70b", "--tokens", "15e12", "--gpus", "8960",
                   "--mfu", "0.4", "--format", "json"});
  EXPECT_EQ(model.status, kExitDone) << model.err;
  const json both = json::parse(model.out);
  EXPECT_NEAR(both["budget"][0]["days"].get<double>(), 20.7, 0.05);
  EXPECT_GT(both["formulas"]["rows"].size(), 8u);
  EXPECT_EQ(run_command({"plan", "--formulas", "--model", "llama3-700b"}).status, kExitBadInput);
  EXPECT_EQ(run_command({"plan", "--formulas", "--gpu-hours", "1e6"}).status, kExitBadInput);
}

}  // namespace
}  // namespace herdsim
