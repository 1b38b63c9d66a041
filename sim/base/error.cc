#include "sim/base/error.h"

#include <algorithm>
#include <numeric>

namespace herdsim {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

// Input that is quoted may hold anything; control characters would break lines and command terminals.
std::string printable(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xF]};
    }
  }
  return out;
}

std::string joined(const std::vector<Fault>& faults) {
  std::string all;
  for (const Fault& fault : faults) {
    if (!all.empty()) all += '\n';
    all += fault.text();
  }
  return all;
}

}  // namespace

std::string Fault::text() const {
  std::string out;
  if (!file.empty()) out += file + ":";
  if (line > 0) out += std::to_string(line) + ":" + std::to_string(column) + ":";
  if (!out.empty()) out += ' ';
  if (!field.empty()) out += field + ": ";
  out += problem;
  if (!allowed.empty()) out += "; allowed: " + allowed;
  if (!nearest.empty()) out += "; did you mean \"" + nearest + "\"?";
  return printable(out);
}

SpecError::SpecError(std::vector<Fault> faults)
    : std::runtime_error(joined(faults)), faults_(std::move(faults)) {}

void Faults::throw_if_any() const {
  if (!faults_.empty()) throw SpecError(faults_);
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  // A long garbage name has no neighbour, and the distance to it would be quadratic.
  if (name.size() > 200) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace herdsim
