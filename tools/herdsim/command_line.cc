#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <map>
#include <optional>

#include "sim/base/error.h"
#include "sim/base/table.h"
#include "sim/base/text.h"
#include "tools/herdsim/command.h"
#include "tools/herdsim/command_line_faults.h"
#include "tools/herdsim/terminal.h"
#include "tools/herdsim/version.h"
#include "tools/study/sweep_axes.h"

namespace herdsim {
namespace {

const std::map<std::string, OutputFormat> kFormats = {
    {"table", OutputFormat::kTable}, {"json", OutputFormat::kJson}, {"csv", OutputFormat::kCsv}};

// As scenario.proto bounds run { }; zero is no horizon.
constexpr double kShortestRunDays = 1e-6, kLongestRunDays = 36'500, kMostRunTokens = 1e18;
constexpr int64_t kMostReplicas = 1'000'000;

// "SCENARIO" of "SCENARIO [OTHER]", "KIND" of "[KIND]".
std::string first_word(std::string_view operands) {
  const size_t first = operands.find_first_not_of('[');
  return std::string(operands.substr(first, operands.find_first_of(" ].", first) - first));
}

// CLI::Range lets through what is no number.
CLI::Validator in_range(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && low <= value && value <= high) return std::string();
        return fmt::format("Value {} not in range {:g} to {:g}", text, low, high);
      },
      "");
}

// "json" to the number that stands for it.
CLI::Validator format_name() {
  return CLI::Validator(
      [](std::string& text) {
        const auto format = kFormats.find(lower_case(text));
        if (format == kFormats.end()) return fmt::format("\"{}\" is no format; allowed: table, json, csv", text);
        text = std::to_string(static_cast<int>(format->second));
        return std::string();
      },
      "");
}

// CLI's own reading wraps what is negative and cuts what is too large.
CLI::Validator whole_seed() {
  return CLI::Validator(
      [](std::string& text) {
        uint64_t seed = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
        if (error == std::errc() && end == text.data() + text.size()) return std::string();
        return fmt::format("\"{}\" is no seed; allowed: a whole number from 0 to {}", text,
                           std::numeric_limits<uint64_t>::max());
      },
      "");
}

CLI::Validator file_name() {
  return CLI::Validator(
      [](std::string& text) { return std::string(text.empty() ? "is empty; allowed: the name of a file" : ""); }, "");
}

// Of a number above zero.
void declare_positive(CLI::App& app, const char* name, double& value, const char* help,
                      const char* type) {
  app.add_option(name, value, help)
      ->check(in_range(std::numeric_limits<double>::min(), 1e30))
      ->type_name(type);
}

void declare_plan_options(CLI::App& app, Options& options) {
  app.add_option("--model", options.model, "What is trained: a catalogue name or file")
      ->type_name("MODEL");
  app.add_option("--cluster", options.cluster, "On which machine")->type_name("CLUSTER");
  app.add_option("--gpus", options.gpu_counts,
                 "How many GPUs, each planned alone; default: the fewest that hold the model, and "
                 "the fewest in time")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{4194304}).description(""))
      ->type_name("N[,N...]");
  app.add_option("--profile", options.profile, "Which GPU; default: h100-sxm5-80gb")
      ->type_name("PROFILE");
  app.add_option("--software", options.software, "Which framework; default: megatron-te")
      ->type_name("SOFTWARE");
  app.add_option("--keep", options.keep, "How many plans to rank; default: 5")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}).description(""))
      ->type_name("K");
  app.add_flag("--weak", options.weak_scaling,
               "The batch of the first GPU count grows with the others; default: it stays");
  const auto number = [&](const char* name, double& value, const char* help, const char* type) {
    declare_positive(app, name, value, help, type);
  };
  number("--tokens", options.tokens, "Tokens to train on: days, GPU-hours, energy, spares", "T");
  number("--deadline-days", options.deadline_days, "Exit with 1 if no count meets it", "D");
  number("--budget-usd", options.budget_usd, "Exit with 1 if no count meets it", "B");
  number("--memory-gigabytes", options.memory_gigabytes, "Use no more of a GPU's memory", "G");
  number("--price-usd-per-gpu-hour", options.price_usd_per_gpu_hour, "Rent, for dollars", "P");
  number("--capital-usd-per-gpu", options.capital_usd_per_gpu,
         "Bought instead, with its share of host and network", "P");
  number("--depreciation-years", options.depreciation_years, "Written off over; default: 4", "Y");
  number("--usd-per-kwh", options.usd_per_kwh, "Electricity of what was bought", "P");
  app.add_option("--availability", options.availability,
                 "Chance that a failed host finds a spare; default: 0.99")
      ->check(in_range(0.0, 0.999999))
      ->type_name("A");
  app.add_flag("--formulas", options.formulas,
               "Closed forms beside the simulation; without --cluster: the whiteboard alone, FLOPs, "
               "GPUs, days and rate, the missing one from the rest");
  number("--flops", options.flops, "With --formulas: the work, instead of --model and --tokens", "F");
  number("--mfu", options.mfu, "With --formulas: the rate of a GPU as a share of its peak", "M");
  number("--tflops-per-gpu", options.tflops_per_gpu, "With --formulas: the rate of a GPU", "R");
  number("--tokens-per-second-per-gpu", options.tokens_per_second_per_gpu,
         "With --formulas: the rate of a GPU in tokens", "R");
  number("--gpu-hours", options.gpu_hours, "With --formulas: what the work took, for the rate", "H");
  number("--peak-tflops", options.peak_tflops, "With --formulas: a peak other than the profile's",
         "R");
}

void declare_options(CLI::App& app, const Command& command, Options& options) {
  if (command.most_operands > 0) {
    app.add_option(first_word(command.operands), options.names, std::string(command.operands))
        ->expected(static_cast<int>(command.least_operands),
                   static_cast<int>(command.most_operands))
        ->required(command.least_operands > 0)
        ->type_name("");
  }
  const auto takes = [&](OptionFlag flag) { return (command.options & flag) != 0; };
  if (!takes(kNoSets)) {
    app.add_option("--set", options.sets, "Override a field of the scenario; may be repeated")
        ->type_name("FIELD.PATH=VALUE")
        ->allow_extra_args(false);
  }
  if (!takes(kNoFormat)) {
    app.add_option("--format", options.format, "How to print the answer: table, json or csv")
        ->transform(format_name())
        ->type_name("FORMAT");
  }
  app.add_flag("--quiet", options.quiet, "No progress and no warnings");
  if (takes(kSeed)) {
    app.add_option("--seed", options.seed, "Seed of everything random")->check(whole_seed())->type_name("N");
  }
  if (takes(kDb)) {
    app.add_option("--db", options.db, "Add the result to this SQLite database")
        ->check(file_name())
        ->type_name("FILE");
  }
  if (takes(kSizes)) {
    app.add_option("--gpus", options.gpu_counts, "Sizes of the job; default: the scenario's")
        ->delimiter(',')
        ->check(CLI::Range(int64_t{1}, int64_t{4194304}).description(""))
        ->type_name("N[,N...]");
    app.add_option("--step-s", options.step_seconds, "Seconds of a step, instead of simulating it")
        ->check(in_range(1e-6, 1e6))
        ->type_name("S");
  }
  if (takes(kTimeline)) {
    app.add_option("--trace", options.trace, "Write the first replica as a Perfetto trace")
        ->check(file_name())
        ->type_name("FILE.pftrace");
  }
  if (takes(kTrace)) {
    app.add_option("--trace", options.trace, "Write a Perfetto trace")->check(file_name())->type_name("FILE.pftrace");
    app.add_option("--trace-ranks", options.trace_ranks,
                   "Ranks to trace: all, or numbers and ranges such as 0-127,4096; "
                   "default: one rank of every stage")
        ->type_name("RANKS");
    app.add_option("--trace-budget", options.trace_budget,
                   "Trace fewer of these ranks where the file would be larger; default: 32MB")
        ->type_name("SIZE");
  }
  if (takes(kFold)) {
    app.add_flag("--no-fold", options.no_fold, "Simulate every rank; the answer is the same");
    app.add_flag("--ignore-memory", options.ignore_memory,
                 "Predict a speed even if the model's state alone does not fit");
  }
  if (takes(kConditions)) {
    app.add_flag("--no-fold", options.no_fold,
                 "Simulate every condition of the machine as a whole; the steps are within 0.5 %");
  }
  if (takes(kThreads)) {
    app.add_option("--threads", options.threads, "Worker threads; 0: one a core")
        ->check(CLI::Range(0, 4096))
        ->type_name("N");
  }
  if (takes(kRequire)) {
    app.add_option("--require", options.require,
                   "Exit with 1 unless this holds, such as 'mfu>=0.4'; may be repeated")
        ->type_name("FIGURE>=VALUE")
        ->allow_extra_args(false);
  }
  if (takes(kEffective)) {
    app.add_flag("--effective", options.effective,
                 "With every default filled in, and where each value comes from");
  }
  if (takes(kHorizon)) {
    app.add_option("--days", options.days, "Days to simulate")
        ->check(in_range(kShortestRunDays, kLongestRunDays))
        ->type_name("D");
    app.add_option("--tokens", options.tokens, "Tokens to train on, instead of days")
        ->check(in_range(1.0, kMostRunTokens))
        ->type_name("T");
    app.add_option("--replicas", options.replicas, "Independent repetitions")
        ->check(CLI::Range(int64_t{1}, kMostReplicas).description(""))
        ->type_name("R");
  }
  if (takes(kPlan)) declare_plan_options(app, options);
  if (takes(kSweepAxes)) {
    app.add_option("--axis", options.axes, fmt::format("What varies: {}; may be repeated", kAxisForm))
        ->type_name("PATH=V1,V2,...")
        ->allow_extra_args(false);
    declare_positive(app, "--adaptive", options.adaptive,
                     "Replicate a run until its effective training time is known within W, "
                     "--replicas at most", "W");
    app.add_flag("--tornado", options.tornado,
                 "Instead of axes: each uncertain input at both ends of its range");
  }
  if (takes(kTable)) {
    app.add_option("--table", options.table, "Predict the runs of this table")
        ->check(file_name())
        ->type_name("RUNS.csv");
  }
  if (takes(kOutput)) {
    app.add_option("-o,--output", options.output, "Where to write")->check(file_name())->type_name("FILE");
  }
  if (takes(kDrawing)) {
    app.add_option("-o,--output,--graphviz,--dot", options.output, "Draw the network for Graphviz")
        ->check(file_name())
        ->type_name("FILE");
  }
  if (takes(kSuite)) {
    app.add_option("--suite", options.suite, "Which checks to run")->type_name("SUITE");
    app.add_option("--why", options.why,
                   "Of one row, by id or number: which assumption, inside its range, explains the error")
        ->type_name("ROW");
  }
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return names;
}

}  // namespace

const Command* find_command(std::string_view name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::string usage() {
  TextTable table({{""}, {"", Align::kWrap}});
  for (const Command& command : commands()) {
    table.add_row({fmt::format("  {}", command.name), std::string(command.help)});
  }
  return fmt::format(
      "usage: herdsim COMMAND [OPTIONS]\n\nA simulator of large GPU training clusters: the MFU of a "
      "step, and the\neffective training time over weeks, from one model.\n\n{}\n"
      "'herdsim COMMAND --help' prints the options of a command.\n",
      table.text());
}

std::string usage_of(const Command& command) {
  TextTable table({{""}, {"", Align::kWrap}});
  for (const OptionShape& option : option_shapes(command)) {
    const std::string names = fmt::format("{}", fmt::join(option.names, ", "));
    table.add_row({fmt::format("  {}{}{}", names, option.value.empty() ? "" : " ", option.value),
                   option.help});
  }
  return fmt::format("{}\n\nusage: herdsim {} [OPTIONS]{}{}\n\n{}", command.help, command.name,
                     command.operands.empty() ? "" : " ", command.operands, table.text());
}

std::vector<OptionShape> option_shapes(const Command& command) {
  Options options;
  CLI::App app;
  declare_options(app, command, options);
  std::vector<OptionShape> shapes;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    OptionShape shape;
    for (const std::string& name : option->get_snames()) shape.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) shape.names.push_back("--" + name);
    if (option->get_expected_min() > 0) shape.value = option->get_type_name();
    shape.help = option->get_description();
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

int parse_and_run(int argc, const char* const* argv, Streams streams) {
  const std::string_view first = argc > 1 ? argv[1] : "--help";
  if (first == "--help" || first == "-h") {
    fmt::print(streams.out, "{}", usage());
    return kExitDone;
  }
  if (first == "--version") {
    fmt::print(streams.out, "herdsim {}\n", kVersion);
    return kExitDone;
  }
  const Command* command = find_command(first);
  if (command == nullptr) {
    Fault fault;
    fault.problem = fmt::format("there is no command '{}'", first.substr(0, 80));
    fault.allowed = fmt::format("{}", fmt::join(command_names(), ", "));
    fault.nearest = nearest_name(first, command_names());
    throw SpecError({fault});
  }
  Options options;
  CLI::App app;
  declare_options(app, *command, options);
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::CallForHelp&) {
    fmt::print(streams.out, "{}", usage_of(*command));
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    if (std::optional<Fault> unknown = unknown_word(argc, argv, *command)) throw SpecError({std::move(*unknown)});
    Fault fault;
    fault.problem = fmt::format("{} (see 'herdsim {} --help')", error.what(), command->name);
    throw SpecError({fault});
  }
  check_options(*command, options);
  return command->run(options, streams);
}

int run_command_line(int argc, const char* const* argv, Streams streams) {
  try {
    const int status = parse_and_run(argc, argv, streams);
    streams.out.flush();
    if (!streams.out) {
      fmt::print(streams.err, "herdsim: cannot write the answer\n");
      return kExitBadInput;
    }
    return status;
  } catch (const SpecError& error) {
    fmt::print(streams.err, "{}\n", coloured(error.what(), Colour::kRed, streams.err));
    return kExitBadInput;
  } catch (const std::bad_alloc&) {
    fmt::print(streams.err, "herdsim: out of memory\n");
    return kExitInternal;
  } catch (const std::exception& error) {
    fmt::print(streams.err, "herdsim: internal error: {}\n", error.what());
    return kExitInternal;
  }
}

}  // namespace herdsim
