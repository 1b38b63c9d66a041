// A grid of simulations, kept in a run database as they end, so that a sweep killed at any moment
// goes on where it was.
//
//   SweepRequest request{.scenario = "llama3-405b-16384", .axes = {"parallel.tp=4,8",
//   "seed=1:8:1"},
//                        .horizon = {.days = 54}, .database = "out/sweep.db", .threads = 2};
//   const SweepResult result = run_sweep(request);   // again: computes nothing, says the same
//
// Each point is one transaction of one writer: a killed sweep has whole points. A point depends on
// nothing but its scenario, so the rows are the same for any number of threads, but for the order
// in which they came and the time they took. A point that cannot be (a TP that does not divide the
// heads) is a row as well, with the reason, and stops nobody.
//
// With `peers` (mpirun, srun) each process computes points; rank 0 alone opens the database and
// returns the rows, the others return nothing. A process that fails at a point says so to rank 0,
// the others do the rest, and that point is computed when the sweep is run again.
//
// A sweep is named by its scenario, its horizon and the fields on its axes, not by their values: a
// longer axis adds points and finds the old ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/study/scenario_campaign.h"
#include "tools/study/sweep_axes.h"
#include "tools/study/sweep_peers.h"
#include "traces/db/run_database.h"

namespace herdsim {

struct SweepProgress {
  int64_t done = 0;   // of `to_do`
  int64_t to_do = 0;  // points that were not in the database
  int64_t found = 0;  // points that were
};

struct SweepRequest {
  std::string scenario;           // name or path
  std::vector<std::string> sets;  // under the axes
  std::vector<std::string> axes;  // sweep_axes.h
  RunHorizon horizon;             // days or tokens: each point is a run; neither: a step
  std::string database;
  // Above zero: a run's replicas double from 4 until the 95 % interval of its effective training
  // time is no wider than this on either side, or `horizon.replicas` are done.
  double adaptive_half_width = 0;
  int threads = 1;
  SweepPeers* peers = nullptr;   // null: this process alone
  std::string command, version;  // for the rows
  // Called by the writer, which is the calling thread; may be empty.
  std::function<void(const SweepProgress&)> progress = {};
};

struct SweepRow {
  std::vector<std::string> values;  // one a path
  StoredPoint stored;
};

struct SweepResult {
  std::vector<std::string> paths;
  std::vector<SweepRow> rows;  // in the order of the grid
  int64_t computed = 0, found = 0, skipped = 0;
  std::vector<std::string> failures;  // of other processes; their points have no rows
};

// Throws: SpecError for axes that are none, fields that do not exist, values of the wrong type, a
// database with a sweep of another scenario or that cannot be written. What had ended by then is
// kept.
SweepResult run_sweep(const SweepRequest& request);

// For people (at most 80 columns where the values of the axes are short), programs, spreadsheets.
std::string sweep_table(const SweepResult& result);
std::string sweep_json(const SweepResult& result);
std::string sweep_csv(const SweepResult& result);

}  // namespace herdsim
