#include "traces/db/run_database.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "traces/db/connection.h"

namespace herdsim {
namespace {

constexpr char kAddSweep[] = "INSERT INTO sweeps(name) VALUES (?) ON CONFLICT(name) DO NOTHING";
constexpr char kFindSweep[] = "SELECT sweep_id FROM sweeps WHERE name = ?";
constexpr char kFindPoint[] =
    "SELECT run_id FROM runs JOIN sweeps USING (sweep_id) WHERE sweeps.name = ? AND sweep_point = "
    "?";
constexpr char kAddRun[] =
    "INSERT INTO runs(kind, scenario, gpus, command, effective_spec, seed, version, profile, "
    "profile_provenance,"
    " result_fingerprint, recorded_at, sweep_id, sweep_point, step_time_s, tokens_per_step, "
    "tokens_per_second_per_gpu,"
    " model_tflops_per_gpu, mfu, mfu_full_attention, peak_tflops, dtype, bubble_fraction, "
    "peak_memory_bytes,"
    " peak_memory_stage, peak_memory_moment, memory_capacity_bytes, fits, simulated_ranks, events, "
    "wall_s, warnings)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
constexpr char kAddSkipped[] =
    "INSERT INTO runs(kind, scenario, gpus, command, effective_spec, seed, version, profile, "
    "profile_provenance, result_fingerprint, recorded_at, sweep_id, sweep_point, warnings)"
    " VALUES ('skipped',?,0,?,?,?,?,?,?,'',?,?,?,?)";
constexpr char kSweeps[] = "SELECT name FROM sweeps ORDER BY sweep_id";
constexpr char kPoints[] =
    "SELECT run_id, sweep_point, result_fingerprint, kind, warnings, gpus, step_time_s, mfu, "
    "model_tflops_per_gpu, tokens_per_second_per_gpu, bubble_fraction, peak_memory_bytes, fits "
    "FROM runs JOIN sweeps USING (sweep_id) WHERE sweeps.name = ? ORDER BY run_id";
constexpr int kFirstFigure = 5;
constexpr std::array<std::pair<const char*, const char*>, 8> kPointFigures = {
    {{"gpus", ""},
     {"step_time_s", "s"},
     {"mfu", ""},
     {"model_tflops_per_gpu", "TFLOP/s"},
     {"tokens_per_second_per_gpu", "1/s"},
     {"bubble_fraction", ""},
     {"peak_memory_bytes", "bytes"},
     {"fits", ""}}};
constexpr char kRunMetrics[] =
    "SELECT name, value, unit FROM metrics WHERE run_id = ? AND name LIKE 'run.%' AND value IS "
    "NOT NULL ORDER BY name";
constexpr char kAddMetric[] =
    "INSERT OR REPLACE INTO metrics(run_id, name, value, unit) VALUES (?, ?, ?, ?)";
constexpr char kAddRankTime[] =
    "INSERT INTO rank_time(run_id, rank_class, stage, first_rank, ranks, term, seconds)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)";
constexpr size_t kMostClasses = 4096;
constexpr char kAddPass[] =
    "INSERT INTO passes(run_id, stage, rank, begin_ns, duration_ns, phase, micro_batch, chunk, "
    "memory_bytes)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr char kForgetComparisons[] = "DELETE FROM comparisons WHERE suite = ?";
constexpr char kAddComparison[] =
    "INSERT OR REPLACE INTO comparisons(suite, name, quantity, unit, predicted, published, "
    "allowed, source, version)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr char kAddTornado[] =
    "INSERT OR REPLACE INTO tornado(run_id, input, low, high, evidence, source, metric, value, "
    "value_low, value_high) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr char kAddSpan[] =
    "INSERT INTO spans(run_id, rank, stream, begin_ns, duration_ns, name, micro_batch, chunk, "
    "bytes, flops, flow)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

template <class Value>
std::optional<Value> unless(bool absent, Value value) {
  return absent ? std::nullopt : std::optional<Value>(value);
}

std::string one_a_line(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

struct SweepPlace {
  std::optional<int64_t> sweep;
  std::optional<std::string_view> point;
};

// Adds the sweep where it is new.
SweepPlace place_in_sweep(DatabaseConnection& db, const RunRecord& record) {
  if (!record.sweep_point) return {};
  db.prepared(kAddSweep).bind(record.sweep_point->sweep).run();
  Statement& find = db.prepared(kFindSweep).bind(record.sweep_point->sweep);
  HERDSIM_CHECK(find.step()) << record.sweep_point->sweep;
  const int64_t sweep = find.integer(0);
  find.run();
  return {sweep, record.sweep_point->point};
}

std::vector<Metric> metrics_of(const StepResult& result) {
  std::vector<Metric> metrics;
  const auto account = result.time_account_seconds();
  for (size_t i = 0; i < kTimeTerms; ++i) {
    metrics.push_back({fmt::format("time_account.{}", kTimeTermNames[i]), account[i], "s"});
  }
  for (const StageMemory& stage : result.memory) {
    for (const auto& [part, bytes] : std::initializer_list<std::pair<const char*, Bytes>>{
             {"peak", stage.peak},
             {"weights", stage.weights},
             {"gradients", stage.gradients},
             {"optimizer", stage.optimizer},
             {"activations", stage.activations},
             {"logits", stage.logits},
             {"communication", stage.communication},
             {"overhead", stage.overhead}}) {
      metrics.push_back({fmt::format("memory.stage_{}.{}", stage.stage, part),
                         static_cast<double>(bytes.count()), "bytes"});
    }
  }
  return metrics;
}

}  // namespace

RunDatabase::RunDatabase(const std::string& path)
    : connection_(std::make_unique<DatabaseConnection>(path)) {}
RunDatabase::~RunDatabase() = default;
RunDatabase::RunDatabase(RunDatabase&&) noexcept = default;
RunDatabase& RunDatabase::operator=(RunDatabase&&) noexcept = default;

int64_t RunDatabase::add_step(const StepResult& r, const RunRecord& record,
                              std::span<const Metric> metrics) {
  DatabaseConnection& db = *connection_;
  Transaction transaction(db);
  const auto [sweep, point] = place_in_sweep(db, record);
  const StageMemory* peak = r.peak_stage();
  const bool no_memory = peak == nullptr;
  const bool no_peak = r.peak.per_second() <= 0;
  db.prepared(kAddRun)
      .bind(record.kind, r.scenario, r.gpus, record.command, record.effective_spec,
            static_cast<int64_t>(record.seed), record.version, record.profile,
            record.profile_provenance,
            record.fingerprint.empty() ? r.fingerprint() : record.fingerprint,
            unless(record.recorded_at.empty(), record.recorded_at), sweep, point,
            r.step_time.seconds(), r.tokens_per_step, r.tokens_per_second_per_gpu(),
            r.flops_per_gpu_causal().teraflops(),
            no_peak ? std::nullopt : std::optional(r.mfu_causal()),
            no_peak ? std::nullopt : std::optional(r.mfu_full()), r.peak.teraflops(), r.dtype,
            r.bubble_fraction(), no_memory ? std::nullopt : std::optional(peak->peak),
            no_memory ? std::nullopt : std::optional(peak->stage),
            no_memory ? std::nullopt : std::optional(peak->moment), r.memory_capacity,
            int64_t{r.fits()}, r.simulated_ranks, r.events, r.wall_seconds,
            one_a_line(r.all_warnings()))
      .run();
  const int64_t run_id = db.last_row();
  for (const Metric& m : metrics_of(r))
    db.prepared(kAddMetric).bind(run_id, m.name, m.value, m.unit).run();
  for (const Metric& m : metrics)
    db.prepared(kAddMetric).bind(run_id, m.name, m.value, m.unit).run();
  transaction.commit();
  return run_id;
}

int64_t RunDatabase::add_skipped(const std::string& scenario, const std::string& reason,
                                 const RunRecord& record) {
  DatabaseConnection& db = *connection_;
  Transaction transaction(db);
  const auto [sweep, point] = place_in_sweep(db, record);
  db.prepared(kAddSkipped)
      .bind(scenario, record.command, record.effective_spec, static_cast<int64_t>(record.seed),
            record.version, record.profile, record.profile_provenance,
            unless(record.recorded_at.empty(), record.recorded_at), sweep, point, reason)
      .run();
  const int64_t run_id = db.last_row();
  transaction.commit();
  return run_id;
}

void RunDatabase::add_rank_time(int64_t run_id, std::span<const RankClassTime> classes) {
  if (classes.size() > kMostClasses) return;
  Transaction transaction(*connection_);
  Statement& insert = connection_->prepared(kAddRankTime);
  for (size_t c = 0; c < classes.size(); ++c) {
    const RankClassTime& one = classes[c];
    for (size_t t = 0; t < kTimeTerms; ++t) {
      insert
          .bind(run_id, static_cast<int64_t>(c), one.stage, one.first_rank, one.ranks,
                kTimeTermNames[t], nanoseconds(one.nanoseconds[t]).seconds())
          .run();
    }
  }
  transaction.commit();
}

void RunDatabase::add_passes(int64_t run_id, std::span<const SchedulePass> passes) {
  Transaction transaction(*connection_);
  Statement& insert = connection_->prepared(kAddPass);
  for (const SchedulePass& p : passes) {
    insert
        .bind(run_id, p.stage, static_cast<int64_t>(p.rank.index()), p.begin.nanoseconds(),
              (p.end - p.begin).nanoseconds(), kStepPhaseNames[static_cast<size_t>(p.phase)],
              unless(p.micro_batch < 0, int64_t{p.micro_batch}),
              unless(p.chunk < 0, int64_t{p.chunk}), p.memory)
        .run();
  }
  transaction.commit();
}

void RunDatabase::add_comparisons(const std::string& suite,
                                  std::span<const Comparison> comparisons) {
  Transaction transaction(*connection_);
  connection_->prepared(kForgetComparisons).bind(suite).run();
  Statement& insert = connection_->prepared(kAddComparison);
  for (const Comparison& c : comparisons) {
    insert
        .bind(suite, c.name, c.quantity, c.unit, c.predicted, c.published, c.allowed, c.source,
              c.version)
        .run();
  }
  transaction.commit();
}

void RunDatabase::add_trace(int64_t run_id, const StepTrace& trace) {
  Transaction transaction(*connection_);
  Statement& insert = connection_->prepared(kAddSpan);
  for (const Span& s : trace.spans) {
    insert
        .bind(run_id, static_cast<int64_t>(s.rank.index()),
              kStreamNames[static_cast<size_t>(s.stream)], s.begin.nanoseconds(),
              (s.end - s.begin).nanoseconds(), trace.names[s.name],
              unless(s.micro_batch < 0, int64_t{s.micro_batch}),
              unless(s.chunk < 0, int64_t{s.chunk}), unless(s.bytes.count() == 0, s.bytes),
              unless(s.flops.count() == 0, s.flops.count()),
              unless(s.flow == 0, static_cast<int64_t>(s.flow)))
        .run();
  }
  transaction.commit();
}

void RunDatabase::add_metrics(int64_t run_id, std::span<const Metric> metrics) {
  Transaction transaction(*connection_);
  Statement& insert = connection_->prepared(kAddMetric);
  for (const Metric& m : metrics) insert.bind(run_id, m.name, m.value, m.unit).run();
  transaction.commit();
}

void RunDatabase::add_tornado(int64_t run_id, std::span<const TornadoRow> rows) {
  Transaction transaction(*connection_);
  Statement& insert = connection_->prepared(kAddTornado);
  for (const TornadoRow& r : rows) {
    insert
        .bind(run_id, r.input, r.low, r.high, r.evidence, r.source, r.metric, r.value, r.value_low,
              r.value_high)
        .run();
  }
  transaction.commit();
}

std::optional<int64_t> RunDatabase::run_of(const SweepPoint& point) {
  Statement& find = connection_->prepared(kFindPoint).bind(point.sweep, point.point);
  if (!find.step()) return std::nullopt;
  const int64_t run = find.integer(0);
  find.run();
  return run;
}

std::vector<std::string> RunDatabase::sweeps() {
  Statement& find = connection_->prepared(kSweeps).bind();
  std::vector<std::string> names;
  while (find.step()) names.push_back(find.text(0));
  find.run();
  return names;
}

std::vector<StoredPoint> RunDatabase::points_of(const std::string& sweep) {
  Statement& find = connection_->prepared(kPoints).bind(sweep);
  Statement& metrics = connection_->prepared(kRunMetrics);
  std::vector<StoredPoint> points;
  while (find.step()) {
    StoredPoint& point = points.emplace_back();
    point.point = find.text(1);
    point.fingerprint = find.text(2);
    if (find.text(3) == "skipped") {
      point.skipped_because = find.text(4);
      continue;
    }
    for (size_t i = 0; i < kPointFigures.size(); ++i) {
      const int column = kFirstFigure + static_cast<int>(i);
      if (find.is_null(column)) continue;
      point.figures.push_back({kPointFigures[i].first, find.real(column), kPointFigures[i].second});
    }
    metrics.bind(find.integer(0));
    while (metrics.step()) {
      point.figures.push_back({metrics.text(0), metrics.real(1), metrics.text(2)});
    }
    metrics.run();
  }
  find.run();
  return points;
}

}  // namespace herdsim
