// Memory of one rank of every stage while the step runs.
import {axis, base, legend, seriesLines, tooltip} from '../option.js';
import {number} from '../format.js';
import {ordered} from '../palette.js';

export const memory = {
  id: 'memory', title: 'Memory over the step, by stage', scope: 'step', needs: 'passes',
  how: 'herdsim step SCENARIO --db FILE',
  build(store, runId, colours) {
    const rows = store.rowsOf('passes', runId).filter((r) => r.memory_bytes !== null);
    if (rows.length === 0) return null;
    const stages = [...new Set(rows.map((r) => r.stage))].sort((a, b) => a - b);
    const lines = stages.map((stage) => rows.filter((r) => r.stage === stage)
        .sort((a, b) => a.begin_ns - b.begin_ns));
    const capacity = store.run(runId)?.memory_capacity_bytes;
    const peak = rows.reduce((best, r) => r.memory_bytes > best.memory_bytes ? r : best);
    const end = Math.max(...rows.map((r) => r.begin_ns + r.duration_ns)) / 1e6;
    const free = capacity ? 100 * (1 - peak.memory_bytes / capacity) : null;
    return {
      summary: `The peak is ${number(peak.memory_bytes / 1e9, 2)} GB on stage ${peak.stage}` +
          (free === null ? '.' : free >= 0
              ? `, ${number(free, 1)} % below the ${number(capacity / 1e9, 1)} GB of the GPU.`
              : `, more than the ${number(capacity / 1e9, 1)} GB of the GPU.`) +
          ' Each line holds weights, gradients, optimizer state, buffers and what the passes keep.',
      height: 420,
      option: {
        ...base(colours), grid: {left: 64, right: 24, top: 44, bottom: 56},
        legend: legend(colours),
        tooltip: tooltip(colours, seriesLines((p) => `${number(p.axisValue, 1)} ms`, 'GB'), {trigger: 'axis'}),
        xAxis: axis(colours, 'time since the step began (ms)', {type: 'value', min: 0, max: Math.ceil(end), axisLabel: {formatter: (v) => number(v, 0), showMaxLabel: false}}),
        yAxis: axis(colours, 'memory of a rank (GB)', {type: 'value', min: 0, nameGap: 44,
          max: capacity ? Math.ceil(Math.max(capacity, peak.memory_bytes) / 1e9 / 20) * 20 : null}),
        series: lines.map((line, i) => ({
          name: `stage ${stages[i]}`, type: 'line', step: 'end', symbol: 'none', sampling: 'max',
          lineStyle: {width: 1.5, color: ordered(i, stages.length, colours.dark)},
          itemStyle: {color: ordered(i, stages.length, colours.dark)},
          data: line.map((r) => [r.begin_ns / 1e6, r.memory_bytes / 1e9]),
          ...(i === 0 && capacity ? {markLine: {
            symbol: 'none', silent: true, lineStyle: {color: colours.loss, type: 'dashed'},
            label: {formatter: `the GPU has ${number(capacity / 1e9, 1)} GB`, color: colours.text, position: 'insideStartTop'},
            data: [{yAxis: capacity / 1e9}]}} : {})})),
      },
      table: {
        columns: [{name: 'stage'}, {name: 'from', unit: 'ms'}, {name: 'pass'}, {name: 'micro-batch'}, {name: 'chunk'},
          {name: 'memory', unit: 'GB'}],
        rows: lines.flat().map((r) => [r.stage, r.begin_ns / 1e6, r.phase, r.micro_batch, r.chunk, r.memory_bytes / 1e9]),
      },
    };
  },
};
