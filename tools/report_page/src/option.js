// What every chart's option has in common: axes with units, quiet lines, a tooltip whose text can hold nothing but text.
import {withUnit} from './format.js';

export function axis(colours, name, extra = {}) {
  return {
    name, nameLocation: 'middle', nameGap: extra.nameGap ?? 32,
    nameTextStyle: {color: colours.quiet, fontSize: 12},
    axisLine: {show: true, lineStyle: {color: colours.line}},
    axisTick: {lineStyle: {color: colours.line}},
    axisLabel: {color: colours.quiet, hideOverlap: true, ...extra.axisLabel},
    splitLine: {lineStyle: {color: colours.grid}},
    ...Object.fromEntries(Object.entries(extra).filter(([key]) => key !== 'axisLabel' && key !== 'nameGap')),
  };
}

export function base(colours) {
  return {
    animation: false,
    // Named, so that widths are measured as they are drawn.
    textStyle: {fontFamily: getComputedStyle(document.body).fontFamily, color: colours.text},
    grid: {left: 70, right: 24, top: 40, bottom: 56},
    aria: {enabled: false},
  };
}

// Scrolls where it does not fit, so that it never covers the plot.
export function legend(colours, extra = {}) {
  return {
    type: 'scroll', top: 0, left: 0, right: 0, itemWidth: 14, itemHeight: 10, itemGap: 14,
    textStyle: {color: colours.text, fontSize: 12}, pageTextStyle: {color: colours.quiet},
    pageIconColor: colours.quiet, pageIconInactiveColor: colours.line, ...extra};
}

// `lines(params)` gives texts; they become text nodes, never markup.
export function tooltip(colours, lines, extra = {}) {
  return {
    trigger: 'item', confine: true, backgroundColor: colours.ground, borderColor: colours.line,
    textStyle: {color: colours.text, fontSize: 13},
    formatter: (params) => {
      const box = document.createElement('div');
      for (const line of lines(params)) {
        const row = document.createElement('div');
        row.textContent = line;
        box.append(row);
      }
      return box;
    },
    ...extra};
}

// Of an axis-triggered tooltip: its head, then every series' value.
export function seriesLines(head, unit) {
  return (params) => [head(params[0]),
    ...params.filter((p) => p.value !== null && p.value !== undefined && !p.seriesName.startsWith('\u0000'))
        .map((p) => `${p.seriesName}: ${withUnit(Array.isArray(p.value) ? p.value[1] : p.value, unit)}`)];
}
