#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "sim/models/queueing.h"
#include "tools/report/run_report.h"
#include "tools/report/text_layout.h"

namespace herdsim {
namespace {

constexpr size_t kBarColumns = 32;
constexpr std::array<std::string_view, kRunTerms> kLabels = {"training",
                                                             "checkpoint stalls",
                                                             "lost work",
                                                             "detection",
                                                             "diagnosis",
                                                             "rescheduling",
                                                             "start and communicators",
                                                             "loading checkpoints",
                                                             "warm-up",
                                                             "waiting for spares",
                                                             "planned stops",
                                                             "slow steps"};

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }
std::string in_hours(double seconds) { return fmt::format("{:.1f}", seconds / 3600); }

std::string time_account(const RunResult& r) {
  const auto seconds = r.time_account_seconds();
  const double whole = r.mean_horizon_seconds();
  TextTable table(
      {{"where the time goes"}, {"hours", Align::kRight}, {"share", Align::kRight}, {""}});
  std::string absent;
  for (size_t i = 0; i < kRunTerms; ++i) {
    if (seconds[i] == 0) {
      absent += (absent.empty() ? "" : ", ") + std::string(kLabels[i]);
      continue;
    }
    table.add_row({std::string(kLabels[i]), in_hours(seconds[i]), percent(seconds[i] / whole),
                   bar(std::max(0.0, seconds[i] / whole), kBarColumns)});
  }
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  table.add_row({"elapsed", in_hours(sum), percent(sum / whole), ""});
  return "\n" + table.text() + (absent.empty() ? "" : paragraph("none", absent));
}

// A class of failures or a slow part: how often, and what halving it gives back.
struct CostRow {
  std::string name, mean, band;
  const Contribution* contribution = nullptr;
};

std::vector<CostRow> cost_rows(const RunResult& r) {
  std::vector<CostRow> rows;
  for (size_t i = 0; i < r.class_names.size(); ++i) {
    const double mean = r.interruptions(i);
    rows.push_back({.name = r.class_names[i],
                    .mean = fmt::format("{:.2f}", mean),
                    .band = r.class_planned[i]
                                ? std::string("planned")
                                : fmt::format("{} - {}", poisson_quantile(mean, 0.025),
                                              poisson_quantile(mean, 0.975))});
  }
  // Most costly first; rows that are no class are slow parts.
  std::vector<CostRow> ranked;
  for (const Contribution& part : r.contributions) {
    const auto known = std::find_if(rows.begin(), rows.end(),
                                    [&](const CostRow& row) { return row.name == part.name; });
    ranked.push_back(known != rows.end() ? *known : CostRow{.name = part.name});
    ranked.back().contribution = &part;
  }
  return ranked.empty() ? rows : ranked;
}

// A part that changes nothing is no loss, whatever the sign of a zero.
std::string points(double share) {
  const std::string text = fmt::format("{:+.3f}", 100 * share);
  return text == "-0.000" ? "+0.000" : text;
}

std::string costs(const RunResult& r) {
  const std::vector<CostRow> rows = cost_rows(r);
  if (rows.empty()) return "";
  if (r.contributions.empty()) {
    TextTable table({{"interruptions"}, {"a run", Align::kRight}, {"95 % of runs", Align::kRight}});
    for (const CostRow& row : rows) table.add_row({row.name, row.mean, row.band});
    return "\n" + table.text();
  }
  TextTable table({{"what costs most"},
                   {"a run", Align::kRight},
                   {"95 % of runs", Align::kRight},
                   {"if halved", Align::kRight},
                   {"95 %", Align::kRight}});
  for (const CostRow& row : rows) {
    const Contribution& part = *row.contribution;
    table.add_row({row.name, row.mean, row.band, points(part.gain),
                   fmt::format("{:.3f} - {:.3f}", 100 * part.gain_low(), 100 * part.gain_high())});
  }
  return "\n" + table.text() +
         fmt::format(
             "if halved: points of effective training time that this gives back, on the "
             "same\ndraws of {} replicas\n",
             r.contributions.front().replicas);
}

std::string in_seconds(double seconds) {
  return seconds < 10 ? fmt::format("{:.2f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

// How it saves, beside the intervals that closed forms advise.
void add_checkpoints(const RunResult& r, TextTable& table) {
  if (!r.checkpoint) return;
  const CheckpointFigures& c = *r.checkpoint;
  table.add_row({"checkpoints",
                 fmt::format("{}, {}: {} every {} ({} steps); {} blocked, durable after {}, {} to "
                             "load",
                             c.policy, c.rule, to_text(c.bytes), in_seconds(c.interval_s),
                             count_text(c.interval_steps), in_seconds(c.block_s),
                             in_seconds(c.save_s), in_seconds(c.load_s))});
  if (c.tiers.size() > 1) {
    std::string tiers;
    for (const CheckpointFigures::Tier& tier : c.tiers) {
      tiers +=
          fmt::format("{}{} every {}", tiers.empty() ? "" : ", ", tier.medium,
                      tier.every_steps == 1 ? "step" : count_text(tier.every_steps) + " steps");
    }
    if (c.hbm_a_gpu > Bytes(0))
      tiers += fmt::format("; {} of each GPU's HBM", to_text(c.hbm_a_gpu));
    table.add_row({"", tiers});
  }
  if (c.young_s <= 0) return;
  const double step = r.nominal_step.seconds();
  table.add_row(
      {"", fmt::format("Young's interval is {} ({:.0f} steps), with the restart counted {}; Daly's "
                       "{}",
                       in_seconds(c.young_s), c.young_s / step, in_seconds(c.young_with_restart_s),
                       in_seconds(c.daly_s))});
}

// How long a number of tokens takes.
void add_days(const RunResult& r, TextTable& table) {
  if (r.tokens_per_step <= 0 || !(r.tokens() > 0)) return;
  const bool asked = r.target_tokens > 0;
  const double tokens = asked ? r.target_tokens : 1e12;
  std::string text = fmt::format("{:.1f} days", r.days_to_tokens(tokens));
  if (r.replicas.size() > 1) {
    // A run that trains nothing never gets there.
    const auto days = [&](double quantile) {
      const double of_run = r.days_to_tokens_quantile(tokens, quantile);
      return std::isfinite(of_run) ? fmt::format("{:.1f}", of_run) : std::string("never");
    };
    text += fmt::format(" ({} to {} in single runs)", days(0.05), days(0.95));
  }
  table.add_row({asked ? fmt::format("{:.4g} tokens", tokens) : "a trillion tokens",
                 text + fmt::format("; {:.1f} if nothing failed or slowed down",
                                    r.days_to_tokens_without_failures(tokens))});
}

std::string headline(const RunResult& r) {
  TextTable table({{""}, {"", Align::kWrap}});
  std::string spread;
  if (r.replicas.size() > 1) {
    spread = fmt::format("; in single runs {} to {} (5th to 95th percentile of {})",
                         percent(r.effective_training_time_quantile(0.05)),
                         percent(r.effective_training_time_quantile(0.95)),
                         count_text(static_cast<int64_t>(r.replicas.size())));
  }
  table.add_row({"effective training time", percent(r.effective_training_time()) + spread});
  table.add_row({"", fmt::format("{} if slow steps count whole", percent(r.kept_step_share()))});
  if (r.without_stragglers) {
    const Contribution& gain = *r.without_stragglers;
    table.add_row(
        {"without stragglers",
         fmt::format(
             "{:+.2f} points ({:.2f} to {:.2f} in 95 %) if these were found and removed: {}",
             100 * gain.gain, 100 * gain.gain_low(), 100 * gain.gain_high(), gain.name)});
  }
  table.add_row({"interruptions",
                 fmt::format("{:.1f} unexpected, {:.1f} planned; one in {:.2f} h", r.unexpected(),
                             r.planned(), r.mean_time_between_interruptions_seconds() / 3600)});
  if (const double again = r.refailures(); again > 0) {
    table.add_row(
        {"", fmt::format("{:.1f} of them by hosts that came back from repair unmended and passed "
                         "the check",
                         again)});
  }
  if (const double unseen = r.undetected_corruptions(); unseen > 0) {
    table.add_row({"silent corruptions", fmt::format("{:.2f} more that no detector saw: the steps "
                                                     "after them count as trained",
                                                     unseen)});
  }
  if (r.tokens_per_step > 0) {
    table.add_row({"tokens", fmt::format("{:.4g} in {} steps of {:.3f} s; {:.4g} a second",
                                         r.tokens(), count_text(static_cast<int64_t>(r.steps())),
                                         r.nominal_step.seconds(), r.tokens_per_second())});
  }
  if (r.peak.per_second() > 0 && r.model_flops_per_step.count() > 0) {
    table.add_row({"MFU over elapsed time", percent(r.mfu())});
  }
  add_days(r, table);
  table.add_row({"GPU-hours", fmt::format("{:.4g} million, {:.4g} MWh in the GPUs",
                                          r.gpu_hours() * 1e-6, r.gpu_energy_megawatt_hours())});
  add_checkpoints(r, table);
  return fmt::format("{}: {} GPUs for {:.1f} days\n\n{}", r.scenario, count_text(r.gpus),
                     r.mean_horizon_seconds() / 86'400, table.text());
}

}  // namespace

std::string run_table(const RunResult& r) {
  std::string text = headline(r) + time_account(r) + costs(r);
  for (const std::string& warning : r.warnings) text += paragraph("warning", warning);
  return text +
         fmt::format("\nsimulated {} replicas of {} conditions in {:.2f} s; fingerprint {}\n",
                     count_text(static_cast<int64_t>(r.replicas.size())), r.distinct_conditions,
                     r.wall_seconds, r.fingerprint());
}

}  // namespace herdsim
