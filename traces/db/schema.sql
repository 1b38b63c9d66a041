-- The run database of Herdsim. Units are in the column names; a column without one is a count, a name or a ratio in 0..1.
-- Figures that a kind of result does not have are NULL.
-- Runs whole on an older file as well, which so gets the tables it lacks.

CREATE TABLE IF NOT EXISTS sweeps (
  sweep_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE             -- what identifies the grid: its scenario and axes
);

-- One row a result. Everything needed to run it again is in the row.
CREATE TABLE IF NOT EXISTS runs (
  run_id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,                   -- 'step', 'run', or 'skipped': a point of a sweep with no result, whose reason is its warning
  scenario TEXT NOT NULL,
  gpus INTEGER NOT NULL,
  command TEXT NOT NULL,
  effective_spec TEXT NOT NULL,         -- the scenario with every default filled in
  seed INTEGER NOT NULL,
  version TEXT NOT NULL,                -- of the program
  profile TEXT NOT NULL,                -- device profile
  profile_provenance TEXT NOT NULL,     -- where its numbers come from
  result_fingerprint TEXT NOT NULL,     -- equal for equal results, folded or not
  recorded_at TEXT,                     -- UTC, as the caller gave it
  sweep_id INTEGER REFERENCES sweeps(sweep_id),
  sweep_point TEXT,                     -- 'parallel.tp=4 seed=2'
  step_time_s REAL,
  tokens_per_step INTEGER,
  tokens_per_second_per_gpu REAL,
  model_tflops_per_gpu REAL,            -- causal attention counted half
  mfu REAL,                             -- of peak_tflops, causal attention counted half
  mfu_full_attention REAL,
  peak_tflops REAL,                     -- dense, of dtype, one GPU
  dtype TEXT,
  bubble_fraction REAL,
  peak_memory_bytes INTEGER,
  peak_memory_stage INTEGER,
  peak_memory_moment TEXT,
  memory_capacity_bytes INTEGER,
  fits INTEGER,                         -- 1 or 0
  simulated_ranks INTEGER,
  events INTEGER,
  wall_s REAL,                          -- of the simulation itself
  warnings TEXT NOT NULL DEFAULT '',    -- one a line
  UNIQUE (sweep_id, sweep_point)
);
CREATE INDEX IF NOT EXISTS runs_by_scenario ON runs(scenario);

-- Every further figure: 'time_account.compute', 'memory.stage_0.peak', ...
CREATE TABLE IF NOT EXISTS metrics (
  run_id INTEGER NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  value REAL,
  unit TEXT NOT NULL,
  PRIMARY KEY (run_id, name)
) WITHOUT ROWID;

-- What traced ranks did.
CREATE TABLE IF NOT EXISTS spans (
  run_id INTEGER NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  stream TEXT NOT NULL,
  begin_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  name TEXT NOT NULL,
  micro_batch INTEGER,
  chunk INTEGER,
  bytes INTEGER,
  flops REAL,
  flow INTEGER                          -- a send and its receive share it
);
CREATE INDEX IF NOT EXISTS spans_by_run ON spans(run_id, rank);

-- Where the time of a step goes, by class of ranks that do the same; the terms of a class sum to the step time.
CREATE TABLE IF NOT EXISTS rank_time (
  run_id INTEGER NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  rank_class INTEGER NOT NULL,
  stage INTEGER NOT NULL,               -- of the pipeline
  first_rank INTEGER NOT NULL,          -- the lowest of the class
  ranks INTEGER NOT NULL,               -- how many it stands for
  term TEXT NOT NULL,                   -- 'compute', 'exposed_tp', ...
  seconds REAL NOT NULL,
  PRIMARY KEY (run_id, rank_class, term)
) WITHOUT ROWID;

-- The pipeline schedule as it ran: every pass of one rank of every stage of the first replica.
CREATE TABLE IF NOT EXISTS passes (
  run_id INTEGER NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  stage INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  phase TEXT NOT NULL,                  -- 'forward', 'backward', 'optimizer' or ''
  micro_batch INTEGER,
  chunk INTEGER,                        -- of the stage
  memory_bytes INTEGER                  -- allocated while it runs
);
CREATE INDEX IF NOT EXISTS passes_by_run ON passes(run_id, stage, begin_ns);

-- Predictions beside what was published; a suite that is validated again replaces its rows.
CREATE TABLE IF NOT EXISTS comparisons (
  suite TEXT NOT NULL,                  -- 'steps', 'reliability', or the name of a table of runs
  name TEXT NOT NULL,                   -- the scenario, target or row
  quantity TEXT NOT NULL,               -- 'mfu', 'step_time', ...
  unit TEXT NOT NULL,
  predicted REAL NOT NULL,
  published REAL NOT NULL,
  allowed REAL,                         -- difference, in the unit
  source TEXT NOT NULL,
  version TEXT NOT NULL,                -- of the program
  PRIMARY KEY (suite, name, quantity)
) WITHOUT ROWID;

-- What went wrong in a replica of a run of weeks, and what it cost.
CREATE TABLE IF NOT EXISTS failures (
  run_id INTEGER NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  replica INTEGER NOT NULL,
  at_s REAL NOT NULL,
  failure_class TEXT NOT NULL,
  component TEXT NOT NULL,
  planned INTEGER NOT NULL,             -- 1 or 0
  down_s REAL,                          -- until training went on
  lost_work_s REAL                      -- done since the checkpoint that was loaded
);
CREATE INDEX IF NOT EXISTS failures_by_run ON failures(run_id, replica, at_s);

-- How much the links of the fabric were used.
CREATE TABLE IF NOT EXISTS links (
  run_id INTEGER NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  link INTEGER NOT NULL,
  kind TEXT NOT NULL,
  from_node TEXT NOT NULL,
  to_node TEXT NOT NULL,
  capacity_bytes_per_second INTEGER NOT NULL,
  carried_bytes INTEGER NOT NULL,
  busy_s REAL NOT NULL,
  PRIMARY KEY (run_id, link)
) WITHOUT ROWID;

-- Which uncertain inputs decide a result: a figure of the run with one input at the ends of its range.
CREATE TABLE IF NOT EXISTS tornado (
  run_id INTEGER NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  input TEXT NOT NULL,                  -- 'software.clock_factor'
  low TEXT NOT NULL,                    -- ends of its range, as --set has them
  high TEXT NOT NULL,
  evidence TEXT NOT NULL,               -- 'assumed', 'published', 'derived'
  source TEXT NOT NULL,
  metric TEXT NOT NULL,                 -- 'mfu', 'effective_training_time', 'tokens_per_second'
  value REAL NOT NULL,                  -- with the input as it is
  value_low REAL,                       -- NULL where that end is no scenario
  value_high REAL,
  PRIMARY KEY (run_id, input, metric)
) WITHOUT ROWID;

-- The answer to "what did I run and how did it go", newest first.
CREATE VIEW IF NOT EXISTS v_summary AS
SELECT run_id, kind, scenario, gpus, round(step_time_s, 4) AS step_time_s, round(100 * mfu, 2) AS mfu_percent,
       round(model_tflops_per_gpu, 1) AS model_tflops_per_gpu,
       round(tokens_per_second_per_gpu, 1) AS tokens_per_second_per_gpu,
       round(100 * bubble_fraction, 2) AS bubble_percent, round(peak_memory_bytes / 1e9, 2) AS peak_memory_gb, fits,
       sweep_point, warnings <> '' AS has_warnings
FROM runs ORDER BY run_id DESC;

-- Where the time goes: one row a term, seconds of the mean rank and share of the whole.
CREATE VIEW IF NOT EXISTS v_time_account AS
SELECT runs.run_id, runs.scenario, substr(metrics.name, length('time_account.') + 1) AS term,
       metrics.value AS seconds,
       100 * metrics.value / sum(metrics.value) OVER (PARTITION BY runs.run_id) AS percent
FROM runs JOIN metrics USING (run_id)
WHERE metrics.name LIKE 'time\_account.%' ESCAPE '\' AND metrics.unit = 's'
ORDER BY runs.run_id, metrics.value DESC;
