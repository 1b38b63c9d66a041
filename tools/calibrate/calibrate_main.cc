// herdsim-calibrate: see --help.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "calibrate/harness/calibration.h"
#include "calibrate/harness/measured_profile.h"
#include "calibrate/harness/verdict.h"
#include "calibrate/host/host_backend.h"
#include "calibrate/peers/peers.h"
#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "tools/calibrate/replay.h"
#include "tools/calibrate/scenario_probes.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

#ifdef HERDSIM_HAS_CUDA
// calibrate/cuda/cuda_backend.h, a folder that is only there for builds with a toolkit.
std::unique_ptr<Backend> make_cuda_backend(Peers& peers);
#endif

namespace {

// Another rank has said why.
struct EndedByAnother {};

struct CalibrateOptions {
  std::string backend = "cuda";
  std::string output, database, scenario, name = "measured-here";
  std::vector<std::string> sets;
  bool quick = false;
  std::optional<double> minutes;
  int64_t steps = 5;
  std::string profile;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &utc);
  return text.data();
}

std::unique_ptr<Backend> make_backend(const std::string& name, Peers& peers) {
  if (name == "host") return make_host_backend(peers);
#ifdef HERDSIM_HAS_CUDA
  return make_cuda_backend(peers);
#else
  throw SpecError({{.field = "--backend",
                    .problem = "no CUDA device: this build has no CUDA toolkit",
                    .allowed = "host, which measures this machine's processor"}});
#endif
}

// What a rank alone met ends all of them, and the first of those that met something says it.
std::unique_ptr<Backend> make_backend_on_all(const std::string& name, Peers& peers) {
  std::unique_ptr<Backend> backend;
  std::optional<SpecError> fault;
  try {
    backend = make_backend(name, peers);
  } catch (const SpecError& error) {
    fault = error;
  }
  const double first = peers.ranks() - peers.most(fault ? peers.ranks() - peers.rank() : 0);
  if (first == peers.ranks()) return backend;
  if (fault && peers.rank() == 0) throw *fault;
  if (fault && peers.rank() == first)
    std::fprintf(stderr, "rank %d of %d: %s\n", peers.rank(), peers.ranks(), fault->what());
  throw EndedByAnother();
}

StoppingRule rule_of(bool quick) {
  if (!quick) return {};
  return {.relative_error = 0.02, .least_samples = 5, .most_samples = 50, .most_seconds = 0.4};
}

std::string rate_text(const CalibrationProgress& p) {
  if (p.flops_per_second > 0) return fmt::format(", {:.4g} TFLOP/s", p.flops_per_second * 1e-12);
  if (p.bytes_per_second > 0) return fmt::format(", {:.4g} GB/s", p.bytes_per_second * 1e-9);
  return "";
}

// A line that is written over while there is a terminal to see it; else, as in a log, one now and
// then.
void show_progress(const CalibrationProgress& p) {
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "\r%zu of %zu probes, %.0f s, about %.0f s left: %-60.60s", p.done,
                 p.probes, p.seconds, p.seconds_left, (p.probe + rate_text(p)).c_str());
    if (p.done == p.probes) std::fprintf(stderr, "\r%120s\r", "");
    return;
  }
  constexpr size_t kEvery = 50;
  if (p.done % kEvery == 0 || p.done == p.probes)
    std::fprintf(stderr, "%zu of %zu probes, %.0f s, about %.0f s left\n", p.done, p.probes,
                 p.seconds, p.seconds_left);
}

std::vector<Probe> probes_for(const CalibrateOptions& o, const Backend& backend) {
  // A probe of about a tenth of a second on a core, or of a hundredth on a GPU.
  const bool host = o.backend == "host";
  const double largest_flops = host ? (o.quick ? 2e9 : 2e10) : (o.quick ? 3e12 : 1e13);
  const Bytes largest_bytes = host ? mebibytes(o.quick ? 64 : 256) : gibibytes(o.quick ? 1 : 4);
  if (o.scenario.empty()) {
    return default_probes(backend.facts(), backend.ranks(), largest_flops, largest_bytes, o.quick);
  }
  return in_turn(probes_of(graph_of(load_scenario(o.scenario, o.sets))));
}

// Where it is written first, so that a profile that was there is not lost to a full disk.
std::string beside(const std::string& path) { return path + ".new"; }

// An hour of measuring must not end with a place that cannot be written.
void check_place(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  if (is_folder || !std::ofstream(beside(path)))
    throw SpecError({{.file = path, .problem = is_folder ? "is a folder" : "cannot be written"}});
  std::filesystem::remove(beside(path), ignored);
}

void write_profile(const std::string& path, const std::string& text) {
  if (std::ofstream file(beside(path)); !(file << text) || !file.flush()) {
    throw SpecError({{.file = path, .problem = "cannot be written"}});
  }
  std::filesystem::rename(beside(path), path);
}

int run_calibration(const CalibrateOptions& o, Peers& peers) {
  const std::unique_ptr<Backend> backend = make_backend_on_all(o.backend, peers);
  std::vector<Probe> probes = probes_for(o, *backend);
  std::optional<MeasurementStore> store;
  std::string fault;
  const std::string database = o.database.empty() ? o.output + ".db" : o.database;
  try {
    if (backend->leads()) check_place(o.output);
    if (backend->leads()) store.emplace(database, backend->facts().name, backend->facts().software);
  } catch (const std::runtime_error& error) {
    fault = error.what();
  }
  if (backend->agree(fault.empty() ? 1 : 0) == 0) {
    if (backend->leads()) std::fprintf(stderr, "%s\n", fault.c_str());
    return 2;
  }
  CalibrationPlan plan{.probes = std::move(probes),
                       .rule = rule_of(o.quick),
                       .store = store ? &*store : nullptr,
                       .clock = seconds_now,
                       .most_seconds = 60 * o.minutes.value_or(o.quick ? 2 : 55)};
  if (backend->leads()) plan.on_progress = show_progress;
  const CalibrationResult result = calibrate(*backend, plan);
  if (!backend->leads()) return 0;
  const std::string method =
      fmt::format("herdsim-calibrate{}, {}, {} rank{} on {} node{}, {}", o.quick ? " --quick" : "",
                  today(), backend->ranks(), backend->ranks() == 1 ? "" : "s", backend->nodes(),
                  backend->nodes() == 1 ? "" : "s", plan.rule.text());
  const DeviceProfile profile = profile_of_results({o.name, method}, *backend, result);
  const std::string text = save_profile_text(profile);
  // What cannot be read back must not be written.
  load_profile_text(text, o.output);
  write_profile(o.output, text);
  std::fputs(verdict_table(profile, *backend, result).c_str(), stdout);
  const auto kept = std::count_if(result.results.begin(), result.results.end(),
                                  [](const ProbeResult& r) { return r.kept; });
  std::printf("%zu probes: %zu measured now, %zu kept from %s\n%s: the profile\n",
              result.results.size(), result.results.size() - static_cast<size_t>(kept),
              static_cast<size_t>(kept), database.c_str(), o.output.c_str());
  if (!result.failed.empty())
    std::printf("%zu probes failed; the same call tries them again\n", result.failed.size());
  if (result.left > 0)
    std::printf("%zu finer probes were not reached in time; the same call goes on with them\n",
                result.left);
  return 0;
}

int run_replay(const CalibrateOptions& o, Peers& peers) {
  const std::unique_ptr<Backend> backend = make_backend_on_all(o.backend, peers);
  std::vector<std::string> sets = o.sets;
  if (!o.profile.empty()) sets.push_back("profile.base=" + o.profile);
  const Scenario scenario = load_scenario(o.scenario, sets);
  std::vector<double> measured = replay_steps(graph_of(scenario), *backend, o.steps, seconds_now);
  if (!backend->leads()) return 0;
  std::sort(measured.begin(), measured.end());
  const double median = measured[measured.size() / 2];
  const StepSimulation simulation = simulate_step(scenario, {});
  const double predicted = simulation.result.step_time.seconds();
  for (const std::string& warning : simulation.result.warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  std::printf(
      "%s on %s\npredicted  %.6f s\nmeasured   %.6f s, median of %zu from %.6f to %.6f\ndifference "
      "%+.1f %%\n",
      scenario.name.c_str(), backend->facts().name.c_str(), predicted, median, measured.size(),
      measured.front(), measured.back(), 100 * (predicted / median - 1));
  return 0;
}

int parse_and_run(int argc, char** argv, Peers& peers) {
  CLI::App app{
      "Measures a machine and makes its profile; replays a step to check what is predicted."};
  app.require_subcommand(1);
  CalibrateOptions o;
  const auto add_common = [&](CLI::App* command) {
    command->add_option("--backend", o.backend, "What is measured: cuda or host")
        ->check(CLI::IsMember({"cuda", "host"}));
    command->add_option("--set", o.sets, "Override a field of the scenario; may be repeated")
        ->allow_extra_args(false);
  };
  CLI::App* run = app.add_subcommand(
      "run", "Measure, fit, write a profile and a database; goes on where it was killed");
  add_common(run);
  run->add_option("-o,--output", o.output, "The profile to write")->required();
  run->add_option("--db", o.database, "The database of measurements; default: beside the profile");
  run->add_option("--for", o.scenario, "Only the shapes of this scenario's step");
  run->add_option("--name", o.name, "The profile's name");
  run->add_flag("--quick", o.quick, "Two minutes: fewer shapes, 2 % instead of 1 %");
  run->add_option("--minutes", o.minutes,
                  "Begin no probe later, coarse grid first; the same call goes on; default: 2 with "
                  "--quick, else 55")
      ->check([](const std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        return value >= 0.01 && value <= 10000 ? "" : "allowed: 0.01 to 10000";  // not NaN either
      });
  CLI::App* replay =
      app.add_subcommand("replay", "Run a step's ops on the machine, beside its prediction");
  add_common(replay);
  replay
      ->add_option("SCENARIO", o.scenario,
                   "Catalogue name or file; without overlap, one pipeline stage")
      ->required();
  replay->add_option("--profile", o.profile,
                     "The profile to predict from, instead of the scenario's");
  replay->add_option("--steps", o.steps, "Steps to time")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (run->parsed() && !o.sets.empty() && o.scenario.empty()) {
    throw SpecError({{.field = "--set",
                      .problem = "changes nothing without --for SCENARIO",
                      .allowed = "--for SCENARIO --set FIELD=VALUE"}});
  }
  return run->parsed() ? run_calibration(o, peers) : run_replay(o, peers);
}

}  // namespace
}  // namespace herdsim

int main(int argc, char** argv) {
  std::unique_ptr<herdsim::Peers> peers;
  try {
    peers = herdsim::make_peers();
    return herdsim::parse_and_run(argc, argv, *peers);
  } catch (const herdsim::SpecError& error) {
    // Every rank has met it.
    if (peers == nullptr || peers->rank() == 0) std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const herdsim::EndedByAnother&) {
    return 2;
  } catch (const std::exception& error) {
    const bool alone = peers == nullptr || peers->ranks() == 1;
    std::fprintf(stderr, "herdsim-calibrate: %s%s\n",
                 alone ? "" : fmt::format("rank {} of {}: ", peers->rank(), peers->ranks()).c_str(),
                 error.what());
    // The others wait for this one, in vain.
    if (!alone) peers->abort(70);
    return 70;
  }
}
