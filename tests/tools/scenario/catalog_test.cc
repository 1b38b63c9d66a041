#include "tools/scenario/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

TEST(Catalog, every_scenario_loads_under_its_own_name) {
  for (const std::string& name : catalog_names(CatalogKind::kScenarios)) {
    SCOPED_TRACE(name);
    const Scenario scenario = load_scenario(name);
    EXPECT_EQ(scenario.name, name);
    EXPECT_EQ(scenario.plan.ranks(), scenario.gpus);
    EXPECT_TRUE(scenario.warnings.empty()) << scenario.warnings.front();
  }
}

TEST(Catalog, every_part_loads_under_its_own_name) {
  for (const std::string& name : catalog_names(CatalogKind::kModels)) {
    EXPECT_EQ(load_model(name).name, name);
  }
  for (const std::string& name : catalog_names(CatalogKind::kClusters)) {
    EXPECT_EQ(load_cluster(name).name, name);
  }
  for (const std::string& name : catalog_names(CatalogKind::kSoftware)) {
    EXPECT_EQ(load_software(name).name, name);
  }
}

TEST(Catalog, holds_the_names_that_users_rely_on) {
  EXPECT_THAT(
      catalog_names(CatalogKind::kScenarios),
      ::testing::IsSupersetOf({"llama3-405b-8192", "llama3-405b-16384", "llama3-405b-131072ctx",
                               "llama3-70b-8192", "llama3-8b-1024"}));
  EXPECT_THAT(catalog_names(CatalogKind::kModels),
              ::testing::IsSupersetOf({"llama3-8b", "llama3-70b", "llama3-405b"}));
  EXPECT_THAT(catalog_names(CatalogKind::kClusters),
              ::testing::IsSupersetOf({"meta-roce-24k", "dgx-superpod-16k", "clos-1m"}));
  EXPECT_THAT(catalog_names(CatalogKind::kSoftware),
              ::testing::IsSupersetOf({"jax-xla", "megatron-te", "meta-llama3", "nanotron",
                                       "torch-fsdp", "torch-fsdp2"}));
  for (const CatalogKindRow& row : kCatalogKinds) EXPECT_EQ(&catalog_kind(row.kind), &row);
}

// Parameter counts as the model cards print them, to their last digit.
TEST(Catalog, models_have_their_published_number_of_parameters) {
  const std::pair<const char*, double> published[] = {
      {"llama3-8b", 8.03e9},  {"llama3-70b", 70.55e9}, {"llama3-405b", 405.85e9},
      {"llama2-7b", 6.74e9},  {"llama2-13b", 13.02e9}, {"llama2-70b", 68.98e9},
      {"gpt3-175b", 174.6e9},
  };
  for (const auto& [name, parameters] : published) {
    EXPECT_NEAR(static_cast<double>(load_model(name).parameters()) / parameters, 1.0, 1e-3) << name;
  }
}

bool names_evidence(const std::string& text) {
  for (const char* word : {"published", "vendor", "ssumed", "measured", "derived"}) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

// A number without a source is a number that nobody can check: every line with one says where it is
// from, or the head of its file does for all.
TEST(Catalog, every_number_of_a_part_says_where_it_comes_from) {
  for (const CatalogKindRow& row : kCatalogKinds) {
    for (const CatalogEntry& entry : catalog_entries(row.kind)) {
      SCOPED_TRACE(entry.file);
      EXPECT_GT(entry.help().size(), 20U);
      std::istringstream lines{std::string(entry.text)};
      std::string head, before;
      for (std::string line; std::getline(lines, line);) {
        const size_t text = line.find_first_not_of(' ');
        if (text == std::string::npos || line[text] == '#') {
          if (text == 0) head += line;
          continue;  // or goes on with the comment of the line before
        }
        const bool one_for_all =
            head.find("very number") != std::string::npos || row.kind == CatalogKind::kScenarios;
        // Two lines may share a comment, and a comment may be "the same".
        EXPECT_TRUE(one_for_all || names_evidence(before + line)) << line;
        if (line.find("# the same") == std::string::npos) before = line;
      }
      EXPECT_TRUE(names_evidence(head) || head.find("Source") != std::string::npos);
    }
  }
}

TEST(Catalog, an_unknown_name_is_told_the_nearest_and_all) {
  const auto message = [](auto load) -> std::string {
    try {
      load();
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message([] { load_scenario("llama3-405b-16348"); }),
              HasSubstr("did you mean \"llama3-405b-16384\"?"));
  EXPECT_THAT(message([] { load_scenario("llama3-405b"); }),
              HasSubstr("did you mean \"llama3-405b-"));
  EXPECT_THAT(message([] { load_scenario("zzz"); }), HasSubstr("llama3-70b-8192"));
  EXPECT_THAT(message([] { load_model("llama3-80b"); }), HasSubstr("did you mean \"llama3-70b\"?"));
  EXPECT_THAT(message([] { load_cluster("meta-roce"); }),
              HasSubstr("did you mean \"meta-roce-24k\"?"));
  EXPECT_THAT(message([] { load_software("megatron-t"); }),
              HasSubstr("did you mean \"megatron-te\"?"));
}

}  // namespace
}  // namespace herdsim
