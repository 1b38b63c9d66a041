// One row a field of the scenario that weeks of training read: the scenario where it acts, and a
// value that is not its default. A field that is accepted and changes nothing is a silent wrong
// answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sim/job/campaign.h"
#include "tools/scenario/catalog.h"
#include "tools/scenario/load_scenario.h"
#include "tools/study/failure_rates.h"
#include "tools/study/scenario_campaign.h"

namespace herdsim {
namespace {

using Sets = std::vector<std::string>;

struct FieldRow {
  std::string field;  // as --set writes it; an element of a list by its name
  std::string value;
  Sets context = {};
};

const Sets kLemons = {"reliability.lemon_share=0.01"};
const Sets kSlow = {"reliability.slow.slow_hosts.scale=1",
                    "reliability.slow.slow_hosts.share=0.003"};
const Sets kEpisodes = {"reliability.slow.fail_slow_network.rate_per_hour=0.1"};
const Sets kPeer = {"checkpoint.policy=peer-replica"};
const Sets kLocalDisk = {"checkpoint.policy=local-disk"};
const Sets kClustered = {"reliability.classes.nic.law=clustered",
                         "reliability.classes.nic.scale=20"};
const Sets kPower = {"reliability.classes.power_domain.scale=100"};
const Sets kCorruption = {"reliability.classes.silent_data_corruption.scale=20"};
const Sets kFewSpares = {"recovery.spares=4"};
const Sets kUnmended = {"recovery.spares=4", "recovery.unmended_share=0.4"};
const Sets kCongested = {"checkpoint.storage.shared_gigabytes_per_second=60",
                         "checkpoint.storage.burst_s=5"};

const std::vector<FieldRow>& rows() {
  static const std::string kLog = [] {
    const std::string path = testing::TempDir() + "herdsim_field_log.csv";
    std::ofstream(path) << "time_h,class\n0,nic\n3,nic\n4,nic\n20,nic\n";
    return path;
  }();
  static const std::vector<FieldRow> all = {
      {"reliability.base", "rsc-1"},
      {"reliability.rate_scale", "0.5"},
      {"reliability.gpu_mtbf_h", "30000"},
      {"reliability.failures_per_1000_node_days", "6.5"},
      {"reliability.job_mtbf_h", "2"},
      {"reliability.law", "weibull"},
      {"reliability.weibull_k", "0.5", {"reliability.law=weibull"}},
      {"reliability.classes.nic.rate_per_hour", "1e-5"},
      {"reliability.classes.nic.mtbf_h", "1e5"},
      {"reliability.classes.nic.per_1000_node_days", "2"},
      {"reliability.classes.nic.scale", "20"},
      {"reliability.classes.nic.per", "host", {"reliability.classes.nic.rate_per_hour=1e-5"}},
      {"reliability.classes.nic.law", "clustered", {"reliability.classes.nic.scale=20"}},
      {"reliability.classes.nic.weibull_k",
       "0.4",
       {"reliability.classes.nic.law=weibull", "reliability.classes.nic.scale=20"}},
      {"reliability.classes.nic.branching", "0.6", kClustered},
      {"reliability.classes.nic.mean_lag_s", "9000", kClustered},
      {"reliability.classes.nic.detection_s", "900", kClustered},
      {"reliability.classes.nic.diagnosis_s", "900", kClustered},
      {"reliability.classes.nic.repair_s", "9e5", kFewSpares},
      {"reliability.classes.nic.scope", "pod", kClustered},
      {"reliability.classes.nic.remedy",
       "restart",
       {"recovery.spares=4", "reliability.classes.nic.scale=20"}},
      {"reliability.classes.nic.effect", "silent_corruption", kClustered},
      {"reliability.failure_log", kLog},
      {"reliability.failure_log_gpus", "1024", {"reliability.failure_log=" + kLog}},
      {"reliability.slow.slow_hosts.scale", "0.1", kSlow},
      {"reliability.slow.slow_hosts.share", "0", kSlow},
      {"reliability.slow.slow_hosts.slowdown", "0.3", kSlow},
      {"reliability.slow.fail_slow_network.rate_per_hour", "0.01", kEpisodes},
      {"reliability.slow.fail_slow_network.duration_s", "60", kEpisodes},
      {"reliability.corruption_detectors", "[loss_watch, block_recompute]", kCorruption},
      {"reliability.restarts_can_fail", "false"},
      {"reliability.failure_rate_while_down", "0.2"},
      {"reliability.failure_rate_per_kelvin", "0.05"},
      {"reliability.power_cap_w", "600"},
      {"reliability.lemon_share", "0.01"},
      {"reliability.lemon_factor", "40", kLemons},
      {"reliability.remove_lemons",
       "true",
       {"reliability.lemon_share=0.005", "reliability.lemon_factor=200"}},
      {"reliability.evict_slow_after_s", "7200", kSlow},
      {"reliability.hosts_per_power_domain", "64", kPower},
      {"checkpoint.policy", "sync"},
      {"checkpoint.interval_s", "900"},
      {"checkpoint.rule", "young"},
      {"checkpoint.keep_last", "2", kCorruption},
      {"checkpoint.archive_every_s",
       "20000",
       {"checkpoint.keep_last=2", "reliability.classes.silent_data_corruption.scale=20"}},
      {"checkpoint.bytes", "40000000000000"},
      {"checkpoint.block_s", "3"},
      {"checkpoint.save_s", "200"},
      {"checkpoint.load_s", "700"},
      {"checkpoint.storage.write_gigabytes_per_second", "30"},
      {"checkpoint.storage.read_gigabytes_per_second", "10"},
      {"checkpoint.storage.shared_gigabytes_per_second", "20"},
      {"checkpoint.storage.background_share", "0.98", {"checkpoint.storage.burst_s=5"}},
      {"checkpoint.storage.data_loading_gigabytes_per_second", "90", kCongested},
      {"checkpoint.storage.copy_out_gigabytes_per_second", "0.1"},
      {"checkpoint.storage.peer_gigabytes_per_second", "0.01", kPeer},
      {"checkpoint.storage.nvme_gigabytes_per_second", "0.001", kLocalDisk},
      {"checkpoint.storage.memory_save_block_s", "0.5", {"checkpoint.policy=in-memory"}},
      {"checkpoint.storage.attach_s", "300", kPeer},
      {"checkpoint.storage.planning_s", "62"},
      {"checkpoint.storage.wait_s", "100"},
      {"checkpoint.storage.burst_factor", "2", kCongested},
      {"checkpoint.storage.burst_s", "10", kCongested},
      {"checkpoint.storage.client_gigabytes_per_second", "0.01"},
      {"checkpoint.storage.frontend_gigabits_per_second", "0.1"},
      {"checkpoint.storage.files_per_gpu", "100"},
      {"checkpoint.storage.files_per_second", "100"},
      {"checkpoint.storage.directories", "16384", {"checkpoint.storage.files_per_gpu=100"}},
      {"checkpoint.storage.write_amplification", "1.67", kCongested},
      {"checkpoint.storage.capacity_petabytes", "0.02", kCorruption},
      {"checkpoint.storage.bytes_kept_per_byte",
       "3",
       {"checkpoint.storage.capacity_petabytes=0.02",
        "reliability.classes.silent_data_corruption.scale=20"}},
      {"recovery.policy", "warm-standby"},
      {"recovery.spares", "1"},
      {"recovery.technicians", "1", kFewSpares},
      {"recovery.health_check_s", "90000", kFewSpares},
      {"recovery.unmended_share", "0.4", kFewSpares},
      {"recovery.health_check_recall", "0.2", kUnmended},
      {"recovery.health_check_false_alarm", "0.5", kFewSpares},
      {"recovery.refail_after_s", "90000", kUnmended},
      {"recovery.restart_s", "300"},
      {"recovery.diagnosis_s", "1"},
      {"recovery.reschedule_s", "1"},
      {"recovery.start_s", "1"},
      {"recovery.init_s", "1"},
      {"recovery.warmup_s", "1"},
      {"recovery.maintenance_s", "1000"},
      {"run.days", "21"},
      {"run.tokens", "1e11"},
      {"run.replicas", "3"},
  };
  return all;
}

std::string fingerprint_of(const Sets& sets) {
  Sets all = {"run.days=20", "run.replicas=2"};
  all.insert(all.end(), sets.begin(), sets.end());
  const Scenario scenario = load_scenario("llama3-405b-16384", all);
  const Duration step = milliseconds(6'400);
  const PaceOfTheSlowest model({.nominal = step, .data_parallel = scenario.plan.dp});
  return run_campaign(resolve(campaign_request(scenario, {}, step)), model, {}).fingerprint();
}

// "reliability.classes.nic.scale" is the field "reliability.classes.scale" of the language.
std::string without_element(std::string field) {
  for (const std::string name : {".nic.", ".slow_hosts.", ".fail_slow_network."}) {
    if (const size_t at = field.find(name); at != std::string::npos)
      field.erase(at, name.size() - 1);
  }
  return field;
}

TEST(CampaignFields, changing_any_of_them_changes_the_answer) {
  std::map<Sets, std::string> bases;
  for (const FieldRow& row : rows()) {
    std::string& base = bases[row.context];
    if (base.empty()) base = fingerprint_of(row.context);
    Sets changed = row.context;
    changed.push_back(row.field + "=" + row.value);
    EXPECT_NE(fingerprint_of(changed), base) << changed.back();
  }
}

// Every field that the help prints for these parts has a row.
TEST(CampaignFields, the_table_has_every_field_of_the_language) {
  std::set<std::string> covered;
  for (const FieldRow& row : rows()) covered.insert(without_element(row.field));
  std::istringstream lines(scenario_language_help());
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 3 || line[0] != ' ' || line[2] == ' ') continue;
    // A line of prose may begin with a path, as an example.
    if (line.find('=') != std::string::npos) continue;
    std::istringstream words(line);
    std::string field, type;
    words >> field >> type;
    const std::string part = field.substr(0, field.find('.'));
    const bool ours =
        part == "reliability" || part == "checkpoint" || part == "recovery" || part == "run";
    const bool has_fields = line.find("{ ... }") != std::string::npos;
    if (!ours || has_fields || field.ends_with(".name") || field.find('.') == std::string::npos)
      continue;
    EXPECT_TRUE(covered.contains(field)) << field;
  }
}

TEST(CampaignFields, what_is_given_is_shown_with_its_origin_and_the_rest_as_default) {
  const Scenario scenario =
      load_scenario("llama3-405b-16384", {"recovery.spares=", "reliability.classes.nic.scale=2",
                                          "reliability.corruption_detectors=transfer_checksum"});
  const std::string& text = scenario.effective_text;
  for (const std::string line : {"technicians: 0", "weibull_k: 0.75", "rule: \"fixed\""}) {
    const size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    EXPECT_THAT(text.substr(at, text.find('\n', at) - at), testing::HasSubstr("# default")) << line;
  }
  EXPECT_THAT(text, testing::ContainsRegex("spares: 32 +# default: one for 64 hosts"));
  EXPECT_THAT(text, testing::ContainsRegex("bytes: [0-9]+ +# default: 14 a parameter"));
  EXPECT_THAT(text, testing::ContainsRegex("name: \"nic\" +# --set"));
  EXPECT_THAT(text, testing::ContainsRegex("scale: 2 +# --set"));
  EXPECT_THAT(text, testing::HasSubstr("corruption_detectors: [\"transfer_checksum\"]"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("loss_watch")));
}

// Machines differ in what fails together: a torus has no ToRs.
TEST(CampaignFields, a_job_on_any_cluster_of_the_catalogue_has_its_weeks) {
  for (const CatalogEntry& cluster : catalog_entries(CatalogKind::kClusters)) {
    const Scenario scenario =
        load_scenario("llama3-8b-1024",
                      {"cluster.base=" + std::string(cluster.name), "gpus=144", "parallel.dp=144",
                       "training.global_batch=144", "reliability.base=shared-fleet"});
    const CampaignRequest request =
        campaign_request(scenario, {.days = 2, .replicas = 1}, seconds(2));
    EXPECT_GT(request.machine.gpus_per_tor, 0) << cluster.name;
    const PaceOfTheSlowest model({.nominal = seconds(2), .data_parallel = scenario.plan.dp});
    EXPECT_GT(run_campaign(resolve(request), model, {}).effective_training_time(), 0)
        << cluster.name;
  }
}

// Two jobs on one store: neither notices the other while it is ample, and each has its own answer
// where it is not.
TEST(CampaignStore, other_jobs_slow_saves_and_loads_where_the_store_is_full) {
  const std::string other =
      "other_jobs={scenario: \"llama3-405b-8192\" set: \"gpus=4096\" set: \"parallel.dp=\"}";
  const auto plan_of = [](Sets store, const Sets& more) {
    store.insert(store.end(), more.begin(), more.end());
    const Scenario scenario = load_scenario("llama3-405b-8192", store);
    return resolve(campaign_request(scenario, {.days = 10}, seconds(6))).checkpoints.tiers.back();
  };
  const Sets ample, full = {"checkpoint.storage.shared_gigabytes_per_second=150",
                            "checkpoint.storage.burst_factor=1"};
  const CheckpointTier alone = plan_of(ample, {});
  const CheckpointTier beside = plan_of(ample, {other});
  EXPECT_EQ(beside.persist, alone.persist);
  EXPECT_EQ(beside.load, alone.load);
  // 150 GB/s hold one save of 104 and not two; where they meet each host gets its share.
  EXPECT_EQ(plan_of(full, {}).persist, alone.persist);
  const CheckpointTier both = plan_of(full, {other});
  EXPECT_GT(both.persist, alone.persist);
  EXPECT_LT(both.persist, alone.persist * 2);
}

struct WrongRow {
  Sets sets;
  std::string says;
};

TEST(CampaignFields, what_cannot_be_is_a_fault_that_says_why) {
  const std::vector<WrongRow> wrong = {
      {{"reliability.classes.faulty_gpo.scale=2"}, "did you mean \"faulty_gpu\"?"},
      {{"reliability.classes.cosmic_rays.effect=stop"}, "needs a rate"},
      {{"reliability.classes.nic.rate_per_hour=-1"}, "rate_per_hour: -1 is out of range"},
      {{"reliability.classes.nic.scope=rack"}, "allowed: job, host, tor, power domain, pod"},
      {{"reliability.classes.nic.rate_per_hour=1", "reliability.classes.nic.mtbf_h=1"},
       "one rate in two ways"},
      {{"reliability.classes.nic.branching=0.1"}, "only with law: clustered"},
      {{"reliability.classes.software_bug.repair_s=10"}, "no host leaves for repair"},
      {{"reliability.classes.planned_maintenance.detection_s=1"}, "known ahead"},
      {{"reliability.gpu_mtbf_h=1", "reliability.job_mtbf_h=1"}, "one total in two ways"},
      {{"reliability.law=scheduled"}, "exponential, weibull, clustered"},
      {{"reliability.slow.slow_host.scale=2"}, "did you mean \"slow_hosts\"?"},
      {{"reliability.slow.diurnal_clock.share=0.5"}, "scale, which every kind has"},
      {{"reliability.corruption_detectors=[none, loss_watch]"}, "none alone"},
      {{"checkpoint.rule=yuong"}, "did you mean \"young\"?"},
      {{"checkpoint.interval_s=0"}, "above 0"},
      {{"recovery.technicians=-1"}, "recovery.technicians"},
      {{"run.replicas=0"}, "run.replicas"},
      {{"reliability.failure_log=/nowhere/log.csv"}, "/nowhere/log.csv"},
  };
  for (const WrongRow& row : wrong) {
    try {
      load_scenario("llama3-405b-16384", row.sets);
      FAIL() << row.sets.front() << " was accepted";
    } catch (const SpecError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(row.says)) << row.sets.front();
    }
  }
}

TEST(CampaignFields, a_broken_log_is_reported_line_by_line) {
  const std::string path = testing::TempDir() + "herdsim_broken_log.csv";
  std::ofstream(path) << "time_h,class\n0,nic\n5,nic\n3,nic\nsoon,nic\n9,nick\n";
  try {
    load_scenario("llama3-405b-16384", {"reliability.failure_log=" + path});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path + ":4:1: time: 3 is before 5 of line 3"));
    EXPECT_THAT(error.what(), testing::HasSubstr(path + ":5:1: time: \"soon\" is not a number"));
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean \"nic\"?"));
  }
}

TEST(CampaignFields, what_has_nothing_to_act_on_is_accepted_with_a_warning) {
  const auto warnings_of = [](const Sets& sets) {
    const Scenario scenario = load_scenario("llama3-405b-16384", sets);
    return resolve(campaign_request(scenario, {}, seconds(6))).warnings;
  };
  EXPECT_THAT(warnings_of({}), testing::IsEmpty());
  for (const auto& [set, says] : std::vector<std::pair<std::string, std::string>>{
           {"reliability.weibull_k=0.5", "no class has the law weibull"},
           {"reliability.remove_lemons=true", "no lemons"},
           {"recovery.spares=3000", "more than the 2048 of the job"},
           {"checkpoint.interval_s=20", "saves queue"},
           {"run.days=200", "the store of 240 PB holds"},
           {"checkpoint.policy=none", "every failure starts the run over"}}) {
    EXPECT_THAT(warnings_of({set}), testing::Contains(testing::HasSubstr(says))) << set;
  }
}

// Published totals in the words that people use: one H100 failure in 50,000 h, 6.5 failures a
// thousand node-days.
TEST(CampaignFields, a_total_is_what_the_classes_add_up_to) {
  const auto mtbf_hours = [](int64_t gpus, const std::string& set) {
    Scenario scenario = load_scenario("llama3-405b-16384", {set});
    scenario.gpus = gpus;
    return 1 / resolve(campaign_request(scenario, {}, seconds(6))).unplanned_rate_per_hour();
  };
  const std::string epoch = "reliability.gpu_mtbf_h=50000";
  EXPECT_NEAR(mtbf_hours(1024, epoch), 48.8, 0.05);
  EXPECT_NEAR(mtbf_hours(16'384, epoch), 3.05, 0.005);
  EXPECT_NEAR(mtbf_hours(1'000'000, epoch), 0.05, 1e-9);
  const std::string rsc = "reliability.failures_per_1000_node_days=6.5";
  EXPECT_NEAR(mtbf_hours(1024, rsc), 28.8, 0.05);
  EXPECT_NEAR(mtbf_hours(131'072, rsc), 0.225, 0.0005);
  EXPECT_NEAR(mtbf_hours(16'384, "reliability.job_mtbf_h=1.7"), 1.7, 1e-9);
}

// A ToR of a rack, of a rail, and one of the two that a NIC is cabled to.
TEST(FailureDomains, follow_the_fabric_of_the_scenario) {
  const auto machine = [](const Sets& sets) {
    return campaign_request(load_scenario("llama3-405b-16384", sets), {.days = 1}, seconds(6))
        .machine;
  };
  const FailureDomains racks = machine({}), units = machine({"cluster.base=dgx-superpod-16k"}),
                       ports = machine({"cluster.base=hpn7-15k", "cluster.gpus=16384"}),
                       tree = machine({"cluster.topology=fat-tree", "cluster.switch_ports=64"});
  EXPECT_EQ(racks.hosts_lost(Scope::kTor), 2);
  EXPECT_EQ(racks.planes, 1);
  EXPECT_EQ(units.hosts_lost(Scope::kTor), 32);
  EXPECT_EQ(units.units(Exposure::kTor), 512);
  EXPECT_EQ(ports.hosts_lost(Scope::kTor), 128);
  EXPECT_EQ(ports.planes, 2);
  EXPECT_EQ(tree.hosts_lost(Scope::kTor), 4);
  EXPECT_EQ(tree.gpus_per_pod, 1024);
}

// changlan.org: 6,000 s between interruptions, 600 s to recover, 10 s a checkpoint, 15 s a step.
TEST(FailureRates, published_sums_come_out) {
  const Scenario scenario =
      load_scenario("llama3-405b-16384", {"reliability.job_mtbf_h=1.6666666666666667",
                                          "recovery.restart_s=600", "checkpoint.block_s=10"});
  const RateReport report = failure_rates(scenario, {16'384}, seconds(15));
  const CheckpointFigures& c = report.rows.front().checkpoint;
  EXPECT_NEAR(c.young_with_restart_s, 363.3, 0.1);
  EXPECT_NEAR(c.young_with_restart_s / 15, 24.2, 0.05);
  EXPECT_NEAR(c.period_including_write_s, 373.5, 0.1);
  EXPECT_NEAR(c.young_s, 346.4, 0.1);
  const Scenario rsc =
      load_scenario("llama3-405b-16384", {"reliability.failures_per_1000_node_days=6.5"});
  const RateReport sizes = failure_rates(rsc, {1024, 16'384, 131'072}, seconds(6));
  EXPECT_NEAR(sizes.rows[0].mtbf_h, 28.8, 0.05);
  EXPECT_NEAR(sizes.rows[1].mtbf_h, 1.80, 0.01);
  EXPECT_NEAR(sizes.rows[2].mtbf_h, 0.225, 0.001);
  // 2,048 hosts at Llama 3's rate with about 32 h of repair: within the published 13.1 and 22.
  const RateReport own = failure_rates(load_scenario("llama3-405b-16384"), {16'384}, seconds(6));
  EXPECT_NEAR(own.rows[0].mtbf_h, 3.093, 0.001);
  EXPECT_GT(own.rows[0].spares_p99, 10);
  EXPECT_LT(own.rows[0].spares_p99, 24);
}

}  // namespace
}  // namespace herdsim
