#include "tools/herdsim/manual.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "sim/base/error.h"
#include "tools/herdsim/load_options.h"
#include "tools/herdsim/version.h"

namespace herdsim {
namespace {

constexpr std::string_view kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nDone.\n"
    ".TP\n.B 1\nThe answer is outside the bounds that were asked for.\n"
    ".TP\n.B 2\nBad input; every fault is named, with file, line, field and what is allowed.\n"
    ".TP\n.B 70\nInternal error.\n";

// Plain text in a line of a page: no character is markup, and hyphens stay hyphens when copied.
std::string escaped(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string heading(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} 1 {} \"herdsim {}\" \"Herdsim\"\n", escaped(upper), kVersionDate,
                     kVersion);
}

std::string options_section(const Command& command) {
  std::string text = ".SH OPTIONS\n";
  for (const OptionShape& option : option_shapes(command)) {
    std::string names;
    for (const std::string& name : option.names) {
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", escaped(name));
    }
    if (!option.value.empty()) names += fmt::format(" \\fI{}\\fR", escaped(option.value));
    text += fmt::format(".TP\n{}\n{}.\n", names, escaped(option.help));
  }
  return text;
}

std::string see_also(const Command* but) {
  std::string text = ".SH SEE ALSO\n";
  if (but != nullptr) text += ".BR herdsim (1),\n";
  const Command* last = &commands().back() == but ? &commands().back() - 1 : &commands().back();
  for (const Command& command : commands()) {
    if (&command == but) continue;
    text += fmt::format(".BR {} (1){}\n", escaped(fmt::format("herdsim-{}", command.name)),
                        &command == last ? "" : ",");
  }
  return text;
}

std::string page_name(const Command& command) { return fmt::format("herdsim-{}.1", command.name); }

void write_page(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string path = folder + "/" + name;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) reject("--output", fmt::format("cannot write {}", path), "a folder that exists");
}

}  // namespace

std::string manual_page() {
  std::string text = heading("herdsim");
  text +=
      ".SH NAME\nherdsim \\- simulate large GPU training clusters\n"
      ".SH SYNOPSIS\n.B herdsim\n.I COMMAND\n[\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\nPredicts how long a training step takes on a cluster of GPUs and what its\n"
      "model FLOP/s utilization (MFU) is, and how much of weeks of training is left after\n"
      "failures, from one model.\n.SH COMMANDS\n";
  for (const Command& command : commands()) {
    text += fmt::format(".TP\n\\fB{}\\fR {}\n{}.\n", command.name, escaped(command.operands),
                        escaped(command.help));
  }
  text += kExitStatus;
  text +=
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nWhere set and not empty, nothing is coloured. "
      "Without it, faults and warnings are, on a terminal alone.\n";
  text +=
      ".SH EXAMPLES\n.nf\n"
      "herdsim step llama3\\-405b\\-16384\n"
      "herdsim step llama3\\-405b\\-16384 \\-\\-set parallel.tp=4 \\-\\-set parallel.dp=256\n"
      "herdsim run llama3\\-405b\\-16384 \\-\\-days 54 \\-\\-replicas 100\n"
      "herdsim help spec\n.fi\n";
  return text + see_also(nullptr);
}

std::string manual_page(const Command& command) {
  const std::string name = fmt::format("herdsim-{}", command.name);
  return fmt::format(
             "{}.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B herdsim {}\n[\\fIOPTIONS\\fR] {}\n"
             ".SH DESCRIPTION\n{}.\n",
             heading(name), escaped(name), escaped(command.help), command.name,
             escaped(command.operands), escaped(command.help)) +
         options_section(command) + std::string(kExitStatus) + see_also(&command);
}

int run_man_command(const Options& options, Streams streams) {
  if (!options.output.empty()) {
    if (!options.names.empty()) reject("man", "-o writes every page", "no COMMAND with -o");
    write_page(options.output, "herdsim.1", manual_page());
    for (const Command& command : commands()) {
      write_page(options.output, page_name(command), manual_page(command));
    }
    return kExitDone;
  }
  if (options.names.empty()) {
    fmt::print(streams.out, "{}", manual_page());
    return kExitDone;
  }
  const Command* command = find_command(options.names.front());
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const Command& known : commands()) names.emplace_back(known.name);
    reject("man", fmt::format("there is no command '{}'", options.names.front()),
           fmt::format("{}", fmt::join(names, ", ")), nearest_name(options.names.front(), names));
  }
  fmt::print(streams.out, "{}", manual_page(*command));
  return kExitDone;
}

}  // namespace herdsim
