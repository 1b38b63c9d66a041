#include "tools/study/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

// FNV-1a, 64 bits: tells specs apart in a name, no more.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// "llama3-405b-16384#0123456789abcdef": a scenario under its --set.
std::string scenario_identity(const SweepRequest& request) {
  return fmt::format("{}#{:016x}", request.scenario,
                     hash_of(read_scenario(request.scenario, request.sets)));
}

constexpr std::string_view kAxesFollow = "; axes ";

std::string sweep_name(const std::string& identity, const SweepRequest& request,
                       const SweepGrid& grid) {
  std::string name = fmt::format("{}{}{}", identity, kAxesFollow, fmt::join(grid.paths(), " "));
  const RunHorizon& h = request.horizon;
  if (h.is_asked()) {
    name += fmt::format("; days={} tokens={} replicas={}", h.days, h.tokens, h.replicas);
  }
  return name;
}

void refuse_other_scenarios(RunDatabase& database, const std::string& path,
                            const std::string& identity) {
  for (const std::string& sweep : database.sweeps()) {
    const std::string other = sweep.substr(0, sweep.rfind(kAxesFollow));
    if (other == identity) continue;
    const std::string there = other.substr(0, other.rfind('#'));
    const bool same_name = there == identity.substr(0, identity.rfind('#'));
    throw SpecError({{.file = path,
                      .field = "--db",
                      .problem = fmt::format("holds a sweep of {}{}", there,
                                             same_name ? " with other fields" : ""),
                      .allowed = "a new file, or the database of this very scenario"}});
  }
}

// What one point came to, before it is written.
struct Outcome {
  int64_t point = 0;
  std::string skipped_because;  // "": the rest is filled
  std::string scenario;
  RunRecord record;
  StepResult step;
  std::vector<Metric> metrics;
};

void simulate_point(const SweepRequest& request, const SweepGrid& grid, Outcome& outcome) {
  std::vector<std::string> sets = request.sets;
  for (std::string& set : grid.sets(outcome.point)) sets.push_back(std::move(set));
  const Scenario scenario = load_scenario(request.scenario, sets);
  outcome.scenario = scenario.name;
  outcome.record.effective_spec = scenario.effective_text;
  outcome.record.seed = scenario.seed;
  outcome.record.profile = scenario.profile.name;
  outcome.record.profile_provenance =
      fmt::format("{}: {}", evidence_name(scenario.profile.device_provenance.evidence),
                  scenario.profile.device_provenance.source);
  outcome.step = simulate_step(scenario, {}).result;
  if (!request.horizon.is_asked()) return;
  const RunResult run = run_scenario(scenario, outcome.step, request.horizon, {});
  outcome.record.kind = "run";
  outcome.record.fingerprint = run.fingerprint();
  outcome.metrics = run_metrics(run);
}

Outcome outcome_of(const SweepRequest& request, const SweepGrid& grid, const std::string& sweep,
                   int64_t point) {
  Outcome outcome;
  outcome.point = point;
  outcome.scenario = request.scenario;
  outcome.record.command = request.command;
  outcome.record.version = request.version;
  outcome.record.sweep_point = SweepPoint{sweep, grid.label(point)};
  try {
    simulate_point(request, grid, outcome);
  } catch (const SpecError& error) {
    outcome.skipped_because = error.what();
  }
  return outcome;
}

// Workers compute points in the order of the grid; the calling thread takes what has ended.
class PointPool {
 public:
  PointPool(const SweepRequest& request, const SweepGrid& grid, const std::string& sweep,
            const std::vector<int64_t>& points)
      : request_(request), grid_(grid), sweep_(sweep), points_(points) {
    const auto threads = std::min(static_cast<size_t>(std::max(1, request.threads)), points.size());
    for (size_t i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~PointPool() {
    next_ = points_.size();
    for (std::thread& worker : workers_) worker.join();
  }
  PointPool(const PointPool&) = delete;
  PointPool& operator=(const PointPool&) = delete;

  // Waits for the next outcome. Rethrows what a worker could not make an outcome of.
  Outcome take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !ended_.empty() || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    Outcome outcome = std::move(ended_.front());
    ended_.pop_front();
    return outcome;
  }

 private:
  void work() {
    for (size_t i = next_++; i < points_.size(); i = next_++) {
      try {
        Outcome outcome = outcome_of(request_, grid_, sweep_, points_[i]);
        const std::lock_guard lock(mutex_);
        ended_.push_back(std::move(outcome));
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      arrived_.notify_one();
    }
  }

  const SweepRequest& request_;  // All outlive this object.
  const SweepGrid& grid_;
  const std::string& sweep_;
  const std::vector<int64_t>& points_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Outcome> ended_;
  std::exception_ptr failure_;
  std::vector<std::thread> workers_;
};

void write(RunDatabase& database, const Outcome& outcome) {
  if (outcome.skipped_because.empty()) {
    database.add_step(outcome.step, outcome.record, outcome.metrics);
  } else {
    database.add_skipped(outcome.scenario, outcome.skipped_because, outcome.record);
  }
}

SweepResult collect(RunDatabase& database, const std::string& sweep, const SweepGrid& grid) {
  std::map<std::string, StoredPoint> stored;
  for (StoredPoint& point : database.points_of(sweep)) stored[point.point] = std::move(point);
  SweepResult result;
  result.paths = grid.paths();
  for (int64_t point = 0; point < grid.size(); ++point) {
    const auto found = stored.find(grid.label(point));
    HERDSIM_CHECK(found != stored.end()) << grid.label(point);
    result.skipped += found->second.skipped_because.empty() ? 0 : 1;
    result.rows.push_back({grid.values(point), std::move(found->second)});
  }
  return result;
}

void check_horizon(const RunHorizon& horizon) {
  if (horizon.is_asked() || horizon.replicas == 0) return;
  throw SpecError({{.field = "--replicas",
                    .problem = "a step has no replicas: it is the same every time",
                    .allowed = "with --days or --tokens, or an axis seed=1:N:1"}});
}

}  // namespace

SweepResult run_sweep(const SweepRequest& request) {
  const SweepGrid grid(parse_axes(request.axes));
  check_horizon(request.horizon);
  std::vector<std::string> everything = request.sets;
  for (std::string& set : grid.all_sets()) everything.push_back(std::move(set));
  read_scenario(request.scenario, everything);
  const std::string identity = scenario_identity(request);
  const std::string sweep = sweep_name(identity, request, grid);

  RunDatabase database(request.database);
  refuse_other_scenarios(database, request.database, identity);
  std::map<std::string, bool> known;
  for (const StoredPoint& point : database.points_of(sweep)) known[point.point] = true;
  std::vector<int64_t> to_do;
  for (int64_t point = 0; point < grid.size(); ++point) {
    if (!known.contains(grid.label(point))) to_do.push_back(point);
  }
  SweepProgress progress{.done = 0,
                         .to_do = static_cast<int64_t>(to_do.size()),
                         .found = grid.size() - static_cast<int64_t>(to_do.size())};
  const auto report = [&] {
    if (request.progress) request.progress(progress);
  };
  report();
  {
    PointPool pool(request, grid, sweep, to_do);
    for (; progress.done < progress.to_do; ++progress.done, report()) write(database, pool.take());
  }
  SweepResult result = collect(database, sweep, grid);
  result.computed = progress.to_do;
  result.found = progress.found;
  return result;
}

}  // namespace herdsim
