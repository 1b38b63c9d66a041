#include "tools/study/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include "tools/study/confidence.h"
#include "tools/study/sweep_outcome.h"

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
    if (request.adaptive_half_width > 0) {
      name += fmt::format(" adaptive={}", request.adaptive_half_width);
    }
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

RunResult run_point(const SweepRequest& request, const Scenario& scenario, const StepResult& step) {
  constexpr int64_t kFewestReplicas = 4;
  RunHorizon horizon = request.horizon;
  if (request.adaptive_half_width <= 0) return run_scenario(scenario, step, horizon, {});
  // Replica i is the same in each round, so a round adds to the one before.
  for (horizon.replicas = std::min(kFewestReplicas, request.horizon.replicas);;
       horizon.replicas = std::min(2 * horizon.replicas, request.horizon.replicas)) {
    RunResult run = run_scenario(scenario, step, horizon, {});
    std::vector<double> useful;
    for (const ReplicaResult& replica : run.replicas) {
      useful.push_back(replica.effective_training_time());
    }
    const bool narrow = mean_interval(useful).half_width <= request.adaptive_half_width;
    if (narrow || horizon.replicas >= request.horizon.replicas) return run;
  }
}

void simulate_point(const SweepRequest& request, const SweepGrid& grid, MachineMemo& machines,
                    SweepOutcome& outcome) {
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
  outcome.step = simulate_step(scenario, {.result_alone = true}, machines).result;
  if (!request.horizon.is_asked()) return;
  const RunResult run = run_point(request, scenario, outcome.step);
  outcome.record.kind = "run";
  outcome.record.fingerprint = run.fingerprint();
  outcome.metrics = run_metrics(run);
}

SweepOutcome outcome_of(const SweepRequest& request, const SweepGrid& grid,
                        const std::string& sweep, int64_t point, MachineMemo& machines) {
  SweepOutcome outcome;
  outcome.point = point;
  outcome.scenario = request.scenario;
  outcome.record.command = request.command;
  outcome.record.version = request.version;
  outcome.record.sweep_point = SweepPoint{sweep, grid.label(point)};
  try {
    simulate_point(request, grid, machines, outcome);
  } catch (const SpecError& error) {
    outcome.skipped_because = error.what();
  }
  return outcome;
}

// Workers compute points in the order of the grid; whoever writes takes what has ended.
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

  // A point for somebody who is no thread of the pool; nothing when all are given out.
  std::optional<int64_t> claim() {
    const size_t i = next_++;
    return i < points_.size() ? std::optional(points_[i]) : std::nullopt;
  }
  // The next outcome; nothing after `patience`. Rethrows what a worker could not make an outcome
  // of.
  std::optional<SweepOutcome> take(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, patience, [this] { return !ended_.empty() || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    if (ended_.empty()) return std::nullopt;
    SweepOutcome outcome = std::move(ended_.front());
    ended_.pop_front();
    return outcome;
  }

 private:
  void work() {
    for (auto point = claim(); point; point = claim()) {
      try {
        SweepOutcome outcome = outcome_of(request_, grid_, sweep_, *point, machines_);
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
  MachineMemo machines_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<SweepOutcome> ended_;
  std::exception_ptr failure_;
  std::vector<std::thread> workers_;
};

// Messages between ranks: to rank 0 an outcome, or nothing to ask for the first point; from it the
// number of a point, or nothing: there is no more.
std::string point_bytes(int64_t point) { return fmt::format("{}", point); }

// What ranks other than 0 do: a point at a time until there are no more.
void serve(const SweepRequest& request, const SweepGrid& grid, const std::string& sweep) {
  SweepPeers& peers = *request.peers;
  peers.send(0, "");
  MachineMemo machines;
  for (;;) {
    const auto message = peers.poll();
    if (!message) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    if (message->bytes.empty()) return;
    const int64_t point = std::stoll(message->bytes);
    SweepOutcome outcome;
    try {
      outcome = outcome_of(request, grid, sweep, point, machines);
    } catch (const std::exception& error) {
      outcome.point = point;
      outcome.record.sweep_point = SweepPoint{sweep, grid.label(point)};
      outcome.failed_because =
          fmt::format("rank {} at {}: {}", peers.rank(), grid.label(point), error.what());
    }
    peers.send(0, to_bytes(outcome));
    if (!outcome.failed_because.empty()) return;
  }
}

// Rank 0's side: gives out points and collects outcomes. Dismisses everybody when it goes, whatever
// made it go.
class PeerDesk {
 public:
  explicit PeerDesk(SweepPeers* peers) : peers_(peers) {
    if (peers_ != nullptr) at_work_.assign(static_cast<size_t>(peers_->ranks()), true);
  }
  ~PeerDesk() {
    if (peers_ == nullptr) return;
    for (int rank = 1; rank < peers_->ranks(); ++rank) dismiss(rank);
  }
  PeerDesk(const PeerDesk&) = delete;
  PeerDesk& operator=(const PeerDesk&) = delete;

  std::optional<SweepOutcome> poll(PointPool& pool) {
    if (peers_ == nullptr) return std::nullopt;
    const auto message = peers_->poll();
    if (!message) return std::nullopt;
    std::optional<SweepOutcome> outcome;
    if (!message->bytes.empty()) outcome = outcome_from_bytes(message->bytes);
    if (outcome && !outcome->failed_because.empty()) {
      at_work_[static_cast<size_t>(message->from)] = false;
      return outcome;
    }
    if (const auto point = pool.claim()) {
      peers_->send(message->from, point_bytes(*point));
    } else {
      dismiss(message->from);
    }
    return outcome;
  }

 private:
  void dismiss(int rank) {
    if (!at_work_[static_cast<size_t>(rank)]) return;
    at_work_[static_cast<size_t>(rank)] = false;
    peers_->send(rank, "");
  }

  SweepPeers* peers_;  // Must outlive this object.
  std::vector<bool> at_work_;
};

void write(RunDatabase& database, const SweepOutcome& outcome) {
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
    if (found == stored.end()) continue;  // its process failed
    result.skipped += found->second.skipped_because.empty() ? 0 : 1;
    result.rows.push_back({grid.values(point), std::move(found->second)});
  }
  return result;
}

void check_horizon(const SweepRequest& request) {
  const RunHorizon& horizon = request.horizon;
  if (request.adaptive_half_width > 0 && (!horizon.is_asked() || horizon.replicas < 2)) {
    throw SpecError({{.field = "--adaptive",
                      .problem = "stops replicating a run, which has to have replicas",
                      .allowed = "with --days or --tokens, and --replicas R as the most"}});
  }
  if (horizon.is_asked() || horizon.replicas == 0) return;
  throw SpecError({{.field = "--replicas",
                    .problem = "a step has no replicas: it is the same every time",
                    .allowed = "with --days or --tokens, or an axis seed=1:N:1"}});
}

// What the sweep is, the same in every process.
struct SweepPlan {
  SweepGrid grid;
  std::string identity, name;
};
SweepPlan plan_sweep(const SweepRequest& request) {
  SweepPlan plan{SweepGrid(parse_axes(request.axes)), "", ""};
  check_horizon(request);
  std::vector<std::string> everything = request.sets;
  for (std::string& set : plan.grid.all_sets()) everything.push_back(std::move(set));
  read_scenario(request.scenario, everything);
  plan.identity = scenario_identity(request);
  plan.name = sweep_name(plan.identity, request, plan.grid);
  return plan;
}

}  // namespace

SweepResult run_sweep(const SweepRequest& request) {
  if (request.peers != nullptr && request.peers->rank() > 0) {
    const SweepPlan plan = plan_sweep(request);
    serve(request, plan.grid, plan.name);
    return {};
  }
  PeerDesk desk(request.peers);
  const SweepPlan plan = plan_sweep(request);
  RunDatabase database(request.database);
  refuse_other_scenarios(database, request.database, plan.identity);
  std::map<std::string, bool> known;
  for (const StoredPoint& point : database.points_of(plan.name)) known[point.point] = true;
  std::vector<int64_t> to_do;
  for (int64_t point = 0; point < plan.grid.size(); ++point) {
    if (!known.contains(plan.grid.label(point))) to_do.push_back(point);
  }
  SweepProgress progress{.done = 0,
                         .to_do = static_cast<int64_t>(to_do.size()),
                         .found = plan.grid.size() - static_cast<int64_t>(to_do.size())};
  const auto report = [&] {
    if (request.progress) request.progress(progress);
  };
  report();
  std::vector<std::string> failures;
  {
    PointPool pool(request, plan.grid, plan.name, to_do);
    const auto settle = [&](const SweepOutcome& outcome) {
      if (outcome.failed_because.empty()) {
        write(database, outcome);
      } else {
        failures.push_back(outcome.failed_because);
      }
      ++progress.done;
      report();
    };
    const auto patience = std::chrono::microseconds(request.peers == nullptr ? 1'000'000 : 200);
    while (progress.done < progress.to_do) {
      if (const auto outcome = desk.poll(pool)) settle(*outcome);
      if (const auto outcome = pool.take(patience)) settle(*outcome);
    }
  }
  SweepResult result = collect(database, plan.name, plan.grid);
  result.computed = progress.to_do - static_cast<int64_t>(failures.size());
  result.found = progress.found;
  result.failures = std::move(failures);
  return result;
}

}  // namespace herdsim
