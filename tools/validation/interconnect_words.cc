#include "tools/validation/interconnect_words.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace herdsim {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Where the number that ends before `end` begins; `end` where there is none.
size_t start_of_number(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && (is_digit(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  return begin;
}

double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The number before the last "x" of `text`, as in "8x" or "8 x"; 0 where there is none.
double times(std::string_view text) {
  for (size_t at = text.rfind('x'); at != std::string_view::npos && at > 0;
       at = text.rfind('x', at - 1)) {
    const size_t end = text[at - 1] == ' ' ? at - 1 : at;
    const size_t begin = start_of_number(text, end);
    if (begin < end) return number(text.substr(begin, end - begin));
    if (at == 0) break;
  }
  return 0;
}

bool says(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace

std::optional<double> gigabits_per_gpu(std::string_view words, int64_t gpus_per_node) {
  constexpr std::string_view kEndsOfClause = ",;:(";
  for (size_t unit = words.find("Gb"); unit != std::string_view::npos;
       unit = words.find("Gb", unit + 2)) {
    const size_t end = unit > 0 && words[unit - 1] == ' ' ? unit - 1 : unit;
    const size_t begin = start_of_number(words, end);
    if (begin == end) continue;
    const double rate = number(words.substr(begin, end - begin));
    if (!(rate > 0)) continue;
    const size_t before = words.substr(0, begin).find_last_of(kEndsOfClause);
    const size_t from = before == std::string_view::npos ? 0 : before + 1;
    const size_t to = std::min(words.find_first_of(",;", unit), words.size());
    const double ports = times(words.substr(from, begin - from));
    const std::string_view after = words.substr(unit, to - unit);
    const auto gpus = static_cast<double>(gpus_per_node);
    if (ports > 0) return ports * rate / gpus;
    return says(after, "node-node") || says(after, "per node") ? rate / gpus : rate;
  }
  return std::nullopt;
}

}  // namespace herdsim
