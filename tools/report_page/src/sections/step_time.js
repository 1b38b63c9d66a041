// Where the step goes: a bar a class of interchangeable ranks, a colour a term.
import {base, axis, legend, seriesLines, tooltip} from '../option.js';
import {number, termName} from '../format.js';

const ORDER = ['compute', 'memory_bound', 'exposed_tp', 'exposed_cp', 'exposed_ep', 'exposed_pp', 'exposed_dp',
  'bubble', 'optimizer', 'straggler', 'data_loader', 'other'];
const MANY = 64;

// {label, ranks, terms: {term: seconds}} a class, in the order of stages; the classes of most ranks where there are many.
export function classesOf(rows) {
  const classes = new Map();
  for (const row of rows) {
    if (!classes.has(row.rank_class)) {
      classes.set(row.rank_class,
          {stage: row.stage, ranks: row.ranks, first: row.first_rank, terms: {}, rank_class: row.rank_class});
    }
    classes.get(row.rank_class).terms[row.term] = row.seconds;
  }
  let list = [...classes.values()];
  if (list.length > MANY) list = list.sort((a, b) => b.ranks - a.ranks).slice(0, MANY);
  list.sort((a, b) => a.stage - b.stage || a.rank_class - b.rank_class);
  const counts = new Map();
  for (const c of list) counts.set(c.stage, (counts.get(c.stage) ?? 0) + 1);
  for (const c of list) {
    c.label = counts.get(c.stage) === 1 ? `${c.stage}` : `${c.stage} · rank ${c.first}`;
  }
  return {list, left: classes.size - list.length};
}

export const stepTime = {
  id: 'step-time', title: 'Where the step goes', scope: 'step', needs: 'rank_time',
  how: 'herdsim step SCENARIO --db FILE',
  build(store, runId, colours) {
    const {list, left} = classesOf(store.rowsOf('rank_time', runId));
    if (list.length === 0) return null;
    const terms = ORDER.filter((term) => list.some((c) => (c.terms[term] ?? 0) > 0));
    const ranks = list.reduce((sum, c) => sum + c.ranks, 0);
    const step = Object.values(list[0].terms).reduce((a, b) => a + b, 0);
    const mean = (term) => list.reduce((sum, c) => sum + (c.terms[term] ?? 0) * c.ranks, 0) / ranks;
    const worst = terms.filter((t) => t !== 'compute').sort((a, b) => mean(b) - mean(a))[0];
    const crowded = list.length > 20;
    return {
      summary: `The mean rank computes for ${number(100 * mean('compute') / step, 1)} % of the step of ` +
          `${number(step, 3)} s; most of the rest is ${termName(worst)}, ${number(100 * mean(worst) / step, 1)} %.` +
          (left > 0 ? ` Shown are the ${list.length} classes of most ranks; ${left} more are left out.` : ''),
      height: 420,
      option: {
        ...base(colours), grid: {left: 64, right: 16, top: 64, bottom: crowded ? 92 : 56},
        legend: legend(colours, {type: colours.narrow ? 'scroll' : 'plain'}),
        tooltip: tooltip(colours, seriesLines((p) => `stage ${p.name}`, 's'),
            {trigger: 'axis', axisPointer: {type: 'shadow'}}),
        xAxis: axis(colours, 'pipeline stage', {type: 'category', data: list.map((c) => c.label),
          nameGap: crowded ? 68 : 32, axisLabel: crowded ? {rotate: 60} : {}}),
        yAxis: axis(colours, 'time of a rank (s)', {type: 'value', nameGap: 44}),
        series: terms.map((term) => ({
          name: termName(term), type: 'bar', stack: 'time', barMaxWidth: 56,
          itemStyle: {color: colours.terms[term], borderColor: colours.ground, borderWidth: 0.5},
          data: list.map((c) => c.terms[term] ?? 0)})),
      },
      table: {
        columns: [{name: 'stage'}, {name: 'first rank'}, {name: 'ranks'},
          ...ORDER.map((term) => ({name: termName(term), unit: 's'}))],
        rows: list.map((c) => [c.stage, c.first, c.ranks, ...ORDER.map((term) => c.terms[term] ?? 0)]),
      },
    };
  },
};
