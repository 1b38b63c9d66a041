#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "sim/metrics/term_labels.h"
#include "tools/report/step_report.h"
#include "tools/report/text_layout.h"

namespace herdsim {
namespace {

constexpr size_t kBarColumns = 36;

// Tables line up only with a fixed number of decimals.
std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string in_gigabytes(Bytes bytes) {
  return fixed(static_cast<double>(bytes.count()) * 1e-9, 2);
}

std::string headline(const StepResult& r) {
  TextTable table({{""}, {"", Align::kWrap}});
  table.add_row({"step time", fixed(r.step_time.seconds(), 4) + " s"});
  if (r.peak.per_second() > 0) {
    table.add_row(
        {"MFU",
         fmt::format("{} of {:.1f} TFLOP/s {} dense, causal attention counted half; "
                     "{} counting the full square",
                     percent(r.mfu_causal()), r.peak.teraflops(), r.dtype, percent(r.mfu_full()))});
  }
  table.add_row(
      {"model FLOP/s", fixed(r.flops_per_gpu_causal().teraflops(), 1) + " TFLOP/s per GPU"});
  table.add_row(
      {"tokens", fmt::format("{} a step, {:.1f} per second and GPU", count_text(r.tokens_per_step),
                             r.tokens_per_second_per_gpu())});
  return fmt::format("{}: {} GPUs\n\n{}", r.scenario, count_text(r.gpus), table.text());
}

std::string beside_published(const StepResult& r, const PublishedFigures& published) {
  TextTable table({{""},
                   {"predicted", Align::kRight},
                   {"published", Align::kRight},
                   {"difference", Align::kRight}});
  if (published.model_tflops_per_gpu) {
    const double predicted = r.flops_per_gpu_causal().teraflops();
    table.add_row(
        {"TFLOP/s per GPU", fixed(predicted, 1), fixed(*published.model_tflops_per_gpu, 1),
         fmt::format("{:+.1f} %", 100 * (predicted / *published.model_tflops_per_gpu - 1))});
  }
  if (published.mfu && r.peak.per_second() > 0) {
    table.add_row({"MFU", percent(r.mfu_causal()), percent(*published.mfu),
                   fmt::format("{:+.1f} points", 100 * (r.mfu_causal() - *published.mfu))});
  }
  return "\n" + table.text() + paragraph("published in", published.source);
}

std::string time_account(const StepResult& r) {
  const auto seconds = r.time_account_seconds();
  const double whole = r.step_time.seconds();
  TextTable table(
      {{"time of the mean rank"}, {"seconds", Align::kRight}, {"share", Align::kRight}, {""}});
  std::string absent;
  double sum = 0;
  for (size_t i = 0; i < kTimeTerms; ++i) {
    sum += seconds[i];
    if (r.account_rank_nanoseconds[i] == 0) {
      // Most scenarios have no loader to wait for.
      if (i == static_cast<size_t>(TimeTerm::kLoader)) continue;
      absent += (absent.empty() ? "" : ", ") + std::string(kTermLabels[i]);
      continue;
    }
    table.add_row({std::string(kTermLabels[i]), fixed(seconds[i], 4), percent(seconds[i] / whole),
                   bar(seconds[i] / whole, kBarColumns)});
  }
  table.add_row({"step", fixed(sum, 4), percent(sum / whole), ""});
  return "\n" + table.text() + (absent.empty() ? "" : paragraph("none", absent));
}

// "0-3, 7" of ascending numbers.
std::string ranges(const std::vector<int64_t>& numbers) {
  std::string out;
  for (size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    if (!out.empty()) out += ", ";
    out += std::to_string(numbers[first]);
    if (last > first) out += (last == first + 1 ? ", " : "-") + std::to_string(numbers[last]);
  }
  return out;
}

std::string peak_memory(const StepResult& r, const StageMemory& peak) {
  const double capacity = static_cast<double>(r.memory_capacity.count());
  const Bytes headroom = r.fits() ? r.memory_capacity - peak.peak : peak.peak - r.memory_capacity;
  const std::string share =
      percent(capacity > 0 ? static_cast<double>(headroom.count()) / capacity : 0);
  const std::string verdict =
      r.fits() ? fmt::format("fits {} GB with {} GB ({}) free", in_gigabytes(r.memory_capacity),
                             in_gigabytes(headroom), share)
               : fmt::format("does not fit {} GB: {} GB ({}) too much",
                             in_gigabytes(r.memory_capacity), in_gigabytes(headroom), share);
  return paragraph("memory",
                   fmt::format("{} GB at the peak, on stage {} at {}; {}", in_gigabytes(peak.peak),
                               peak.stage, peak.moment, verdict));
}

std::string memory(const StepResult& r) {
  const StageMemory* peak = r.peak_stage();
  if (peak == nullptr) return "";
  TextTable table({{"stage", Align::kRight},
                   {"peak GB", Align::kRight},
                   {"weights", Align::kRight},
                   {"grads", Align::kRight},
                   {"optim", Align::kRight},
                   {"activ", Align::kRight},
                   {"logits", Align::kRight},
                   {"comm", Align::kRight},
                   {"other", Align::kRight}});
  std::map<std::string, std::vector<int64_t>> stages_of;
  std::vector<std::string> moments;
  for (const StageMemory& s : r.memory) {
    table.add_row({std::to_string(s.stage), in_gigabytes(s.peak), in_gigabytes(s.weights),
                   in_gigabytes(s.gradients), in_gigabytes(s.optimizer),
                   in_gigabytes(s.activations), in_gigabytes(s.logits),
                   in_gigabytes(s.communication), in_gigabytes(s.overhead)});
    std::vector<int64_t>& stages = stages_of[s.moment];
    if (stages.empty()) moments.push_back(s.moment);
    stages.push_back(s.stage);
  }
  std::string out = "\n" + peak_memory(r, *peak) + table.text();
  if (r.memory.size() == 1) return out;
  TextTable when({{""}, {"", Align::kWrap}});
  for (const std::string& moment : moments) {
    const std::vector<int64_t>& stages = stages_of[moment];
    when.add_row(
        {fmt::format("stage{} {}", stages.size() == 1 ? "" : "s", ranges(stages)), "at " + moment});
  }
  return out + when.text();
}

// A row a tier with its most used link.
std::string network(const StepResult& r) {
  if (r.tiers.empty()) return "";
  TextTable table({{"links"},
                   {"number", Align::kRight},
                   {"mean use", Align::kRight},
                   {"most used", Align::kRight},
                   {"", Align::kWrap}});
  for (const TierUse& tier : r.tiers) {
    const auto most = std::find_if(r.links.begin(), r.links.end(),
                                   [&](const LinkUse& link) { return link.tier == tier.tier; });
    table.add_row({tier.tier, count_text(tier.links), percent(tier.mean_use),
                   percent(tier.highest_use),
                   most == r.links.end() ? "" : most->first + ": " + most->loads_text()});
  }
  std::string out = "\n" + table.text();
  for (const Collisions& c : r.collisions) {
    out += paragraph(
        "hashing", fmt::format("leaves {} transfers {} of the NIC on the slowest of {} connections "
                               "(± {} by seed; {} on the mean one)",
                               c.transfers, percent(c.slowest_factor), count_text(c.connections),
                               percent(c.error), percent(c.mean_factor)));
  }
  return out;
}

// Every job of the machine, beside the others and alone.
std::string jobs(const StepResult& r) {
  if (r.jobs.empty()) return "";
  TextTable table({{"jobs that share the network"},
                   {"GPUs", Align::kRight},
                   {"step", Align::kRight},
                   {"alone", Align::kRight},
                   {"sharing costs", Align::kRight},
                   {"MFU", Align::kRight}});
  for (const JobShare& job : r.jobs) {
    table.add_row({job.name, count_text(job.gpus), fixed(job.step_time.seconds(), 4) + " s",
                   fixed(job.alone.seconds(), 4) + " s",
                   fmt::format("{:+.2f} %", 100 * (job.step_time.seconds() / job.alone.seconds() - 1)),
                   percent(job.mfu)});
  }
  return "\n" + table.text();
}

// What went to the store and came from it beside the step, and what that costs.
std::string storage(const StepResult& r) {
  if (r.storage.empty()) return "";
  TextTable table({{"storage"},
                   {"bytes", Align::kRight},
                   {"begins", Align::kRight},
                   {"takes", Align::kRight},
                   {"rate", Align::kRight}});
  for (const StorageFlow& flow : r.storage) {
    table.add_row({flow.job.empty() ? flow.what : fmt::format("{} of {}", flow.what, flow.job),
                   to_text(flow.bytes), fixed(flow.begins.seconds(), 4) + " s",
                   fixed(flow.took.seconds(), 4) + " s",
                   fmt::format("{:.4g} GB/s", static_cast<double>(flow.bytes.count()) * 1e-9 /
                                                  flow.took.seconds())});
  }
  const double without = r.without_storage.seconds();
  return "\n" + table.text() +
         paragraph("without", fmt::format("storage traffic the step takes {} s: it costs {:+.2f} %", fixed(without, 4),
                                          100 * (r.step_time.seconds() / without - 1)));
}

std::string warnings(const StepResult& r) {
  std::string out;
  for (const std::string& warning : r.all_warnings()) out += paragraph("warning", warning);
  return out.empty() ? "" : "\n" + out;
}

std::string simulation(const StepResult& r) {
  const std::string ranks = r.simulated_ranks == r.gpus
                                ? fmt::format("all {} ranks", count_text(r.gpus))
                                : fmt::format("{} ranks that stand for {}",
                                              count_text(r.simulated_ranks), count_text(r.gpus));
  return "\n" +
         paragraph("simulated", fmt::format("{}: {} events in {:.2f} s; fingerprint {}", ranks,
                                            count_text(r.events), r.wall_seconds, r.fingerprint()));
}

}  // namespace

std::string step_table(const StepResult& result, const std::optional<PublishedFigures>& published) {
  std::string out = headline(result);
  if (published) out += beside_published(result, *published);
  out += time_account(result);
  out += memory(result);
  out += network(result);
  out += jobs(result);
  out += storage(result);
  out += warnings(result);
  return out + simulation(result);
}

}  // namespace herdsim
