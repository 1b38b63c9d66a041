#include "tools/study/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

std::string no_plan_text(const PlanSearch& s) {
  if (!s.closest) {
    return "  no plan: nothing divides the GPUs, the model and the batch in this space\n";
  }
  const StageMemory& stage = s.closest->stage;
  return fmt::format(
      "  no plan fits {} a GPU. The closest takes {}, {} too much:\n    {}\n    stage {}, {}: {}\n",
      to_text(s.capacity), to_text(stage.peak), to_text(stage.peak - s.capacity),
      s.closest->candidate.text(), stage.stage, stage.moment, largest_part(stage));
}

std::string ranking_text(const PlanSearch& s) {
  std::string text = "   #   step s   MFU %  peak GB  loses most to         plan\n";
  for (size_t i = 0; i < s.best.size(); ++i) {
    const StepResult& step = s.best[i].step;
    text += fmt::format("  {:>2}  {:>7.3f}  {:>6.2f}  {:>7.1f}  {:<20}  {}\n", i + 1,
                        step.step_time.seconds(), 100 * step.mfu_causal(), peak_gigabytes(step),
                        largest_loss(step), s.best[i].candidate.text());
  }
  return text;
}

std::string cost_text(const PlanReport& report, const PlanAnswer& answer) {
  const PlanCost& c = *answer.cost;
  std::string text = fmt::format("  {:.4g} tokens: {:.1f} days, {} GPU-hours, ", report.tokens,
                                 c.days, count_text(static_cast<int64_t>(c.gpu_hours + 0.5)));
  if (report.dollars_per_gpu_hour > 0) {
    text +=
        fmt::format("${} at ${} a GPU-hour, ", count_text(static_cast<int64_t>(c.dollars + 0.5)),
                    report.dollars_per_gpu_hour);
  }
  text += fmt::format("{:.0f} MWh\n", c.megawatt_hours);
  return text + fmt::format("  effective training time {:.1f} % ({:.1f} to {:.1f}), in the days\n",
                            100 * c.effective_training_time, 100 * c.p05, 100 * c.p95);
}

std::string quoted_csv(const std::string& text) { return '"' + text + '"'; }

nlohmann::ordered_json plan_object(const RankedPlan& ranked) {
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
  j["fingerprint"] = step.fingerprint();
  return j;
}

}  // namespace

std::string plan_table(const PlanReport& report) {
  std::string text;
  for (const PlanAnswer& answer : report.answers) {
    const PlanSearch& s = answer.search;
    text += fmt::format("{} on {} GPUs of {}\n", report.model, count_text(s.gpus), report.cluster);
    text += fmt::format("  {} candidates: {} over memory, {} too slow by a bound, {} simulated\n",
                        count_text(s.candidates), count_text(s.over_memory), count_text(s.outbid),
                        count_text(s.simulated));
    text += s.best.empty() ? no_plan_text(s) : ranking_text(s);
    if (answer.cost) text += cost_text(report, answer);
    for (const std::string& missed : answer.missed) text += "  not met: " + missed + '\n';
    if (&answer != &report.answers.back()) text += '\n';
  }
  return text;
}

std::string plan_json(const PlanReport& report) {
  nlohmann::ordered_json answers = nlohmann::ordered_json::array();
  for (const PlanAnswer& answer : report.answers) {
    const PlanSearch& s = answer.search;
    nlohmann::ordered_json j;
    j["gpus"] = s.gpus;
    j["candidates"] = s.candidates;
    j["over_memory"] = s.over_memory;
    j["outbid"] = s.outbid;
    j["simulated"] = s.simulated;
    j["plans"] = nlohmann::ordered_json::array();
    for (const RankedPlan& ranked : s.best) j["plans"].push_back(plan_object(ranked));
    if (s.best.empty() && s.closest) {
      j["closest"] = {{"plan", s.closest->candidate.text()},
                      {"peak_memory_bytes", s.closest->stage.peak.count()},
                      {"capacity_bytes", s.capacity.count()}};
    }
    if (answer.cost) {
      j["tokens"] = report.tokens;
      j["effective_training_time"] = answer.cost->effective_training_time;
      j["effective_training_time_p05"] = answer.cost->p05;
      j["effective_training_time_p95"] = answer.cost->p95;
      j["days"] = answer.cost->days;
      j["gpu_hours"] = answer.cost->gpu_hours;
      if (report.dollars_per_gpu_hour > 0) j["usd"] = answer.cost->dollars;
      j["gpu_energy_mwh"] = answer.cost->megawatt_hours;
    }
    j["not_met"] = answer.missed;
    answers.push_back(std::move(j));
  }
  nlohmann::ordered_json whole;
  whole["model"] = report.model;
  whole["cluster"] = report.cluster;
  whole["answers"] = std::move(answers);
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
