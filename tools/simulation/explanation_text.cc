#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "tools/simulation/explanation.h"
#include "tools/simulation/path_summary.h"
#include "tools/simulation/verdict.h"

namespace herdsim {
namespace {

std::string calls_text(double calls) {
  return calls == static_cast<double>(static_cast<int64_t>(calls))
             ? count_text(static_cast<int64_t>(calls))
             : fmt::format("{:.1f}", calls);
}

std::string wrapped(const std::string& text) {
  TextTable lines({{"", Align::kWrap}});
  lines.add_row({text});
  return lines.text();
}

std::string kernel_table(const Explanation& e, double whole) {
  TextTable kernels({{"kernel", Align::kWrap},
                     {"shape"},
                     {"calls", Align::kRight},
                     {"a call", Align::kRight},
                     {"of step", Align::kRight},
                     {"of bound", Align::kRight},
                     {"rate"}});
  for (const ExplainedKernel& k : e.kernels) {
    if (k.seconds < 0.0005 * whole) continue;
    kernels.add_row(
        {k.name, k.shape, calls_text(k.calls), to_text(k.time),
         fmt::format("{:.1f} %", 100 * k.seconds / whole),
         fmt::format("{:.0f} % {}", 100 * k.of_bound.value(), k.memory_bound ? "HBM" : "peak"),
         fmt::format("{}{}", evidence_name(k.evidence).substr(0, 4), k.extrapolated ? "*" : "")});
  }
  return kernels.text();
}

std::string transfer_table(const Explanation& e) {
  TextTable transfers({{"transfer", Align::kWrap},
                       {"size", Align::kRight},
                       {"ranks/hosts", Align::kRight},
                       {"calls", Align::kRight},
                       {"algorithm"},
                       {"a call", Align::kRight},
                       {"GB/s", Align::kRight}});
  for (const ExplainedTransfer& t : e.transfers) {
    std::string how(algorithm_name(t.plan.algorithm));
    if (t.plan.algorithm != Algorithm::kPairwise)
      how += fmt::format(" {}", protocol_name(t.plan.protocol));
    if (t.plan.extrapolated) how += "*";
    transfers.add_row({t.name, to_text(t.bytes), fmt::format("{}/{}", t.group.ranks, t.group.nodes),
                       calls_text(t.calls), how, to_text(t.plan.alone()),
                       rate_text(t.bus_gigabytes) + "/" + rate_text(t.bound_gigabytes)});
  }
  return transfers.text();
}

nlohmann::ordered_json terms_json(const TimeAccount& terms) {
  nlohmann::ordered_json json;
  for (size_t t = 0; t < kTimeTerms; ++t) json[std::string(kTimeTermNames[t])] = terms[t].seconds();
  return json;
}

nlohmann::ordered_json path_json(const StepSimulation& step) {
  constexpr size_t kSegments = 20;
  const PathSummary path = path_summary(step);
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const PathLine& line : path.lines) {
    lines.push_back({{"what", line.what},
                     {"term", kTimeTermNames[static_cast<size_t>(line.term)]},
                     {"ops", line.ops},
                     {"total_s", line.time.seconds()}});
  }
  nlohmann::ordered_json segments = nlohmann::ordered_json::array();
  for (size_t i = 0; i < std::min(kSegments, path.segments.size()); ++i) {
    const PathSegment& s = path.segments[i];
    segments.push_back({{"rank", s.rank.index()},
                        {"stage", s.stage},
                        {"begin_s", (s.begin - Instant::start()).seconds()},
                        {"end_s", (s.end - Instant::start()).seconds()},
                        {"mostly", s.mostly},
                        {"share", s.share}});
  }
  return {{"ops", path.ops},
          {"ranks", path.ranks},
          {"changes_of_rank", path.changes},
          {"length_s", path.length.seconds()},
          {"by_term_s", terms_json(path.terms)},
          {"by_work", lines},
          {"longest_segments", segments}};
}

nlohmann::ordered_json without_json(const StepSimulation& step) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const StepWithout& without : step.without) {
    rows.push_back({{"without", kTimeTermNames[static_cast<size_t>(without.term)]},
                    {"step_time_s", without.step.seconds()},
                    {"shorter_by", 1 - without.step.seconds() / step.result.step_time.seconds()},
                    {"simulated", without.simulated}});
  }
  return rows;
}

}  // namespace

std::string explanation_table(const Scenario& scenario, const StepSimulation& step) {
  const Explanation e = explain_step(scenario, step);
  std::string text = wrapped(verdict(scenario, step).sentence);
  text += fmt::format("\nKernels of one rank of stage {}, the busiest, in a step of {}\n\n",
                      e.busiest_stage, to_text(step.result.step_time));
  text += kernel_table(e, step.result.step_time.seconds());
  text += wrapped(
      "h: heads. Rates are meas(ured) by this project, publ(ished), of a vend(or), assu(med); * "
      "outside "
      "the sizes they were measured for. " +
      measured_ranges(scenario));
  text += "\nTransfers, without contention; bus bandwidth beside what the links allow\n\n" +
          transfer_table(e);
  text +=
      "\n" + wrapped(fmt::format("Bubble: {:.1f} % of the step; {}'s closed form is {:.1f} % of a "
                                 "stage's compute with free transfers.",
                                 100 * e.bubble, scenario.training.schedule, 100 * e.bubble_bound));
  if (!step.critical_path.empty()) text += "\n" + path_table(step);
  if (!step.without.empty()) text += "\n" + without_table(step);
  return text;
}

std::string explanation_json(const Scenario& scenario, const StepSimulation& step) {
  const Explanation e = explain_step(scenario, step);
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const ExplainedKernel& k : e.kernels) {
    kernels.push_back(
        {{"kernel", k.name},
         {"shape", k.shape},
         {"calls", k.calls},
         {"call_s", k.time.seconds()},
         {"total_s", k.seconds},
         {"of_bound", k.of_bound.value()},
         {"bound", k.memory_bound ? "hbm" : "peak"},
         {"term", kTimeTermNames[static_cast<size_t>(k.term)]},
         {"flops", k.flops},
         {"hbm_bytes", k.moved.count()},
         {"flops_per_byte", k.intensity ? nlohmann::ordered_json(*k.intensity) : nullptr},
         {"evidence", evidence_name(k.evidence)},
         {"extrapolated", k.extrapolated}});
  }
  nlohmann::ordered_json transfers = nlohmann::ordered_json::array();
  for (const ExplainedTransfer& t : e.transfers) {
    transfers.push_back({{"transfer", t.name},
                         {"bytes", t.bytes.count()},
                         {"ranks", t.group.ranks},
                         {"hosts", t.group.nodes},
                         {"calls", t.calls},
                         {"algorithm", algorithm_name(t.plan.algorithm)},
                         {"protocol", protocol_name(t.plan.protocol)},
                         {"call_s", t.plan.alone().seconds()},
                         {"total_s", t.seconds},
                         {"extrapolated", t.plan.extrapolated},
                         {"bus_bandwidth_GBps", t.bus_gigabytes},
                         {"bound_GBps", t.bound_gigabytes}});
  }
  const Verdict found = verdict(scenario, step);
  const double ridge =
      step.result.peak.teraflops() * 1e3 / scenario.profile.hbm_bandwidth.gigabytes_per_second();
  const nlohmann::ordered_json all = {{"scenario", step.result.scenario},
                                      {"step_time_s", step.result.step_time.seconds()},
                                      {"busiest_stage", e.busiest_stage},
                                      {"bubble_fraction", e.bubble},
                                      {"bubble_closed_form_of_compute", e.bubble_bound},
                                      {"machine_flops_per_byte", ridge},
                                      {"measured_ranges", measured_ranges(scenario)},
                                      {"kernels", kernels},
                                      {"transfers", transfers},
                                      {"critical_path", path_json(step)},
                                      {"without", without_json(step)},
                                      {"verdict",
                                       {{"term", kTimeTermNames[static_cast<size_t>(found.term)]},
                                        {"of_step", found.of_step},
                                        {"shorter_by_at_most", found.gain},
                                        {"sentence", found.sentence}}}};
  return all.dump(2) + "\n";
}

}  // namespace herdsim
