// topology: the machine.
#include "tools/herdsim/machine_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <fstream>

#include "tools/herdsim/load_options.h"
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

}  // namespace

int run_topology_command(const Options& options, Streams streams) {
  if (options.format == OutputFormat::kCsv) {
    reject("--format", "a machine is no table of rows", "table, json");
  }
  const ClusterSpec cluster = load_cluster(options.names.front(), options.sets);
  if (!options.output.empty()) write_graphviz(cluster, options.output);
  fmt::print(
      streams.out, "{}",
      options.format == OutputFormat::kJson ? topology_json(cluster) : topology_table(cluster));
  return kExitDone;
}

}  // namespace herdsim
