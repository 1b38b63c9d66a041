// Puts the page together: headline, a section a chart that has data, a list of what the database does not hold.
import {echarts} from './charts.js';
import {csv, duration, number, short} from './format.js';
import {palette} from './palette.js';
import {sections} from './sections/index.js';
import {runLabel, Store} from './store.js';

// eslint-disable-next-line no-undef
const CHARTS_BY = `Apache ECharts ${ECHARTS_VERSION} (Apache License 2.0)`;
const TABLE_ROWS = 1000;
const PRINT_WIDTH = 680;
const PRINT_SCALE = 0.78;  // so that two charts fit on a page

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === 'text') made.textContent = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// What a browser reports goes into the document too, where a test reads it.
let faults = 0;
function note(fault) {
  document.documentElement.dataset.faults = String(++faults);
  console.error(fault);
}
window.addEventListener('error', (event) => note(event.error ?? event.message));

const store = new Store(JSON.parse(document.getElementById('data').textContent));
const cards = [];
const themes = window.matchMedia('(prefers-color-scheme: dark)');
let wish = 'auto';
let printing = false;
let patterns = false;

function colours() {
  const dark = !printing && (wish === 'dark' || (wish === 'auto' && themes.matches));
  return {...palette(dark), dark, narrow: !printing && window.innerWidth < 600};
}

// -- A chart with its sentence, table and file ------------------------------------------------------------------

class Card {
  constructor(section, chosen) {
    this.section = section;
    this.chosen = chosen;
    this.state = {};
    const heading = `${section.id}-title`;
    this.root = element('section', {class: 'card', id: section.id, 'aria-labelledby': heading});
    this.summary = element('p', {class: 'summary', id: `${section.id}-summary`});
    this.tools = element('div', {class: 'tools'});
    this.key = element('p', {class: 'key'});
    this.plot = element('div', {class: 'plot', role: 'img', 'aria-labelledby': heading, 'aria-describedby': this.summary.id});
    this.details = element('details', {}, element('summary', {text: 'Data as a table'}));
    this.rows = element('div', {class: 'rows', tabindex: '0', role: 'region', 'aria-label': `${section.title}: data`});
    this.details.append(this.rows);
    this.details.addEventListener('toggle', () => this.fillTable());
    this.root.append(element('h2', {id: heading, text: section.title}), this.summary, this.tools, this.key, this.plot, this.details);
  }

  runId() {
    return this.section.scope === 'database' ? null : this.chosen[this.section.scope];
  }

  // Whether there is anything to show; then draws it.
  refresh() {
    const controls = this.section.controls?.(store, this.state) ?? [];
    for (const control of controls) {
      const known = control.options.some(([value]) => value === this.state[control.id]);
      if (!known) this.state[control.id] = control.value ?? control.options[0]?.[0];
    }
    this.built = this.section.build(store, this.runId(), colours(), this.state);
    this.root.hidden = this.built === null;
    if (this.built === null) return false;
    this.summary.textContent = this.built.summary;
    this.showTools(controls);
    this.showKey();
    this.plot.style.height = `${printing ? Math.round(PRINT_SCALE * this.built.height) : this.built.height}px`;
    this.fillTable();
    return true;
  }

  draw() {
    if (!this.built) return;
    this.chart?.dispose();
    this.chart = echarts.init(this.plot, null, {renderer: 'svg', width: printing ? PRINT_WIDTH : undefined});
    const option = {...this.built.option};
    if (printing) delete option.dataZoom;
    this.chart.setOption({...option, aria: {enabled: patterns, label: {enabled: false}, decal: {show: patterns}}});
    this.plot.querySelector('svg')?.setAttribute('aria-hidden', 'true');
  }

  showTools(controls) {
    const focused = this.tools.contains(document.activeElement) ? document.activeElement.id : null;
    this.tools.replaceChildren();
    for (const control of controls) {
      const id = `${this.section.id}-${control.id}`;
      const select = element('select', {id});
      for (const [value, text] of control.options) select.append(element('option', {value, text}));
      select.value = this.state[control.id];
      select.addEventListener('change', () => {
        this.state[control.id] = select.value;
        this.refresh();
        this.draw();
      });
      this.tools.append(element('label', {for: id, text: control.label}, ' ', select));
    }
    if (this.section.zoom) this.tools.append(this.zoomButtons());
    const save = element('button', {type: 'button', text: 'Download CSV', 'aria-label': `Download CSV of ${this.section.title}`});
    save.addEventListener('click', () => this.saveCsv());
    this.tools.append(save);
    if (focused) document.getElementById(focused)?.focus();
  }

  zoomButtons() {
    const group = element('span', {role: 'group', 'aria-label': 'Zoom', class: 'zoom'});
    const moves = [['Earlier', (a, b) => [a - (b - a) / 2, b - (b - a) / 2]], ['Later', (a, b) => [a + (b - a) / 2, b + (b - a) / 2]],
      ['Closer', (a, b) => [a + (b - a) / 4, b - (b - a) / 4]], ['Further', (a, b) => [a - (b - a) / 2, b + (b - a) / 2]],
      ['Whole step', () => [0, 100]]];
    for (const [text, move] of moves) {
      const button = element('button', {type: 'button', text});
      button.addEventListener('click', () => {
        if (!this.chart) this.draw();
        const {start, end} = this.chart.getOption().dataZoom[0];
        let [from, to] = move(start, end);
        if (from < 0) [from, to] = [0, Math.min(100, to - from)];
        if (to > 100) [from, to] = [Math.max(0, from - (to - 100)), 100];
        this.chart.dispatchAction({type: 'dataZoom', start: from, end: to});
      });
      group.append(button);
    }
    return group;
  }

  showKey() {
    this.key.replaceChildren();
    this.key.hidden = !this.built.key;
    for (const [text, colour] of this.built.key ?? []) {
      const swatch = element('span', {class: 'swatch', 'aria-hidden': 'true'});
      swatch.style.background = colour;
      this.key.append(element('span', {class: 'entry'}, swatch, text));
    }
  }

  fillTable() {
    if (!this.details.open) return;
    const {columns, rows} = this.built.table;
    const head = element('tr');
    for (const column of columns) {
      head.append(element('th', {scope: 'col', text: column.unit ? `${column.name} (${column.unit})` : column.name}));
    }
    const body = element('tbody');
    for (const row of rows.slice(0, TABLE_ROWS)) {
      const line = element('tr');
      for (const value of row) {
        const text = value === null || value === undefined ? '–' : typeof value === 'number' ? short(value) : value;
        line.append(element('td', {text, ...(typeof value === 'number' ? {class: 'number'} : {})}));
      }
      body.append(line);
    }
    const caption = element('caption', {text: rows.length > TABLE_ROWS
        ? `The first ${number(TABLE_ROWS, 0)} of ${number(rows.length, 0)} rows; the CSV file has all.` : `${number(rows.length, 0)} rows`});
    this.rows.replaceChildren(element('table', {}, caption, element('thead', {}, head), body));
  }

  saveCsv() {
    const link = element('a', {download: `${this.section.id}.csv`,
      href: URL.createObjectURL(new Blob(['\ufeff', csv(this.built.table)], {type: 'text/csv;charset=utf-8'}))});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

// -- Headline ---------------------------------------------------------------------------------------------------

function tile(label, value, lines) {
  const box = element('div', {class: 'tile'}, element('dt', {text: label}), element('dd', {class: 'value', text: value}));
  for (const line of lines.filter(Boolean)) box.append(element('dd', {text: line}));
  return box;
}

// How far the uncertain inputs move the MFU, all of them together: roots of sums of squares, up and down.
function uncertainRange(run) {
  const ends = store.rows('tornado').filter((r) => r.metric === 'mfu' && store.run(r.run_id)?.scenario === run.scenario &&
      store.run(r.run_id)?.gpus === run.gpus);
  if (ends.length === 0 || Math.abs(ends[0].value - run.mfu) > 1e-9) return null;
  const reach = (pick) => Math.hypot(...ends.map((r) => pick(0, (r.value_low ?? r.value) - r.value, (r.value_high ?? r.value) - r.value)));
  return `${number(100 * (run.mfu - reach(Math.min)), 1)} to ${number(100 * (run.mfu + reach(Math.max)), 1)} % ` +
      'with the uncertain inputs within their ranges';
}

// The spread of what was tried of this scenario, where the database has it.
function triedRange(run) {
  const tried = store.rows('runs').filter((r) => r.scenario === run.scenario && r.gpus === run.gpus && r.mfu !== null).map((r) => 100 * r.mfu);
  if (new Set(tried).size < 2) return null;
  return `${number(Math.min(...tried), 1)} to ${number(Math.max(...tried), 1)} % over ${tried.length} variants in this database`;
}

function publishedNear(run) {
  const row = store.rows('comparisons').find((r) => r.name === run.scenario && r.quantity === 'mfu');
  return row ? `published: ${number(row.published, 1)} %` : null;
}

function stepTiles(run) {
  const tiles = [];
  if (run.mfu !== null) {
    tiles.push(tile('MFU of the step', `${number(100 * run.mfu, 1)} %`,
        [`of ${number(run.peak_tflops, 1)} TFLOP/s ${run.dtype} dense, causal attention counted half; ` +
         `${number(100 * run.mfu_full_attention, 1)} % counting the full square`, publishedNear(run), uncertainRange(run) ?? triedRange(run)]));
  }
  tiles.push(tile('Step', duration(run.step_time_s), [`${number(run.tokens_per_step, 0)} tokens, ` +
      `${number(run.tokens_per_second_per_gpu, 1)} a second and GPU`, `${number(run.model_tflops_per_gpu, 1)} TFLOP/s a GPU`]));
  if (run.peak_memory_bytes !== null) {
    tiles.push(tile('Peak memory', `${number(run.peak_memory_bytes / 1e9, 1)} GB`,
        [`stage ${run.peak_memory_stage}, ${run.peak_memory_moment}`,
          `${run.fits ? 'fits' : 'does not fit'} ${number(run.memory_capacity_bytes / 1e9, 1)} GB`]));
  }
  return tiles;
}

function weeksTiles(run) {
  const m = store.metrics(run.run_id, 'run.');
  const share = m['effective_training_time'];
  if (share === undefined) return [];
  const low = m['effective_training_time_p05'], high = m['effective_training_time_p95'];
  return [
    tile('Effective training time', `${number(100 * share, 1)} %`,
        [low === undefined ? null : `${number(100 * low, 1)} to ${number(100 * high, 1)} % in single runs (5th to 95th percentile)`,
          m['horizon_s'] ? `over ${duration(m['horizon_s'])}` : null]),
    tile('Interruptions', number(m['unexpected_interruptions'], 1),
        [`unexpected; ${number(m['planned_interruptions'], 1)} planned`,
          m['mean_time_between_interruptions_s'] ? `one in ${duration(m['mean_time_between_interruptions_s'])}` : null])];
}

// -- The page ---------------------------------------------------------------------------------------------------

// Runs that a scope can show, the newest first; a sweep's points count where nothing else is there.
function choices(scope) {
  const kind = scope === 'step' ? 'step' : 'run';
  const runs = store.rows('runs').filter((r) => r.kind === kind).reverse();
  const alone = runs.filter((r) => r.sweep_id === null);
  return alone.length > 0 ? alone : runs.slice(0, 50);
}

// The newest with details, else the newest; of a sweep's points the middle one.
function first(scope, details) {
  const runs = choices(scope);
  const detailed = runs.find((run) => store.rowsOf(details, run.run_id).length > 0);
  if (detailed || runs.length === 0) return detailed?.run_id ?? null;
  if (runs[0].sweep_id === null) return runs[0].run_id;
  const share = (run) => store.metrics(run.run_id, 'run.')['effective_training_time'] ?? 0;
  const points = runs.filter((run) => run.sweep_id === runs[0].sweep_id).sort((a, b) => share(a) - share(b));
  return points[Math.floor(points.length / 2)].run_id;
}

const chosen = {step: first('step', 'passes'), weeks: first('weeks', 'failures')};

function chooser(scope, label) {
  const runs = choices(scope);
  if (runs.length < 2) return [];
  const select = element('select', {id: `choose-${scope}`});
  for (const run of runs) select.append(element('option', {value: String(run.run_id), text: runLabel(run)}));
  select.value = String(chosen[scope]);
  select.addEventListener('change', () => {
    chosen[scope] = Number(select.value);
    showHeadline();
    showSections();
  });
  return [element('label', {for: select.id, text: label}, ' ', select)];
}

const tiles = element('dl', {class: 'tiles'});
const provenance = element('p', {class: 'provenance'});
const warnings = element('div');

function showHeadline() {
  const step = store.run(chosen.step), weeks = store.run(chosen.weeks);
  tiles.replaceChildren(...(step ? stepTiles(step) : weeks ? stepTiles(weeks) : []), ...(weeks ? weeksTiles(weeks) : []));
  const run = step ?? weeks;
  provenance.textContent = run ? `${run.scenario}, ${number(run.gpus, 0)} GPUs. Costs: ${run.profile}, ${run.profile_provenance}. ` +
      `herdsim ${run.version}${run.recorded_at ? `, ${run.recorded_at}` : ''}; result ${run.result_fingerprint}.` : '';
  const texts = [...new Set([step, weeks].filter(Boolean).flatMap((r) => (r.warnings ?? '').split('\n').filter(Boolean)))];
  warnings.replaceChildren();
  if (texts.length === 0) return;
  const list = element('ul');
  for (const text of texts) list.append(element('li', {text}));
  warnings.append(element('details', {class: 'warnings', open: ''},
      element('summary', {text: `What the simulator warns of (${texts.length})`}), list));
}

function themeChooser() {
  const select = element('select', {id: 'theme'});
  for (const [value, text] of [['auto', 'as the system'], ['light', 'light'], ['dark', 'dark']]) {
    select.append(element('option', {value, text}));
  }
  select.addEventListener('change', () => {
    wish = select.value;
    document.documentElement.dataset.theme = wish;
    redraw();
  });
  const box = element('input', {type: 'checkbox', id: 'patterns'});
  box.addEventListener('change', () => {
    patterns = box.checked;
    redraw();
  });
  return [element('label', {for: 'theme', text: 'Colours'}, ' ', select),
    element('label', {for: 'patterns'}, box, ' Patterns beside colours')];
}

function redraw() {
  for (const card of cards) {
    if (card.refresh()) card.draw();
  }
}

// What the reader sees first, then the others one at a time, so that a page of many charts opens at once.
function drawInTurn() {
  const waiting = cards.filter((card) => card.built);
  for (const card of waiting) card.chart?.dispose();
  for (const card of waiting) card.chart = undefined;
  delete document.documentElement.dataset.drawn;
  const near = (card) => card.plot.getBoundingClientRect().top < 1.5 * window.innerHeight;
  for (const card of waiting.filter(near)) card.draw();
  const next = () => {
    const card = waiting.find((c) => c.built && !c.chart);
    if (!card) {
      document.documentElement.dataset.drawn = 'all';
      return;
    }
    card.draw();
    turn.port2.postMessage(null);
  };
  // Timers of a page in the background run once a second, messages at once.
  const turn = new MessageChannel();
  turn.port1.onmessage = next;
  turn.port2.postMessage(null);
}

const contents = element('nav', {'aria-label': 'Charts'});
const missing = element('section', {class: 'missing', id: 'missing', 'aria-labelledby': 'missing-title'});

// How a chart is filled, with the name of the scenario and of the database where they are known.
function howTo(section) {
  const name = store.rows('runs').find((r) => r.scenario)?.scenario ?? 'SCENARIO';
  return section.how.replaceAll('SCENARIO', name).replaceAll('FILE', store.data.database ?? 'FILE');
}

function showSections() {
  const list = element('ul');
  const absent = element('dl');
  for (const card of cards) {
    if (card.refresh()) {
      list.append(element('li', {}, element('a', {href: `#${card.section.id}`, text: card.section.title})));
    } else {
      absent.append(element('dt', {text: card.section.title}), element('dd', {}, element('code', {text: howTo(card.section)})));
    }
  }
  contents.replaceChildren(list);
  missing.hidden = absent.children.length === 0;
  missing.replaceChildren(element('h2', {id: 'missing-title', text: 'What this database does not hold'}),
      element('p', {text: 'Each command adds what its chart needs; then make the page again.'}), absent);
  drawInTurn();
}

function runsTable() {
  const rows = store.rows('runs').filter((r) => r.sweep_id === null);
  if (rows.length === 0) return [];
  const body = element('tbody');
  for (const r of [...rows].reverse()) {
    body.append(element('tr', {}, ...[r.run_id, r.recorded_at ?? '–', r.command, r.result_fingerprint]
        .map((value) => element('td', {text: String(value)}))));
  }
  return [element('section', {class: 'card', 'aria-labelledby': 'runs-title'}, element('h2', {id: 'runs-title', text: 'How these results came about'}),
      element('div', {class: 'rows', tabindex: '0', role: 'region', 'aria-label': 'Commands'},
          element('table', {}, element('thead', {}, element('tr', {}, ...['run', 'recorded', 'command', 'result']
              .map((text) => element('th', {scope: 'col', text})))), body)))];
}

function build() {
  document.getElementById('top').append(
      element('h1', {text: 'Herdsim report'}), provenance,
      element('div', {class: 'tools'}, ...chooser('step', 'Step'), ...chooser('weeks', 'Weeks'), ...themeChooser()),
      tiles, warnings, contents);
  const main = document.getElementById('main');
  for (const section of sections) {
    const card = new Card(section, chosen);
    cards.push(card);
    main.append(card.root);
  }
  main.append(missing, ...runsTable());
  document.getElementById('foot').textContent = `Made by herdsim ${store.data.version} from ${store.data.database}` +
      `${store.data.limits?.length ? `; ${store.data.limits.join('; ')}` : ''}. Charts: ${CHARTS_BY}.`;
  showHeadline();
  showSections();
}

let resizing = null;
window.addEventListener('resize', () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => !printing && cards.forEach((card) => card.built && card.chart?.resize()), 100);
});
themes.addEventListener('change', redraw);
window.addEventListener('beforeprint', () => {
  printing = true;
  redraw();
});
window.addEventListener('afterprint', () => {
  printing = false;
  redraw();
});

try {
  build();
} catch (fault) {
  note(fault);
}
document.documentElement.dataset.ready = String(Math.round(performance.now()));
