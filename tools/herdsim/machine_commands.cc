// topology, profile: the machine and its costs.
#include "tools/herdsim/machine_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <array>
#include <fstream>
#include <iterator>

#include "calibrate/profile/measurements.h"
#include "calibrate/profile/profile_check.h"
#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "tools/herdsim/load_options.h"
#include "tools/report/profile_report.h"
#include "tools/report/topology_report.h"
#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

void write_graphviz(const ClusterSpec& cluster, const std::string& path) {
  if (cluster.gpus > kGraphvizGpus) {
    reject("--output", fmt::format("{} GPUs are too many to draw", cluster.gpus),
           fmt::format("at most {}; use --set gpus=N", kGraphvizGpus));
  }
  std::ofstream file(path);
  file << topology_graphviz(cluster);
  file.close();
  if (!file) reject("--output", fmt::format("cannot write {}", path), "");
}

Measurements measurements_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) reject("profile check", fmt::format("cannot read {}", path), "a CSV file");
  return read_measurements_csv(text, path);
}

// A sub-command of `profile`.
struct ProfileCommand {
  std::string name;
  size_t operands;  // beside the name
  std::string usage;
  std::string (*text)(const std::vector<std::string>& operands);
};

const std::array<ProfileCommand, 3> kProfileCommands = {{
    {"show", 1, "show PROFILE",
     [](const std::vector<std::string>& o) { return profile_show_text(load_profile(o[0])); }},
    {"check", 2, "check PROFILE MEASUREMENTS.csv",
     [](const std::vector<std::string>& o) {
       const DeviceProfile profile = load_profile(o[0]);
       return profile_check_text(profile, check_profile(profile, measurements_of(o[1])));
     }},
    {"diff", 2, "diff PROFILE PROFILE",
     [](const std::vector<std::string>& o) {
       return profile_diff_text(load_profile(o[0]), load_profile(o[1]));
     }},
}};

}  // namespace

int run_topology_command(const Options& options, Streams streams) {
  const ClusterSpec cluster = load_cluster(options.names.front(), options.sets);
  if (!options.output.empty()) write_graphviz(cluster, options.output);
  fmt::print(streams.out, "{}",
             options.format == OutputFormat::kJson ? topology_json(cluster) : topology_table(cluster));
  return kExitDone;
}

int run_profile_command(const Options& options, Streams streams) {
  std::vector<std::string> names, usages;
  for (const ProfileCommand& command : kProfileCommands) {
    names.push_back(command.name);
    usages.push_back(command.usage);
    if (command.name != options.names.front()) continue;
    if (options.names.size() != command.operands + 1) {
      reject("profile", fmt::format("{} operands after {}", options.names.size() - 1, command.name),
             command.usage);
    }
    fmt::print(streams.out, "{}", command.text({options.names.begin() + 1, options.names.end()}));
    return kExitDone;
  }
  reject("profile", fmt::format("there is no \"profile {}\"", options.names.front()),
         fmt::format("{}", fmt::join(usages, ", ")), nearest_name(options.names.front(), names));
}

}  // namespace herdsim
