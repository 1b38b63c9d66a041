// How much the links of each tier are used.
import {axis, base, tooltip} from '../option.js';
import {number} from '../format.js';

const TENTHS = Array.from({length: 10}, (_, i) => `${10 * i}–${10 * (i + 1)}`);

export const links = {
  id: 'links', title: 'Link use by tier', scope: 'step', needs: 'links',
  how: 'herdsim step SCENARIO --db FILE',
  build(store, runId, colours) {
    const rows = store.rowsOf('links', runId);
    if (rows.length === 0) return null;
    const tiers = [...new Set(rows.map((r) => r.kind))];
    const totals = tiers.map((kind) => rows.filter((r) => r.kind === kind).reduce((sum, r) => sum + r.links, 0));
    // Colour is the share of the tier's links, so that a tier of few links is as visible as one of many.
    const cells = rows.map((r) => {
      const y = tiers.indexOf(r.kind);
      return [r.tenth, y, 100 * r.links / totals[y], r.links, r.carried_bytes];
    });
    const hottest = rows.reduce((best, r) => r.highest_use > best.highest_use ? r : best);
    return {
      summary: `The busiest link is one of ${hottest.kind}: ${number(100 * hottest.highest_use, 1)} % of what it could carry in the ` +
          'step. A cell is the share of its tier\'s links that are that busy.',
      height: (colours.narrow ? 148 : 128) + 34 * tiers.length,
      option: {
        ...base(colours), grid: {left: colours.narrow ? 120 : 176, right: 24, top: 16, bottom: colours.narrow ? 112 : 92},
        tooltip: tooltip(colours, (p) => [tiers[p.value[1]], `${number(p.value[3], 0)} links are ${TENTHS[p.value[0]]} % used`,
          `${number(p.value[4] / 1e9, 2)} GB in all`]),
        visualMap: {min: 0, max: 100, calculable: false, orient: 'horizontal', left: 'center', bottom: 0, itemHeight: 160, itemWidth: 12,
          text: ['100 % of the tier\'s links', '0 %'], textStyle: {color: colours.quiet}, inRange: {color: colours.ramp}, dimension: 2},
        xAxis: axis(colours, 'use over the step (% of capacity)', {type: 'category', data: TENTHS, axisLabel: colours.narrow ? {rotate: 60, hideOverlap: false} : {}, nameGap: colours.narrow ? 48 : 32}),
        yAxis: axis(colours, '', {type: 'category', inverse: true, data: tiers.map((t, i) => `${t} (${number(totals[i], 0)})`),
          axisLabel: {color: colours.text, hideOverlap: false}}),
        series: [{type: 'heatmap', name: 'links', data: cells, itemStyle: {borderColor: colours.ground, borderWidth: 2},
          label: {show: !colours.narrow, formatter: (p) => number(p.value[3], 0)}}],
      },
      table: {
        columns: [{name: 'tier'}, {name: 'use', unit: '% of capacity'}, {name: 'links'}, {name: 'carried', unit: 'GB'},
          {name: 'highest use', unit: '%'}],
        rows: rows.map((r) => [r.kind, TENTHS[r.tenth], r.links, r.carried_bytes / 1e9, 100 * r.highest_use]),
      },
    };
  },
};
