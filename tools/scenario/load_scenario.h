// The door to the scenario language (scenario.proto; `herdsim help spec`): a name or a file becomes
// values.
//
//   const Scenario s = load_scenario("llama3-405b-16384", {"parallel.tp=4", "parallel.dp="});
//   const Scenario mine = load_scenario("runs/mine.textproto");
//
// Steps: read, parse, apply `sets`, put bases below and defaults below them, check every field and
// every rule between fields, convert. All faults of a step are reported together, each with the
// place of its field. Nothing is fetched and nothing is remembered between calls.
//
// JSON (told by content) has the same messages; a field's name may be written in snake_case or
// lowerCamelCase.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/scenario/scenario.h"

namespace herdsim {

// `sets` are the values of --set, in order (set_field.h).
// Throws: SpecError, whatever the bytes of the file are.
// Complexity: some milliseconds, whatever the size of the job.
Scenario load_scenario(const std::string& name_or_path, const std::vector<std::string>& sets = {});

// What the scenario says once bases and `sets` are in place, without defaults, comments and checks
// between fields: what tells one scenario from another.
// Throws: SpecError for what can never be read, such as fields that do not exist and values of the
// wrong type, and not for values that do not go together.
std::string read_scenario(const std::string& name_or_path,
                          const std::vector<std::string>& sets = {});

// load_scenario() for text that is in memory; `file` is only named in messages, and its folder is
// where relative files are.
Scenario load_scenario_text(std::string_view text, const std::string& file,
                            const std::vector<std::string>& sets = {});

// One part alone, by catalogue name or file, checked as far as it can be without a job. `sets` are
// relative to it.
ModelArchitecture load_model(const std::string& name_or_path,
                             const std::vector<std::string>& sets = {});
ClusterSpec load_cluster(const std::string& name_or_path,
                         const std::vector<std::string>& sets = {});
SoftwareStack load_software(const std::string& name_or_path,
                            const std::vector<std::string>& sets = {});

// Every field of the language with its type, range, default and meaning, as `herdsim help spec`
// prints it.
std::string scenario_language_help();

}  // namespace herdsim
