#include "tools/study/error_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <charconv>
#include <cmath>

#include "sim/base/error.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/parallel_for.h"

namespace herdsim {
namespace {

// Of the published time: nearer than what any source prints.
constexpr double kCloseEnough = 1e-4;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// How much longer than published the step is with the input at a value.
class Excess {
 public:
  Excess(const ErrorQuestion& question, const UncertainInput& input)
      : question_(question), input_(input) {}

  double operator()(double value) const {
    const Scenario scenario = question_.variant(fmt::format("{}={}", input_.path, value));
    return simulate_step(scenario, {.result_alone = true}).result.step_time.seconds() - question_.published_step_time_s;
  }

 private:
  const ErrorQuestion& question_;
  const UncertainInput& input_;
};

// Where the excess, of opposite sign at the ends, crosses zero.
double solve(const Excess& excess, double a, double b, double excess_a, double excess_b,
             double tolerance) {
  double nearest = a, least = std::abs(excess_a);
  const auto watched = [&](double value) {
    const double e = excess(value);
    if (std::abs(e) < least) {
      least = std::abs(e);
      nearest = value;
    }
    return std::abs(e) <= tolerance ? 0.0 : e;
  };
  if (std::abs(excess_b) < least) {
    least = std::abs(excess_b);
    nearest = b;
  }
  std::uintmax_t most = 16;
  const auto narrow = [&](double low, double high) {
    return std::abs(high - low) <= 1e-6 * std::max(std::abs(low), std::abs(high));
  };
  if (a < b) {
    boost::math::tools::toms748_solve(watched, a, b, excess_a, excess_b, narrow, most);
  } else {
    boost::math::tools::toms748_solve(watched, b, a, excess_b, excess_a, narrow, most);
  }
  return nearest;
}

// For an input that takes whole numbers only: the one where the step is nearest to published.
double nearest_whole(const Excess& excess, double a, double b, double excess_a, double excess_b) {
  while (std::abs(b - a) > 1) {
    const double middle = std::round((a + b) / 2);
    const double e = excess(middle);
    const bool beyond = (e > 0) == (excess_b > 0);
    (beyond ? b : a) = middle;
    (beyond ? excess_b : excess_a) = e;
  }
  return std::abs(excess_a) <= std::abs(excess_b) ? a : b;
}

class Search {
 public:
  Search(const ErrorQuestion& question, double predicted)
      : question_(question), gap_(question.published_step_time_s - predicted) {}

  ErrorCause of(TornadoBar bar) const {
    ErrorCause cause{
        .bar = std::move(bar), .closes = 0, .towards = "", .published_at = std::nullopt};
    if (gap_ == 0) return cause;
    const double low = closed_by(cause.bar.low), high = closed_by(cause.bar.high);
    cause.closes = std::max({0.0, low, high});
    if (cause.closes == 0) return cause;
    const bool upwards = high >= low;
    cause.towards = upwards ? cause.bar.input.high : cause.bar.input.low;
    if (!cause.holds_published()) return cause;
    const auto base = number(cause.bar.input.value), end = number(cause.towards);
    if (base && end && *base != *end) {
      cause.published_at = crossing(cause.bar.input, *base, *end,
                                    (upwards ? cause.bar.high : cause.bar.low)->step_time_s);
    }
    return cause;
  }

 private:
  double closed_by(const std::optional<Outlook>& end) const {
    if (!end) return 0;
    const double predicted = question_.published_step_time_s - gap_;
    return (end->step_time_s - predicted) / gap_;
  }

  double crossing(const UncertainInput& input, double base, double end, double step_at_end) const {
    const Excess excess(question_, input);
    const double excess_end = step_at_end - question_.published_step_time_s;
    if (excess_end == 0) return end;
    try {
      return solve(excess, base, end, -gap_, excess_end,
                   kCloseEnough * question_.published_step_time_s);
    } catch (const SpecError&) {
      return nearest_whole(excess, base, end, -gap_, excess_end);
    }
  }

  const ErrorQuestion& question_;
  const double gap_;  // from the prediction to what was published
};

// Of the way from what was assumed to the end of the range, the part that the input has to go.
double part_of_range(const ErrorCause& cause) {
  const auto base = number(cause.bar.input.value);
  if (!cause.published_at || !base) return 1 / cause.closes;
  const auto end = number(cause.towards);
  return end && *end != *base ? (*cause.published_at - *base) / (*end - *base) : 1;
}

bool comes_before(const ErrorCause& a, const ErrorCause& b) {
  if (a.holds_published() != b.holds_published()) return a.holds_published();
  if (a.holds_published()) return part_of_range(a) < part_of_range(b);
  return a.closes > b.closes;
}

}  // namespace

double ErrorCauses::shortest_s() const { return predicted_s() / pace_range(sensitivity).fastest; }
double ErrorCauses::longest_s() const { return predicted_s() / pace_range(sensitivity).slowest; }

ErrorCauses error_causes(ErrorQuestion question, int threads) {
  ErrorCauses result;
  result.sensitivity = sensitivity(question.variant, question.inputs, {.threads = threads});
  result.causes.resize(result.sensitivity.bars.size());
  const Search search(question, result.sensitivity.base.step_time_s);
  parallel_for(result.causes.size(), threads,
               [&](size_t i) { result.causes[i] = search.of(result.sensitivity.bars[i]); });
  std::stable_sort(result.causes.begin(), result.causes.end(), comes_before);
  result.question = std::move(question);
  return result;
}

std::string conclusion(const ErrorCauses& causes) {
  const double gap = causes.question.published_step_time_s - causes.predicted_s();
  const auto explain = static_cast<size_t>(
      std::count_if(causes.causes.begin(), causes.causes.end(),
                    [](const ErrorCause& cause) { return cause.holds_published(); }));
  if (gap == 0) return "The prediction is what was published.";
  if (explain > 0) {
    const ErrorCause& first = causes.causes.front();
    const std::string value =
        first.published_at ? fmt::format("{:.4g}", *first.published_at) : first.towards;
    const std::string others =
        explain == 1 ? "no other input does"
                     : fmt::format("{} other{} would, too", explain - 1, explain == 2 ? "" : "s");
    return fmt::format(
        "{} = {} instead of {} alone explains the published time inside its range, and {}.",
        first.bar.input.path, value, first.bar.input.value, others);
  }
  const double reach = gap > 0 ? causes.longest_s() : causes.shortest_s();
  const bool together = (reach - causes.question.published_step_time_s) * gap >= 0;
  const std::string best =
      causes.causes.empty() || causes.causes.front().closes == 0
          ? "none leads towards it"
          : fmt::format("{} closes {:.0f} % of the gap", causes.causes.front().bar.input.path,
                        100 * causes.causes.front().closes);
  return fmt::format(
      "No single input explains the published time inside its range ({}), {}.", best,
      together
          ? "several together could"
          : fmt::format("nor do all together (to {:.4g} s): something is missing in the model, or "
                        "wrong in the run's description",
                        reach));
}

}  // namespace herdsim
