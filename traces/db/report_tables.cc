#include "traces/db/report_tables.h"

#include <fmt/format.h>

#include "traces/db/connection.h"

namespace herdsim {
namespace {

constexpr int kDetailedRuns = 12;
constexpr int kDetailedPoints = 50;
constexpr int kMostFailures = 4000;

// `detailed` are the runs whose details are shown.
constexpr char kDetailed[] =
    "WITH detailed AS (SELECT run_id FROM (SELECT run_id FROM runs WHERE sweep_id IS NULL ORDER BY "
    "run_id DESC LIMIT {}) UNION SELECT run_id FROM (SELECT run_id FROM runs WHERE sweep_id IS NOT "
    "NULL AND kind = 'run' ORDER BY run_id DESC LIMIT {})) ";

// A query a table of the page, read from the stored tables `from`.
struct ReportQuery {
  std::string_view name;
  std::string_view from;
  std::string_view sql;
};

constexpr ReportQuery kQueries[] = {
    {"runs", "runs",
     "SELECT run_id, kind, scenario, gpus, iif(sweep_id IS NULL, command, NULL) AS command, seed, "
     "version, profile, profile_provenance, result_fingerprint, recorded_at, sweep_id, "
     "sweep_point, "
     "step_time_s, tokens_per_step, tokens_per_second_per_gpu, model_tflops_per_gpu, mfu, "
     "mfu_full_attention, peak_tflops, dtype, bubble_fraction, peak_memory_bytes, "
     "peak_memory_stage, peak_memory_moment, memory_capacity_bytes, fits, warnings "
     "FROM runs ORDER BY run_id"},
    {"sweeps", "sweeps", "SELECT sweep_id, name FROM sweeps ORDER BY sweep_id"},
    {"metrics", "metrics",
     "SELECT run_id, name, value FROM metrics WHERE (name LIKE 'run.%' AND name NOT LIKE "
     "'run.time_account.%') OR (run_id IN detailed AND (name LIKE 'time_account.%' OR name LIKE "
     "'run.%')) ORDER BY run_id, name"},
    {"rank_time", "rank_time",
     "SELECT run_id, rank_class, stage, first_rank, ranks, term, seconds FROM rank_time "
     "WHERE run_id IN detailed ORDER BY run_id, rank_class"},
    {"passes", "passes",
     "SELECT run_id, stage, rank, begin_ns, duration_ns, phase, micro_batch, chunk, memory_bytes "
     "FROM passes WHERE run_id IN detailed ORDER BY run_id, stage, begin_ns"},
    {"failures", "failures",
     "SELECT run_id, replica, at_s, failure_class, component, planned, down_s, lost_work_s FROM "
     "(SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY at_s) AS place, "
     "min(replica) OVER (PARTITION BY run_id) AS first FROM failures WHERE run_id IN detailed) "
     "WHERE replica = first AND place <= {} ORDER BY run_id, at_s"},
    {"links", "links",
     "SELECT run_id, kind, min(9, CAST(10 * use AS INTEGER)) AS tenth, sum(links) AS links, "
     "sum(carried_bytes * links) AS carried_bytes, max(use) AS highest_use FROM links "
     "WHERE run_id IN detailed GROUP BY run_id, kind, tenth ORDER BY run_id, kind, tenth"},
    {"comparisons", "comparisons",
     "SELECT suite, name, quantity, unit, predicted, published, allowed, source FROM comparisons "
     "ORDER BY suite, name, quantity"},
    {"tornado", "tornado",
     "SELECT run_id, input, low, high, evidence, source, metric, value, value_low, value_high FROM "
     "tornado WHERE run_id = (SELECT max(run_id) FROM tornado) ORDER BY input, metric"},
};

StoredValue value_of(const Statement& statement, int column) {
  switch (statement.type(column)) {
    case SQLITE_INTEGER:
      return statement.integer(column);
    case SQLITE_FLOAT:
      return statement.real(column);
    case SQLITE_NULL:
      return std::monostate{};
    default:
      return statement.text(column);
  }
}

bool has_table(DatabaseConnection& db, std::string_view name) {
  Statement& find =
      db.prepared("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").bind(name);
  const bool found = find.step();
  find.run();
  return found;
}

StoredTable read(DatabaseConnection& db, const ReportQuery& query, const std::string& sql) {
  StoredTable table;
  table.name = query.name;
  if (!has_table(db, query.from)) return table;
  Statement& rows = db.prepared(sql.c_str()).bind();
  for (int c = 0; c < rows.columns(); ++c) table.columns.push_back(rows.column_name(c));
  while (rows.step()) {
    std::vector<StoredValue>& row = table.rows.emplace_back();
    for (int c = 0; c < rows.columns(); ++c) row.push_back(value_of(rows, c));
  }
  return table;
}

int64_t count(DatabaseConnection& db, const char* sql) {
  Statement& rows = db.prepared(sql).bind();
  rows.step();
  const int64_t found = rows.integer(0);
  rows.run();
  return found;
}

}  // namespace

ReportTables read_report_tables(const std::string& path) {
  DatabaseConnection db(path, Access::kRead);
  // All tables as of one moment, while another program may write.
  db.execute("BEGIN");
  // The connection keeps each statement's text, so these stay until it is closed.
  std::vector<std::string> texts;
  texts.reserve(std::size(kQueries));
  ReportTables report;
  for (const ReportQuery& query : kQueries) {
    texts.push_back(fmt::format(kDetailed, kDetailedRuns, kDetailedPoints) +
                    fmt::format(fmt::runtime(query.sql), kMostFailures));
    report.tables.push_back(read(db, query, texts.back()));
  }
  if (count(db, "SELECT count(*) FROM runs WHERE sweep_id IS NULL") > kDetailedRuns) {
    report.limits.push_back(fmt::format("details of the newest {} runs only", kDetailedRuns));
  }
  return report;
}

}  // namespace herdsim
