// Loss by cause: from all the time there is, or all the FLOP/s, down to what trains.
import {axis, base, tooltip} from '../option.js';
import {number, termName} from '../format.js';

// Percent of the whole that each cause takes, the largest first, ending with what is left.
export function weeksLosses(account) {
  const whole = Object.values(account).reduce((a, b) => a + b, 0);
  if (!(whole > 0)) return null;
  const losses = Object.entries(account).filter(([term, s]) => term !== 'training' && s > 0)
      .map(([term, s]) => [termName(term), 100 * s / whole]).sort((a, b) => b[1] - a[1]);
  return {losses, left: 100 * (account.training ?? 0) / whole};
}

// Time that is not compute, then what compute lacks to the peak; what is left is the MFU.
export function stepLosses(account, mfu) {
  const whole = Object.values(account).reduce((a, b) => a + b, 0);
  if (!(whole > 0) || !(mfu > 0)) return null;
  const losses = Object.entries(account).filter(([term, s]) => term !== 'compute' && s > 0)
      .map(([term, s]) => [termName(term), 100 * s / whole]).sort((a, b) => b[1] - a[1]);
  const left = 100 * mfu;
  losses.push(['kernels below the peak', 100 * account.compute / whole - left]);
  return {losses, left};
}

function waterfall(colours, {losses, left}, whole, remains, unitName) {
  const names = [whole, ...losses.map(([name]) => name), remains];
  let level = 100;
  const floors = [0], sizes = [100];
  for (const [, size] of losses) {
    level -= size;
    floors.push(level);
    sizes.push(size);
  }
  floors.push(0);
  sizes.push(left);
  // Small losses of a large whole would be slivers: then the axis begins where something happens, and says so.
  const from = left > 60 ? 10 * Math.floor((left - 0.5 * (100 - left)) / 10) : 0;
  const colour = (i) => i === 0 ? colours.total : i === names.length - 1 ? colours.good : colours.loss;
  return {
    height: 110 + 28 * names.length,
    option: {
      ...base(colours), grid: {left: colours.narrow ? 136 : 176, right: colours.narrow ? 60 : 72, top: 8, bottom: 56},
      tooltip: tooltip(colours, (p) => [`${p.name}: ${number(p.data.share, 2)} %`]),
      xAxis: axis(colours, from > 0 ? unitName.replace('(%)', `(%; the axis begins at ${from})`) : unitName, {type: 'value', min: from, max: 100}),
      yAxis: axis(colours, '', {type: 'category', inverse: true, data: names, axisLabel: {color: colours.text, hideOverlap: false}}),
      series: [
        {name: '\u0000floor', type: 'bar', stack: 'w', silent: true, itemStyle: {color: 'transparent'}, data: floors.map((floor) => Math.max(floor, from)), tooltip: {show: false}},
        {name: 'share', type: 'bar', stack: 'w', barMaxWidth: 20,
          label: {show: true, position: 'right', color: colours.text, formatter: (p) => `${number(p.data.share, 2)} %`},
          data: sizes.map((value, i) => ({value: floors[i] < from ? value - from : value, share: value, itemStyle: {color: colour(i)}}))}],
    },
    table: {columns: [{name: 'cause'}, {name: 'share', unit: '%'}],
      rows: names.map((name, i) => [name, i === 0 ? 100 : i === names.length - 1 ? left : -sizes[i]])},
  };
}

export const stepLoss = {
  id: 'step-losses', title: 'From the peak to the MFU', scope: 'step', needs: 'metrics',
  how: 'herdsim step SCENARIO --db FILE',
  build(store, runId, colours) {
    const run = store.run(runId);
    const found = stepLosses(store.metrics(runId, 'time_account.'), run?.mfu);
    if (!found) return null;
    return {
      summary: `Of the ${number(run.peak_tflops, 1)} TFLOP/s that a GPU has, ${number(found.left, 1)} % train. The ` +
          `largest loss is ${[...found.losses].sort((a, b) => b[1] - a[1])[0][0]}.`,
      ...waterfall(colours, found, 'dense peak', 'MFU', 'share of the dense peak (%)')};
  },
};

export const weeksLoss = {
  id: 'weeks-losses', title: 'Loss by cause over the weeks', scope: 'weeks', needs: 'metrics',
  how: 'herdsim run SCENARIO --db FILE',
  build(store, runId, colours) {
    const found = weeksLosses(store.metrics(runId, 'run.time_account.'));
    if (!found) return null;
    return {
      summary: `${number(found.left, 2)} % of the time trains` + (found.losses.length > 0
          ? `; the largest loss is ${found.losses[0][0]}, ${number(found.losses[0][1], 2)} %.` : '.'),
      ...waterfall(colours, found, 'elapsed time', 'training', 'share of elapsed time (%)')};
  },
};
