// MFU against the number of GPUs, over every result of the database.
import {axis, base, legend, tooltip} from '../option.js';
import {number} from '../format.js';

export const scaling = {
  id: 'scaling', title: 'MFU against GPUs', scope: 'database', needs: 'runs',
  how: 'herdsim sweep SCENARIO --axis parallel.dp=32,64,128 --db FILE',
  build(store, _, colours) {
    const seen = new Set();
    const rows = store.rows('runs').filter((r) => r.mfu !== null && r.gpus > 0).filter((r) => {
      const key = `${r.scenario} ${r.gpus} ${r.sweep_point} ${r.result_fingerprint}`;
      return !seen.has(key) && seen.add(key);
    });
    if (new Set(rows.map((r) => r.gpus)).size < 2) return null;
    // A sweep over GPUs is a line; everything else is marks.
    const counts = new Map();
    for (const r of rows) counts.set(r.sweep_id, (counts.get(r.sweep_id) ?? new Set()).add(r.gpus));
    const lineOf = (r) => r.sweep_id !== null && counts.get(r.sweep_id).size > 1 ? `${r.scenario}, sweep ${r.sweep_id}` : r.scenario;
    const names = [...new Set(rows.map(lineOf))];
    const best = rows.reduce((a, b) => b.mfu > a.mfu ? b : a);
    const most = rows.reduce((a, b) => b.gpus > a.gpus ? b : a);
    return {
      summary: `${rows.length} results from ${number(Math.min(...rows.map((r) => r.gpus)), 0)} to ${number(most.gpus, 0)} GPUs; ` +
          `the highest MFU is ${number(100 * best.mfu, 1)} %, on ${number(best.gpus, 0)}.`,
      height: 380,
      option: {
        ...base(colours), legend: legend(colours),
        tooltip: tooltip(colours, (p) => [p.seriesName, `${number(p.value[0], 0)} GPUs`, `MFU ${number(p.value[1], 2)} %`,
          ...(p.value[2] ? [p.value[2]] : [])]),
        xAxis: axis(colours, 'GPUs (count, logarithmic)', {type: 'log', logBase: 2, axisLabel: {formatter: (v) => number(v, 0)},
          min: (v) => 2 ** Math.floor(Math.log2(v.min)), max: (v) => 2 ** Math.ceil(Math.log2(v.max))}),
        yAxis: axis(colours, 'MFU (% of the dense peak, causal attention)', {type: 'value', scale: true, nameGap: 44}),
        series: names.map((name, i) => {
          const points = rows.filter((r) => lineOf(r) === name).sort((a, b) => a.gpus - b.gpus);
          const alone = new Set(points.map((r) => r.gpus)).size === points.length;
          return {
            name, type: alone && name !== points[0].scenario ? 'line' : 'scatter', symbolSize: 8,
            symbol: ['circle', 'rect', 'triangle', 'diamond'][i % 4],
            itemStyle: {color: colours.series[i % colours.series.length]},
            lineStyle: {color: colours.series[i % colours.series.length]},
            data: points.map((r) => [r.gpus, 100 * r.mfu, r.sweep_point])};
        }),
      },
      table: {columns: [{name: 'scenario'}, {name: 'point'}, {name: 'GPUs'}, {name: 'MFU', unit: '%'}, {name: 'step', unit: 's'}],
        rows: rows.map((r) => [r.scenario, r.sweep_point, r.gpus, 100 * r.mfu, r.step_time_s])},
    };
  },
};
