#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "sim/metrics/term_labels.h"
#include "tools/study/error_causes.h"

namespace herdsim {
namespace {

std::string seconds(double s) { return fmt::format("{:.4g}", s); }
std::string seconds(const std::optional<Outlook>& at) {
  return at ? seconds(at->step_time_s) : "-";
}

std::string in_lines(const std::string& text) {
  TextTable table({{"", Align::kWrap}});
  table.add_row({text});
  return table.text();
}

// The parts of the prediction beside the published time.
std::string account_table(const ErrorCauses& causes) {
  const double published = causes.question.published_step_time_s;
  TextTable table(
      {{"time of the mean rank"}, {"seconds", Align::kRight}, {"of published", Align::kRight}});
  const auto add = [&](std::string name, double s) {
    table.add_row(
        {std::move(name), fmt::format("{:.4f}", s), fmt::format("{:.1f} %", 100 * s / published)});
  };
  const auto account = causes.sensitivity.step.time_account_seconds();
  for (size_t i = 0; i < kTimeTerms; ++i) {
    if (account[i] != 0) add(std::string(kTermLabels[i]), account[i]);
  }
  add("predicted", causes.predicted_s());
  add("published", published);
  add(causes.error() < 0 ? "missing" : "too much", std::abs(published - causes.predicted_s()));
  return table.text();
}

bool moves(const ErrorCause& cause, double predicted) {
  const auto moved = [&](const std::optional<Outlook>& end) {
    return end && end->step_time_s != predicted;
  };
  return moved(cause.bar.low) || moved(cause.bar.high);
}

std::string causes_table(const ErrorCauses& causes) {
  TextTable table({{"input"},
                   {"value", Align::kRight},
                   {"range"},
                   {"step, s", Align::kRight},
                   {"closes", Align::kRight},
                   {"published at", Align::kRight},
                   {"basis"}});
  std::string still, problems;
  for (const ErrorCause& cause : causes.causes) {
    const UncertainInput& input = cause.bar.input;
    if (!cause.bar.problem.empty())
      problems += fmt::format("{}: {}\n", input.path, cause.bar.problem);
    if (!moves(cause, causes.predicted_s())) {
      if (cause.bar.problem.empty()) still += (still.empty() ? "" : ", ") + input.path;
      continue;
    }
    const std::string closes = cause.holds_published() ? "all"
                               : cause.closes > 0      ? fmt::format("{:.0f} %", 100 * cause.closes)
                                                       : "-";
    table.add_row({input.path, input.value, input.low + " to " + input.high,
                   seconds(cause.bar.low) + " to " + seconds(cause.bar.high), closes,
                   cause.published_at        ? fmt::format("{:.4g}", *cause.published_at)
                   : cause.holds_published() ? cause.towards
                                             : "-",
                   input.evidence});
  }
  std::string text = table.text();
  if (!still.empty()) text += in_lines("change nothing here: " + still);
  return text + problems;
}

nlohmann::ordered_json step_at(const std::optional<Outlook>& end) {
  return end ? nlohmann::ordered_json(end->step_time_s) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string error_causes_table(const ErrorCauses& causes) {
  const ErrorQuestion& q = causes.question;
  std::string text =
      fmt::format("{}{}{}\npredicted {} s, published {} s: {:.1f} % too {}\n\n", q.name,
                  q.description.empty() ? "" : ": ", q.description, seconds(causes.predicted_s()),
                  seconds(q.published_step_time_s), 100 * std::abs(causes.error()),
                  causes.error() < 0 ? "short" : "long");
  text += account_table(causes) + '\n' + causes_table(causes);
  if (!q.assumed.empty()) {
    text += in_lines(fmt::format("the run does not state: {}", fmt::join(q.assumed, "; ")));
  }
  text += fmt::format("all inputs together: {} to {} s (roots of sums of squares)\n\n",
                      seconds(causes.shortest_s()), seconds(causes.longest_s()));
  return text + in_lines(conclusion(causes));
}

std::string error_causes_json(const ErrorCauses& causes) {
  nlohmann::ordered_json account, inputs = nlohmann::ordered_json::array();
  const auto seconds_of = causes.sensitivity.step.time_account_seconds();
  for (size_t i = 0; i < kTimeTerms; ++i) account[std::string(kTimeTermNames[i])] = seconds_of[i];
  for (const ErrorCause& cause : causes.causes) {
    const UncertainInput& input = cause.bar.input;
    nlohmann::ordered_json j = {{"input", input.path},
                                {"value", input.value},
                                {"low", input.low},
                                {"high", input.high},
                                {"evidence", input.evidence},
                                {"source", input.source},
                                {"step_time_s_at_low", step_at(cause.bar.low)},
                                {"step_time_s_at_high", step_at(cause.bar.high)},
                                {"closes", cause.closes},
                                {"holds_published", cause.holds_published()}};
    j["published_at"] = cause.published_at ? nlohmann::ordered_json(*cause.published_at)
                                           : nlohmann::ordered_json(nullptr);
    if (!cause.bar.problem.empty()) j["problem"] = cause.bar.problem;
    inputs.push_back(std::move(j));
  }
  const ErrorQuestion& q = causes.question;
  return nlohmann::ordered_json{{"row", q.name},
                                {"description", q.description},
                                {"predicted_step_time_s", causes.predicted_s()},
                                {"published_step_time_s", q.published_step_time_s},
                                {"error", causes.error()},
                                {"time_account_s", std::move(account)},
                                {"assumed", q.assumed},
                                {"shortest_step_time_s", causes.shortest_s()},
                                {"longest_step_time_s", causes.longest_s()},
                                {"inputs", std::move(inputs)},
                                {"conclusion", conclusion(causes)}}
             .dump(1) +
         '\n';
}

std::string error_causes_csv(const ErrorCauses& causes) {
  std::string text =
      "row,input,value,low,high,evidence,step_time_s_at_low,step_time_s_at_high,closes,published_"
      "at,source\n";
  const auto at = [](const std::optional<Outlook>& end) {
    return end ? fmt::format("{}", end->step_time_s) : std::string();
  };
  for (const ErrorCause& cause : causes.causes) {
    const UncertainInput& input = cause.bar.input;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(causes.question.name), csv_field(input.path),
        csv_field(input.value), csv_field(input.low), csv_field(input.high), input.evidence,
        at(cause.bar.low), at(cause.bar.high), cause.closes,
        cause.published_at ? fmt::format("{}", *cause.published_at) : "", csv_field(input.source));
  }
  return text;
}

}  // namespace herdsim
