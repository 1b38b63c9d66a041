// The run database: one SQLite file that keeps results with everything needed to run them again.
//
//   RunDatabase database("out/runs.db");
//   const int64_t run = database.add_step(result, {.command = "herdsim step llama3-405b-16384",
//   ...}); database.add_trace(run, trace);
//
// Then `sqlite3 out/runs.db 'SELECT * FROM v_summary'` answers; schema.sql beside this header
// describes the tables.
//
// Each call is one transaction in write-ahead mode: a killed program leaves whole results, and
// other programs may read meanwhile. A writer waits a minute for another one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/metrics/step_result.h"
#include "sim/observe/schedule_pass.h"
#include "sim/observe/span.h"

namespace herdsim {

class DatabaseConnection;  // SQLite stays behind this door

// A point of a grid; the two together are unique in a database, so that a sweep that was killed can
// go on.
struct SweepPoint {
  std::string sweep;  // what identifies the grid: its scenario and axes
  std::string point;  // "parallel.tp=4 seed=2"
};

// How a result came about.
struct RunRecord {
  std::string command;
  std::string effective_spec;
  uint64_t seed = 0;
  std::string version;
  std::string profile;
  std::string profile_provenance;
  std::string recorded_at;  // UTC; "" where it must not matter
  std::optional<SweepPoint> sweep_point;
  std::string kind = "step";  // "run": weeks of training of that step, whose figures are metrics
  std::string fingerprint;    // of the result; "" is the step's own
};

struct Metric {
  std::string name;
  double value = 0;
  std::string unit;
};

// A prediction beside a published figure.
struct Comparison {
  std::string name;      // the scenario, target or row
  std::string quantity;  // "mfu"
  std::string unit;
  double predicted = 0, published = 0;
  std::optional<double> allowed;  // difference, in the unit
  std::string source;
  std::string version;  // of the program
};

// A figure of a run with one input at the ends of its range; table `tornado`.
struct TornadoRow {
  std::string input, low, high, evidence, source, metric;
  double value = 0;
  std::optional<double> value_low, value_high;  // absent where that end is no scenario
};

// A point as it lies in a database. Its figures are the columns of `runs` that are not NULL, under
// their names, then the metrics "run.*".
struct StoredPoint {
  std::string point;
  std::string fingerprint;
  std::string skipped_because;  // "": it has a result
  std::vector<Metric> figures;
};

// Throws: SpecError with the path from every function: a full disk, a damaged page, a point that is
// already there. The failed call has then changed nothing.
class RunDatabase {
 public:
  // Opens the file or makes it; its folder must exist. A file that is not a run database, is
  // damaged or was written by a newer version is refused without writing a byte to it. Complexity:
  // reads an existing file once, to find damage.
  explicit RunDatabase(const std::string& path);
  ~RunDatabase();
  RunDatabase(RunDatabase&&) noexcept;
  RunDatabase& operator=(RunDatabase&&) noexcept;

  // Adds a row to `runs` and the time account and memory of every stage to `metrics`; returns its
  // run_id. `metrics` are further figures. Requires: result.gpus and result.step_time above zero.
  int64_t add_step(const StepResult& result, const RunRecord& record,
                   std::span<const Metric> metrics = {});
  // Adds a row of kind "skipped" for a point that has no result, with the reason as its warning.
  int64_t add_skipped(const std::string& scenario, const std::string& reason,
                      const RunRecord& record);
  // Adds where the time of a step goes by class of ranks, and the schedule as it ran. Of a step
  // simulated rank by rank the classes are single ranks: beyond 4,096 they are left out.
  void add_rank_time(int64_t run_id, std::span<const RankClassTime> classes);
  void add_passes(int64_t run_id, std::span<const SchedulePass> passes);
  // Adds predictions beside what was published, in place of all that their suite had.
  void add_comparisons(const std::string& suite, std::span<const Comparison> comparisons);
  // Adds the spans of a step that was added before.
  void add_trace(int64_t run_id, const StepTrace& trace);
  // Adds further figures; a name that is there is replaced.
  void add_metrics(int64_t run_id, std::span<const Metric> metrics);
  // Adds what uncertain inputs change of a run that was added before.
  void add_tornado(int64_t run_id, std::span<const TornadoRow> rows);
  // The run of a point, if a sweep has been there.
  std::optional<int64_t> run_of(const SweepPoint& point);
  // The names of all sweeps, in the order they began.
  std::vector<std::string> sweeps();
  // All points of a sweep, in the order they were added. Complexity: linear.
  std::vector<StoredPoint> points_of(const std::string& sweep);

 private:
  std::unique_ptr<DatabaseConnection> connection_;
};

}  // namespace herdsim
