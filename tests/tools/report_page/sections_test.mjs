// What the charts compute before they draw: node --test sections_test.mjs
import assert from 'node:assert/strict';
import {test} from 'node:test';

const src = new URL('../../../tools/report_page/src/', import.meta.url);
const {csv, csvCell, duration, short} = await import(new URL('format.js', src));
const {Store} = await import(new URL('store.js', src));
const {parsePoint, quantile, curves, moveTogether} = await import(new URL('sections/sweeps.js', src));
const {stepLosses, weeksLosses} = await import(new URL('sections/losses.js', src));
const {classesOf} = await import(new URL('sections/step_time.js', src));
const {storedSwings, sweptSwings} = await import(new URL('sections/tornado.js', src));
const {sections} = await import(new URL('sections/index.js', src));

const table = (columns, ...rows) => ({columns, rows});

test('a point of a sweep is read back, values with spaces too', () => {
  assert.deepEqual(parsePoint('parallel.tp=4 seed=2'), {'parallel.tp': '4', seed: '2'});
  assert.deepEqual(parsePoint('cluster.degraded={gpu:37 compute_factor:0.9} seed=1'),
      {'cluster.degraded': '{gpu:37 compute_factor:0.9}', seed: '1'});
});

test('losses and what is left make up the whole', () => {
  for (const found of [weeksLosses({training: 90, lost_work: 7, detection: 3}),
    stepLosses({compute: 6, bubble: 3, exposed_tp: 1}, 0.4)]) {
    const sum = found.losses.reduce((s, [, share]) => s + share, found.left);
    assert.ok(Math.abs(sum - 100) < 1e-9, String(sum));
  }
});

test('losses are ordered from the largest, kernels below the peak last', () => {
  const {losses, left} = stepLosses({compute: 6, bubble: 1, exposed_tp: 3}, 0.4);
  assert.deepEqual(losses.map(([name]) => name), ['exposed TP', 'pipeline bubble', 'kernels below the peak']);
  assert.equal(left, 40);
});

test('quantiles interpolate between neighbours', () => {
  assert.equal(quantile([1, 2, 3, 4, 5], 0.5), 3);
  assert.equal(quantile([0, 10], 0.05), 0.5);
  assert.equal(quantile([7], 0.95), 7);
});

test('repetitions of a point become a mean and a band, numbers in their order', () => {
  const [line] = curves([['10', 1], ['2', 5], ['10', 3]].map(([x, value]) => ({x, line: '', value, band: null})));
  assert.deepEqual(line.points.map((p) => [p.x, p.mean]), [['2', 5], ['10', 2]]);
  assert.equal(line.points[0].low, null);
  assert.ok(line.points[1].low > 1 && line.points[1].high < 3);
});

test('an axis that follows from another makes no lines of its own', () => {
  const points = [{at: {gpus: '8', dp: '1'}}, {at: {gpus: '16', dp: '2'}}];
  assert.equal(moveTogether(points, 'gpus', 'dp'), true);
  assert.equal(moveTogether([...points, {at: {gpus: '16', dp: '4'}}], 'gpus', 'dp'), false);
});

test('classes of ranks stand in the order of stages, several of a stage with their rank', () => {
  const rows = [[2, 1, 9], [0, 0, 0], [1, 0, 5]].map(([rank_class, stage, first_rank]) =>
      ({rank_class, stage, first_rank, ranks: 1, term: 'compute', seconds: 1}));
  assert.deepEqual(classesOf(rows).list.map((c) => c.label), ['0 · rank 0', '0 · rank 5', '1']);
});

test('the tornado has a bar for each field swept alone, the widest first', () => {
  const run = ['run_id', 'kind', 'scenario', 'gpus', 'mfu', 'sweep_id', 'sweep_point'];
  const store = new Store({tables: {
    sweeps: table(['sweep_id', 'name'], [1, 'narrow'], [2, 'wide'], [3, 'two axes'], [4, 'changes nothing']),
    runs: table(run, [1, 'step', 's', 8, 0.40, null, null], [2, 'step', 's', 8, 0.39, 1, 'a=1'], [3, 'step', 's', 8, 0.40, 1, 'a=2'],
        [4, 'step', 's', 8, 0.30, 2, 'b=x'], [5, 'step', 's', 8, 0.45, 2, 'b=y'], [6, 'step', 's', 8, 0.1, 3, 'a=1 b=2'],
        [7, 'step', 's', 8, 0.2, 3, 'a=2 b=2'], [8, 'step', 's', 8, 0.4, 4, 'c=1'], [9, 'step', 's', 8, 0.4, 4, 'c=2'])}});
  assert.deepEqual(sweptSwings(store).map((s) => [s.path, s.low.value, s.high.value]), [['b', 'x', 'y'], ['a', '1', '2']]);
});

test('the stored tornado has a bar for each input that moves the figure, by its lower and higher end', () => {
  const columns = ['run_id', 'input', 'low', 'high', 'evidence', 'source', 'metric', 'value', 'value_low', 'value_high'];
  const store = new Store({tables: {
    runs: table(['run_id', 'scenario'], [1, 's']),
    tornado: table(columns, [1, 'a', '1', '3', 'assumed', 'x', 'mfu', 0.4, 0.42, 0.39], [1, 'b', '0', '1', 'assumed', 'x', 'mfu', 0.4, 0.4, 0.4],
        [1, 'c', 'NONE', 'ALL', 'published', 'y', 'mfu', 0.4, null, 0.45], [1, 'a', '1', '3', 'assumed', 'x', 'tokens_per_second', 10, 11, 9])}});
  assert.deepEqual(storedSwings(store, 'mfu').map((s) => [s.path, s.low.value, s.low.figure, s.high.value, s.high.figure]),
      [['c', 'NONE', 0.4, 'ALL', 0.45], ['a', '3', 0.39, '1', 0.42]]);
  assert.equal(storedSwings(store, 'effective_training_time').length, 0);
});

test('a spreadsheet cannot take a text for a formula', () => {
  assert.equal(csvCell('=1+1'), "'=1+1");
  assert.equal(csvCell('a,"b"'), '"a,""b"""');
  assert.equal(csvCell(-1.5), '-1.5');
  assert.equal(csv({columns: [{name: 't', unit: 's'}], rows: [[1], [null]]}), 't (s)\r\n1\r\n\r\n');
});

test('durations take the unit that people use', () => {
  assert.deepEqual([0.0032, 6.4, 9936, 4665600].map(duration), ['3.2 ms', '6.4 s', '2.76 h', '54 days']);
  assert.equal(short(null), '–');
});

test('no chart breaks on a database without rows', () => {
  const store = new Store({tables: {}});
  for (const section of sections) {
    assert.equal(section.build(store, null, {terms: {}, series: ['x']}, {}), null, section.id);
  }
});
