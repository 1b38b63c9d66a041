// Thousands of small damages to every scenario of the catalogue, as text and as JSON. Each must
// give a Scenario or a SpecError: no other exception, no crash, and under the `dev` preset nothing
// that the sanitizers see.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

#include "sim/base/error.h"
#include "tests/tools/scenario/scenario_text.h"
#include "tools/scenario/catalog.h"
#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

// Pieces that a parser or a rule might trip over.
const char* const kPieces[] = {
    "{",           "}",         "[",
    "]",           "<",         ">",
    ":",           ",",         ";",
    "\"",          "'",         "\\",
    "#",           "\n",        "0",
    "-1",          "1e99",      "nan",
    "inf",         "-inf",      "0x7f",
    "99999999999", "8",         "\xff",
    "\0",          "/",         "base",
    "tp:",         "pp: 3",     "dp: 1",
    "gpus: 1",     "model { }", "degraded { gpu: 5 }",
    "null",        "true",      "\xc3\xa9",
};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string damaged(std::string text) {
    for (size_t n = 1 + below(3); n > 0; --n) damage(&text);
    return text;
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }

  void damage(std::string* text) {
    const size_t at = text->empty() ? 0 : below(text->size());
    const size_t length = 1 + below(12);
    switch (below(6)) {
      case 0:
        text->erase(at, length);
        return;
      case 1:
        text->insert(at, kPieces[below(std::size(kPieces))]);
        return;
      case 2:
        if (!text->empty()) (*text)[at] = static_cast<char>(below(256));
        return;
      case 3:
        text->insert(at, text->substr(below(text->size() + 1), length * 4));
        return;
      case 4:
        // A digit becomes another, or many: the most likely to pass the parser and meet the rules.
        if (const size_t digit = text->find_first_of("0123456789", at);
            digit != std::string::npos) {
          text->replace(
              digit, 1,
              below(4) == 0 ? "1234567" : std::string(1, static_cast<char>('0' + below(10))));
        }
        return;
      case 5:
        text->resize(at);
        return;
    }
  }

  std::mt19937_64 random_;
};

// Counts, so that the test shows that it reaches both outcomes.
struct Outcomes {
  int scenarios = 0, errors = 0;
};

void try_load(const std::string& text, Outcomes* outcomes) {
  try {
    const Scenario scenario = load_scenario_text(text, "damaged.textproto");
    ++outcomes->scenarios;
    // What is accepted is consistent.
    ASSERT_EQ(scenario.plan.ranks(), scenario.gpus) << text;
    ASSERT_GT(scenario.model.parameters(), 0) << text;
  } catch (const SpecError& error) {
    ++outcomes->errors;
    ASSERT_FALSE(error.faults().empty()) << text;
  }
}

constexpr int kMutationsPerScenario = 500;

TEST(MutatedInput, text_gives_a_scenario_or_a_spec_error) {
  Outcomes outcomes;
  uint64_t seed = 1;
  for (const CatalogEntry& entry : catalog_entries(CatalogKind::kScenarios)) {
    Mutator mutator(seed++);
    for (int i = 0; i < kMutationsPerScenario; ++i)
      try_load(mutator.damaged(std::string(entry.text)), &outcomes);
  }
  EXPECT_GT(outcomes.scenarios, 100);
  EXPECT_GT(outcomes.errors, 500);
}

TEST(MutatedInput, effective_text_gives_a_scenario_or_a_spec_error) {
  Outcomes outcomes;
  Mutator mutator(100);
  const std::string text = without_comments(load_scenario("llama3-405b-16384").effective_text);
  for (int i = 0; i < kMutationsPerScenario; ++i) try_load(mutator.damaged(text), &outcomes);
  EXPECT_GT(outcomes.errors, 100);
}

TEST(MutatedInput, json_gives_a_scenario_or_a_spec_error) {
  const std::string json =
      R"({"model": {"base": "llama3-405b", "layers": 62}, "cluster": {"base": "meta-roce-24k",
    "degraded": [{"gpu": 3, "computeFactor": 0.9}, {"gpu": 4}]}, "profile": {"base": "h100-sxm5-80gb"},
    "software": {"base": "meta-llama3"}, "gpus": 1024, "parallel": {"tp": 8, "pp": 4, "shard": "ZERO1"},
    "training": {"sequenceLength": 8192, "globalBatch": 2048}, "run": {"days": 1.5}})";
  Outcomes outcomes;
  Mutator mutator(200);
  for (int i = 0; i < 3 * kMutationsPerScenario; ++i) try_load(mutator.damaged(json), &outcomes);
  EXPECT_GT(outcomes.scenarios, 10);
  EXPECT_GT(outcomes.errors, 500);
}

// Switches, hosts and cables: names that nothing has, loops, ends that are missing or too many.
TEST(MutatedInput, a_network_written_out_gives_a_scenario_or_a_spec_error) {
  const std::optional<CatalogEntry> entry = catalog_find(CatalogKind::kClusters, "leaf-spine-256");
  ASSERT_TRUE(entry.has_value());
  const std::string network = without_comments(std::string(entry->text));
  const auto scenario = [](const std::string& cluster) {
    return "base: \"llama3-8b-1024\"\ngpus: 256\nparallel { dp: 256 }\nrecovery { spares: 0 }\n"
           "cluster { name: \"mine\" " +
           cluster + " }\n";
  };
  EXPECT_EQ(load_scenario_text(scenario(network), "whole.textproto").cluster.network.links.size(),
            12U);
  Outcomes outcomes;
  Mutator mutator(400);
  for (int i = 0; i < 3 * kMutationsPerScenario; ++i) {
    try_load(scenario(mutator.damaged(network)), &outcomes);
  }
  EXPECT_GT(outcomes.scenarios, 20);
  EXPECT_GT(outcomes.errors, 500);
}

TEST(MutatedInput, options_give_a_scenario_or_a_spec_error) {
  const char* const sets[] = {
      "parallel.tp=4",           "cluster.degraded={gpu: 3 compute_factor: 0.9}",
      "model.base=llama3-8b",    "parallel.layers_per_chunk=[1, 2, 3]",
      "training.schedule=gpipe", "cluster.degraded.0.gpu=4"};
  Outcomes outcomes;
  Mutator mutator(300);
  for (int i = 0; i < 3 * kMutationsPerScenario; ++i) {
    try {
      load_scenario_text(
          kLargeScenario, "mine.textproto",
          {sets[1], mutator.damaged(sets[static_cast<size_t>(i) % std::size(sets)])});
      ++outcomes.scenarios;
    } catch (const SpecError&) {
      ++outcomes.errors;
    }
  }
  EXPECT_GT(outcomes.scenarios, 10);
  EXPECT_GT(outcomes.errors, 500);
}

}  // namespace
}  // namespace herdsim
