#include "tools/herdsim/record_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "tools/herdsim/version.h"
#include "tools/study/scenario_campaign.h"
#include "traces/db/run_database.h"

namespace herdsim {
namespace {

std::string command_of(const Options& options, std::string_view command) {
  std::string text = fmt::format("herdsim {} {}", command, options.names.front());
  for (const std::string& set : options.sets) text += " --set " + set;
  if (options.no_fold) text += " --no-fold";
  if (options.days > 0) text += fmt::format(" --days {}", options.days);
  if (options.tokens > 0) text += fmt::format(" --tokens {}", options.tokens);
  if (options.replicas > 0) text += fmt::format(" --replicas {}", options.replicas);
  return text;
}

std::string now_utc() {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

RunRecord record_of(const Scenario& scenario, const Options& options, std::string_view command) {
  RunRecord record;
  record.command = command_of(options, command);
  record.effective_spec = scenario.effective_text;
  record.seed = scenario.seed;
  record.version = std::string(kVersion);
  record.profile = scenario.profile.name;
  record.profile_provenance =
      std::string(evidence_name(scenario.profile.device_provenance.evidence)) + ": " +
      scenario.profile.device_provenance.source;
  record.recorded_at = now_utc();
  return record;
}

std::vector<FailureRow> failure_rows(const CampaignTrace& trace, int64_t gpus_per_host) {
  std::vector<FailureRow> rows;
  for (const CampaignTrace::Incident& incident : trace.incidents) {
    const int64_t host = incident.gpu / gpus_per_host;
    rows.push_back({.at_s = incident.at.seconds(),
                    .failure_class = incident.what,
                    .component = incident.hosts > 1
                                     ? fmt::format("host {} and {} more", host, incident.hosts - 1)
                                     : fmt::format("host {}", host),
                    .planned = incident.planned});
    if (!incident.stops) continue;
    // The horizon may come before training goes on.
    if (!incident.recovered_by.empty()) rows.back().down_s = incident.down.seconds();
    rows.back().lost_work_s = incident.lost_work.seconds();
    rows.back().recovered_by = incident.recovered_by;
  }
  return rows;
}

}  // namespace

void record_step(const Scenario& scenario, const StepSimulation& simulation,
                 const Options& options) {
  const RunRecord record = record_of(scenario, options, "step");
  RunDatabase database(options.db);
  const int64_t run = database.add_step(simulation.result, record);
  database.add_links(run, simulation.result);
  database.add_rank_time(run, simulation.result.class_account);
  database.add_passes(run, simulation.passes);
  if (!options.trace.empty()) database.add_trace(run, simulation.trace);
}

void record_run(const Scenario& scenario, const StepResult& step, const RunResult& run,
                const CampaignTrace& trace, const Options& options) {
  RunRecord record = record_of(scenario, options, "run");
  record.kind = "run";
  record.fingerprint = run.fingerprint();
  RunDatabase database(options.db);
  const int64_t run_id = database.add_step(step, record, run_metrics(run));
  database.add_failures(run_id, 0, failure_rows(trace, scenario.cluster.gpus_per_host));
}

}  // namespace herdsim
