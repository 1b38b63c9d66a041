#include "tools/herdsim/step_trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "sim/base/text.h"
#include "tools/simulation/step_trace.h"
#include "tools/simulation/trace_layers.h"
#include "traces/perfetto_writer.h"

namespace herdsim {
namespace {

std::string ordinal(size_t n) {
  const bool teens = n % 100 >= 11 && n % 100 <= 13;
  const char* ending = teens         ? "th"
                       : n % 10 == 1 ? "st"
                       : n % 10 == 2 ? "nd"
                       : n % 10 == 3 ? "rd"
                                     : "th";
  return fmt::format("{}{}", n, ending);
}

struct Choice {
  std::vector<RankId> ranks;
  std::string note;
};

// Ranks that are kept together, the most interesting first.
struct Group {
  std::vector<RankId> ranks;
  std::string_view all, some;  // "every stage's first rank", "the stages' first ranks"
};

std::vector<RankId> without(const std::vector<RankId>& ranks, const std::vector<RankId>& taken) {
  std::vector<RankId> left;
  std::set_difference(ranks.begin(), ranks.end(), taken.begin(), taken.end(),
                      std::back_inserter(left));
  return left;
}

std::array<Group, 3> groups_of(const Scenario& scenario, const std::vector<RankId>& wanted) {
  const auto among = [&](std::vector<RankId> ranks) {
    std::vector<RankId> found;
    std::sort(ranks.begin(), ranks.end());
    std::set_intersection(wanted.begin(), wanted.end(), ranks.begin(), ranks.end(),
                          std::back_inserter(found));
    return found;
  };
  std::vector<RankId> degraded;
  for (const Degradation& part : scenario.cluster.degraded) {
    if (part.gpu >= 0) degraded.emplace_back(static_cast<size_t>(part.gpu));
  }
  degraded = among(std::move(degraded));
  const std::vector<RankId> sample = among(sampled_ranks(scenario));
  return {Group{degraded, "every degraded rank", "the degraded ranks"},
          Group{without(sample, degraded), "every stage's first rank", "the stages' first ranks"},
          Group{without(without(wanted, sample), degraded), "all others asked for",
                "the others asked for"}};
}

// At most `room` of the ranks wanted: whole groups, then every k-th of one.
Choice choose(const Scenario& scenario, const std::vector<RankId>& wanted, size_t room,
              Bytes budget) {
  Choice choice;
  std::string how;
  for (const Group& group : groups_of(scenario, wanted)) {
    if (group.ranks.empty() || room == 0) continue;
    const size_t k = (group.ranks.size() + room - 1) / room;
    for (size_t i = 0; i < group.ranks.size(); i += k) choice.ranks.push_back(group.ranks[i]);
    how += how.empty() ? "" : ", ";
    how += k == 1 ? std::string(group.all) : fmt::format("every {} of {}", ordinal(k), group.some);
    room = k == 1 ? room - group.ranks.size() : 0;
  }
  std::sort(choice.ranks.begin(), choice.ranks.end());
  choice.note =
      fmt::format("shows {} of {} ranks", count_text(static_cast<int64_t>(choice.ranks.size())),
                  count_text(scenario.gpus));
  if (choice.ranks.size() < wanted.size()) {
    choice.note +=
        fmt::format(", {} asked for: {}, to stay under {}",
                    count_text(static_cast<int64_t>(wanted.size())), how, to_text(budget));
  }
  return choice;
}

TracedStep simulate_chosen(const Scenario& scenario, StepOptions options, Choice choice) {
  options.traced_ranks = std::move(choice.ranks);
  return {simulate_step(scenario, options), std::move(choice.note)};
}

// Estimates of deflated files may be a third too low.
size_t room_for(const StepTrace& trace, Bytes budget) {
  const double a_rank =
      static_cast<double>(estimated_trace_bytes(trace)) / static_cast<double>(trace.ranks.size());
  return std::max<size_t>(1,
                          static_cast<size_t>(0.7 * static_cast<double>(budget.count()) / a_rank));
}

}  // namespace

TracedStep simulate_traced(const Scenario& scenario, const StepOptions& options,
                           const std::vector<RankId>& wanted, Bytes budget) {
  const size_t sample = sampled_ranks(scenario).size();
  TracedStep step = simulate_chosen(scenario, options, choose(scenario, wanted, sample, budget));
  const size_t room = room_for(step.simulation.trace, budget);
  Choice choice = choose(scenario, wanted, room, budget);
  if (choice.ranks.size() == step.simulation.trace.ranks.size()) {
    step.note = std::move(choice.note);
    return step;
  }
  return simulate_chosen(scenario, options, std::move(choice));
}

std::string write_step_trace(const Scenario& scenario, const StepOptions& options, TracedStep& step,
                             const std::vector<RankId>& wanted, Bytes budget,
                             const std::string& path) {
  while (true) {
    TraceOverlay overlay = trace_overlay(step.simulation);
    overlay.notes.push_back(step.note);
    const PerfettoCounts counts =
        write_perfetto_file(step.simulation.trace, path, {.overlay = &overlay});
    const size_t ranks = step.simulation.trace.ranks.size();
    if (counts.file_bytes <= budget.count() || ranks == 1) {
      return fmt::format("{} {}, {}", count_text(static_cast<int64_t>(ranks)),
                         ranks == 1 ? "rank" : "ranks", to_text(Bytes(counts.file_bytes)));
    }
    const double share =
        static_cast<double>(budget.count()) / static_cast<double>(counts.file_bytes);
    const auto room = static_cast<size_t>(0.9 * share * static_cast<double>(ranks));
    step = simulate_chosen(scenario, options,
                           choose(scenario, wanted, std::max<size_t>(1, room), budget));
  }
}

}  // namespace herdsim
