// A figure against a swept axis. Other axes make lines of their own; repetitions (an axis "seed") make a band.
import {axis, base, legend, tooltip} from '../option.js';
import {number, withUnit} from '../format.js';

// {path: value} of "parallel.tp=4 seed=2"; a value may hold spaces.
export function parsePoint(text) {
  const at = [...text.matchAll(/(?:^| )([A-Za-z_][\w.[\]]*)=/g)];
  return Object.fromEntries(at.map((match, i) => [match[1],
    text.slice(match.index + match[0].length, i + 1 < at.length ? at[i + 1].index : text.length)]));
}

const FIGURES = {
  ett: {name: 'effective training time', unit: '%', of: (run, m) => percent(m['effective_training_time']),
    band: (run, m) => [percent(m['effective_training_time_p05']), percent(m['effective_training_time_p95'])]},
  mfu: {name: 'MFU of the step', unit: '%', of: (run) => percent(run.mfu)},
  step: {name: 'step time', unit: 's', of: (run) => run.step_time_s},
  bubble: {name: 'pipeline bubble', unit: '% of the step', of: (run) => percent(run.bubble_fraction)},
  memory: {name: 'peak memory', unit: 'GB', of: (run) => run.peak_memory_bytes === null ? null : run.peak_memory_bytes / 1e9},
  failures: {name: 'unexpected interruptions', unit: 'count', of: (run, m) => m['unexpected_interruptions'] ?? null},
};

function percent(value) {
  return value === null || value === undefined ? null : 100 * value;
}

export function quantile(sorted, q) {
  const at = q * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}

function valueOrder(a, b) {
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? (a < b ? -1 : a > b ? 1 : 0) : x - y;
}

// Of points {at, lines, value, band}: lines of {x, mean, low, high}, x ascending.
export function curves(points) {
  const lines = new Map();
  for (const p of points) {
    if (!lines.has(p.line)) lines.set(p.line, new Map());
    const line = lines.get(p.line);
    if (!line.has(p.x)) line.set(p.x, []);
    line.get(p.x).push(p);
  }
  return [...lines].map(([name, at]) => ({name, points: [...at].sort((a, b) => valueOrder(a[0], b[0])).map(([x, here]) => {
    const values = here.map((p) => p.value).sort((a, b) => a - b);
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const band = here.length > 1 ? [quantile(values, 0.05), quantile(values, 0.95)] : here[0].band;
    return {x, mean, low: band?.[0] ?? null, high: band?.[1] ?? null, count: here.length};
  })}));
}

// Whether the value of one path follows from another's, as in --axis gpus:parallel.dp=...
export function moveTogether(points, path, other) {
  const seen = new Map();
  return points.every(({at}) => {
    if (!seen.has(at[path])) seen.set(at[path], at[other]);
    return seen.get(at[path]) === at[other];
  });
}

function sweepsOf(store) {
  const runs = store.groups('runs', 'sweep_id');
  return store.rows('sweeps').map((sweep) => {
    const points = (runs.get(sweep.sweep_id) ?? []).filter((run) => run.kind !== 'skipped')
        .map((run) => ({run, at: parsePoint(run.sweep_point)}));
    const axes = [...new Set(points.flatMap((p) => Object.keys(p.at)))];
    return {...sweep, points, axes: axes.filter((a) => a !== 'seed'), all: axes};
  }).filter((sweep) => sweep.points.length > 1);
}

function bandSeries(name, line, color, position, opacity) {
  const rows = line.points.filter((p) => p.low !== null);
  if (rows.length < 2) return [];
  return [{
    name: `\u0000band ${name}`, type: 'custom', silent: true, z: 1, tooltip: {show: false},
    encode: {x: 0, y: [1, 2]}, data: rows.map((p) => [position(p.x), p.low, p.high]),
    // One shape for all points.
    renderItem: (params, api) => {
      if (params.dataIndexInside > 0) return null;
      const top = rows.map((p) => api.coord([position(p.x), p.high]));
      const bottom = rows.map((p) => api.coord([position(p.x), p.low])).reverse();
      return {type: 'polygon', shape: {points: [...top, ...bottom]}, style: {fill: color, opacity}};
    }}];
}

export const sweeps = {
  id: 'sweeps', title: 'Swept axes', scope: 'database', needs: 'sweeps',
  how: 'herdsim sweep SCENARIO --axis reliability.rate_scale=0.5,1,2 --days 54 --replicas 20 --db FILE',
  controls(store, state) {
    const all = sweepsOf(store);
    if (all.length === 0) return [];
    const weeks = all.filter((s) => s.points[0].run.kind === 'run');
    const most = (list) => list.reduce((a, b) => b.points.length > a.points.length ? b : a);
    const sweep = all.find((s) => String(s.sweep_id) === state.sweep) ?? most(weeks.length > 0 ? weeks : all);
    const figures = Object.entries(FIGURES).filter(([, f]) => sweep.points.some((p) => f.of(p.run, store.metrics(p.run.run_id, 'run.')) !== null &&
      f.of(p.run, store.metrics(p.run.run_id, 'run.')) !== undefined));
    return [
      {id: 'sweep', label: 'Sweep', options: all.map((s) => [String(s.sweep_id), `${s.name.replace(/#[0-9a-f]{16}/, '').replace(/ ?(days|tokens)=0/g, '')} (${s.points.length} points)`]),
        value: String(sweep.sweep_id)},
      {id: 'axis', label: 'Across', options: sweep.axes.map((a) => [a, a])},
      {id: 'figure', label: 'Figure', options: figures.map(([key, f]) => [key, f.name])}];
  },
  build(store, _, colours, state) {
    const all = sweepsOf(store);
    const sweep = all.find((s) => String(s.sweep_id) === state.sweep);
    if (!sweep || !sweep.axes.includes(state.axis)) return null;
    const figure = FIGURES[state.figure];
    const others = sweep.axes.filter((a) => a !== state.axis && !moveTogether(sweep.points, state.axis, a));
    const points = sweep.points.map(({run, at}) => {
      const m = store.metrics(run.run_id, 'run.');
      return {x: at[state.axis], line: others.map((a) => `${a}=${at[a]}`).join(' '), value: figure.of(run, m) ?? null,
        band: figure.band?.(run, m) ?? null, run};
    }).filter((p) => p.value !== null);
    if (points.length === 0) return null;
    const numeric = points.every((p) => p.x !== '' && !Number.isNaN(Number(p.x)));
    const xs = [...new Set(points.map((p) => p.x))].sort(valueOrder);
    const spread = numeric && Number(xs[0]) > 0 && Number(xs[xs.length - 1]) / Number(xs[0]) > 50;
    const position = (x) => numeric ? Number(x) : xs.indexOf(x);
    const lines = curves(points);
    const shown = lines.slice(0, 24);
    const best = points.reduce((a, b) => (figure.unit === 's' || state.figure === 'bubble' || state.figure === 'failures' || state.figure === 'memory'
        ? b.value < a.value : b.value > a.value) ? b : a);
    const banded = lines.some((l) => l.points.some((p) => p.low !== null));
    return {
      summary: `${points.length} points. The best ${figure.name} is ${withUnit(best.value, figure.unit)}, at ${best.run.sweep_point}.` +
          (banded ? ' Bands run from the 5th to the 95th percentile.' : '') +
          (lines.length > shown.length ? ` The first ${shown.length} of ${lines.length} lines are drawn.` : ''),
      height: 420,
      option: {
        ...base(colours), legend: shown.length > 1 ? legend(colours, {data: shown.map((l) => l.name)}) : {show: false},
        tooltip: tooltip(colours, (p) => {
          const at = shown[p.seriesIndex >= shown.length ? 0 : p.seriesIndex]?.points[p.dataIndex];
          return [p.seriesName, `${state.axis} = ${at?.x}`, `${figure.name} ${withUnit(at?.mean, figure.unit)}`,
            ...(at?.low === null || at?.low === undefined ? [] : [`5th to 95th percentile ${withUnit(at.low)} to ${withUnit(at.high, figure.unit)}`])]
              .filter((text) => text !== '');
        }),
        xAxis: axis(colours, spread ? `${state.axis} (logarithmic)` : state.axis,
            numeric ? {type: spread ? 'log' : 'value', scale: true} : {type: 'category', data: xs}),
        yAxis: axis(colours, `${figure.name} (${figure.unit})`, {type: 'value', scale: true, nameGap: 46}),
        series: [
          ...shown.map((line, i) => ({
            name: line.name || figure.name, type: 'line', z: 2, symbolSize: line.points.length > 100 ? 3 : numeric ? 7 : 11,
            symbol: ['circle', 'rect', 'triangle', 'diamond'][i % 4],
            // Between names there is nothing to draw a line through.
            lineStyle: {color: colours.series[i % colours.series.length], width: numeric ? 2 : 0, type: i >= colours.series.length ? 'dashed' : 'solid'},
            itemStyle: {color: colours.series[i % colours.series.length]},
            data: line.points.map((p) => [numeric ? Number(p.x) : p.x, p.mean])})),
          ...shown.flatMap((line, i) => bandSeries(line.name, line, colours.series[i % colours.series.length], position,
              Math.max(0.04, 0.2 / shown.length)))],
      },
      table: {
        columns: [...sweep.all.map((name) => ({name})), {name: figure.name, unit: figure.unit}, {name: '5th percentile', unit: figure.unit},
          {name: '95th percentile', unit: figure.unit}],
        rows: points.map((p) => {
          const at = parsePoint(p.run.sweep_point);
          return [...sweep.all.map((name) => at[name] ?? ''), p.value, p.band?.[0] ?? null, p.band?.[1] ?? null];
        }),
      },
    };
  },
};
