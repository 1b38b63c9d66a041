// Numbers with units to text for people, and back for command lines and scenario files.
//
//   to_text(milliseconds(6220)) == "6.22 s"      duration_from_text("6.22 s") == milliseconds(6220)
//   to_text(gigabits_per_second(388)) == "48.5 GB/s"
//   to_text(Ratio(0.413)) == "41.3 %"            ratio_from_text("41.3 %") == Ratio(0.413)
//
// Printing keeps three significant digits and drops zeros behind the point; percentages keep one
// decimal. Units are decimal (GB is 1e9 bytes); the binary ones (GiB) are read but never written.
// Reading is exact: a number is taken as a decimal, not through a double, and rounded to the
// nearest unit of the type. The space before the unit is optional, the unit is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace herdsim {

// ns, us, ms, s up to two minutes, then min, h, d; "never" where infinite.
std::string to_text(Duration);
std::string to_text(Bytes);
std::string to_text(Bandwidth);
std::string to_text(Ratio);
std::string to_text(Flops);
std::string to_text(FlopRate);
// 16384 is "16,384".
std::string count_text(int64_t count);
// A field of a CSV line: in quotes where it holds a comma, a quote or a line end (RFC 4180).
std::string csv_field(std::string_view text);
// With the letters A to Z in lower case, whatever the locale.
std::string lower_case(std::string_view text);

// What a reader may write, for the `allowed` of a Fault.
inline constexpr std::string_view kDurationForm = "a number and ns, us, ms, s, min, h or d";
inline constexpr std::string_view kBytesForm =
    "a number and B, kB, MB, GB, TB, PB, KiB, MiB, GiB or TiB";
inline constexpr std::string_view kBandwidthForm =
    "a number and Mb/s, Gb/s, Tb/s, B/s, kB/s, MB/s, GB/s or TB/s";
inline constexpr std::string_view kRatioForm =
    "a number from 0 to 1, or a percentage from 0 % to 100 %";

// Empty where the text is not of that form, is negative, or is too large for the type.
std::optional<Duration> duration_from_text(std::string_view);
std::optional<Bytes> bytes_from_text(std::string_view);
std::optional<Bandwidth> bandwidth_from_text(std::string_view);
std::optional<Ratio> ratio_from_text(std::string_view);

}  // namespace herdsim
