#include "tools/herdsim/profile_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>

#include "calibrate/fit/log_curves.h"
#include "calibrate/nccl_tests/log_report.h"
#include "calibrate/profile/measurements.h"
#include "calibrate/profile/profile_check.h"
#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "tools/herdsim/load_options.h"
#include "tools/report/profile_report.h"

namespace herdsim {
namespace {

using Operands = std::vector<std::string>;

// What --set tells of logs that do not tell it themselves.
constexpr std::array<std::string_view, 8> kImportFields = {
    "base", "collective", "gpu", "name", "nic_gigabits_per_second", "nodes", "ranks", "source"};

using ImportFields = std::map<std::string, std::string>;

ImportFields import_fields(const std::vector<std::string>& sets) {
  ImportFields fields;
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    const std::string name = set.substr(0, equals);
    const std::vector<std::string> known(kImportFields.begin(), kImportFields.end());
    if (equals == std::string::npos || std::find(known.begin(), known.end(), name) == known.end()) {
      reject(fmt::format("--set {}", set), "is no fact of a log",
             fmt::format("{}", fmt::join(known, ", ")), nearest_name(name, known));
    }
    if (equals + 1 == set.size()) reject(fmt::format("--set {}", set), "has no value", "");
    fields[name] = set.substr(equals + 1);
  }
  return fields;
}

std::string text_of(const ImportFields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

// 0 where it is not given.
int64_t count_of(const ImportFields& fields, const std::string& name, int64_t most) {
  const std::string text = text_of(fields, name);
  if (text.empty()) return 0;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most) {
    reject(fmt::format("--set {}={}", name, text), "is no such number",
           fmt::format("1 to {}", most));
  }
  return value;
}

std::string collective_of(const ImportFields& fields) {
  const std::string text = text_of(fields, "collective");
  const std::string known = nccl_tests_collective(text);
  if (!text.empty() && known.empty()) {
    reject(fmt::format("--set collective={}", text), "is no test of nccl-tests",
           "all_reduce, all_gather, reduce_scatter, all_to_all, send_recv, broadcast, ...");
  }
  return known;
}

// The catalogue profile that the imported curves stand on.
std::string base_of(const ImportFields& fields, const std::vector<NcclTestsLog>& logs) {
  if (std::string base = text_of(fields, "base"); !base.empty()) return base;
  std::string base;
  for (const NcclTestsLog& log : logs) {
    for (const NcclTest& test : log.tests) {
      const GpuLinks* gpu = gpu_links(test.gpu);
      const std::string profile(gpu == nullptr ? "" : gpu->profile);
      if (profile.empty() || (!base.empty() && profile != base)) return "";
      base = profile;
    }
  }
  return base;
}

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string source_of(const ImportFields& fields, const std::vector<NcclTestsLog>& logs) {
  if (std::string source = text_of(fields, "source"); !source.empty())
    return "nccl-tests: " + source;
  std::string files;
  for (const NcclTestsLog& log : logs) {
    if (!log.tests.empty()) files += (files.empty() ? "" : ", ") + base_name(log.file);
  }
  return "nccl-tests: " + files + ", date not stated";
}

void write_curves(const ImportFields& fields, const std::vector<NcclTestsLog>& logs,
                  const std::string& base, const std::string& path, bool quiet, Streams streams) {
  if (base.empty()) {
    reject("--output", "the logs do not say which GPU's profile the curves belong to",
           fmt::format("--set base=PROFILE: {}, or a file", fmt::join(profile_names(), ", ")));
  }
  load_profile(base);
  const LogCurves imported = curves_of_logs(logs, source_of(fields, logs));
  if (imported.curves.empty()) {
    Faults faults;
    for (const std::string& why : imported.left_out)
      faults.add({.field = "--output", .problem = "no curve of " + why});
    faults.throw_if_any();
  }
  const std::string name = fields.contains("name") ? fields.at("name") : "imported-collectives";
  const std::string text = save_collectives_text(name, base, imported.curves);
  // What cannot be read back must not be written.
  load_profile_text(text, path);
  if (std::ofstream file(path); !(file << text))
    reject("--output", fmt::format("cannot write {}", path), "");
  if (quiet) return;
  for (const std::string& why : imported.left_out) fmt::print(streams.err, "no curve of {}\n", why);
  fmt::print(streams.err, "{}: {} measured curve{} on {}\n", path, imported.curves.size(),
             imported.curves.size() == 1 ? "" : "s", base);
}

int import_nccl_tests(const Operands& operands, const Options& options, Streams streams) {
  if (operands.front() != "nccl-tests") {
    reject("profile import", fmt::format("there is no format \"{}\"", operands.front()),
           "nccl-tests", nearest_name(operands.front(), {"nccl-tests"}));
  }
  const ImportFields fields = import_fields(options.sets);
  const NcclTestsHints hints{.collective = collective_of(fields),
                             .ranks = count_of(fields, "ranks", 1 << 22),
                             .nodes = count_of(fields, "nodes", 1 << 22),
                             .gpu = text_of(fields, "gpu")};
  std::vector<NcclTestsLog> logs;
  for (size_t i = 1; i < operands.size(); ++i) {
    logs.push_back(read_nccl_tests(operands[i], read_text_file(operands[i]), hints));
  }
  const std::string base = base_of(fields, logs);
  const VerdictOptions verdict{.nic_gigabits_per_second = static_cast<double>(
                                   count_of(fields, "nic_gigabits_per_second", 100000)),
                               .used_as = base};
  size_t rows = 0, skipped = 0;
  for (const NcclTestsLog& log : logs) {
    rows += log.rows();
    skipped += log.skipped.size();
  }
  if (rows == 0) {
    reject("profile import",
           fmt::format("no row of nccl-tests was read; {} skipped{}", skipped,
                       skipped > 0 ? ": " + logs.front().skipped.front().reason : ""),
           "the text or -J JSON that all_reduce_perf and its like print");
  }
  // Before anything is printed: a base that does not exist is an error, not a footnote.
  if (!options.output.empty())
    write_curves(fields, logs, base, options.output, options.quiet, streams);
  fmt::print(streams.out, "{}",
             options.format == OutputFormat::kJson  ? nccl_tests_json(logs, verdict)
             : options.format == OutputFormat::kCsv ? nccl_tests_csv(logs)
                                                    : nccl_tests_text(logs, verdict));
  return kExitDone;
}

void refuse_import_options(const Options& options, const std::string& command) {
  if (!options.sets.empty())
    reject("--set", fmt::format("changes nothing in 'profile {}'", command), "");
  if (!options.output.empty())
    reject("--output", fmt::format("'profile {}' writes no file", command), "");
  if (options.format != OutputFormat::kTable) {
    reject("--format", fmt::format("'profile {}' prints tables only", command), "table");
  }
}

int print(const std::string& text, Streams streams) {
  fmt::print(streams.out, "{}", text);
  return kExitDone;
}

// A sub-command of `profile`.
struct ProfileCommand {
  std::string name;
  size_t least_operands, most_operands;  // beside the name
  std::string usage;
  int (*run)(const Operands& operands, const Options& options, Streams streams);
};

const std::array<ProfileCommand, 4> kProfileCommands = {{
    {"show", 1, 1, "show PROFILE",
     [](const Operands& o, const Options& options, Streams streams) {
       refuse_import_options(options, "show");
       return print(profile_show_text(load_profile(o[0])), streams);
     }},
    {"check", 2, 2, "check PROFILE MEASUREMENTS.csv",
     [](const Operands& o, const Options& options, Streams streams) {
       refuse_import_options(options, "check");
       const DeviceProfile profile = load_profile(o[0]);
       const Measurements rows = read_measurements_csv(read_text_file(o[1]), o[1]);
       return print(profile_check_text(profile, check_profile(profile, rows)), streams);
     }},
    {"diff", 2, 2, "diff PROFILE PROFILE",
     [](const Operands& o, const Options& options, Streams streams) {
       refuse_import_options(options, "diff");
       return print(profile_diff_text(load_profile(o[0]), load_profile(o[1])), streams);
     }},
    {"import", 2, 1000, "import nccl-tests LOG... [-o FILE]", &import_nccl_tests},
}};

}  // namespace

int run_profile_command(const Options& options, Streams streams) {
  std::vector<std::string> names, usages;
  for (const ProfileCommand& command : kProfileCommands) {
    names.push_back(command.name);
    usages.push_back(command.usage);
    if (command.name != options.names.front()) continue;
    const size_t operands = options.names.size() - 1;
    if (operands < command.least_operands || operands > command.most_operands) {
      reject("profile", fmt::format("{} operands after {}", operands, command.name), command.usage);
    }
    return command.run({options.names.begin() + 1, options.names.end()}, options, streams);
  }
  reject("profile", fmt::format("there is no \"profile {}\"", options.names.front()),
         fmt::format("{}", fmt::join(usages, ", ")), nearest_name(options.names.front(), names));
}

}  // namespace herdsim
