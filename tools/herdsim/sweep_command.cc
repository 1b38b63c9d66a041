#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "tools/herdsim/load_options.h"
#include "tools/herdsim/load_peers.h"
#include "tools/herdsim/study_commands.h"
#include "tools/herdsim/version.h"
#include "tools/study/sensitivity.h"
#include "tools/study/sweep.h"

namespace herdsim {
namespace {

// A line that rewrites itself, on a terminal only, a few times a second.
class ProgressLine {
 public:
  ProgressLine(const Options& options, Streams streams)
      : err_(streams.err),
        shows_(!options.quiet && &streams.err == &std::cerr && isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (shows_) fmt::print(err_, "\r\x1b[K");
  }

  void operator()(const SweepProgress& p) {
    using Clock = std::chrono::steady_clock;
    const auto now = Clock::now();
    if (!shows_ || (now - shown_ < std::chrono::milliseconds(200) && p.done < p.to_do)) return;
    shown_ = now;
    const double elapsed = std::chrono::duration<double>(now - begin_).count();
    const std::string left =
        p.done == 0 ? "?"
                    : to_text(seconds_rounded_up(elapsed / static_cast<double>(p.done) *
                                                 static_cast<double>(p.to_do - p.done)));
    fmt::print(err_, "\r\x1b[K{} of {} points, {} found, {} left", p.done, p.to_do, p.found, left);
    err_.flush();
  }

 private:
  std::ostream& err_;
  const bool shows_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_;
};

// The command without how it was run: the rows do not depend on it.
std::string sweep_command_line(const Options& options) {
  std::string text = "herdsim sweep " + options.names.front();
  for (const std::string& set : options.sets) text += " --set " + set;
  if (options.seed) text += fmt::format(" --seed {}", *options.seed);
  for (const std::string& axis : options.axes) text += " --axis " + axis;
  if (options.days > 0) text += fmt::format(" --days {}", options.days);
  if (options.tokens > 0) text += fmt::format(" --tokens {}", options.tokens);
  if (options.replicas != 1) text += fmt::format(" --replicas {}", options.replicas);
  if (options.adaptive > 0) text += fmt::format(" --adaptive {}", options.adaptive);
  return text;
}

RunRecord tornado_record(const Scenario& scenario, const Options& options) {
  RunRecord record;
  record.command = sweep_command_line(options) + " --tornado";
  record.effective_spec = scenario.effective_text;
  record.seed = scenario.seed;
  record.version = std::string(kVersion);
  record.profile = scenario.profile.name;
  record.profile_provenance =
      fmt::format("{}: {}", evidence_name(scenario.profile.device_provenance.evidence),
                  scenario.profile.device_provenance.source);
  return record;
}

void store_tornado(const Sensitivity& s, const Scenario& scenario, const Options& options) {
  RunDatabase database(options.db);
  std::vector<Metric> metrics;
  if (s.base.effective_training_time) {
    metrics.push_back({"run.effective_training_time", *s.base.effective_training_time, ""});
  }
  const int64_t run = database.add_step(s.step, tornado_record(scenario, options), metrics);
  database.add_tornado(run, tornado_rows(s));
}

int run_tornado(const Options& options, Streams streams) {
  if (!options.axes.empty()) {
    reject("--tornado", "its inputs are those of the catalogue that are not certain",
           "--tornado or --axis");
  }
  const ScenarioVariant variant = [&](const std::string& set) {
    Options one = options;
    if (!set.empty()) one.sets.push_back(set);
    return scenario_of(one, one.names.front());
  };
  const Scenario base = variant("");
  print_warnings(base.warnings, options, streams);
  const RunHorizon horizon{
      .days = options.days, .tokens = options.tokens, .replicas = options.replicas};
  const Sensitivity s = sensitivity(variant, {.horizon = horizon, .threads = threads_of(options)});
  if (!options.db.empty()) store_tornado(s, base, options);
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", tornado_table(s));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", tornado_json(s));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", tornado_csv(s));
      break;
  }
  return kExitDone;
}

SweepRequest request_of(const Options& options) {
  SweepRequest request;
  request.scenario = options.names.front();
  request.sets = options.sets;
  if (options.seed) request.sets.push_back(fmt::format("seed={}", *options.seed));
  request.axes = options.axes;
  request.horizon = {.days = options.days, .tokens = options.tokens, .replicas = options.replicas};
  request.adaptive_half_width = options.adaptive;
  request.database = options.db;
  request.command = sweep_command_line(options);
  request.version = std::string(kVersion);
  return request;
}

void print_sweep(const SweepResult& result, const Options& options, Streams streams) {
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", sweep_table(result));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", sweep_json(result));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", sweep_csv(result));
      break;
  }
}

}  // namespace

int run_sweep_command(const Options& options, Streams streams) {
  if (options.tornado) return run_tornado(options, streams);
  if (options.db.empty()) {
    reject("--db", "a sweep keeps its points in a database", "--db FILE, new or of the same sweep");
  }
  const std::unique_ptr<SweepPeers> peers = load_peers();
  SweepRequest request = request_of(options);
  request.peers = peers.get();
  // As one of several processes: one a core.
  request.threads = peers == nullptr || options.threads > 0 ? threads_of(options) : 1;
  if (peers != nullptr && peers->rank() > 0) {
    try {
      run_sweep(request);
    } catch (const SpecError&) {
      return kExitBadInput;  // rank 0 says what is wrong
    }
    return kExitDone;
  }
  SweepResult result;
  {
    ProgressLine progress(options, streams);
    request.progress = [&](const SweepProgress& p) { progress(p); };
    result = run_sweep(request);
  }
  print_sweep(result, options, streams);
  for (const std::string& failure : result.failures) {
    fmt::print(streams.err, "herdsim: failed, to be computed when the sweep runs again: {}\n",
               failure);
  }
  return result.failures.empty() ? kExitDone : kExitInternal;
}

}  // namespace herdsim
