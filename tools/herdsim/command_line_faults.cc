#include "tools/herdsim/command_line_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

std::optional<Fault> unknown_word(int argc, const char* const* argv, const Command& command) {
  const std::vector<OptionShape> shapes = option_shapes(command);
  std::vector<std::string> known;
  for (const OptionShape& shape : shapes)
    known.insert(known.end(), shape.names.begin(), shape.names.end());
  size_t operands = 0;
  bool all_operands = false;  // behind "--"
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") {
      all_operands = true;
      continue;
    }
    const bool is_option =
        !all_operands && word.size() > 1 && word[0] == '-' &&
        (word[1] == '-' || std::isalpha(static_cast<unsigned char>(word[1])) != 0);
    Fault fault;
    if (is_option) {
      const std::string name(word.substr(0, word.find('=')));
      const auto shape = std::find_if(shapes.begin(), shapes.end(), [&](const OptionShape& s) {
        return std::find(s.names.begin(), s.names.end(), name) != s.names.end();
      });
      if (shape != shapes.end()) {
        i += shape->value.empty() || word.find('=') != std::string_view::npos ? 0 : 1;
        continue;
      }
      fault.field = name.substr(0, 80);
      fault.problem = fmt::format("is no option of 'herdsim {}'", command.name);
      fault.allowed = fmt::format("{}", fmt::join(known, ", "));
      if (name.starts_with("--")) fault.nearest = nearest_name(name, known);  // letters are all near
      return fault;
    }
    if (++operands <= command.most_operands) continue;
    fault.problem = fmt::format("\"{}\" is one operand too many", word.substr(0, 80));
    fault.allowed = fmt::format("herdsim {} [OPTIONS]{}{}", command.name,
                                command.operands.empty() ? "" : " ", command.operands);
    return fault;
  }
  return std::nullopt;
}

void check_options(const Command& command, const Options& options) {
  Faults faults;
  if ((command.options & kHorizon) != 0 && options.days > 0 && options.tokens > 0) {
    faults.add(
        {.field = "--tokens", .problem = "is given beside --days", .allowed = "one of the two"});
  }
  const bool has_spans = !options.trace.empty() || !options.db.empty();
  if ((command.options & kTrace) != 0 && !has_spans &&
      (!options.trace_ranks.empty() || options.trace_budget != Options().trace_budget)) {
    faults.add({.field = options.trace_ranks.empty() ? "--trace-budget" : "--trace-ranks",
                .problem = "changes nothing: no trace is written",
                .allowed = "with --trace FILE.pftrace or --db FILE"});
  }
  faults.throw_if_any();
}

}  // namespace herdsim
