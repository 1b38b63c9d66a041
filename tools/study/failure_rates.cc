#include "tools/study/failure_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "sim/job/campaign.h"
#include "sim/models/queueing.h"
#include "sim/models/young_daly.h"
#include "tools/study/scenario_campaign.h"

namespace herdsim {
namespace {

double mean_hosts_in_repair(const CampaignSpec& spec) {
  double hosts = 0;
  const FailureDomains& machine = spec.request.machine;
  for (const CampaignClass& c : spec.classes) {
    if (c.row.remedy != Remedy::kReplace) continue;
    const auto hosts_lost = [&](Scope scope) {
      return traffic_moves(c.row, scope == Scope::kTor, machine, spec.recovery.rail_failover)
                 ? 0.0
                 : static_cast<double>(machine.hosts_lost(scope));
    };
    const double lost = (1 - c.row.wider_share) * hosts_lost(c.row.scope) +
                        c.row.wider_share * hosts_lost(c.row.wider_scope);
    hosts += c.row.rate_per_hour * c.scale * static_cast<double>(machine.units(c.row.per)) * lost *
             c.row.mean_repair_seconds() / 3600;
  }
  return hosts;
}

RateRow row_of(const CampaignSpec& spec, Duration step) {
  RateRow row{.gpus = spec.request.machine.gpus, .hosts = spec.request.machine.hosts()};
  const double rate = spec.unplanned_rate_per_hour();
  row.mtbf_h = rate > 0 ? 1 / rate : 0;
  row.failures_per_day = 24 * rate;
  row.hosts_in_repair = mean_hosts_in_repair(spec);
  row.spares_p99 = poisson_quantile(row.hosts_in_repair, 0.99);
  const auto checkpoint = checkpoint_figures(spec, step);
  if (!checkpoint) return row;
  row.checkpoint = *checkpoint;
  if (rate <= 0) return row;
  CheckpointProblem problem{.mtbf = 3600 / rate,
                            .restart = checkpoint->restart_s,
                            .interval = checkpoint->interval_s,
                            .write = checkpoint->block_s};
  const auto effective = [&] {
    const ReliabilityRequest& reliability = spec.request.reliability;
    const bool can_fail = reliability.restarts_can_fail && reliability.failure_rate_while_down > 0;
    return can_fail ? ettr_exact_failing_restarts(problem) : ettr_exact(problem);
  };
  row.effective = effective();
  problem.interval = checkpoint->young_s;
  if (problem.interval > 0) row.effective_young = effective();
  return row;
}

struct Column {
  const char* name;  // of JSON and CSV
  double (*value)(const RateRow&, double step_s);
};

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"gpus", [](const RateRow& r, double) { return static_cast<double>(r.gpus); }},
      {"hosts", [](const RateRow& r, double) { return static_cast<double>(r.hosts); }},
      {"mtbf_h", [](const RateRow& r, double) { return r.mtbf_h; }},
      {"failures_per_day", [](const RateRow& r, double) { return r.failures_per_day; }},
      {"restart_s", [](const RateRow& r, double) { return r.checkpoint.restart_s; }},
      {"block_s", [](const RateRow& r, double) { return r.checkpoint.block_s; }},
      {"save_s", [](const RateRow& r, double) { return r.checkpoint.save_s; }},
      {"interval_s", [](const RateRow& r, double) { return r.checkpoint.interval_s; }},
      {"young_interval_s", [](const RateRow& r, double) { return r.checkpoint.young_s; }},
      {"young_interval_steps",
       [](const RateRow& r, double step) { return r.checkpoint.young_s / step; }},
      {"young_interval_with_restart_s",
       [](const RateRow& r, double) { return r.checkpoint.young_with_restart_s; }},
      {"young_interval_with_restart_steps",
       [](const RateRow& r, double step) { return r.checkpoint.young_with_restart_s / step; }},
      {"daly_interval_s", [](const RateRow& r, double) { return r.checkpoint.daly_s; }},
      {"period_including_write_s",
       [](const RateRow& r, double) { return r.checkpoint.period_including_write_s; }},
      {"effective_training_time", [](const RateRow& r, double) { return r.effective; }},
      {"effective_training_time_at_young",
       [](const RateRow& r, double) { return r.effective_young; }},
      {"hosts_in_repair", [](const RateRow& r, double) { return r.hosts_in_repair; }},
      {"spares_p99", [](const RateRow& r, double) { return static_cast<double>(r.spares_p99); }}};
  return all;
}

std::string hours_text(double hours) {
  if (hours <= 0) return "never";
  return hours < 1 ? fmt::format("{:.3g} min", 60 * hours) : fmt::format("{:.3g} h", hours);
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

}  // namespace

RateReport failure_rates(const Scenario& scenario, const std::vector<int64_t>& gpus,
                         Duration step) {
  RateReport report{
      .scenario = scenario.name, .step_s = step.seconds(), .rows = {}, .warnings = {}};
  for (const int64_t count : gpus) {
    CampaignRequest request = campaign_request(scenario, {.days = 1, .replicas = 1}, step);
    request.machine.gpus = count;
    const CampaignSpec spec = resolve(request);
    report.rows.push_back(row_of(spec, step));
    for (const std::string& warning : spec.warnings) {
      const std::string text =
          gpus.size() > 1 ? fmt::format("{} GPUs: {}", count, warning) : warning;
      report.warnings.push_back(text);
    }
  }
  return report;
}

std::string rates_table(const RateReport& report) {
  TextTable sizes({{"GPUs", Align::kRight},
                   {"fails every", Align::kRight},
                   {"a day", Align::kRight},
                   {"hosts in repair", Align::kRight},
                   {"spares, 99 %", Align::kRight},
                   {"effective", Align::kRight},
                   {"at Young's", Align::kRight}});
  TextTable intervals({{"GPUs", Align::kRight},
                       {"restart", Align::kRight},
                       {"blocked", Align::kRight},
                       {"interval", Align::kRight},
                       {"Young", Align::kRight},
                       {"+ restart", Align::kRight},
                       {"Daly", Align::kRight},
                       {"+ write", Align::kRight},
                       {"steps", Align::kRight}});
  const auto seconds_text = [](double s) {
    return s < 1000 ? fmt::format("{:.4g} s", s) : fmt::format("{:.0f} s", s);
  };
  for (const RateRow& row : report.rows) {
    const CheckpointFigures& c = row.checkpoint;
    sizes.add_row({count_text(row.gpus), hours_text(row.mtbf_h),
                   fmt::format("{:.3g}", row.failures_per_day),
                   fmt::format("{:.1f}", row.hosts_in_repair), count_text(row.spares_p99),
                   percent(row.effective), percent(row.effective_young)});
    intervals.add_row({count_text(row.gpus), seconds_text(c.restart_s), seconds_text(c.block_s),
                       seconds_text(c.interval_s), seconds_text(c.young_s),
                       seconds_text(c.young_with_restart_s), seconds_text(c.daly_s),
                       seconds_text(c.period_including_write_s),
                       fmt::format("{:.1f}", c.young_with_restart_s / report.step_s)});
  }
  std::string text = fmt::format(
      "{}: closed forms, nothing simulated but the step of {:.4g} s\n\n{}\n{}"
      "Young sqrt(2 w M), with the restart sqrt(2 w (M + u)), and as a period that\ncounts the "
      "write; "
      "steps are of the second\n",
      report.scenario, report.step_s, sizes.text(), intervals.text());
  return text;
}

std::string rates_json(const RateReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const RateRow& row : report.rows) {
    nlohmann::ordered_json object;
    for (const Column& column : columns()) object[column.name] = column.value(row, report.step_s);
    rows.push_back(object);
  }
  const nlohmann::ordered_json all = {{"scenario", report.scenario},
                                      {"step_time_s", report.step_s},
                                      {"rows", rows},
                                      {"warnings", report.warnings}};
  return all.dump(2) + "\n";
}

std::string rates_csv(const RateReport& report) {
  std::string text;
  for (const Column& column : columns())
    text += (text.empty() ? "" : ",") + std::string(column.name);
  text += '\n';
  for (const RateRow& row : report.rows) {
    std::string line;
    for (const Column& column : columns())
      line += (line.empty() ? "" : ",") + fmt::format("{}", column.value(row, report.step_s));
    text += line + '\n';
  }
  return text;
}

}  // namespace herdsim
