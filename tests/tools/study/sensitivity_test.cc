#include "tools/study/sensitivity.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/tools/study/small_scenario.h"
#include "tools/scenario/catalog.h"
#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

ScenarioVariant small_variant(std::vector<std::string> sets) {
  sets.insert(sets.begin(), small_sets().begin(), small_sets().end());
  return [sets](const std::string& set) {
    std::vector<std::string> all = sets;
    if (!set.empty()) all.push_back(set);
    return load_scenario(kSmallScenario, all);
  };
}

TEST(UncertainInputs, a_comment_states_the_range_of_the_number_before_it) {
  const auto inputs = ranges_in(
      "# assumed, 1 to 2: a comment alone is of no field\n"
      "nic_efficiency: 0.97  # assumed, 0.92 to 0.97: why\n"
      "forward { hidden_bytes: 78 ffn_bytes: 6 }  # assumed; 24 (counted, twice) to 132 (eager)\n"
      "tp_overlap: NONE  # assumed, NONE to CHUNKED: the next generation\n"
      "attention_kernel: \"cudnn9\"  # published, fa2 to cudnn9\n"
      "layers: 80  # published, M section 3\n"
      "hidden: 5  # from here to there\n");
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_EQ(inputs[0].path, "nic_efficiency");
  EXPECT_EQ(inputs[0].low, "0.92");
  EXPECT_EQ(inputs[0].high, "0.97");
  EXPECT_EQ(inputs[1].path, "forward.hidden_bytes");
  EXPECT_EQ(inputs[1].value, "78");
  EXPECT_EQ(inputs[1].low, "24");
  EXPECT_EQ(inputs[1].high, "132");
  EXPECT_EQ(inputs[2].high, "CHUNKED");
  EXPECT_EQ(inputs[3].value, "cudnn9");
  EXPECT_EQ(inputs[3].evidence, "published");
}

// Whoever writes a range that does not hold its own value, or that no scenario takes, hears of it.
TEST(UncertainInputs, every_range_of_the_catalogue_holds_its_value) {
  size_t ranges = 0;
  for (const CatalogKind kind : {CatalogKind::kClusters, CatalogKind::kSoftware}) {
    for (const CatalogEntry& entry : catalog_entries(kind)) {
      for (const UncertainInput& input : ranges_in(entry.text)) {
        ++ranges;
        char* end = nullptr;
        const double value = std::strtod(input.value.c_str(), &end);
        if (*end != '\0' || input.value.empty()) continue;
        EXPECT_LE(std::stod(input.low), value) << entry.file << " " << input.path;
        EXPECT_GE(std::stod(input.high), value) << entry.file << " " << input.path;
        EXPECT_FALSE(input.source.empty()) << entry.file << " " << input.path;
      }
    }
  }
  EXPECT_GT(ranges, 25u);
}

TEST(UncertainInputs, of_a_stack_each_is_named_once_and_the_clock_is_among_them) {
  for (const std::string& name : catalog_names(CatalogKind::kSoftware)) {
    std::set<std::string> paths;
    for (const UncertainInput& input : uncertain_inputs_of_software(name)) {
      EXPECT_TRUE(paths.insert(input.path).second) << name << ": " << input.path;
    }
    EXPECT_TRUE(paths.contains("software.clock_factor")) << name;
  }
}

TEST(UncertainInputs, are_those_of_the_scenarios_own_records_and_choices_are_left_out) {
  const auto paths_of = [](const std::vector<std::string>& sets) {
    std::set<std::string> paths;
    const Scenario scenario = load_scenario("llama3-405b-16384", sets);
    for (const UncertainInput& input : uncertain_inputs(scenario.effective_text)) {
      paths.insert(input.path);
    }
    return paths;
  };
  const auto all = paths_of({});
  for (const char* path :
       {"cluster.nic_efficiency", "software.clock_factor", "software.forward.hidden_bytes",
        "software.attention_kernel", "software.tp_overlap", "reliability.rate_scale"}) {
    EXPECT_TRUE(all.contains(path)) << path;
  }
  EXPECT_FALSE(paths_of({"software.clock_factor=0.5"}).contains("software.clock_factor"));
  EXPECT_FALSE(paths_of({"reliability.base=none"}).contains("reliability.rate_scale"));
  // Of classes that the base has, those with an assumed rate.
  EXPECT_FALSE(all.contains("reliability.classes.power_domain.scale"));
  const auto shared = paths_of({"reliability.base=shared-fleet"});
  EXPECT_TRUE(shared.contains("reliability.classes.power_domain.scale"));
  EXPECT_TRUE(shared.contains("reliability.classes.storage_outage.scale"));
  EXPECT_FALSE(shared.contains("reliability.classes.faulty_gpu.scale"));
  EXPECT_TRUE(paths_of({"software={base: \"megatron-te\"}"})
                  .contains("software.host_microseconds_per_layer_forward"));
}

TEST(Sensitivity, each_end_is_the_scenario_with_that_value) {
  const ScenarioVariant variant = small_variant({"software={base: \"meta-llama3\"}"});
  const Sensitivity s = sensitivity(variant, {});
  ASSERT_GT(s.bars.size(), 5u);
  for (size_t i = 0; i < s.bars.size(); ++i) {
    const TornadoBar& bar = s.bars[i];
    EXPECT_EQ(bar.problem, "") << bar.input.path;
    if (i > 0) {
      EXPECT_LE(s.swing(bar), s.swing(s.bars[i - 1])) << bar.input.path;
    }
    if (bar.input.low == bar.input.value) {
      EXPECT_EQ(bar.low->mfu, s.base.mfu) << bar.input.path;
    }
  }
  const auto clock = std::find_if(s.bars.begin(), s.bars.end(), [](const TornadoBar& bar) {
    return bar.input.path == "software.clock_factor";
  });
  ASSERT_NE(clock, s.bars.end());
  EXPECT_LT(clock->low->mfu, s.base.mfu);
  EXPECT_GT(clock->high->mfu, s.base.mfu);
  const PaceRange range = pace_range(s);
  EXPECT_LT(range.slowest, clock->low->tokens_per_second / s.base.tokens_per_second);
  EXPECT_GE(range.fastest, clock->high->tokens_per_second / s.base.tokens_per_second);
}

TEST(Sensitivity, weeks_feel_failures_and_steps_do_not) {
  const ScenarioVariant variant =
      small_variant({"reliability.base=llama3-54-days", "software={base: \"jax-xla\"}", "gpus=1024",
                     "training.global_batch=1024", "recovery.spares=4"});
  const Sensitivity steps = sensitivity(variant, {});
  const Sensitivity weeks =
      sensitivity(variant, {.horizon = {.days = 30, .tokens = 0, .replicas = 4}, .threads = 2});
  const auto swing = [](const Sensitivity& s) {
    const auto bar = std::find_if(s.bars.begin(), s.bars.end(), [](const TornadoBar& b) {
      return b.input.path == "reliability.rate_scale";
    });
    return bar == s.bars.end() ? -1 : s.swing(*bar);
  };
  EXPECT_EQ(swing(steps), 0);
  EXPECT_GT(swing(weeks), 0);
  EXPECT_TRUE(weeks.base.effective_training_time.has_value());
  EXPECT_EQ(tornado_rows(weeks).size(), 3 * weeks.bars.size());
  EXPECT_EQ(tornado_rows(steps).size(), 2 * steps.bars.size());
  EXPECT_THAT(tornado_table(weeks), HasSubstr("reliability.rate_scale"));
}

}  // namespace
}  // namespace herdsim
