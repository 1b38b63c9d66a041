// Predictions beside what was published.
import {axis, base, legend, tooltip} from '../option.js';
import {number, withUnit} from '../format.js';
import {quantile} from './sweeps.js';

const BANDS = [5, 10];
const FEW = 4;
const RATIOS = '\u0000ratios';

const COLUMNS = [{name: 'suite'}, {name: 'name'}, {name: 'quantity'}, {name: 'unit'}, {name: 'predicted'}, {name: 'published'},
  {name: 'error', unit: '%'}, {name: 'allowed difference'}, {name: 'source'}];

function quantityName(quantity) {
  return quantity === 'mfu' ? 'MFU' : quantity.replaceAll('_', ' ');
}

function tableOf(rows) {
  return {columns: COLUMNS, rows: rows.map((r) => [r.suite, r.name, r.quantity, r.unit, r.predicted, r.published,
    100 * (r.predicted / r.published - 1), r.allowed, r.source])};
}

// Quantities of few figures have no scale of their own: predicted over published, with the allowed difference as a bar.
function ratios(all, colours) {
  const counts = new Map();
  for (const r of all) counts.set(r.quantity, (counts.get(r.quantity) ?? 0) + 1);
  const rows = all.filter((r) => counts.get(r.quantity) < FEW && r.published !== 0);
  if (rows.length === 0) return null;
  const names = rows.map((r) => counts.get(r.quantity) > 1 ? `${r.name}: ${quantityName(r.quantity)}` : quantityName(r.quantity));
  const off = (r) => 100 * (r.predicted / r.published - 1);
  const within = rows.filter((r) => r.allowed === null || Math.abs(r.predicted - r.published) <= r.allowed + 1e-9).length;
  return {
    summary: `${within} of ${rows.length} figures are within what was allowed before they were predicted; the bar behind a mark is that allowance.`,
    height: 110 + 30 * rows.length,
    option: {
      ...base(colours), grid: {left: colours.narrow ? 140 : 260, right: 40, top: 8, bottom: 56},
      tooltip: tooltip(colours, (p) => {
        const r = rows[p.dataIndex];
        return [names[p.dataIndex], `predicted ${withUnit(r.predicted, r.unit)}`, `published ${withUnit(r.published, r.unit)}`,
          ...(r.allowed === null ? [] : [`allowed ± ${withUnit(r.allowed, r.unit)}`]), r.source];
      }),
      xAxis: axis(colours, 'predicted beside published (%)', {type: 'value'}),
      yAxis: axis(colours, '', {type: 'category', inverse: true, data: names, axisLine: {onZero: false, lineStyle: {color: colours.line}},
        axisLabel: {color: colours.text, hideOverlap: false, width: colours.narrow ? 130 : 250, overflow: 'truncate'}}),
      series: [
        ...[-1, 1].map((side) => ({name: 'allowed', type: 'bar', barGap: '-100%', barMaxWidth: 14, itemStyle: {color: colours.line},
          data: rows.map((r) => r.allowed === null ? 0 : side * 100 * r.allowed / Math.abs(r.published))})),
        {name: 'predicted', type: 'scatter', symbolSize: 11, z: 3, itemStyle: {color: colours.good}, data: rows.map((r, i) => [off(r), i])}],
    },
    table: tableOf(rows),
  };
}

export const accuracy = {
  id: 'accuracy', title: 'Predicted against published', scope: 'database', needs: 'comparisons',
  how: 'herdsim validate --db FILE',
  controls(store) {
    const counts = new Map();
    for (const r of store.rows('comparisons')) counts.set(r.quantity, (counts.get(r.quantity) ?? 0) + 1);
    const many = [...counts].filter(([, count]) => count >= FEW).sort((a, b) => b[1] - a[1]);
    const options = many.map(([q, count]) => [q, `${quantityName(q)} (${count})`]);
    const rest = [...counts].filter(([, count]) => count < FEW).reduce((sum, [, count]) => sum + count, 0);
    if (rest > 0) options.push([RATIOS, `single figures, as ratios (${rest})`]);
    if (options.length === 0) return [];
    return [{id: 'quantity', label: 'Quantity', options},
      {id: 'view', label: 'Shown', options: [['both', 'predicted against published'], ['error', 'error against published']]}];
  },
  build(store, _, colours, state) {
    const all = store.rows('comparisons');
    const quantity = state.quantity;
    if (quantity === RATIOS) return ratios(all, colours);
    const rows = all.filter((r) => r.quantity === quantity && r.predicted > 0 && r.published > 0);
    if (rows.length === 0) return null;
    const unit = rows[0].unit;
    const errors = rows.map((r) => 100 * Math.abs(r.predicted / r.published - 1)).sort((a, b) => a - b);
    const values = rows.flatMap((r) => [r.predicted, r.published]);
    const low = Math.min(...values), high = Math.max(...values);
    const log = high / low > 20;
    const from = log ? 10 ** Math.floor(Math.log10(low)) : low - 0.15 * (high - low || low);
    const to = log ? 10 ** Math.ceil(Math.log10(high)) : high + 0.15 * (high - low || high);
    const asError = state.view === 'error';
    // Beyond this an error is drawn at the border.
    const worst = Math.min(60, 5 * Math.ceil(errors[errors.length - 1] / 5) || 5);
    const groups = [...new Set(rows.map((r) => r.suite))];
    const ray = (factor, name, dashed, opacity) => ({
      name: `\u0000${name}`, type: 'line', symbol: 'none', silent: true, tooltip: {show: false},
      lineStyle: {color: colours.quiet, width: 1, type: dashed ? 'dashed' : 'solid', opacity},
      endLabel: {show: false},
      data: asError ? [[from, 100 * (factor - 1)], [to, 100 * (factor - 1)]] : [[from, from * factor], [to, to * factor]]});
    const name = quantityName(quantity);
    return {
      summary: `${rows.length} published ${rows.length === 1 ? 'figure' : 'figures'} of ${name}: the median error is ` +
          `${number(quantile(errors, 0.5), 1)} %, the 90th percentile ${number(quantile(errors, 0.9), 1)} %. Dashed lines are ` +
          `${BANDS.map((b) => `±${b} %`).join(' and ')}.` +
          (asError && errors[errors.length - 1] > worst ? ` Errors beyond ${worst} % are drawn at the border.` : ''),
      height: 460,
      option: {
        ...base(colours), legend: legend(colours, {data: groups}),
        tooltip: tooltip(colours, (p) => {
          const r = p.data.row;
          return [r.name, `predicted ${withUnit(r.predicted, unit)}`, `published ${withUnit(r.published, unit)}`,
            `error ${number(100 * (r.predicted / r.published - 1), 1)} %`, ...(r.source ? [r.source] : [])];
        }),
        xAxis: axis(colours, `published ${name}${unit ? ` (${unit})` : ''}`, {type: log ? 'log' : 'value', min: from, max: to,
          axisLabel: {formatter: (v) => number(v, 3)}}),
        yAxis: asError
          ? axis(colours, `predicted beside published ${name} (%)`, {type: 'value', min: -worst, max: worst, nameGap: 46})
          : axis(colours, `predicted ${name}${unit ? ` (${unit})` : ''}`, {type: log ? 'log' : 'value', min: from, max: to, nameGap: 46,
              axisLabel: {formatter: (v) => number(v, 3)}}),
        series: [
          ray(1, 'equal', false, 0.9),
          ...BANDS.flatMap((b) => [ray(1 + b / 100, `+${b}`, true, 0.7), ray(1 - b / 100, `-${b}`, true, 0.7)]),
          ...groups.map((group, i) => ({
            name: group, type: 'scatter', symbolSize: rows.length > 60 ? 7 : 10, symbol: ['circle', 'rect', 'triangle', 'diamond'][i % 4],
            itemStyle: {color: colours.series[i % colours.series.length], opacity: 0.8},
            data: rows.filter((r) => r.suite === group).map((row) => ({row, value: [row.published, asError
              ? Math.max(-worst, Math.min(worst, 100 * (row.predicted / row.published - 1))) : row.predicted]}))}))],
      },
      table: tableOf(rows),
    };
  },
};
