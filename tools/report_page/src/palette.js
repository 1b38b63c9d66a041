// Colours that the common kinds of colour blindness keep apart (after Okabe and Ito, and Tol's "muted"), for a light
// and a dark page. What means the same has the same colour in every chart.

const LIGHT = {
  text: '#1b1f24', quiet: '#57606a', line: '#d0d7de', ground: '#ffffff', grid: '#e6e9ed',
  series: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#8a6d00', '#332288', '#882255', '#56b4e9'],
  good: '#0072b2', loss: '#d55e00', total: '#57606a',
  forward: '#0072b2', backward: '#d55e00', optimizer: '#117733', unknown: '#8c959f',
  ramp: ['#f1f5f9', '#9ecae1', '#2b7bba', '#08306b'],
  terms: {
    compute: '#0072b2', training: '#0072b2', memory_bound: '#56b4e9', exposed_tp: '#d55e00', exposed_cp: '#e69f00',
    exposed_ep: '#8a6d00', exposed_pp: '#cc79a7', exposed_dp: '#882255', bubble: '#a0a7af', optimizer: '#117733',
    straggler: '#332288', data_loader: '#7a5c00', other: '#5b636b'},
};

const DARK = {
  text: '#e6edf3', quiet: '#9aa4af', line: '#3d444d', ground: '#15191e', grid: '#2a3038',
  series: ['#56a8e0', '#ff8c42', '#2fc49b', '#e3a0c4', '#d9bd3f', '#9d93e8', '#e0709e', '#a5d8f7'],
  good: '#56a8e0', loss: '#ff8c42', total: '#9aa4af',
  forward: '#56a8e0', backward: '#ff8c42', optimizer: '#4cc38a', unknown: '#7d8590',
  ramp: ['#1c232b', '#1f5a8c', '#56a8e0', '#d6ecfb'],
  terms: {
    compute: '#56a8e0', training: '#56a8e0', memory_bound: '#a5d8f7', exposed_tp: '#ff8c42', exposed_cp: '#f2c14e',
    exposed_ep: '#b59a2a', exposed_pp: '#e3a0c4', exposed_dp: '#c9588b', bubble: '#6b737c', optimizer: '#4cc38a',
    straggler: '#9d93e8', data_loader: '#e8d58a', other: '#8b949e'},
};

export function palette(dark) {
  return dark ? DARK : LIGHT;
}

// The i-th of `count` colours in an order that means something, such as pipeline stages: dark to light and blue to
// yellow at once (cividis), so that neighbours are alike and ends are not, to every eye and on paper.
export function ordered(i, count, dark) {
  const stops = dark ? [[72, 102, 190], [124, 149, 170], [186, 178, 130], [253, 231, 97]]
                     : [[0, 40, 100], [80, 92, 112], [134, 128, 112], [214, 178, 40]];
  const at = count <= 1 ? 0 : i / (count - 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const mix = stops[low].map((c, k) => Math.round(c + (stops[low + 1][k] - c) * (at - low)));
  return `rgb(${mix.join(',')})`;
}
