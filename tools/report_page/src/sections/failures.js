// What went wrong, when, and how long training stood.
import {axis, base, legend, tooltip} from '../option.js';
import {duration, number, termName} from '../format.js';

export const failures = {
  id: 'failures', title: 'Failures on a timeline', scope: 'weeks', needs: 'failures',
  how: 'herdsim run SCENARIO --db FILE',
  build(store, runId, colours) {
    const all = store.rowsOf('failures', runId);
    if (all.length === 0) return null;
    const replica = Math.min(...all.map((r) => r.replica));
    const rows = all.filter((r) => r.replica === replica);
    const counts = new Map();
    for (const r of rows) counts.set(r.failure_class, (counts.get(r.failure_class) ?? 0) + 1);
    const classes = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
    const down = rows.reduce((sum, r) => sum + (r.down_s ?? 0), 0);
    const series = [['unexpected', 0, 'circle', colours.loss], ['planned', 1, 'rect', colours.good]]
        .map(([name, planned, symbol, color]) => ({
          name, type: 'scatter', symbol, itemStyle: {color, opacity: 0.75},
          symbolSize: (value) => 5 + Math.min(16, Math.sqrt((value[2] ?? 0) / 60) * 1.6),
          data: rows.filter((r) => r.planned === planned)
              .map((r) => [r.at_s / 86400, termName(r.failure_class), r.down_s, r.lost_work_s, r.component])}))
        .filter((s) => s.data.length > 0);
    return {
      summary: `Replica ${replica}: ${rows.filter((r) => !r.planned).length} unexpected and ` +
          `${rows.filter((r) => r.planned).length} planned interruptions, ${duration(down)} down in all; most often ` +
          `${termName(classes[0])}, ${counts.get(classes[0])} times. A larger mark is a longer stop.`,
      height: Math.max(240, 130 + 24 * classes.length),
      option: {
        ...base(colours), grid: {left: colours.narrow ? 120 : 176, right: 24, top: 40, bottom: 56}, legend: legend(colours),
        tooltip: tooltip(colours, (p) => [p.value[1], `day ${number(p.value[0], 2)}, ${p.value[4]}`,
          `down ${duration(p.value[2])}, work lost ${duration(p.value[3])}`]),
        xAxis: axis(colours, 'time since the job began (days)', {type: 'value', min: 0}),
        yAxis: axis(colours, '', {type: 'category', inverse: true, data: classes.map(termName), splitLine: {show: true, lineStyle: {color: colours.grid}},
          axisLabel: {color: colours.text, hideOverlap: false}}),
        series,
      },
      table: {
        columns: [{name: 'replica'}, {name: 'at', unit: 'days'}, {name: 'class'}, {name: 'component'}, {name: 'planned'},
          {name: 'down', unit: 's'}, {name: 'work lost', unit: 's'}],
        rows: all.map((r) => [r.replica, r.at_s / 86400, r.failure_class, r.component, r.planned, r.down_s, r.lost_work_s]),
      },
    };
  },
};
