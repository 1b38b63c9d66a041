"""Traces as another program reads them: decode_test.py HERDSIM SOURCE_FOLDER

Decodes what `herdsim step` and `herdsim run` write with `protoc --decode` and the part of the schema that is published with
them, checks what Perfetto would accept without a word, and asks the questions of docs/perfetto.md: their SQL runs on tables
like those of Perfetto's trace processor. Exit status 77 where there is no protoc.
"""
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import zlib

HERDSIM, SOURCE = sys.argv[1], sys.argv[2]
SKIPPED = 77
SMALL = ['llama3-405b-16384', *(f'--set={s}' for s in (
    'gpus=32', 'parallel.tp=2', 'parallel.pp=4', 'parallel.dp=4', 'parallel.virtual_stages=2', 'training.global_batch=32',
    'model.layers=8', 'recovery.spares=0', 'cluster.degraded={gpu: 9 compute_factor: 0.8}'))]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(field number, bytes) of the fields of a message that have a length."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            size, at = varint(data, at)
            yield key >> 3, data[at:at + size]
            at += size
        elif key & 7 == 0:
            _, at = varint(data, at)
        else:
            at += 8 if key & 7 == 1 else 4


def inflated(path):
    """The packets of a file, compressed ones unpacked."""
    with open(path, 'rb') as file:
        data = file.read()
    out = bytearray()
    for number, packet in fields(data):
        assert number == 1, 'a trace is a list of packets'
        packed = [body for field, body in fields(packet) if field == 50]
        assert len(packet) < 512 << 10
        if packed:
            out += zlib.decompress(packed[0])
        else:
            size = len(packet)
            head = bytearray([0x0a])
            while size >= 0x80:
                head.append(size & 0x7f | 0x80)
                size >>= 7
            head.append(size)
            out += head + packet
    return bytes(out)


def decoded(path):
    """The packets as nested dictionaries of lists."""
    run = subprocess.run(['protoc', '--decode=perfetto.protos.Trace', f'--proto_path={SOURCE}/traces', 'trace_subset.proto'],
                         input=inflated(path), capture_output=True, check=True)
    stack = [{}]
    for line in run.stdout.decode().splitlines():
        line = line.strip()
        if line == '}':
            stack.pop()
        elif line.endswith(' {'):
            child = {}
            stack[-1].setdefault(line[:-2], []).append(child)
            stack.append(child)
        else:
            name, value = line.split(': ', 1)
            if value[0] == '"':
                value = value[1:-1].encode().decode('unicode_escape')
            elif re.fullmatch(r'-?\d+', value):
                value = int(value)
            elif not value.isidentifier():
                value = float(value)
            stack[-1].setdefault(name, []).append(value)
    return stack[0]['packet']


class Trace:
    """Tables as Perfetto's trace processor has them, of one file."""

    def __init__(self, path):
        self.packets = decoded(path)
        self.faults = []
        self.db = sqlite3.connect(':memory:')
        self.db.executescript('''
            CREATE TABLE track(id INTEGER PRIMARY KEY, name TEXT, parent_id INTEGER, unit TEXT, rank INTEGER);
            CREATE TABLE slice(id INTEGER PRIMARY KEY, ts INTEGER, dur INTEGER, track_id INTEGER, name TEXT, category TEXT,
                               depth INTEGER, arg_set_id INTEGER);
            CREATE TABLE counter(ts INTEGER, track_id INTEGER, value REAL);
            CREATE TABLE flow(id INTEGER PRIMARY KEY, slice_out INTEGER, slice_in INTEGER);
            CREATE TABLE stats(name TEXT, severity TEXT, value INTEGER);''')
        self.arguments = {}
        self.db.create_function('extract_arg', 2, lambda at, key: self.arguments.get(at, {}).get(key))
        self.names = {}
        self.open = {}
        self.flows = {}
        self.read()
        self.db.commit()

    def fault(self, text):
        self.faults.append(text)

    def read(self):
        before = 0
        for packet in self.packets:
            unknown = [key for key in packet if key.isdigit()]
            if unknown:
                self.fault(f'fields {unknown} are not in the schema')
            for table, kind in (('event_categories', 'category'), ('event_names', 'name'), ('debug_annotation_names', 'argument')):
                for entry in packet.get('interned_data', [{}])[0].get(table, []):
                    self.names[kind, entry['iid'][0]] = entry['name'][0]
            for descriptor in packet.get('track_descriptor', []):
                self.add_track(descriptor)
            for event in packet.get('track_event', []):
                ts = packet['timestamp'][0]
                if ts < before:
                    self.fault(f'{ts} ns after {before} ns')
                before = ts
                self.add_event(ts, event)
        for stack in self.open.values():
            if stack:
                self.fault(f'slice {stack[-1]} never ends')
        for flow, ends in self.flows.items():
            if set(ends) != {'out', 'in'}:
                self.fault(f'arrow {flow} has the ends {sorted(ends)}')
                continue
            self.db.execute('INSERT INTO flow VALUES (?, ?, ?)', (flow, ends['out'], ends['in']))

    def add_track(self, descriptor):
        uuid, parent = descriptor['uuid'][0], descriptor.get('parent_uuid', [None])[0]
        if self.db.execute('SELECT 1 FROM track WHERE id = ?', (uuid,)).fetchone():
            self.fault(f'track {uuid} is described twice')
            return
        if parent is not None and not self.db.execute('SELECT 1 FROM track WHERE id = ?', (parent,)).fetchone():
            self.fault(f'track {uuid} comes before its parent {parent}')
        if 'sibling_order_rank' not in descriptor:
            self.fault(f'track {uuid} has no place among its siblings')
        self.db.execute('INSERT INTO track VALUES (?, ?, ?, ?, ?)', (
            uuid, descriptor['name'][0], parent, descriptor.get('counter', [{}])[0].get('unit_name', [None])[0],
            descriptor['sibling_order_rank'][0]))

    def add_event(self, ts, event):
        track, kind = event['track_uuid'][0], event['type'][0]
        stack = self.open.setdefault(track, [])
        if kind == 'TYPE_COUNTER':
            self.db.execute('INSERT INTO counter VALUES (?, ?, ?)', (ts, track, event['double_counter_value'][0]))
            return
        if kind == 'TYPE_SLICE_END':
            if not stack:
                self.fault(f'an end without a beginning at {ts} ns')
            else:
                self.db.execute('UPDATE slice SET dur = ? - ts WHERE id = ?', (ts, stack.pop()))
            return
        category = self.names.get(('category', event.get('category_iids', [0])[0]))
        row = self.db.execute('INSERT INTO slice(ts, dur, track_id, name, category, depth) VALUES (?, ?, ?, ?, ?, ?)', (
            ts, 0 if kind == 'TYPE_INSTANT' else -1, track, self.names['name', event['name_iid'][0]], category, len(stack))).lastrowid
        self.db.execute('UPDATE slice SET arg_set_id = id WHERE id = ?', (row,))
        self.arguments[row] = {
            'debug.' + self.names['argument', a['name_iid'][0]]: next(v[0] for k, v in a.items() if k != 'name_iid')
            for a in event.get('debug_annotations', [])}
        if kind == 'TYPE_SLICE_BEGIN':
            stack.append(row)
        for end, key in (('out', 'flow_ids'), ('in', 'terminating_flow_ids')):
            for flow in event.get(key, []):
                if end in self.flows.setdefault(flow, {}):
                    self.fault(f'arrow {flow} has two ends of a kind')
                self.flows[flow][end] = row

    def ask(self, sql):
        cursor = self.db.execute(sql)
        names = [c[0] for c in cursor.description]
        return [dict(zip(names, row)) for row in cursor]

    def value(self, sql):
        return self.db.execute(sql).fetchone()[0]

    def sound(self, test):
        test.assertEqual(self.faults, [])
        test.assertEqual(self.value('SELECT count(*) FROM slice WHERE dur < 0'), 0)
        test.assertEqual(self.value('SELECT count(*) FROM slice WHERE dur = 0 AND depth > 0 AND category IS NOT NULL'), 0)
        # Arrows run from the end of a slice to the start of another.
        test.assertEqual(self.value('''SELECT count(*) FROM flow JOIN slice AS a ON slice_out = a.id
            JOIN slice AS b ON slice_in = b.id WHERE a.ts + a.dur > b.ts'''), 0)
        # Below a parent, the order of the rows is given and no place is taken twice.
        test.assertEqual(self.value('SELECT count(*) FROM (SELECT 1 FROM track GROUP BY parent_id, rank HAVING count(*) > 1)'), 0)
        # On one row slices are apart or one inside the other.
        test.assertEqual(self.value('''SELECT count(*) FROM slice AS a JOIN slice AS b ON a.track_id = b.track_id AND a.id < b.id
            WHERE b.ts < a.ts + a.dur AND b.ts + b.dur > a.ts + a.dur'''), 0)


def questions():
    """SQL of docs/perfetto.md by the bold words before it."""
    with open(os.path.join(SOURCE, 'docs/perfetto.md'), encoding='utf-8') as file:
        text = file.read()
    found = re.findall(r'\*\*([^*]+)\*\*[^`]*?```sql\n(.*?)```', text, re.DOTALL)
    whole = re.search(r'## Is the trace whole\?.*?```sql\n(.*?)```', text, re.DOTALL)
    return {**dict(found), 'whole': whole[1]}


class StepTrace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, 'step.pftrace')
        cls.ran = subprocess.run([HERDSIM, 'step', *SMALL, '--trace', cls.path, '--format', 'json', '--trace-ranks', 'all'],
                                 capture_output=True, text=True, check=True)
        cls.trace = Trace(cls.path)
        cls.asked = questions()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ask(self, start):
        return self.trace.ask(next(sql for name, sql in self.asked.items() if name.startswith(start)))

    def test_it_is_sound(self):
        self.trace.sound(self)

    def test_there_are_five_questions_and_each_has_an_answer(self):
        self.assertEqual(len(self.asked), 6)
        for name, sql in self.asked.items():
            self.assertGreater(len(self.trace.ask(sql)), 0, name)

    def test_the_trace_is_whole(self):
        self.assertEqual(self.ask('whole'), [{'unfinished': 0, 'swallowed': 0, 'dropped': 0}])

    def test_the_critical_path_fills_the_step(self):
        step_s = float(re.search(r'"step_time_s": ([\d.]+)', self.ran.stdout)[1])
        rows = self.ask('What decides')
        self.assertAlmostEqual(sum(row['ms'] for row in rows), 1e3 * step_s, places=5)
        path = self.trace.ask("SELECT ts, dur FROM slice WHERE category = 'critical path' ORDER BY ts")
        self.assertTrue(all(a['ts'] + a['dur'] == b['ts'] for a, b in zip(path, path[1:])))

    def test_every_rank_has_its_row_by_number_and_is_busy(self):
        rows = self.ask('How busy')
        self.assertEqual(len({row['rank'] for row in rows}), 32)
        self.assertTrue(all(0 < row['percent'] <= 100.1 for row in rows))
        slow = [row['busy_s'] for row in rows if row['stream'] == 'compute' and row['rank'].startswith('rank 09 ')]
        twin = [row['busy_s'] for row in rows if row['stream'] == 'compute' and row['rank'].startswith('rank 11 ')]
        self.assertGreater(slow[0], 1.15 * twin[0], 'the slow GPU of the stage')

    def test_waits_end_when_what_was_waited_for_ends(self):
        rows = self.ask('What do ranks wait for')
        self.assertTrue(all(row['waited_ms'] > 0 for row in rows))
        self.assertTrue(all(row['waited_for'] in ('tp', 'cp', 'ep', 'dp', 'receive', 'send forward', 'send backward') for row in rows))
        self.assertEqual(rows, sorted(rows, key=lambda row: -row['waited_ms']))

    def test_kernels_and_transfers_have_plausible_rates(self):
        rows = self.ask('Which kernels')
        products = [row['tflops'] for row in rows if row['category'] == 'compute' and row['tflops'] and row['total_s'] > 0.001]
        self.assertTrue(products and all(50 < rate < 989.4 for rate in products), products)
        self.assertTrue(all(0 < row['gigabytes_per_second'] < 900 for row in rows if row['category'] == 'tp'))

    def test_activations_travel_between_neighbours_and_arrive(self):
        rows = self.ask('How long do activations')
        self.assertTrue(all(row['mean_us'] > 0 for row in rows))
        stages = {tuple(int(re.search(r'pp (\d+)', row[key])[1]) for key in ('from_rank', 'to_rank')) for row in rows}
        self.assertTrue(all(abs(a - b) in (1, 3) for a, b in stages), stages)

    def test_memory_and_links_are_counters_with_units(self):
        units = dict(self.trace.db.execute('SELECT DISTINCT name, unit FROM track WHERE unit IS NOT NULL'))
        self.assertEqual(units['memory'], 'GB')
        self.assertEqual(units['PP, DP and EP bytes'], 'GB/s')
        self.assertTrue(any(': ' in name and unit == 'GB/s' for name, unit in units.items()), units)

    def test_it_says_which_ranks_it_shows(self):
        self.assertIn('shows 32 of 32 ranks', self.ran.stderr)
        self.assertEqual(self.trace.value("SELECT count(*) FROM slice WHERE ts = 0 AND name LIKE 'shows 32 of 32 ranks%'"), 1)

    def test_a_budget_is_kept_and_what_was_left_out_is_said(self):
        size = os.path.getsize(self.path)
        small = os.path.join(self.folder.name, 'small.pftrace')
        run = subprocess.run([HERDSIM, 'step', *SMALL, '--trace', small, '--trace-ranks', 'all', '--trace-budget', f'{size // 3}B'],
                             capture_output=True, text=True, check=True)
        self.assertLessEqual(os.path.getsize(small), size // 3)
        self.assertIn('32 asked for', run.stderr)
        trace = Trace(small)
        trace.sound(self)
        ranks = trace.value("SELECT count(*) FROM track WHERE name LIKE 'rank %'")
        self.assertTrue(4 <= ranks < 32, ranks)
        self.assertIn(f'shows {ranks} of 32 ranks', run.stderr)
        self.assertEqual(trace.value("SELECT count(*) FROM track WHERE name LIKE 'rank 09 %'"), 1, 'the slow GPU')
        self.assertEqual(trace.value("SELECT sum(dur) FROM slice WHERE category = 'critical path'"),
                         self.trace.value("SELECT sum(dur) FROM slice WHERE category = 'critical path'"))


class WeeksTrace(unittest.TestCase):
    def test_it_is_sound_and_shows_throughput(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'weeks.pftrace')
            subprocess.run([HERDSIM, 'run', 'llama3-405b-16384', '--days', '20', '--replicas', '1', '--quiet', '--trace', path],
                           capture_output=True, check=True)
            trace = Trace(path)
        trace.sound(self)
        job = trace.ask('SELECT ts, dur FROM slice JOIN track ON track_id = track.id WHERE track.name = \'job\' ORDER BY ts')
        self.assertEqual(sum(row['dur'] for row in job), 20 * 86_400 * 10**9)
        most = trace.value("SELECT max(value) FROM counter JOIN track ON track_id = track.id WHERE track.name = 'steps an hour'")
        self.assertTrue(500 < most < 600, most)


if __name__ == '__main__':
    if shutil.which('protoc') is None:
        print('skipped: no protoc here (Debian package protobuf-compiler)')
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
