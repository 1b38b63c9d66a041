// The harness on a scripted device.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "calibrate/harness/calibration.h"
#include "calibrate/harness/measured_profile.h"
#include "calibrate/harness/verdict.h"
#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

std::string fresh(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove(path);
  return path.string();
}

TEST(MeasurementStore, keeps_what_it_was_given_by_device_and_probe) {
  const std::string path = fresh("kept.db");
  {
    MeasurementStore(path, "gpu a", "v1")
        .put({"p",
              {.seconds = 2,
               .spread = 0.1,
               .samples = 7,
               .throttled = 1,
               .clock_mhz = 1755,
               .watts = 640},
              "precise"});
  }
  const MeasurementStore again(path, "gpu a", "v1");
  ASSERT_TRUE(again.find("p"));
  EXPECT_DOUBLE_EQ(again.find("p")->summary.seconds, 2);
  EXPECT_EQ(again.find("p")->summary.throttled, 1);
  EXPECT_EQ(again.find("p")->stopped, "precise");
  EXPECT_DOUBLE_EQ(again.find("p")->summary.clock_mhz, 1755);
  EXPECT_DOUBLE_EQ(again.find("p")->summary.watts, 640);
  EXPECT_FALSE(again.find("q"));
  EXPECT_FALSE(MeasurementStore(path, "gpu b", "v1").find("p"));
  EXPECT_FALSE(MeasurementStore(path, "gpu a", "v2").find("p"));
}

TEST(MeasurementStore, refuses_other_files_and_leaves_them_as_they_are) {
  const std::string text = fresh("text.db");
  std::ofstream(text) << std::string(5000, 'x');
  EXPECT_THROW(MeasurementStore(text, "d", "s"), SpecError);
  EXPECT_EQ(std::filesystem::file_size(text), 5000u);
  const std::string foreign = fresh("foreign.db");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(foreign.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE theirs (x)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const auto size = std::filesystem::file_size(foreign);
  EXPECT_THROW(MeasurementStore(foreign, "d", "s"), SpecError);
  EXPECT_EQ(std::filesystem::file_size(foreign), size);
}

// A device whose times are a known law, and which breaks after a number of probes.
class ScriptedBackend : public Backend {
 public:
  explicit ScriptedBackend(size_t breaks_after = 1000000, int64_t multiprocessors = 1,
                           int64_t ranks = 2)
      : breaks_after_(breaks_after), ranks_(ranks) {
    facts_ = {.name = "scripted",
              .software = "v1",
              .memory = gigabytes(16),
              .multiprocessors = multiprocessors,
              .memory_rate = 1e11,
              .peak_flops = 1e12,
              .host_rate = 2.5e10,
              .peer_rate = 5e10,
              .peer_link = "a wire",
              .attention_kernels = {"own"}};
  }
  const DeviceFacts& facts() const override { return facts_; }
  int64_t ranks() const override { return ranks_; }
  // Nodes of four.
  int64_t nodes_of(int64_t ranks) const override { return (ranks + 3) / 4; }
  bool leads() const override { return true; }
  bool alone() const override { return true; }
  std::string why_not(const Probe& probe) const override {
    if (std::holds_alternative<PeerCopyProbe>(probe) && ranks_ == 1) return "one of them";
    const auto* c = std::get_if<CollectiveProbe>(&probe);
    return c != nullptr && c->kind == "all_to_all" ? "nobody wrote it" : "";
  }
  int prepare(const Probe& probe) override {
    if (++prepared == breaks_after_) {
      broken_ = true;
      throw std::runtime_error("unplugged");
    }
    probe_ = probe;
    if (fails_at(AttentionPass::kForward)) throw std::runtime_error("no engine");
    return 0;
  }
  Sample time(int /*id*/, int64_t /*runs*/) override {
    if (fails_at(AttentionPass::kBackward)) throw std::runtime_error("no engine");
    return {law(probe_) * (1 + 0.002 * std::sin(0.7 * ++calls_))};
  }
  void run(int /*id*/) override {}
  void finish() override {}
  void release(int /*id*/) override {}
  void recover() override {
    if (broken_) throw std::runtime_error("unplugged");
  }
  double agree(double value) override { return value; }
  bool all(bool value) override { return value; }

  static double law(const Probe& probe) {
    constexpr double kLaunch = 1e-6;
    if (const auto* g = std::get_if<GemmShape>(&probe)) {
      return kLaunch + g->flops().count() / 7e11 * (g->pass == GemmPass::kWgrad ? 1.25 : 1);
    }
    if (const auto* a = std::get_if<AttentionShape>(&probe))
      return kLaunch + a->flops().count() / 4e11;
    if (const auto* s = std::get_if<MemoryTraffic>(&probe))
      return kLaunch + static_cast<double>(s->moved.count()) / 8e10;
    if (const auto* c = std::get_if<CollectiveProbe>(&probe))
      return 5e-6 + static_cast<double>(c->bytes.count()) / 1e10;
    if (const auto* c = std::get_if<CopyProbe>(&probe))
      return kLaunch + static_cast<double>(c->bytes.count()) / 2e10;
    if (const auto* c = std::get_if<PeerCopyProbe>(&probe))
      return kLaunch + static_cast<double>(c->bytes.count()) / (c->both_ways ? 3e10 : 4e10);
    if (const auto* s = std::get_if<SharingProbe>(&probe)) {
      const double lost = s->collective.empty() ? kLost : kLostToCollectives;
      return law(s->product) / (1 - lost * static_cast<double>(s->sms) / kMultiprocessors);
    }
    return std::holds_alternative<PeakProbe>(probe) ? kPeakProbeFlops / 9e11 : kLaunch;
  }
  static constexpr double kLost = 1.7, kLostToCollectives = 1.3;
  static constexpr int64_t kMultiprocessors = 132;
  size_t prepared = 0;
  bool fails_at_attention = false;

 private:
  bool fails_at(AttentionPass pass) const {
    const auto* a = std::get_if<AttentionShape>(&probe_);
    return fails_at_attention && a != nullptr && a->head_dim == 64 && a->pass == pass;
  }

  size_t breaks_after_;
  int64_t ranks_;
  bool broken_ = false;
  DeviceFacts facts_;
  Probe probe_;
  double calls_ = 0;
};

CalibrationPlan plan_with(MeasurementStore* store) {
  CalibrationPlan plan{
      .probes = default_probes(ScriptedBackend().facts(), 2, 1e10, mebibytes(64), true),
      .store = store};
  plan.clock = [] { return 0.0; };
  return plan;
}

TEST(Calibration, a_killed_one_goes_on_and_measures_nothing_twice) {
  const std::string path = fresh("killed.db");
  const size_t probes = plan_with(nullptr).probes.size();
  {
    MeasurementStore store(path, "scripted", "v1");
    ScriptedBackend breaks(20);
    EXPECT_THROW(calibrate(breaks, plan_with(&store)), std::runtime_error);
  }
  MeasurementStore store(path, "scripted", "v1");
  ScriptedBackend whole;
  const CalibrationResult result = calibrate(whole, plan_with(&store));
  EXPECT_EQ(std::count_if(result.results.begin(), result.results.end(),
                          [](const ProbeResult& r) { return r.kept; }),
            19);
  EXPECT_EQ(whole.prepared + 19, result.results.size());
  EXPECT_EQ(result.results.size() + result.refused.size(), probes);
  // The one that broke the device is not tried again.
  EXPECT_EQ(
      std::count_if(result.refused.begin(), result.refused.end(),
                    [](const NotMeasured& n) { return n.reason.find("lost") != n.reason.npos; }),
      1);
  ScriptedBackend idle;
  calibrate(idle, plan_with(&store));
  EXPECT_EQ(idle.prepared, 0u);
}

TEST(Calibration, begins_no_probe_after_its_time_and_the_next_call_goes_on) {
  MeasurementStore store(fresh("cut.db"), "scripted", "v1");
  double now = 0;
  CalibrationPlan plan = plan_with(&store);
  plan.clock = [&now] { return now += 1; };
  plan.most_seconds = 400;
  ScriptedBackend first;
  const CalibrationResult cut = calibrate(first, plan);
  ASSERT_GT(cut.left, 0u);
  EXPECT_EQ(cut.results.size() + cut.refused.size() + cut.left, plan.probes.size());
  // What there is of it is a profile: every kind had its turn.
  EXPECT_NO_THROW(profile_of_results({"scripted", "test"}, first, cut));
  plan.most_seconds = 1e18;
  ScriptedBackend second;
  const CalibrationResult whole = calibrate(second, plan);
  EXPECT_EQ(whole.left, 0u);
  EXPECT_EQ(second.prepared, cut.left - (whole.refused.size() - cut.refused.size()));
}

TEST(Calibration, a_probe_that_fails_leaves_the_others_alone_and_is_tried_again) {
  MeasurementStore store(fresh("fails.db"), "scripted", "v1");
  ScriptedBackend backend;
  backend.fails_at_attention = true;
  const CalibrationPlan plan = plan_with(&store);
  const CalibrationResult first = calibrate(backend, plan);
  ASSERT_FALSE(first.failed.empty());
  for (const NotMeasured& failed : first.failed) {
    EXPECT_TRUE(failed.probe.ends_with(" 64")) << failed.probe;
    EXPECT_EQ(failed.reason, "no engine");
  }
  EXPECT_EQ(first.results.size() + first.refused.size() + first.failed.size(), plan.probes.size());
  const DeviceProfile profile = profile_of_results({"scripted", "test"}, backend, first);
  EXPECT_NE(verdict_table(profile, backend, first).find("failed: attention"), std::string::npos);
  backend.fails_at_attention = false;
  backend.prepared = 0;
  EXPECT_TRUE(calibrate(backend, plan).failed.empty());
  EXPECT_EQ(backend.prepared, first.failed.size());
}

TEST(Calibration, measures_collectives_of_every_power_of_two_and_of_all) {
  for (const auto& [ranks, groups] : {std::pair<int64_t, std::set<int64_t>>{8, {2, 4, 0}},
                                      {12, {2, 4, 8, 0}},
                                      {2, {0}},
                                      {1, {}}}) {
    std::set<int64_t> found;
    for (const Probe& probe :
         default_probes(ScriptedBackend().facts(), ranks, 1e10, mebibytes(64), false)) {
      if (const auto* c = std::get_if<CollectiveProbe>(&probe)) found.insert(c->ranks);
    }
    EXPECT_EQ(found, groups) << ranks;
  }
  ScriptedBackend backend(1000000, 1, 8);
  CalibrationPlan plan = plan_with(nullptr);
  plan.probes = default_probes(backend.facts(), 8, 1e9, mebibytes(1), false);
  const DeviceProfile profile =
      profile_of_results({"scripted", "test"}, backend, calibrate(backend, plan));
  for (const auto& [ranks, nodes] : {std::pair<int64_t, int64_t>{2, 1}, {4, 1}, {8, 2}}) {
    EXPECT_NE(profile.collective("all_reduce", ranks, nodes), nullptr) << ranks;
  }
}

TEST(Calibration, keys_tell_shapes_apart) {
  const GemmShape product{.m = 512, .n = 512, .k = 512};
  GemmShape grouped = product;
  grouped.groups = 8;
  AttentionShape causal{
      .query_tokens = 512, .kv_tokens = 512, .heads = 8, .kv_heads = 8, .head_dim = 192};
  AttentionShape narrow = causal, documents = causal;
  narrow.value_head_dim = 128;
  documents.mask_fraction = 0.25;
  const std::vector<Probe> probes = {product,
                                     grouped,
                                     causal,
                                     narrow,
                                     documents,
                                     CollectiveProbe{"all_reduce", mebibytes(1)},
                                     CollectiveProbe{"all_reduce", mebibytes(1), 2},
                                     SharingProbe{product, 8},
                                     SharingProbe{product, 8, "all_reduce"}};
  std::set<std::string> keys;
  for (const Probe& probe : probes) keys.insert(probe_key(probe));
  EXPECT_EQ(keys.size(), probes.size());
}

TEST(Calibration, the_full_grid_begins_with_the_quick_one) {
  const DeviceFacts facts = ScriptedBackend().facts();
  const std::vector<Probe> quick = default_probes(facts, 2, 1e10, mebibytes(64), true);
  const std::vector<Probe> full = default_probes(facts, 2, 1e10, mebibytes(64), false);
  ASSERT_GT(full.size(), quick.size());
  std::set<std::string> seen;
  for (size_t i = 0; i < full.size(); ++i) {
    if (i < quick.size()) {
      EXPECT_EQ(probe_key(full[i]), probe_key(quick[i]));
    }
    EXPECT_TRUE(seen.insert(probe_key(full[i])).second) << "twice: " << probe_key(full[i]);
  }
}

TEST(MeasuredProfile, gives_the_scripted_law_back_and_survives_a_file) {
  ScriptedBackend backend;
  const CalibrationResult result = calibrate(backend, plan_with(nullptr));
  const DeviceProfile made = profile_of_results({"scripted", "test"}, backend, result);
  const DeviceProfile profile = load_profile_text(save_profile_text(made), "p");
  // Sizes between those that were measured.
  for (const GemmShape& shape :
       {GemmShape{.m = 1024, .n = 1024, .k = 512}, GemmShape{.m = 256, .n = 2048, .k = 1024}}) {
    EXPECT_NEAR(gemm_cost(shape, profile).time.seconds() / ScriptedBackend::law(shape), 1, 0.1);
    GemmShape wgrad = shape;
    wgrad.pass = GemmPass::kWgrad;
    EXPECT_NEAR(gemm_cost(wgrad, profile).time.seconds() / ScriptedBackend::law(wgrad), 1, 0.12);
  }
  const MemoryTraffic traffic{mebibytes(10), StreamClass::kOptimizer};
  EXPECT_NEAR(stream_cost(traffic, profile).time.seconds() / ScriptedBackend::law(traffic), 1,
              0.05);
  const AttentionShape attention{.batch = 1,
                                 .query_tokens = 1024,
                                 .kv_tokens = 1024,
                                 .heads = 8,
                                 .kv_heads = 8,
                                 .head_dim = 64};
  EXPECT_NEAR(attention_cost(attention, *profile.attention_kernel("own"), profile).time.seconds() /
                  ScriptedBackend::law(attention),
              1, 0.05);
  const CollectiveCurve* curve = profile.collective("all_reduce", 2, 1);
  ASSERT_NE(curve, nullptr);
  EXPECT_EQ(curve->provenance.evidence, Evidence::kMeasured);
  EXPECT_EQ(profile.collective("all_to_all", 2, 1), nullptr);
  const std::string table = verdict_table(made, backend, result);
  EXPECT_NE(table.find("not measured: collective all_to_all"), std::string::npos);
}

TEST(MeasuredProfile, tells_what_a_transfer_takes_from_compute_and_says_so_where_it_does_not) {
  CalibrationPlan plan = plan_with(nullptr);
  ScriptedBackend backend(1000000, ScriptedBackend::kMultiprocessors);
  const GemmShape product{.m = 512, .n = 512, .k = 512};
  for (const int64_t sms : {8, 24}) plan.probes.emplace_back(SharingProbe{product, sms});
  const DeviceProfile made =
      profile_of_results({"scripted", "test"}, backend, calibrate(backend, plan));
  const DeviceProfile profile = load_profile_text(save_profile_text(made), "p");
  EXPECT_NEAR(profile.sms_lost_per_transfer_sm, ScriptedBackend::kLost, 0.1);
  EXPECT_EQ(profile.sharing_provenance.evidence, Evidence::kMeasured);
  EXPECT_NE(profile.sharing_provenance.source.find("beside a copy"), std::string::npos);

  // A collective is what it stands for.
  for (const int64_t sms : {8, 24})
    plan.probes.emplace_back(SharingProbe{product, sms, "all_gather"});
  const DeviceProfile real =
      profile_of_results({"scripted", "test"}, backend, calibrate(backend, plan));
  EXPECT_NEAR(real.sms_lost_per_transfer_sm, ScriptedBackend::kLostToCollectives, 0.1);
  EXPECT_NE(real.sharing_provenance.source.find("beside collectives"), std::string::npos);

  ScriptedBackend other;
  const DeviceProfile without =
      profile_of_results({"scripted", "test"}, other, calibrate(other, plan_with(nullptr)));
  EXPECT_EQ(without.sms_lost_per_transfer_sm, 1);
  EXPECT_EQ(without.sharing_provenance.evidence, Evidence::kAssumed);
}

TEST(Calibration, shares_only_products_that_it_measures_alone) {
  const DeviceFacts facts = ScriptedBackend(1000000, ScriptedBackend::kMultiprocessors).facts();
  for (const bool quick : {true, false}) {
    std::set<std::string> alone;
    size_t shared = 0;
    const std::vector<Probe> probes = default_probes(facts, 1, 1e13, gibibytes(1), quick);
    for (const Probe& probe : probes) alone.insert(probe_key(probe));
    for (const Probe& probe : probes) {
      const auto* s = std::get_if<SharingProbe>(&probe);
      if (s == nullptr) continue;
      ++shared;
      EXPECT_TRUE(alone.contains(probe_key(s->product))) << probe_key(probe);
    }
    EXPECT_GE(shared, 8u);
  }
}

// The cells of a verdict, by the probe that its line begins with.
std::vector<std::string> verdict_of(const std::string& table, const std::string& probe) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(probe + " ")) continue;
    std::istringstream words(line.substr(probe.size()));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(MeasuredProfile, keeps_copies_between_devices_and_shows_them_beside_the_link) {
  ScriptedBackend backend;
  const CalibrationResult result = calibrate(backend, plan_with(nullptr));
  const DeviceProfile made = profile_of_results({"scripted", "test"}, backend, result);
  const DeviceProfile profile = load_profile_text(save_profile_text(made), "p");
  for (const bool both : {false, true}) {
    const KernelCost cost = peer_copy_cost(
        mebibytes(10), both ? PeerDirection::kBothWays : PeerDirection::kOneWay, profile);
    const double wanted = ScriptedBackend::law(PeerCopyProbe{mebibytes(10), both});
    EXPECT_NEAR(cost.time.seconds() / wanted, 1, 0.02) << both;
    EXPECT_EQ(cost.evidence, Evidence::kMeasured);
  }
  EXPECT_NE(profile.peer_copy[0].provenance.source.find("by a wire"), std::string::npos);
  const std::string table = verdict_table(made, backend, result);
  // time and unit, rate and unit, bound
  EXPECT_EQ(verdict_of(table, "peer_copy one_way 67108864").at(4), "50") << table;
  EXPECT_EQ(verdict_of(table, "copy to_device 1048576").at(4), "25") << table;
  EXPECT_EQ(verdict_of(table, "collective all_reduce 65536").at(4), "50") << table;
  EXPECT_EQ(verdict_of(table, "stream fused 1048576").at(4), "100") << table;
  EXPECT_NE(table.find("copies to a peer went by a wire"), std::string::npos);

  ScriptedBackend lone(1000000, 1, 1);
  CalibrationPlan plan = plan_with(nullptr);
  plan.probes = default_probes(lone.facts(), 1, 1e9, mebibytes(64), true);
  const CalibrationResult without = calibrate(lone, plan);
  const DeviceProfile none = profile_of_results({"scripted", "test"}, lone, without);
  EXPECT_TRUE(none.peer_copy[0].bytes_per_second.empty());
  EXPECT_NE(verdict_table(none, lone, without)
                .find("not measured: peer_copy one_way 1024 and 9 more: one of them\n"),
            std::string::npos)
      << verdict_table(none, lone, without);
}

TEST(MeasuredProfile, bounds_fp8_by_the_peak_of_fp8) {
  ScriptedBackend backend;
  CalibrationPlan plan = plan_with(nullptr);
  GemmShape narrow{.m = 512, .n = 512, .k = 512, .dtype = DataType::kFp8};
  plan.probes.emplace_back(narrow);
  const CalibrationResult result = calibrate(backend, plan);
  const DeviceProfile made = profile_of_results({"scripted", "test"}, backend, result);
  const std::string table = verdict_table(made, backend, result);
  EXPECT_EQ(verdict_of(table, "gemm fp8 forward 512 512 512").at(4), "2002") << table;
  EXPECT_EQ(verdict_of(table, "gemm bf16 forward 512 512 512").at(4), "1001") << table;
}

TEST(MeasuredProfile, says_what_is_missing_instead_of_inventing_it) {
  ScriptedBackend backend;
  CalibrationPlan plan = plan_with(nullptr);
  plan.probes = {LaunchProbe{}, GemmShape{.m = 512, .n = 512, .k = 512}};
  const CalibrationResult result = calibrate(backend, plan);
  try {
    profile_of_results({"scripted", "test"}, backend, result);
    ADD_FAILURE() << "made a profile of a launch and a product";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.faults().size(), 2u);
  }
}

}  // namespace
}  // namespace herdsim
