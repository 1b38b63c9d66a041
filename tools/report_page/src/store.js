// The tables that the program put into the page, as arrays of objects.
//
//   const store = new Store({tables: {runs: {columns: ['run_id', 'mfu'], rows: [[1, 0.4]]}}});
//   store.rows('runs')[0].mfu   // 0.4
export class Store {
  constructor(data) {
    this.data = data;
    this.cache = new Map();
  }

  // Rows of a table; none for a table that the database does not have.
  rows(name) {
    if (!this.cache.has(name)) {
      const table = this.data.tables?.[name] ?? {columns: [], rows: []};
      this.cache.set(name, table.rows.map(
          (row) => Object.fromEntries(table.columns.map((column, i) => [column, row[i]]))));
    }
    return this.cache.get(name);
  }

  // The same, of one run.
  rowsOf(name, runId) {
    return this.groups(name).get(runId) ?? [];
  }

  // The metrics of a run that begin with `prefix`, as {name without prefix: value}.
  metrics(runId, prefix) {
    const key = `metrics ${runId} ${prefix}`;
    if (!this.cache.has(key)) {
      const found = {};
      for (const row of this.rowsOf('metrics', runId)) {
        if (row.name.startsWith(prefix)) found[row.name.slice(prefix.length)] = row.value;
      }
      this.cache.set(key, found);
    }
    return this.cache.get(key);
  }

  run(runId) {
    return this.rowsOf('runs', runId)[0];
  }

  // Rows of a table by the value of one column.
  groups(name, column = 'run_id') {
    const key = `${name} by ${column}`;
    if (!this.cache.has(key)) {
      const groups = new Map();
      for (const row of this.rows(name)) {
        if (!groups.has(row[column])) groups.set(row[column], []);
        groups.get(row[column]).push(row);
      }
      this.cache.set(key, groups);
    }
    return this.cache.get(key);
  }
}

// "herdsim step ... " of a run, short enough for a list.
export function runLabel(run) {
  const what = run.kind === 'run' ? 'weeks' : run.kind;
  const point = run.sweep_point ? `, ${run.sweep_point}` : '';
  return `${run.run_id}: ${run.scenario}, ${run.gpus.toLocaleString('en-GB')} GPUs, ${what}${point}`;
}
