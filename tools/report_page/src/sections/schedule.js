// The pipeline as it ran: a row a stage of one replica, a box a pass.
import {axis, base, tooltip} from '../option.js';
import {duration, number} from '../format.js';

function box(colours, rows, chunks) {
  return (params, api) => {
    const row = rows[params.dataIndex];
    const [x, y] = api.coord([row.begin_ns / 1e6, row.stage]);
    const [end] = api.coord([(row.begin_ns + row.duration_ns) / 1e6, row.stage]);
    const height = api.size([0, 1])[1] * 0.82;
    const left = Math.max(x, params.coordSys.x);
    const right = Math.min(end, params.coordSys.x + params.coordSys.width);
    if (right <= left) return null;
    const width = Math.max(right - left, 0.5);
    const label = row.micro_batch === null ? '' : `${row.micro_batch}`;
    return {
      type: 'rect',
      shape: {x: left, y: y - height / 2, width, height},
      style: {
        fill: colours[row.phase] ?? colours.unknown,
        opacity: chunks > 1 && row.chunk !== null ? 1 - 0.55 * row.chunk / (chunks - 1) : 1,
        stroke: width > 3 ? colours.ground : null, lineWidth: 0.5},
      textContent: width > 8 + 7 * label.length && height > 10
          ? {style: {text: label, fill: row.chunk >= chunks / 2 && chunks > 1 ? colours.text : colours.ground, fontSize: 10}}
          : undefined,
      textConfig: {position: 'inside'},
    };
  };
}

export const schedule = {
  id: 'schedule', title: 'The pipeline as it ran', scope: 'step', needs: 'passes',
  how: 'herdsim step SCENARIO --db FILE',
  zoom: true,
  build(store, runId, colours) {
    const rows = store.rowsOf('passes', runId);
    if (rows.length === 0) return null;
    const stages = 1 + Math.max(...rows.map((r) => r.stage));
    const chunks = 1 + Math.max(0, ...rows.map((r) => r.chunk ?? 0));
    const batches = 1 + Math.max(0, ...rows.map((r) => r.micro_batch ?? 0));
    const end = Math.max(...rows.map((r) => r.begin_ns + r.duration_ns)) / 1e9;
    const busy = rows.reduce((sum, r) => sum + r.duration_ns, 0) / 1e9;
    return {
      summary: `One replica: ${stages} stages, ${batches} micro-batches, ${chunks} chunks a stage. A box is a pass, its ` +
          'number the micro-batch' + (chunks > 1 ? ', paler from chunk to chunk' : '') +
          `. Boxes fill ${number(100 * busy / (end * stages), 1)} % of the picture; the gaps are waiting.`,
      key: [['forward', colours.forward], ['backward', colours.backward], ['optimizer', colours.optimizer]]
          .filter(([phase]) => rows.some((r) => r.phase === phase)),
      height: Math.max(220, 110 + 26 * stages),
      option: {
        ...base(colours), grid: {left: 64, right: 24, top: 16, bottom: 92},
        tooltip: tooltip(colours, (p) => {
          const r = rows[p.dataIndex];
          return [`stage ${r.stage}, ${r.phase || 'pass'}`,
            ...(r.micro_batch === null ? [] : [`micro-batch ${r.micro_batch}, chunk ${r.chunk ?? 0}`]),
            `from ${duration(r.begin_ns / 1e9)} for ${duration(r.duration_ns / 1e9)}`];
        }),
        dataZoom: [
          {type: 'slider', filterMode: 'weakFilter', bottom: 8, height: 22, borderColor: colours.line, textStyle: {color: colours.quiet},
            showDataShadow: false, brushSelect: false,
            labelFormatter: (value) => `${number(value, 0)} ms`},
          {type: 'inside', filterMode: 'weakFilter', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: true}],
        xAxis: axis(colours, 'time since the step began (ms)', {type: 'value', min: 0, max: Math.ceil(end * 1e3),
          axisLabel: {formatter: (v) => number(v, 1), showMaxLabel: false}}),
        yAxis: axis(colours, 'pipeline stage', {type: 'category', inverse: true, nameGap: 40,
          data: Array.from({length: stages}, (_, i) => `${i}`), splitLine: {show: false}}),
        series: [{
          type: 'custom', name: 'passes', renderItem: box(colours, rows, chunks), clip: true,
          encode: {x: [0, 1], y: 2},
          data: rows.map((r) => [r.begin_ns / 1e6, (r.begin_ns + r.duration_ns) / 1e6, r.stage])}],
      },
      table: {
        columns: [{name: 'stage'}, {name: 'rank'}, {name: 'phase'}, {name: 'micro-batch'}, {name: 'chunk'},
          {name: 'begin', unit: 'ms'}, {name: 'duration', unit: 'ms'}],
        rows: rows.map((r) => [r.stage, r.rank, r.phase, r.micro_batch, r.chunk, r.begin_ns / 1e6, r.duration_ns / 1e6]),
      },
    };
  },
};
