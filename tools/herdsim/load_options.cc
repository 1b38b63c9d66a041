#include "tools/herdsim/load_options.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <thread>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "tools/herdsim/terminal.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/step_trace.h"

namespace herdsim {
namespace {

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// "training.precision=FP8": a field before the sign, and no folder.
bool is_change(std::string_view operand) {
  const size_t equals = operand.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         operand.substr(0, equals).find_first_of("/ ") == std::string_view::npos;
}

}  // namespace

void reject(std::string field, std::string problem, std::string allowed, std::string nearest) {
  Fault fault;
  fault.field = std::move(field);
  fault.problem = std::move(problem);
  fault.allowed = std::move(allowed);
  fault.nearest = std::move(nearest);
  throw SpecError({fault});
}

Scenario scenario_of(const Options& options, const std::string& name) {
  std::vector<std::string> sets = options.sets;
  if (options.seed) sets.push_back(fmt::format("seed={}", *options.seed));
  return load_scenario(name, sets);
}

std::vector<Scenario> scenarios_of(const Options& options) {
  const std::string& first = options.names.front();
  std::vector<Scenario> scenarios;
  for (const std::string& operand : options.names) {
    if (&operand == &first || !is_change(operand)) {
      scenarios.push_back(scenario_of(options, operand));
      continue;
    }
    Options changed = options;
    for (const std::string_view set : split(operand, ';')) changed.sets.emplace_back(set);
    scenarios.push_back(scenario_of(changed, first));
    scenarios.back().name = operand;
  }
  return scenarios;
}

int threads_of(const Options& options) {
  return options.threads > 0 ? options.threads
                             : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::vector<RankId> ranks_of(const std::string& text, const Scenario& scenario) {
  if (text.empty()) return sampled_ranks(scenario);
  std::vector<RankId> ranks;
  const auto add = [&](int64_t first, int64_t last) {
    for (int64_t r = first; r <= last; ++r) ranks.emplace_back(static_cast<size_t>(r));
  };
  if (text == "all") {
    add(0, scenario.gpus - 1);
    return ranks;
  }
  for (const std::string_view part : split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = number_of<int64_t>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : number_of<int64_t>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= scenario.gpus) {
      reject("--trace-ranks", fmt::format("\"{}\" is not a rank or a range of ranks", part),
             fmt::format("all, or numbers and ranges from 0 to {}, such as 0-127,4096",
                         scenario.gpus - 1));
    }
    add(*first, *last);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Bytes trace_budget(const Options& options) {
  const std::optional<Bytes> budget = bytes_from_text(options.trace_budget);
  if (!budget || *budget == Bytes(0)) {
    reject("--trace-budget", fmt::format("\"{}\" is no size of a file", options.trace_budget),
           std::string(kBytesForm));
  }
  return *budget;
}

void print_warnings(const std::vector<std::string>& warnings, const Options& options,
                    Streams streams) {
  if (options.quiet) return;
  for (const std::string& warning : warnings) {
    fmt::print(streams.err, "{} {}\n", coloured("warning:", Colour::kYellow, streams.err), warning);
  }
}

std::vector<Requirement> requirements_of(const Options& options,
                                         const std::vector<std::string>& figures) {
  std::vector<Requirement> requirements;
  Faults faults;
  for (const std::string& condition : options.require) {
    const size_t at = condition.find_first_of("<>");
    const bool formed =
        at != std::string::npos && at > 0 && condition.size() > at + 2 && condition[at + 1] == '=';
    const auto bound =
        formed ? number_of<double>(std::string_view(condition).substr(at + 2)) : std::nullopt;
    if (!bound || std::isnan(*bound)) {
      faults.add({.field = "--require",
                  .problem = fmt::format("\"{}\" is not a condition", condition),
                  .allowed = "FIGURE>=VALUE or FIGURE<=VALUE"});
      continue;
    }
    const std::string name = condition.substr(0, at);
    const auto figure = std::find(figures.begin(), figures.end(), name);
    if (figure == figures.end()) {
      faults.add({.field = "--require",
                  .problem = fmt::format("there is no figure \"{}\"", name),
                  .allowed = fmt::format("{}", fmt::join(figures, ", ")),
                  .nearest = nearest_name(name, figures)});
      continue;
    }
    requirements.push_back({.text = condition,
                            .figure = static_cast<size_t>(figure - figures.begin()),
                            .at_least = condition[at] == '>',
                            .bound = *bound});
  }
  faults.throw_if_any();
  return requirements;
}

int check_requirements(const std::vector<Requirement>& requirements,
                       const std::vector<double>& figures, Streams streams) {
  int status = kExitDone;
  for (const Requirement& r : requirements) {
    const double value = figures[r.figure];
    if (r.at_least ? value >= r.bound : value <= r.bound) continue;
    fmt::print(streams.err, "{} {} ({} is {:.6g})\n",
               coloured("not met:", Colour::kRed, streams.err), r.text,
               r.text.substr(0, r.text.find_first_of("<>")), value);
    status = kExitOutOfBounds;
  }
  return status;
}

}  // namespace herdsim
