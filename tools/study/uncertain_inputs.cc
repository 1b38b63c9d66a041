#include "tools/study/uncertain_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "sim/models/queueing.h"
#include "sim/reliability/reliability_base.h"
#include "tools/scenario/catalog.h"

namespace herdsim {
namespace {

constexpr std::array<std::string_view, 5> kEvidence = {"assumed", "published", "derived", "vendor",
                                                       "measured"};

// The 54 days of Llama 3 405B: 419 unexpected interruptions.
constexpr double kLlama3Interruptions = 419;
constexpr std::string_view kLlama3Base = "llama3-54-days";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return line;
}

bool is_value_end(char c) { return c == ' ' || c == ':' || c == ';' || c == ',' || c == '('; }

// Takes a value off the front: a number or an enumerator.
std::string_view take_value(std::string_view& text) {
  text = trimmed(text);
  size_t end = 0;
  while (end < text.size() && !is_value_end(text[end])) ++end;
  std::string_view value = text.substr(0, end);
  text.remove_prefix(end);
  if (value.ends_with('.')) value.remove_suffix(1);
  return value;
}

void skip_bracket(std::string_view& text) {
  text = trimmed(text);
  if (text.starts_with('(')) text = text.substr(std::min(text.size(), text.find(')') + 1));
}

struct Range {
  std::string_view evidence, low, high, source;
};

// "assumed, 0.92 to 0.97: why" as a range; nothing where the comment states none.
std::optional<Range> range_of(std::string_view comment) {
  Range range;
  for (const std::string_view evidence : kEvidence) {
    if (comment.starts_with(evidence)) range.evidence = evidence;
  }
  if (range.evidence.empty()) return std::nullopt;
  std::string_view rest = comment.substr(range.evidence.size());
  if (!rest.starts_with(',') && !rest.starts_with(';')) return std::nullopt;
  rest.remove_prefix(1);
  range.low = take_value(rest);
  skip_bracket(rest);
  rest = trimmed(rest);
  if (!rest.starts_with("to ") || range.low.empty()) return std::nullopt;
  rest.remove_prefix(3);
  range.high = take_value(rest);
  if (range.high.empty()) return std::nullopt;
  range.source = trimmed(comment.substr(range.evidence.size() + 1));
  return range;
}

struct FirstField {
  std::string path;
  std::string_view value;
};

std::string_view unquoted(std::string_view value) {
  if (value.starts_with('"')) value.remove_prefix(1);
  if (value.ends_with('"')) value.remove_suffix(1);
  return value;
}

// Of "forward { hidden_bytes: 78 ffn_bytes: 6 }": "forward.hidden_bytes" and "78".
std::optional<FirstField> first_field(std::string_view line) {
  FirstField field;
  line = trimmed(line);
  for (size_t open = line.find('{'); open < line.find(':'); open = line.find('{')) {
    field.path += std::string(trimmed(line.substr(0, open))) + '.';
    line = trimmed(line.substr(open + 1));
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  field.path += trimmed(line.substr(0, colon));
  const std::string_view rest = trimmed(line.substr(colon + 1));
  field.value = unquoted(rest.substr(0, rest.find(' ')));
  return field;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_within(const UncertainInput& input) {
  const auto value = number(input.value), low = number(input.low), high = number(input.high);
  if (value && low && high) return *low <= *value && *value <= *high;
  return input.value == input.low || input.value == input.high;
}

void add_entry(CatalogKind kind, std::string_view part, std::string_view effective_text,
               std::vector<UncertainInput>& out) {
  const std::string name = effective_value(effective_text, fmt::format("{}.name", part));
  const auto entry = catalog_find(kind, name);
  if (!entry) return;
  for (UncertainInput& input : ranges_in(entry->text)) {
    input.path = fmt::format("{}.{}", part, input.path);
    input.value = effective_value(effective_text, input.path);
    if (is_within(input)) out.push_back(std::move(input));
  }
}

// It multiplies the clock of the profile.
UncertainInput clock_of_a_step(std::string value) {
  return {"software.clock_factor", std::move(value), "0.98", "1.02", "derived",
          "the clock under power of a whole step, fitted with the steps of H100 stacks 2 % off in the "
          "median"};
}

// Rates that nobody has published, of the classes that the base has.
void add_assumed_rates(std::string_view effective_text, std::vector<UncertainInput>& out) {
  const ReliabilityBase* base =
      find_reliability_base(effective_value(effective_text, "reliability.base"));
  if (base == nullptr) return;
  for (const FailureClass& row : classes_of(*base)) {
    if (!row.rate_range) continue;
    out.push_back({fmt::format("reliability.classes.{}.scale", row.name), "1",
                   fmt::format("{:g}", row.rate_range->low), fmt::format("{:g}", row.rate_range->high),
                   "assumed", std::string(row.rate_range->source)});
  }
}

// Inputs whose range is not one number's comment.
void add_others(std::string_view effective_text, std::vector<UncertainInput>& out) {
  const auto add = [&](UncertainInput input) {
    input.value = effective_value(effective_text, input.path);
    if (is_within(input)) out.push_back(std::move(input));
  };
  add(clock_of_a_step(""));
  add_assumed_rates(effective_text, out);
  if (effective_value(effective_text, "reliability.base") != kLlama3Base) return;
  const Band band = poisson_band(kLlama3Interruptions);
  add({"reliability.rate_scale", "", fmt::format("{:.3f}", band.low / kLlama3Interruptions),
       fmt::format("{:.3f}", band.high / kLlama3Interruptions), "published",
       fmt::format("{:.0f} unexpected interruptions in 54 days (arXiv:2407.21783): the exact 95 % "
                   "band of such a count is {:.0f} to {:.0f}",
                   kLlama3Interruptions, band.low, band.high)});
}

}  // namespace

std::vector<UncertainInput> ranges_in(std::string_view text) {
  std::vector<UncertainInput> inputs;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const size_t hash = line.find('#');
    if (hash == std::string_view::npos) continue;
    const auto range = range_of(trimmed(line.substr(hash + 1)));
    const auto field = first_field(line.substr(0, hash));
    if (!range || !field) continue;
    inputs.push_back({.path = field->path,
                      .value = std::string(field->value),
                      .low = std::string(range->low),
                      .high = std::string(range->high),
                      .evidence = std::string(range->evidence),
                      .source = std::string(range->source)});
  }
  return inputs;
}

std::vector<UncertainInput> uncertain_inputs_of_software(const std::string& name) {
  std::vector<UncertainInput> inputs;
  if (const auto entry = catalog_find(CatalogKind::kSoftware, name)) inputs = ranges_in(entry->text);
  for (UncertainInput& input : inputs) input.path = "software." + input.path;
  const UncertainInput clock = clock_of_a_step("1");
  const bool has_its_own = std::any_of(inputs.begin(), inputs.end(),
                                       [&](const UncertainInput& input) { return input.path == clock.path; });
  if (!has_its_own) inputs.push_back(clock);
  return inputs;
}

std::vector<UncertainInput> uncertain_inputs(std::string_view effective_text) {
  std::vector<UncertainInput> inputs;
  add_entry(CatalogKind::kClusters, "cluster", effective_text, inputs);
  add_entry(CatalogKind::kSoftware, "software", effective_text, inputs);
  add_others(effective_text, inputs);
  return inputs;
}

std::string effective_value(std::string_view effective_text, std::string_view path) {
  std::string inside;
  while (!effective_text.empty()) {
    const std::string_view line = next_line(effective_text);
    const std::string_view code = trimmed(line.substr(0, line.find('#')));
    if (code == "}") {
      const size_t dot = inside.rfind('.', inside.size() - 2);
      inside.resize(dot == std::string::npos ? 0 : dot + 1);
    } else if (code.ends_with('{')) {
      inside += std::string(trimmed(code.substr(0, code.size() - 1))) + '.';
    } else if (const size_t colon = code.find(':'); colon != std::string_view::npos) {
      if (inside + std::string(code.substr(0, colon)) == path) {
        return std::string(unquoted(trimmed(code.substr(colon + 1))));
      }
    }
  }
  return "";
}

}  // namespace herdsim
