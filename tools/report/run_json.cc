#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sim/base/text.h"
#include "sim/models/queueing.h"
#include "tools/report/run_report.h"

namespace herdsim {
namespace {

using Json = nlohmann::ordered_json;

double mean_of(const RunResult& r, int64_t ReplicaResult::*member) {
  double sum = 0;
  for (const ReplicaResult& replica : r.replicas) sum += static_cast<double>(replica.*member);
  return r.replicas.empty() ? 0 : sum / static_cast<double>(r.replicas.size());
}

// A campaign without replicas has no quantiles.
Json quantile(const RunResult& r, double probability) {
  return r.replicas.empty() ? Json() : Json(r.effective_training_time_quantile(probability));
}

Json interruptions(const RunResult& r) {
  Json by_class = Json::object(), bands = Json::object();
  for (size_t i = 0; i < r.class_names.size(); ++i) {
    const double mean = r.interruptions(i);
    by_class[r.class_names[i]] = mean;
    bands[r.class_names[i]] = {poisson_quantile(mean, 0.025), poisson_quantile(mean, 0.975)};
  }
  return {{"unexpected", r.unexpected()},
          {"planned", r.planned()},
          {"by_class", by_class},
          {"band_95", bands}};
}

// JSON has no infinity: null where there is no such number.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json checkpoint_of(const RunResult& r) {
  if (!r.checkpoint) return Json();
  const CheckpointFigures& c = *r.checkpoint;
  Json json = {{"policy", c.policy},
               {"rule", c.rule},
               {"bytes", c.bytes.count()},
               {"interval_s", c.interval_s},
               {"interval_steps", c.interval_steps},
               {"block_s", c.block_s},
               {"save_s", c.save_s},
               {"load_s", c.load_s},
               {"restart_s", c.restart_s}};
  json["hbm_bytes_a_gpu"] = c.hbm_a_gpu.count();
  for (const CheckpointFigures::Tier& tier : c.tiers) {
    json["tiers"].push_back(
        {{"medium", tier.medium}, {"every_steps", tier.every_steps}, {"load_s", tier.load_s}});
  }
  if (c.young_s > 0) {
    json["young_interval_s"] = c.young_s;
    json["daly_interval_s"] = c.daly_s;
    json["young_interval_with_restart_s"] = c.young_with_restart_s;
    json["period_including_write_s"] = c.period_including_write_s;
    json["effective_training_time_first_order"] = c.effective_first_order;
  }
  return json;
}

Json days_of(const RunResult& r, double tokens) {
  return {{"tokens", tokens},
          {"mean", finite(r.days_to_tokens(tokens))},
          {"p05", finite(r.days_to_tokens_quantile(tokens, 0.05))},
          {"p95", finite(r.days_to_tokens_quantile(tokens, 0.95))},
          {"without_failures", finite(r.days_to_tokens_without_failures(tokens))}};
}

Json contribution_of(const Contribution& part, const char* effective) {
  return {{"name", part.name},           {effective, part.if_changed},
          {"gain", part.gain},           {"gain_stderr", part.gain_stderr},
          {"gain_low", part.gain_low()}, {"gain_high", part.gain_high()},
          {"replicas", part.replicas}};
}

Json object_of(const RunResult& r) {
  Json account;
  const auto seconds = r.time_account_seconds();
  for (size_t i = 0; i < kRunTerms; ++i) account[std::string(kRunTermNames[i])] = seconds[i];
  Json contributions = Json::array();
  for (const Contribution& part : r.contributions) {
    contributions.push_back(contribution_of(part, "effective_training_time_if_halved"));
  }
  return {{"scenario", r.scenario},
          {"gpus", r.gpus},
          {"horizon_s", r.mean_horizon_seconds()},
          {"replicas", static_cast<int64_t>(r.replicas.size())},
          {"effective_training_time", r.effective_training_time()},
          {"effective_training_time_p05", quantile(r, 0.05)},
          {"effective_training_time_p50", quantile(r, 0.50)},
          {"effective_training_time_p95", quantile(r, 0.95)},
          {"kept_step_share", r.kept_step_share()},
          {"interruptions", interruptions(r)},
          {"mean_time_between_interruptions_s", r.mean_time_between_interruptions_seconds()},
          {"expected_mean_time_between_failures_s",
           r.expected_rate_per_hour > 0 ? Json(3600 / r.expected_rate_per_hour) : Json()},
          {"tokens", r.tokens()},
          {"days_to_tokens", days_of(r, r.target_tokens > 0 ? r.target_tokens : 1e12)},
          {"steps", r.steps()},
          {"step_time_s", r.nominal_step.seconds()},
          {"mfu", r.mfu()},
          {"tokens_per_second", r.tokens_per_second()},
          {"gpu_hours", r.gpu_hours()},
          {"gpu_energy_mwh", r.gpu_energy_megawatt_hours()},
          {"restarts", mean_of(r, &ReplicaResult::restarts_begun)},
          {"deepest_shortage_hosts", mean_of(r, &ReplicaResult::deepest_shortage)},
          {"refailures", r.refailures()},
          {"undetected_corruptions", r.undetected_corruptions()},
          {"time_account_s", account},
          {"checkpoint", checkpoint_of(r)},
          {"contributions", contributions},
          {"without_stragglers",
           r.without_stragglers ? contribution_of(*r.without_stragglers, "effective_training_time")
                                : Json()},
          {"distinct_conditions", r.distinct_conditions},
          {"fingerprint", r.fingerprint()},
          {"wall_s", r.wall_seconds},
          {"warnings", r.warnings}};
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

// The shortest digits that read back as the same double.
std::string number(double value) { return fmt::format("{}", value); }

using Columns = std::vector<std::pair<std::string, std::string>>;  // name, value

Columns columns_of(const RunResult& r) {
  const auto quantile_text = [&](double p) {
    return r.replicas.empty() ? std::string() : number(r.effective_training_time_quantile(p));
  };
  Columns columns = {
      {"scenario", csv_field(r.scenario)},
      {"gpus", fmt::format("{}", r.gpus)},
      {"horizon_s", number(r.mean_horizon_seconds())},
      {"replicas", fmt::format("{}", r.replicas.size())},
      {"effective_training_time", number(r.effective_training_time())},
      {"effective_training_time_p05", quantile_text(0.05)},
      {"effective_training_time_p95", quantile_text(0.95)},
      {"kept_step_share", number(r.kept_step_share())},
      {"unexpected", number(r.unexpected())},
      {"planned", number(r.planned())},
      {"mean_time_between_interruptions_s", number(r.mean_time_between_interruptions_seconds())},
      {"tokens", number(r.tokens())},
      {"steps", number(r.steps())},
      {"mfu", number(r.mfu())},
      {"tokens_per_second", number(r.tokens_per_second())},
      {"gpu_hours", number(r.gpu_hours())},
      {"gpu_energy_mwh", number(r.gpu_energy_megawatt_hours())}};
  const auto account = r.time_account_seconds();
  for (size_t i = 0; i < kRunTerms; ++i)
    columns.emplace_back(fmt::format("{}_s", kRunTermNames[i]), number(account[i]));
  columns.emplace_back("wall_s", number(r.wall_seconds));
  columns.emplace_back("fingerprint", r.fingerprint());
  columns.emplace_back("warnings", csv_field(fmt::format("{}", fmt::join(r.warnings, "; "))));
  return columns;
}

Columns columns_of(const RunResult& r, size_t index) {
  const ReplicaResult& replica = r.replicas[index];
  Columns columns = {{"replica", fmt::format("{}", index)},
                     {"horizon_s", number(replica.horizon.seconds())},
                     {"effective_training_time", number(replica.effective_training_time())},
                     {"steps", fmt::format("{}", replica.steps)},
                     {"planned", fmt::format("{}", replica.planned)}};
  for (size_t i = 0; i < kRunTerms; ++i) {
    columns.emplace_back(fmt::format("{}_s", kRunTermNames[i]),
                         number(replica.account[i].seconds()));
  }
  for (size_t i = 0; i < r.class_names.size(); ++i) {
    columns.emplace_back(csv_field(r.class_names[i]), fmt::format("{}", replica.by_class[i]));
  }
  return columns;
}

void append_line(const Columns& columns, bool with_header, std::string& header, std::string& rows) {
  for (size_t i = 0; i < columns.size(); ++i) {
    const char* separator = i + 1 == columns.size() ? "\n" : ",";
    if (with_header) header += columns[i].first + separator;
    rows += columns[i].second + separator;
  }
}

}  // namespace

std::string run_json(const RunResult& result) { return text_of(object_of(result)); }

std::string runs_json(std::span<const RunResult> results) {
  Json all = Json::array();
  for (const RunResult& result : results) all.push_back(object_of(result));
  return text_of(all);
}

std::string runs_csv(std::span<const RunResult> results) {
  std::string header, rows;
  for (const RunResult& result : results)
    append_line(columns_of(result), header.empty(), header, rows);
  return header + rows;
}

std::string replicas_csv(const RunResult& result) {
  std::string header, rows;
  for (size_t i = 0; i < result.replicas.size(); ++i)
    append_line(columns_of(result, i), i == 0, header, rows);
  return header + rows;
}

}  // namespace herdsim
