#include "tools/herdsim/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/herdsim/run_command.h"
#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

using testing::Contains;
using testing::Not;

std::vector<std::string> names(const std::vector<CatalogLine>& lines) {
  std::vector<std::string> out;
  for (const CatalogLine& line : lines) out.push_back(line.name);
  return out;
}

std::vector<std::string> offered(const std::vector<std::string>& words) {
  return names(completions(words));
}

// "parallel.tp=" and all the others, below `prefix`.
void append_paths(const std::string& prefix, std::vector<std::string>& paths) {
  for (const std::string& word : offered({"step", "x", "--set", prefix})) {
    if (word.ends_with('.')) {
      append_paths(word, paths);
    } else {
      paths.push_back(word);
    }
  }
}

TEST(Completion, offers_every_command_and_every_option) {
  for (const Command& command : commands()) {
    EXPECT_THAT(offered({""}), Contains(command.name));
    for (const OptionShape& option : option_shapes(command)) {
      EXPECT_THAT(offered({std::string(command.name), "--"}), Contains(option.names.back()))
          << command.name;
      EXPECT_NE(option.help, "") << command.name << " " << option.names.back();
    }
  }
}

TEST(Completion, every_path_is_a_field_and_every_value_is_accepted) {
  std::vector<std::string> paths;
  append_paths("", paths);
  EXPECT_GT(paths.size(), 150U);
  for (const std::string& path : paths) {
    if (path.starts_with("base=") || path.starts_with("profile.")) continue;
    EXPECT_NO_THROW(read_scenario("llama3-8b-1024", {path})) << path;
    for (const std::string& value : offered({"step", "x", "--set", path})) {
      EXPECT_NO_THROW(read_scenario("llama3-8b-1024", {value})) << value;
    }
  }
}

TEST(Completion, names_of_the_catalogue_stand_where_they_are_wanted) {
  EXPECT_EQ(offered({"step", ""}), names(catalog_lines("scenarios")));
  EXPECT_EQ(offered({"plan", "--software", ""}), names(catalog_lines("software")));
  EXPECT_EQ(offered({"profile", "show", ""}), names(catalog_lines("profiles")));
  EXPECT_EQ(offered({"step", "x", "--set", "recovery.policy="}).size() +
                offered({"step", "x", "--set", "checkpoint.policy="}).size(),
            catalog_lines("policies").size());
  EXPECT_THAT(offered({"explain", "llama3-8b-1024", ""}), Contains("llama3-405b-8192"));
  EXPECT_TRUE(offered({"step", "llama3-8b-1024", ""}).empty());
  EXPECT_TRUE(offered({"step", "x", "--seed", ""}).empty());
  EXPECT_TRUE(offered({"no-such-command", ""}).empty());
}

TEST(Completion, a_switch_takes_no_value_and_an_option_takes_one) {
  EXPECT_EQ(offered({"step", "--quiet", ""}), names(catalog_lines("scenarios")));
  EXPECT_EQ(offered({"step", "--seed", "7", ""}), names(catalog_lines("scenarios")));
  EXPECT_EQ(offered({"step", "--format=j"}), std::vector<std::string>{"--format=json"});
}

TEST(Catalog, every_kind_has_entries_and_every_topic_prints) {
  for (const std::string& kind : catalog_kinds()) {
    EXPECT_FALSE(catalog_lines(kind).empty()) << kind;
    for (const CatalogLine& line : catalog_lines(kind)) EXPECT_NE(line.help, "") << line.name;
    EXPECT_EQ(run_command({"help", kind}).status, kExitDone) << kind;
  }
  const CommandOutput unknown = run_command({"help", "specs"});
  EXPECT_EQ(unknown.status, kExitBadInput);
  EXPECT_THAT(unknown.err, testing::HasSubstr("did you mean \"spec\"?"));
}

TEST(Manual, a_page_names_every_option_of_its_command) {
  for (const Command& command : commands()) {
    const std::string page = run_command({"man", std::string(command.name)}).out;
    for (OptionShape option : option_shapes(command)) {
      std::string name = option.names.back();
      for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2)
        name.insert(at, 1, '\\');
      EXPECT_THAT(page, testing::HasSubstr(name)) << command.name;
    }
    EXPECT_THAT(run_command({"man"}).out, testing::HasSubstr(std::string(command.name)));
  }
  EXPECT_EQ(run_command({"man", "stp"}).status, kExitBadInput);
}

}  // namespace
}  // namespace herdsim
