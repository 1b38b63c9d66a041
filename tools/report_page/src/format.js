// Numbers as people read them. One place, so that a chart, its table and its sentence agree.

// Thousands apart, at most `digits` behind the point.
export function number(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  return value.toLocaleString('en-GB', {maximumFractionDigits: digits});
}

// As many digits behind the point as three significant ones need.
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  return number(value, size >= 100 ? 1 : size >= 1 ? 2 : 4);
}

export function withUnit(value, unit) {
  return unit ? `${short(value)} ${unit}` : short(value);
}

// "3.2 ms", "1.5 h": of seconds.
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  for (const [unit, size] of [['days', 172800], ['h', 3600], ['min', 120], ['s', 1], ['ms', 1e-3]]) {
    if (Math.abs(seconds) >= size) {
      const of = {days: 86400, h: 3600, min: 60, s: 1, ms: 1e-3}[unit];
      return `${short(seconds / of)} ${unit}`;
    }
  }
  return `${short(seconds * 1e6)} µs`;
}

const TERM_NAMES = {
  memory_bound: 'memory-bound kernels', exposed_tp: 'exposed TP', exposed_cp: 'exposed CP',
  exposed_ep: 'exposed EP', exposed_pp: 'exposed PP', exposed_dp: 'exposed DP',
  bubble: 'pipeline bubble', straggler: 'stragglers'};

// What a term of a time account is called everywhere.
export function termName(term) {
  return TERM_NAMES[term] ?? term.replaceAll('_', ' ');
}

// One cell of a comma-separated file. A text that a spreadsheet would run as a formula is quoted with '.
export function csvCell(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(table) {
  const head = table.columns.map((c) => csvCell(c.unit ? `${c.name} (${c.unit})` : c.name));
  const lines = table.rows.map((row) => row.map(csvCell).join(','));
  return [head.join(','), ...lines].join('\r\n') + '\r\n';
}
