#include "sim/base/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

namespace herdsim {
namespace {

struct Unit {
  std::string_view name;
  double size;  // in units of the type
};

// Three significant digits without zeros behind the point: 6.22, 48.5, 150, 20.
std::string three_digits(double value) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

// In the largest unit that gives at least 1 once rounded. `units` go from small to large.
std::string with_unit(double value, std::span<const Unit> units) {
  const std::string_view sign = value < 0 ? "-" : "";
  value = std::abs(value);
  size_t i = 0;
  while (i + 1 < units.size() && value / units[i + 1].size >= 0.9995) ++i;
  return fmt::format("{}{} {}", sign, three_digits(value / units[i].size), units[i].name);
}

constexpr std::array<Unit, 4> kShortTimes = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::array<Unit, 3> kLongTimes = {{{"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}}};
constexpr std::array<Unit, 6> kByteUnits = {
    {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}}};
constexpr std::array<Unit, 6> kRateUnits = {
    {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"PB/s", 1e15}}};
constexpr std::array<Unit, 7> kFlopUnits = {{{"FLOP", 1},
                                             {"MFLOP", 1e6},
                                             {"GFLOP", 1e9},
                                             {"TFLOP", 1e12},
                                             {"PFLOP", 1e15},
                                             {"EFLOP", 1e18},
                                             {"ZFLOP", 1e21}}};
constexpr std::array<Unit, 4> kFlopRateUnits = {
    {{"FLOP/s", 1}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};

// What is read is multiplied exactly, so these sizes are integers.
struct ReadUnit {
  std::string_view name;
  int64_t size;  // in units of the type
};

constexpr int64_t kGiga = 1'000'000'000;
constexpr std::array<ReadUnit, 7> kReadTimes = {{{"ns", 1},
                                                 {"us", 1'000},
                                                 {"ms", 1'000'000},
                                                 {"s", kGiga},
                                                 {"min", 60 * kGiga},
                                                 {"h", 3600 * kGiga},
                                                 {"d", 86400 * kGiga}}};
constexpr std::array<ReadUnit, 10> kReadBytes = {{{"B", 1},
                                                  {"kB", 1'000},
                                                  {"MB", 1'000'000},
                                                  {"GB", kGiga},
                                                  {"TB", 1'000 * kGiga},
                                                  {"PB", 1'000'000 * kGiga},
                                                  {"KiB", int64_t{1} << 10},
                                                  {"MiB", int64_t{1} << 20},
                                                  {"GiB", int64_t{1} << 30},
                                                  {"TiB", int64_t{1} << 40}}};
constexpr std::array<ReadUnit, 8> kReadRates = {{{"Mb/s", 125'000},
                                                 {"Gb/s", 125'000'000},
                                                 {"Tb/s", 125 * kGiga},
                                                 {"B/s", 1},
                                                 {"kB/s", 1'000},
                                                 {"MB/s", 1'000'000},
                                                 {"GB/s", kGiga},
                                                 {"TB/s", 1'000 * kGiga}}};
// In units of 1e-15: a percentage with thirteen decimals is exact.
constexpr int64_t kRatioOne = 1'000'000 * kGiga;
constexpr std::array<ReadUnit, 2> kReadRatios = {{{"", kRatioOne}, {"%", kRatioOne / 100}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// digits [. digits] [spaces] unit, to the nearest unit of the type, halves up.
std::optional<int64_t> read(std::string_view text, std::span<const ReadUnit> units) {
  Int128 mantissa = 0, scale = 1;
  int digits = 0;
  bool behind_point = false;
  size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !behind_point)); ++i) {
    if (text[i] == '.') {
      behind_point = true;
      continue;
    }
    if (++digits > 18) return std::nullopt;  // 18 digits times the largest unit stay below 2^127
    mantissa = mantissa * 10 + (text[i] - '0');
    if (behind_point) scale *= 10;
  }
  if (digits == 0 || text[i - 1] == '.') return std::nullopt;
  while (i < text.size() && text[i] == ' ') ++i;
  for (const ReadUnit& unit : units) {
    if (text.substr(i) != unit.name) continue;
    const Int128 value = (2 * mantissa * unit.size + scale) / (2 * scale);
    if (value >= INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(value);
  }
  return std::nullopt;
}

}  // namespace

std::string to_text(Duration d) {
  if (!d.is_finite()) return "never";
  const double ticks = static_cast<double>(d.nanoseconds());
  return std::abs(ticks) < 120e9 ? with_unit(ticks, kShortTimes) : with_unit(ticks, kLongTimes);
}

std::string to_text(Bytes b) { return with_unit(static_cast<double>(b.count()), kByteUnits); }

std::string to_text(Bandwidth b) {
  return with_unit(static_cast<double>(b.bytes_per_second()), kRateUnits);
}

std::string to_text(Ratio r) { return fmt::format("{:.1f} %", r.value() * 100); }

std::string to_text(Flops f) { return with_unit(f.count(), kFlopUnits); }

std::string to_text(FlopRate r) { return with_unit(r.per_second(), kFlopRateUnits); }

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string count_text(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

std::optional<Duration> duration_from_text(std::string_view text) {
  const std::optional<int64_t> ticks = read(text, kReadTimes);
  return ticks ? std::optional(nanoseconds(*ticks)) : std::nullopt;
}

std::optional<Bytes> bytes_from_text(std::string_view text) {
  const std::optional<int64_t> count = read(text, kReadBytes);
  return count ? std::optional(Bytes(*count)) : std::nullopt;
}

std::optional<Bandwidth> bandwidth_from_text(std::string_view text) {
  const std::optional<int64_t> rate = read(text, kReadRates);
  return rate ? std::optional(Bandwidth::from_bytes_per_second(*rate)) : std::nullopt;
}

std::optional<Ratio> ratio_from_text(std::string_view text) {
  const std::optional<int64_t> parts = read(text, kReadRatios);
  if (!parts || *parts > kRatioOne) return std::nullopt;
  return Ratio(static_cast<double>(*parts) / static_cast<double>(kRatioOne));
}

}  // namespace herdsim
