// What each uncertain input decides: how far a figure moves with that input alone at the ends of its range.
import {axis, base, tooltip} from '../option.js';
import {number} from '../format.js';
import {parsePoint} from './sweeps.js';

// `scale` from the stored figure to the shown one, of the figure as it is.
const METRICS = {
  mfu: {name: 'MFU', unit: 'points', of: () => 100, digits: 2},
  effective_training_time: {name: 'effective training time', unit: 'points', of: () => 100, digits: 2},
  tokens_per_second: {name: 'tokens a second', unit: '%', of: (value) => 100 / value, digits: 2},
};

// [{path, basis, source, low: {value, figure}, high, base}] of the stored tornado, widest first: `low` is the end with the
// lower figure.
export function storedSwings(store, metric) {
  const rows = store.rows('tornado').filter((r) => r.metric === metric).map((r) => {
    const ends = [{value: r.low, figure: r.value_low ?? r.value}, {value: r.high, figure: r.value_high ?? r.value}]
        .sort((a, b) => a.figure - b.figure);
    return {path: r.input, basis: r.evidence, source: r.source, scenario: store.run(r.run_id)?.scenario ?? '', base: r.value,
      low: ends[0], high: ends[1]};
  });
  return rows.filter((r) => r.high.figure - r.low.figure > 1e-9 * Math.abs(r.base))
      .sort((a, b) => (b.high.figure - b.low.figure) - (a.high.figure - a.low.figure));
}

// The same from every sweep over one axis whose step has a nominal twin.
export function sweptSwings(store) {
  const rows = [];
  const runs = store.groups('runs', 'sweep_id');
  for (const sweep of store.rows('sweeps')) {
    const points = (runs.get(sweep.sweep_id) ?? []).filter((r) => r.mfu !== null)
        .map((r) => ({figure: r.mfu, at: parsePoint(r.sweep_point), scenario: r.scenario, gpus: r.gpus}));
    const paths = [...new Set(points.flatMap((p) => Object.keys(p.at)))];
    if (paths.length !== 1 || points.length < 2 || paths[0] === 'seed') continue;
    const nominal = store.rows('runs').findLast((r) => r.kind === 'step' && r.sweep_id === null &&
        r.scenario === points[0].scenario && r.gpus === points[0].gpus);
    if (!nominal || nominal.mfu === null) continue;
    points.sort((a, b) => a.figure - b.figure);
    const low = points[0], high = points[points.length - 1];
    if (high.figure - low.figure < 1e-11) continue;
    rows.push({path: paths[0], basis: 'swept', source: '', scenario: points[0].scenario, base: nominal.mfu,
      low: {value: low.at[paths[0]], figure: low.figure}, high: {value: high.at[paths[0]], figure: high.figure}});
  }
  return rows.sort((a, b) => (b.high.figure - b.low.figure) - (a.high.figure - a.low.figure));
}

export const tornado = {
  id: 'tornado', title: 'What the assumptions decide', scope: 'database', needs: 'tornado',
  how: 'herdsim sweep SCENARIO --tornado --db FILE',
  controls(store) {
    const stored = Object.keys(METRICS).filter((metric) => storedSwings(store, metric).length > 0);
    return stored.length > 1 ? [{id: 'metric', label: 'Figure', options: stored.map((m) => [m, METRICS[m].name])}] : [];
  },
  build(store, _, colours, state) {
    const key = state.metric ?? 'mfu';
    const metric = METRICS[key];
    const stored = storedSwings(store, key);
    const every = stored.length > 0 ? stored : key === 'mfu' ? sweptSwings(store) : [];
    if (every.length === 0) return null;
    const scenario = every[0].scenario;
    const rows = every.filter((r) => r.scenario === scenario);
    const middle = rows[0].base;
    const scale = metric.of(middle);
    const moved = (end) => scale * (end.figure - middle);
    const signed = (end) => `${moved(end) > 0 ? '+' : ''}${number(moved(end), metric.digits)} ${metric.unit}`;
    const side = (pick, color) => ({
      type: 'bar', barGap: '-100%', name: pick, barMaxWidth: 22, itemStyle: {color},
      label: {show: true, position: pick === 'low' ? 'left' : 'right', color: colours.text,
        formatter: (p) => Math.abs(p.value) < 0.005 ? '' : rows[p.dataIndex][pick].value},
      data: rows.map((r) => moved(r[pick]))});
    // Room for the values beside the bars.
    const reach = [Math.min(0, ...rows.map((r) => moved(r.low))), Math.max(0, ...rows.map((r) => moved(r.high)))];
    const room = (colours.narrow ? 0.35 : 0.2) * (reach[1] - reach[0]);
    const as = key === 'tokens_per_second' ? number(middle, 0) : `${number(100 * middle, 2)} %`;
    return {
      summary: `${scenario}: ${metric.name} ${as}. Each bar is one ${stored.length > 0 ? 'uncertain input at the ends of its range' :
          'field swept'}, all else as it is; the widest is ${rows[0].path}, ${signed(rows[0].low)} to ${signed(rows[0].high)}.`,
      height: 110 + 36 * rows.length,
      option: {
        ...base(colours), grid: {left: colours.narrow ? 120 : 250, right: colours.narrow ? 40 : 72, top: 8, bottom: 56},
        tooltip: tooltip(colours, (p) => {
          const row = rows[p.dataIndex], end = row[p.seriesName];
          return [`${row.path} = ${end.value}: ${signed(end)}`, ...(row.source ? [`${row.basis}: ${row.source}`] : [])];
        }),
        xAxis: axis(colours, `${metric.name} beside ${as} (${metric.unit})`, {type: 'value', min: reach[0] - room, max: reach[1] + room,
          axisLabel: {formatter: (v) => number(v, 1), showMinLabel: false, showMaxLabel: false}}),
        yAxis: axis(colours, '', {type: 'category', inverse: true, data: rows.map((r) => r.path), axisLine: {onZero: false, lineStyle: {color: colours.line}},
          axisLabel: {color: colours.text, hideOverlap: false, lineHeight: 14, width: colours.narrow ? 110 : 240, overflow: 'break',
            // Where there is little room: the field's own name, which may break between its words.
            formatter: (path) => colours.narrow ? path.slice(path.indexOf('.') + 1).replaceAll(/[_.]/g, ' ') : path}}),
        series: [side('low', colours.loss), side('high', colours.good)],
      },
      table: {
        columns: [{name: 'input'}, {name: 'value of the lowest'}, {name: `lowest ${metric.name}`, unit: metric.unit},
          {name: 'value of the highest'}, {name: `highest ${metric.name}`, unit: metric.unit}, {name: 'basis'}, {name: 'source'}],
        rows: rows.map((r) => [r.path, r.low.value, moved(r.low), r.high.value, moved(r.high), r.basis, r.source]),
      },
    };
  },
};
