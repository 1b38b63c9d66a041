#include "tools/study/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/parallel_for.h"

namespace herdsim {
namespace {

Outlook outlook_of(const Scenario& scenario, const StepResult& step, const RunHorizon& horizon) {
  Outlook outlook{
      .step_time_s = step.step_time.seconds(),
      .mfu = step.mfu_causal(),
      .effective_training_time = std::nullopt,
      .tokens_per_second = step.tokens_per_second_per_gpu() * static_cast<double>(step.gpus)};
  if (!horizon.is_asked()) return outlook;
  const RunResult run = run_scenario(scenario, step, horizon, {});
  outlook.effective_training_time = run.effective_training_time();
  outlook.tokens_per_second = run.tokens_per_second();
  return outlook;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool only_weeks_feel(const std::string& path) {
  return path.starts_with("reliability.") || path.starts_with("checkpoint.") ||
         path.starts_with("recovery.");
}

// A step's change alone.
Outlook with_base_weeks(Outlook step, const Sensitivity& s) {
  const double weeks_over_steps = s.base.tokens_per_second / (s.step.tokens_per_second_per_gpu() *
                                                              static_cast<double>(s.step.gpus));
  step.effective_training_time = s.base.effective_training_time;
  step.tokens_per_second *= weeks_over_steps;
  return step;
}

// Unchanged where the end is the value itself.
std::optional<Outlook> at_end(const ScenarioVariant& variant, const std::string& end,
                              const Sensitivity& s, const SensitivityOptions& options,
                              MachineMemo& machines, TornadoBar& bar) {
  if (end == bar.input.value) return s.base;
  try {
    const Scenario scenario = variant(bar.input.path + '=' + end);
    const StepResult step = simulate_step(scenario, {.result_alone = true}, machines).result;
    if (options.weeks_of_failures_only && !only_weeks_feel(bar.input.path)) {
      return with_base_weeks(outlook_of(scenario, step, {}), s);
    }
    return outlook_of(scenario, step, options.horizon);
  } catch (const SpecError& error) {
    bar.problem = first_line(error.what());
    return std::nullopt;
  }
}

double pace_of(const std::optional<Outlook>& outlook, const Outlook& base) {
  return outlook ? outlook->tokens_per_second / base.tokens_per_second : 1;
}

}  // namespace

double Sensitivity::swing(const TornadoBar& bar) const {
  return std::max(std::abs(pace_of(bar.low, base) - 1), std::abs(pace_of(bar.high, base) - 1));
}

Sensitivity sensitivity(const ScenarioVariant& variant, const SensitivityOptions& options) {
  return sensitivity(variant, uncertain_inputs(variant("").effective_text), options);
}

Sensitivity sensitivity(const ScenarioVariant& variant, std::vector<UncertainInput> inputs,
                        const SensitivityOptions& options) {
  Sensitivity result;
  MachineMemo machines;
  const Scenario base = variant("");
  result.step = simulate_step(base, {.result_alone = true}, machines).result;
  result.base = outlook_of(base, result.step, options.horizon);
  for (UncertainInput& input : inputs) {
    result.bars.push_back({std::move(input), std::nullopt, std::nullopt, ""});
  }
  parallel_for(result.bars.size(), options.threads, [&](size_t i) {
    TornadoBar& bar = result.bars[i];
    bar.low = at_end(variant, bar.input.low, result, options, machines, bar);
    bar.high = at_end(variant, bar.input.high, result, options, machines, bar);
  });
  std::stable_sort(
      result.bars.begin(), result.bars.end(),
      [&](const TornadoBar& a, const TornadoBar& b) { return result.swing(a) > result.swing(b); });
  return result;
}

PaceRange pace_range(const Sensitivity& sensitivity) {
  double gains = 0, losses = 0;
  for (const TornadoBar& bar : sensitivity.bars) {
    const double low = pace_of(bar.low, sensitivity.base) - 1;
    const double high = pace_of(bar.high, sensitivity.base) - 1;
    gains += std::pow(std::max({0.0, low, high}), 2);
    losses += std::pow(std::min({0.0, low, high}), 2);
  }
  return {.slowest = std::max(0.0, 1 - std::sqrt(losses)), .fastest = 1 + std::sqrt(gains)};
}

}  // namespace herdsim
