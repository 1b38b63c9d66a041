#include "tools/study/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "sim/base/text.h"

namespace herdsim {
namespace {

double peak_gigabytes(const StepResult& step) {
  return static_cast<double>(step.peak_stage()->peak.count()) * 1e-9;
}

// The part of a stage's memory that is largest.
std::string largest_part(const StageMemory& m) {
  const std::pair<const char*, Bytes> parts[] = {
      {"weights", m.weights},         {"gradients", m.gradients}, {"optimizer state", m.optimizer},
      {"activations", m.activations}, {"logits", m.logits},       {"buffers", m.communication}};
  const auto largest =
      std::max_element(std::begin(parts), std::end(parts),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format("{} of {}", to_text(largest->second), largest->first);
}

std::string no_plan_text(const PlanAnswer& answer) {
  const PlanSearch& s = answer.search;
  if (!s.closest) {
    std::string near;
    for (const int64_t gpus : answer.gpus_with_plans) {
      near += (near.empty() ? "; near it, these do: " : ", ") + count_text(gpus);
    }
    return "  no plan: nothing divides the GPUs, the model and the batch in this space" + near +
           '\n';
  }
  const StageMemory& stage = s.closest->stage;
  return fmt::format(
      "  no plan fits {} a GPU. The closest takes {}, {} too much:\n    {}\n    stage {}, {}: {}\n",
      to_text(s.capacity), to_text(stage.peak), to_text(stage.peak - s.capacity),
      s.closest->candidate.text(), stage.stage, stage.moment, largest_part(stage));
}

// Why a plan is behind the best: the term of the time account that grew most.
struct Lag {
  size_t term = 0;
  double seconds = 0;
};
Lag largest_lag(const StepResult& best, const StepResult& step) {
  const auto before = best.time_account_seconds(), now = step.time_account_seconds();
  Lag lag;
  for (size_t term = 0; term < kTimeTerms; ++term) {
    if (now[term] - before[term] > lag.seconds) lag = {term, now[term] - before[term]};
  }
  return lag;
}

std::string ranking_text(const PlanSearch& s) {
  std::string text = "   #   step s   MFU %  peak GB  loses most to         plan\n";
  const StepResult& first = s.best.front().step;
  for (size_t i = 0; i < s.best.size(); ++i) {
    const StepResult& step = s.best[i].step;
    text += fmt::format("  {:>2}  {:>7.3f}  {:>6.2f}  {:>7.1f}  {:<20}  {}\n", i + 1,
                        step.step_time.seconds(), 100 * step.mfu_causal(), peak_gigabytes(step),
                        largest_loss(step), s.best[i].candidate.text());
    const Lag lag = largest_lag(first, step);
    if (lag.seconds > 0) {
      text += fmt::format("      {:.2f} % behind the first: {} {:+.3f} s\n",
                          100 * (step.step_time.seconds() / first.step_time.seconds() - 1),
                          kTimeTermNames[lag.term], lag.seconds);
    }
  }
  return text;
}

std::string money_text(const Prices& prices, double dollars) {
  if (!prices.is_given()) return "";
  const std::string sum = count_text(static_cast<int64_t>(dollars + 0.5));
  if (prices.capital_usd_per_gpu <= 0) {
    return fmt::format(", ${} at ${} a GPU-hour", sum, prices.usd_per_gpu_hour);
  }
  return fmt::format(", ${}: ${} a GPU over {} years{}", sum,
                     count_text(static_cast<int64_t>(prices.capital_usd_per_gpu)),
                     prices.depreciation_years,
                     prices.usd_per_kwh > 0 ? fmt::format(", ${} a kWh", prices.usd_per_kwh)
                                            : std::string(", without electricity"));
}

std::string checkpoint_text(const PlanCost& c) {
  if (c.interval_s <= 0) return "nothing is saved";
  std::string text = fmt::format("checkpoint every {:.0f} s", c.interval_s);
  return c.daly_interval_s > 0 ? text + fmt::format(", Daly's optimum {:.0f} s", c.daly_interval_s)
                               : text;
}

// What moves the days most, each input alone.
std::string assumptions_text(const PlanCost& c) {
  constexpr size_t kShown = 5;
  constexpr double kVisible = 1e-3;  // of the days
  std::string text;
  for (size_t i = 0; i < std::min(kShown, c.assumptions.size()); ++i) {
    const DaysBar& bar = c.assumptions[i];
    if (std::max(std::abs(bar.days_low - c.days), std::abs(bar.days_high - c.days)) <
        kVisible * c.days) {
      break;
    }
    text += fmt::format("    {:.1f} to {:.1f} days  {} {} to {}, {}\n", bar.days_low, bar.days_high,
                        bar.input.path, bar.input.low, bar.input.high, bar.input.evidence);
  }
  return text;
}

std::string cost_text(const Prices& prices, const PlanCost& c, int64_t hosts) {
  std::string text = fmt::format("  {:.4g} tokens: {:.1f} days", c.tokens, c.days);
  if (c.days_by_assumptions_low < c.days_by_assumptions_high) {
    text += fmt::format(" ({:.1f} to {:.1f} by the assumptions; alone:)\n",
                        c.days_by_assumptions_low, c.days_by_assumptions_high);
  } else {
    text += '\n';
  }
  text += assumptions_text(c);
  text += fmt::format("  {} GPU-hours{}\n", count_text(static_cast<int64_t>(c.gpu_hours + 0.5)),
                      money_text(prices, c.dollars));
  text += fmt::format("  {:.0f} MWh in the GPUs, {:.0f} with hosts and cooling: {:.3g} MW\n",
                      c.gpu_megawatt_hours, c.facility_megawatt_hours, c.facility_megawatts);
  text += fmt::format(
      "  effective training time {:.1f} % ({:.1f} to {:.1f} in single months), in the days\n",
      100 * c.effective_training_time, 100 * c.p05, 100 * c.p95);
  text += fmt::format(
      "  {:.3g} failures a day, {:.3g} hosts away for repair: {} spare hosts suffice {:.3g} % of\n"
      "  the time and are {:.2g} % more GPUs{}\n",
      c.unplanned_failures_a_day, c.hosts_away, c.spares, 100 * c.availability,
      100.0 * static_cast<double>(c.spares) / static_cast<double>(hosts),
      c.simulated_spares == c.spares ? ""
                                     : fmt::format("; the days are with {}", c.simulated_spares));
  return text + "  " + checkpoint_text(c) + '\n';
}

// A line for each count, where there are several.
std::string counts_text(const PlanReport& report) {
  const bool is_priced = report.prices.is_given();
  std::vector<TextTable::Column> columns = {
      {"  GPUs", Align::kRight}, {"days", Align::kRight},      {"from", Align::kRight},
      {"to", Align::kRight},     {"GPU-hours", Align::kRight}, {"MWh", Align::kRight},
      {"ETT %", Align::kRight},  {"spares", Align::kRight}};
  if (is_priced) columns.push_back({"dollars", Align::kRight});
  columns.push_back({"goals"});
  TextTable table(std::move(columns));
  size_t rows = 0;
  for (const PlanAnswer& answer : report.answers) {
    if (!answer.cost) continue;
    const PlanCost& c = *answer.cost;
    std::vector<std::string> row = {"  " + count_text(answer.search.gpus),
                                    fmt::format("{:.1f}", c.days),
                                    fmt::format("{:.1f}", c.days_by_assumptions_low),
                                    fmt::format("{:.1f}", c.days_by_assumptions_high),
                                    count_text(std::llround(c.gpu_hours)),
                                    count_text(std::llround(c.facility_megawatt_hours)),
                                    fmt::format("{:.1f}", 100 * c.effective_training_time),
                                    count_text(c.spares)};
    if (is_priced) row.push_back(count_text(std::llround(c.dollars)));
    std::string missed;
    for (const MissedGoal& goal : answer.missed) missed += (missed.empty() ? "" : ", ") + goal.goal;
    row.push_back(missed.empty() ? "met" : "not " + missed);
    table.add_row(std::move(row));
    ++rows;
  }
  return rows < 2 ? ""
                  : fmt::format("\nwhat the tokens take, by the assumptions\n{}", table.text());
}

std::string scaling_text(const PlanReport& report) {
  const std::vector<ScalingPoint> curve = scaling_curve(report);
  if (curve.size() < 2) return "";
  std::string text = fmt::format(
      "\n{} scaling: {}\n    GPUs   batch     tokens/s  speed-up  "
      "efficiency\n",
      report.weak_scaling ? "weak" : "strong",
      report.weak_scaling ? "the batch grows with the GPUs" : "the same batch on more GPUs");
  for (const ScalingPoint& point : curve) {
    text += fmt::format("  {:>6}  {:>6}  {:>11}  {:>8.2f}  {:>8.1f} %\n", count_text(point.gpus),
                        count_text(point.global_batch),
                        count_text(static_cast<int64_t>(point.tokens_per_second)), point.speed_up,
                        100 * point.efficiency);
  }
  return text;
}

std::string quoted_csv(const std::string& text) { return '"' + text + '"'; }

nlohmann::ordered_json plan_object(const RankedPlan& ranked, const RankedPlan& first) {
  const ParallelPlan& p = ranked.candidate.plan;
  const StepResult& step = ranked.step;
  nlohmann::ordered_json j;
  j["plan"] = ranked.candidate.text();
  j["tp"] = p.tp;
  j["cp"] = p.cp;
  j["pp"] = p.pp;
  j["dp"] = p.dp;
  j["virtual_stages"] = p.virtual_stages;
  j["micro_batch"] = p.micro_batch;
  j["schedule"] = ranked.candidate.schedule->name;
  j["step_time_s"] = step.step_time.seconds();
  j["mfu"] = step.mfu_causal();
  j["model_tflops_per_gpu"] = step.flops_per_gpu_causal().teraflops();
  j["bubble_fraction"] = step.bubble_fraction();
  j["peak_memory_bytes"] = step.peak_stage()->peak.count();
  j["peak_memory_stage"] = step.peak_stage()->stage;
  j["limited_by"] = largest_loss(step);
  const Lag lag = largest_lag(first.step, step);
  if (lag.seconds > 0) {
    j["behind_s"] = step.step_time.seconds() - first.step.step_time.seconds();
    j["behind_by"] = kTimeTermNames[lag.term];
  }
  j["fingerprint"] = step.fingerprint();
  return j;
}

}  // namespace

std::vector<ScalingPoint> scaling_curve(const PlanReport& report) {
  std::vector<ScalingPoint> curve;
  for (const PlanAnswer& answer : report.answers) {
    if (answer.search.best.empty()) continue;
    const StepResult& step = answer.search.best.front().step;
    ScalingPoint point{.gpus = answer.search.gpus, .global_batch = answer.global_batch};
    const double each = step.tokens_per_second_per_gpu();
    point.tokens_per_second = each * static_cast<double>(point.gpus);
    const ScalingPoint& first = curve.empty() ? point : curve.front();
    point.speed_up = point.tokens_per_second / first.tokens_per_second;
    point.efficiency =
        point.speed_up * static_cast<double>(first.gpus) / static_cast<double>(point.gpus);
    curve.push_back(point);
  }
  return curve;
}

std::string plan_table(const PlanReport& report) {
  std::string text;
  for (const PlanAnswer& answer : report.answers) {
    const PlanSearch& s = answer.search;
    if (!answer.asked.empty()) text += answer.asked + '\n';
    text += fmt::format("{} on {} GPUs of {}\n", report.model, count_text(s.gpus), report.cluster);
    text += fmt::format("  {} candidates: {} over memory, {} too slow by a bound, {} simulated\n",
                        count_text(s.candidates), count_text(s.over_memory()),
                        count_text(s.outbid()), count_text(s.simulated));
    text += s.best.empty() ? no_plan_text(answer) : ranking_text(s);
    if (answer.cost) {
      const auto hosts = std::max<int64_t>(1, s.gpus / report.gpus_per_host);
      text += cost_text(report.prices, *answer.cost, hosts);
    }
    if (answer.formulas) text += '\n' + formula_table(*answer.formulas);
    for (const MissedGoal& missed : answer.missed) text += "  not met: " + missed.text + '\n';
    if (&answer != &report.answers.back()) text += '\n';
  }
  return text + counts_text(report) + scaling_text(report);
}

namespace {

void add_cost(const PlanReport& report, const PlanCost& c, nlohmann::ordered_json& j) {
  j["tokens"] = c.tokens;
  j["effective_training_time"] = c.effective_training_time;
  j["effective_training_time_p05"] = c.p05;
  j["effective_training_time_p95"] = c.p95;
  j["days"] = c.days;
  j["days_by_luck"] = {c.days_by_luck_low, c.days_by_luck_high};
  j["days_by_assumptions"] = {c.days_by_assumptions_low, c.days_by_assumptions_high};
  j["assumptions"] = nlohmann::ordered_json::array();
  for (const DaysBar& bar : c.assumptions) {
    j["assumptions"].push_back({{"input", bar.input.path},
                                {"low", bar.input.low},
                                {"high", bar.input.high},
                                {"evidence", bar.input.evidence},
                                {"source", bar.input.source},
                                {"days_at_low", bar.days_low},
                                {"days_at_high", bar.days_high}});
  }
  j["gpu_hours"] = c.gpu_hours;
  if (report.prices.is_given()) j["usd"] = c.dollars;
  j["gpu_energy_mwh"] = c.gpu_megawatt_hours;
  j["facility_energy_mwh"] = c.facility_megawatt_hours;
  j["facility_mw"] = c.facility_megawatts;
  j["unplanned_failures_a_day"] = c.unplanned_failures_a_day;
  j["hosts_away"] = c.hosts_away;
  j["spare_hosts"] = c.spares;
  j["simulated_spare_hosts"] = c.simulated_spares;
  j["availability"] = c.availability;
  j["checkpoint_interval_s"] = c.interval_s;
  j["daly_interval_s"] = c.daly_interval_s;
}

nlohmann::ordered_json answer_object(const PlanReport& report, const PlanAnswer& answer) {
  const PlanSearch& s = answer.search;
  nlohmann::ordered_json j;
  if (!answer.asked.empty()) j["asked"] = answer.asked;
  j["gpus"] = s.gpus;
  j["global_batch"] = answer.global_batch;
  j["candidates"] = s.candidates;
  j["over_memory"] = s.over_memory();
  j["outbid"] = s.outbid();
  j["simulated"] = s.simulated;
  j["discarded_by"] = {{"least_memory", s.over_least_memory},
                       {"walked_memory", s.over_walked_memory},
                       {"quick_bound", s.outbid_by_quick},
                       {"timeline_bound", s.outbid_by_timeline}};
  j["plans"] = nlohmann::ordered_json::array();
  for (const RankedPlan& ranked : s.best) {
    j["plans"].push_back(plan_object(ranked, s.best.front()));
  }
  if (s.best.empty() && s.closest) {
    j["closest"] = {{"plan", s.closest->candidate.text()},
                    {"peak_memory_bytes", s.closest->stage.peak.count()},
                    {"capacity_bytes", s.capacity.count()}};
  }
  if (s.candidates == 0) j["gpus_with_plans"] = answer.gpus_with_plans;
  if (answer.cost) add_cost(report, *answer.cost, j);
  if (answer.formulas)
    j["formulas"] = nlohmann::ordered_json::parse(formula_json(*answer.formulas));
  j["not_met"] = nlohmann::ordered_json::array();
  for (const MissedGoal& missed : answer.missed) {
    j["not_met"].push_back({{"goal", missed.goal},
                            {"has", missed.has},
                            {"allowed", missed.allowed},
                            {"text", missed.text}});
  }
  return j;
}

}  // namespace

std::string plan_json(const PlanReport& report) {
  nlohmann::ordered_json answers = nlohmann::ordered_json::array(), scaling = answers;
  for (const PlanAnswer& answer : report.answers) answers.push_back(answer_object(report, answer));
  for (const ScalingPoint& point : scaling_curve(report)) {
    scaling.push_back({{"gpus", point.gpus},
                       {"global_batch", point.global_batch},
                       {"tokens_per_second", point.tokens_per_second},
                       {"speed_up", point.speed_up},
                       {"efficiency", point.efficiency}});
  }
  nlohmann::ordered_json whole;
  whole["model"] = report.model;
  whole["cluster"] = report.cluster;
  whole["answers"] = std::move(answers);
  whole["scaling"] = {{"kind", report.weak_scaling ? "weak" : "strong"},
                      {"points", std::move(scaling)}};
  return whole.dump(2) + '\n';
}

std::string plan_csv(const PlanReport& report) {
  std::string text =
      "gpus,rank,plan,step_time_s,mfu,bubble_fraction,peak_memory_bytes,limited_by,fingerprint\n";
  for (const PlanAnswer& answer : report.answers) {
    for (size_t i = 0; i < answer.search.best.size(); ++i) {
      const RankedPlan& ranked = answer.search.best[i];
      const StepResult& step = ranked.step;
      text +=
          fmt::format("{},{},{},{},{},{},{},{},{}\n", answer.search.gpus, i + 1,
                      quoted_csv(ranked.candidate.text()), step.step_time.seconds(),
                      step.mfu_causal(), step.bubble_fraction(), step.peak_stage()->peak.count(),
                      quoted_csv(largest_loss(step)), step.fingerprint());
    }
  }
  return text;
}

}  // namespace herdsim
