// What each assumption decides: how far the MFU moves when one field alone is swept.
import {axis, base, tooltip} from '../option.js';
import {number} from '../format.js';
import {parsePoint} from './sweeps.js';

// [{path, low: {value, mfu}, high, base}] of every sweep over one axis whose step has a nominal twin, widest first.
export function swings(store) {
  const rows = [];
  const runs = store.groups('runs', 'sweep_id');
  for (const sweep of store.rows('sweeps')) {
    const points = (runs.get(sweep.sweep_id) ?? []).filter((r) => r.mfu !== null)
        .map((r) => ({mfu: 100 * r.mfu, at: parsePoint(r.sweep_point), scenario: r.scenario, gpus: r.gpus}));
    const paths = [...new Set(points.flatMap((p) => Object.keys(p.at)))];
    if (paths.length !== 1 || points.length < 2 || paths[0] === 'seed') continue;
    const nominal = store.rows('runs').findLast((r) => r.kind === 'step' && r.sweep_id === null &&
        r.scenario === points[0].scenario && r.gpus === points[0].gpus);
    if (!nominal || nominal.mfu === null) continue;
    points.sort((a, b) => a.mfu - b.mfu);
    const low = points[0], high = points[points.length - 1];
    if (high.mfu - low.mfu < 1e-9) continue;
    rows.push({path: paths[0], scenario: points[0].scenario, base: 100 * nominal.mfu,
      low: {value: low.at[paths[0]], mfu: low.mfu}, high: {value: high.at[paths[0]], mfu: high.mfu}});
  }
  return rows.sort((a, b) => (b.high.mfu - b.low.mfu) - (a.high.mfu - a.low.mfu));
}

export const tornado = {
  id: 'tornado', title: 'What the assumptions decide', scope: 'database', needs: 'sweeps',
  how: 'herdsim step SCENARIO --db FILE, then one sweep an assumption: herdsim sweep SCENARIO --axis software.clock_factor=0.94,1 --db FILE',
  build(store, _, colours) {
    const every = swings(store);
    if (every.length === 0) return null;
    const scenario = every[0].scenario;
    const rows = every.filter((r) => r.scenario === scenario);
    const middle = rows[0].base;
    const side = (pick, color) => ({
      type: 'bar', barGap: '-100%', name: pick, barMaxWidth: 22, itemStyle: {color},
      label: {show: true, position: pick === 'low' ? 'left' : 'right', color: colours.text,
        formatter: (p) => Math.abs(p.value) < 0.005 ? '' : rows[p.dataIndex][pick].value},
      data: rows.map((r) => r[pick].mfu - middle)});
    // Room for the values beside the bars.
    const reach = [Math.min(0, ...rows.map((r) => r.low.mfu - middle)), Math.max(0, ...rows.map((r) => r.high.mfu - middle))];
    const room = 0.2 * (reach[1] - reach[0]);
    return {
      summary: `${scenario}: MFU ${number(middle, 2)} %. Each bar is one field swept alone, with the values at its ends; the widest is ` +
          `${rows[0].path}, ${number(rows[0].low.mfu, 2)} % to ${number(rows[0].high.mfu, 2)} %.`,
      height: 110 + 36 * rows.length,
      option: {
        ...base(colours), grid: {left: colours.narrow ? 120 : 220, right: colours.narrow ? 40 : 72, top: 8, bottom: 56},
        tooltip: tooltip(colours, (p) => {
          const end = rows[p.dataIndex][p.seriesName];
          return [`${rows[p.dataIndex].path} = ${end.value}`, `MFU ${number(end.mfu, 2)} %`];
        }),
        xAxis: axis(colours, `MFU beside ${number(middle, 2)} % (points)`, {type: 'value', min: reach[0] - room, max: reach[1] + room,
          axisLabel: {formatter: (v) => number(v, 1), showMinLabel: false, showMaxLabel: false}}),
        yAxis: axis(colours, '', {type: 'category', inverse: true, data: rows.map((r) => r.path), axisLine: {onZero: false, lineStyle: {color: colours.line}},
          axisLabel: {color: colours.text, hideOverlap: false, width: colours.narrow ? 110 : 210, overflow: 'break'}}),
        series: [side('low', colours.loss), side('high', colours.good)],
      },
      table: {
        columns: [{name: 'field'}, {name: 'value of the lowest MFU'}, {name: 'lowest MFU', unit: '%'}, {name: 'value of the highest MFU'},
          {name: 'highest MFU', unit: '%'}, {name: 'MFU as specified', unit: '%'}],
        rows: rows.map((r) => [r.path, r.low.value, r.low.mfu, r.high.value, r.high.mfu, r.base]),
      },
    };
  },
};
