#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

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
  table.add_row({"interruptions",
                 fmt::format("{:.1f} unexpected, {:.1f} planned; one in {:.2f} h", r.unexpected(),
                             r.planned(), r.mean_time_between_interruptions_seconds() / 3600)});
  if (r.tokens_per_step > 0) {
    table.add_row({"tokens", fmt::format("{:.4g} in {} steps of {:.3f} s; {:.4g} a second",
                                         r.tokens(), count_text(static_cast<int64_t>(r.steps())),
                                         r.nominal_step.seconds(), r.tokens_per_second())});
  }
  if (r.peak.per_second() > 0 && r.model_flops_per_step.count() > 0) {
    table.add_row({"MFU over elapsed time", percent(r.mfu())});
  }
  table.add_row({"GPU-hours", fmt::format("{:.4g} million, {:.4g} MWh in the GPUs",
                                          r.gpu_hours() * 1e-6, r.gpu_energy_megawatt_hours())});
  return fmt::format("{}: {} GPUs for {:.1f} days\n\n{}", r.scenario, count_text(r.gpus),
                     r.mean_horizon_seconds() / 86'400, table.text());
}

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

std::string interruptions(const RunResult& r) {
  TextTable table({{"interruptions"}, {"mean", Align::kRight}, {"95 % of runs", Align::kRight}});
  for (size_t i = 0; i < r.class_names.size(); ++i) {
    const double mean = r.interruptions(i);
    table.add_row({r.class_names[i], fmt::format("{:.2f}", mean),
                   r.class_planned[i] ? std::string("planned")
                                      : fmt::format("{} - {}", poisson_quantile(mean, 0.025),
                                                    poisson_quantile(mean, 0.975))});
  }
  return r.class_names.empty() ? "" : "\n" + table.text();
}

std::string contributions(const RunResult& r) {
  if (r.contributions.empty()) return "";
  TextTable table({{"halved"}, {"would give back, points", Align::kRight}, {"+-", Align::kRight}});
  for (const Contribution& part : r.contributions) {
    table.add_row({part.name, fmt::format("{:.3f}", 100 * part.gain),
                   fmt::format("{:.3f}", 100 * part.gain_stderr)});
  }
  return "\n" + table.text();
}

}  // namespace

std::string run_table(const RunResult& r) {
  std::string text = headline(r) + time_account(r) + interruptions(r) + contributions(r);
  for (const std::string& warning : r.warnings) text += paragraph("warning", warning);
  return text +
         fmt::format("\nsimulated {} replicas of {} conditions in {:.2f} s; fingerprint {}\n",
                     count_text(static_cast<int64_t>(r.replicas.size())), r.distinct_conditions,
                     r.wall_seconds, r.fingerprint());
}

}  // namespace herdsim
