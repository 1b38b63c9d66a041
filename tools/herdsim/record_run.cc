#include "tools/herdsim/record_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "tools/herdsim/version.h"
#include "traces/db/run_database.h"

namespace herdsim {
namespace {

std::string command_of(const Options& options) {
  std::string text = "herdsim step " + options.names.front();
  for (const std::string& set : options.sets) text += " --set " + set;
  if (options.no_fold) text += " --no-fold";
  return text;
}

std::string now_utc() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(
                         std::chrono::system_clock::now())));
}

}  // namespace

void record_step(const Scenario& scenario, const StepSimulation& simulation,
                 const Options& options) {
  RunRecord record;
  record.command = command_of(options);
  record.effective_spec = scenario.effective_text;
  record.seed = scenario.seed;
  record.version = std::string(kVersion);
  record.profile = scenario.profile.name;
  record.profile_provenance =
      std::string(evidence_name(scenario.profile.device_provenance.evidence)) + ": " +
      scenario.profile.device_provenance.source;
  record.recorded_at = now_utc();
  RunDatabase database(options.db);
  const int64_t run = database.add_step(simulation.result, record);
  database.add_links(run, simulation.result);
  database.add_rank_time(run, simulation.result.class_account);
  database.add_passes(run, simulation.passes);
  if (!options.trace.empty()) database.add_trace(run, simulation.trace);
}

}  // namespace herdsim
