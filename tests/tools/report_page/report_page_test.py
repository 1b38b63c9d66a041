"""`herdsim report` in a real browser: python3 report_page_test.py HERDSIM SOURCE_FOLDER
Exit status 77 where there is no Chromium or the program was built without the page."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import browser
import sample_database

HERDSIM, SOURCE = sys.argv[1], sys.argv[2]
SCHEMA = os.path.join(SOURCE, 'traces/db/schema.sql')
HOSTILE = '</script><img src=x onerror="document.title=\'pwned\'"><!--<script>&lt;=HYPERLINK("x")'
SKIPPED = 77


def report(folder, name, make, *arguments):
    database, page = os.path.join(folder, name + '.db'), os.path.join(folder, name + '.html')
    make(database, SCHEMA, *arguments)
    subprocess.run([HERDSIM, 'report', database, '-o', page, '--quiet'], check=True, stdin=subprocess.DEVNULL)
    return page


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = browser.Browser().__enter__()
        cls.full = report(cls.folder.name, 'full', sample_database.full)
        cls.empty = report(cls.folder.name, 'empty', lambda p, s: sample_database.Sample(p, s).close())
        cls.page = cls.browser.open(cls.full)

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def sections(self, page):
        return page.value('[...document.querySelectorAll("section.card:not([hidden])")].filter(s => s.id).map(s => s.id)')

    def test_every_chart_has_marks_and_nothing_goes_wrong(self):
        shown = self.sections(self.page)
        self.assertEqual(len(shown), 11, shown)
        self.assertEqual(self.page.value('document.querySelector("#missing").hidden'), True)
        for section in shown:
            marks = self.page.value(f'document.querySelectorAll("#{section} svg path[fill]:not([fill=none])").length')
            self.assertGreater(marks, 1, section)
        self.assertEqual(self.page.faults(), [])
        self.assertIsNone(self.page.value('document.documentElement.dataset.faults ?? null'))

    def test_every_axis_with_numbers_has_a_name_with_its_unit(self):
        for section in self.sections(self.page):
            texts = self.page.value(f'[...document.querySelectorAll("#{section} svg text")].map(t => t.textContent)')
            named = [t for t in texts if t.endswith(')') or t in ('pipeline stage', 'software.attention_kernel')]
            self.assertTrue(named, f'{section}: {texts[-6:]}')

    def test_texts_of_the_data_are_only_ever_text(self):
        page = self.browser.open(report(self.folder.name, 'hostile', sample_database.full, HOSTILE))
        self.assertEqual(page.value('document.title'), 'Herdsim report')
        self.assertEqual(page.value('document.querySelectorAll("img").length'), 0)
        self.assertEqual(page.value('document.scripts.length'), 2)
        self.assertIn(HOSTILE, page.value('document.getElementById("top").textContent'))
        self.assertEqual(len(self.sections(page)), 11)
        self.assertEqual(page.faults(), [])

    def test_injected_markup_could_not_run_a_script(self):
        page = self.browser.open(self.empty)
        page.value('document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=\'window.pwned=1\'>")')
        page.value('new Promise(done => setTimeout(done, 200))')
        self.assertIsNone(page.value('window.pwned ?? null'))

    def test_dark_and_light_are_readable(self):
        for dark in (False, True):
            self.page.media(dark=dark)
            self.page.settle()
            worst = self.page.value('''(() => {
              const rgb = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
              const light = (c) => { const [r, g, b] = rgb(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
              const ground = light(getComputedStyle(document.querySelector('.card')).backgroundColor);
              const contrast = (c) => { const a = light(c); return (Math.max(a, ground) + 0.05) / (Math.min(a, ground) + 0.05); };
              const outside = [...document.querySelectorAll('#step-losses svg text, #scaling svg text, .card p, .card h2, .card summary')];
              return Math.min(...outside.map(e => contrast(e.namespaceURI.endsWith('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color)));
            })()''')
            self.assertGreaterEqual(worst, 4.5, f'dark={dark}')
        self.page.media(dark=False)
        self.page.settle()

    def test_a_keyboard_reaches_everything_in_the_order_of_the_page(self):
        page = self.page
        page.settle()
        page.value('document.querySelectorAll("details.card, .card details").forEach(d => { d.open = false; })')
        page.value('document.activeElement.blur(); window.getSelection().removeAllRanges()')
        wanted = page.value('''[...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')]
            .filter(e => e.checkVisibility()).length''')
        page.press('Tab', 'Tab', 9)
        self.assertEqual(page.value('document.activeElement.className'), 'skip')
        reached = 1
        ordered = True
        page.value('window.last = document.activeElement')
        for _ in range(wanted - 1):
            page.press('Tab', 'Tab', 9)
            ordered &= page.value('''(() => { const after = !!(window.last.compareDocumentPosition(document.activeElement) &
                Node.DOCUMENT_POSITION_FOLLOWING); window.last = document.activeElement; return after; })()''')
            reached += 1
        self.assertTrue(ordered)
        self.assertEqual(page.value('document.querySelectorAll("[tabindex]:not([tabindex=\'0\']):not([tabindex=\'-1\'])").length'), 0)
        page.value('document.querySelector("#schedule summary").focus()')
        page.press('Enter', 'Enter', 13)
        page.settle()
        self.assertEqual(page.value('document.querySelectorAll("#schedule tbody tr").length'), 4 * 2 * 8 * 2)

    def test_the_schedule_zooms_from_the_keyboard(self):
        page = self.page
        page.settle()
        count = 'document.querySelectorAll("#schedule svg path[fill]").length'
        before = page.value(count)
        page.value('[...document.querySelectorAll("#schedule button")].find(b => b.textContent === "Closer").focus()')
        page.press('Enter', 'Enter', 13)
        page.settle()
        self.assertLess(page.value(count), before)

    def test_every_chart_is_named_described_and_has_a_table(self):
        faults = self.page.value('''[...document.querySelectorAll('section.card:not([hidden])')].filter(s => s.id).filter(s => {
          const plot = s.querySelector('[role=img]'), text = (id) => document.getElementById(id)?.textContent ?? '';
          s.querySelector('details').open = true;
          return !text(plot.getAttribute('aria-labelledby')) || !text(plot.getAttribute('aria-describedby'))
              || s.querySelector('h2') === null;
        }).map(s => s.id)''')
        self.assertEqual(faults, [])
        self.page.value('new Promise(done => setTimeout(done, 50))')
        empty = self.page.value('''[...document.querySelectorAll('section.card:not([hidden])')].filter(s => s.id)
            .filter(s => s.querySelectorAll('tbody tr').length === 0 || s.querySelectorAll('th[scope=col]').length === 0).map(s => s.id)''')
        self.assertEqual(empty, [])
        headings = self.page.value('[...document.querySelectorAll("h1, h2, h3")].filter(h => h.checkVisibility()).map(h => h.tagName)')
        self.assertEqual(headings[0], 'H1')
        self.assertEqual(set(headings[1:]), {'H2'})

    def test_the_file_has_what_the_table_has(self):
        page = self.page
        text = page.value('''(async () => {
          let blob = null;
          const make = URL.createObjectURL;
          URL.createObjectURL = (b) => { blob = b; return make(b); };
          HTMLAnchorElement.prototype.click = () => {};
          [...document.querySelectorAll('#failures button')].find(b => b.textContent === 'Download CSV').click();
          return await blob.text();
        })()''')
        lines = text.lstrip('\ufeff').split('\r\n')
        self.assertEqual(lines[0], 'replica,at (days),class,component,planned,down (s),work lost (s)')
        self.assertEqual(len(lines), 1 + 200 + 1)

    def test_paper_is_light_and_whole(self):
        page = self.page
        page.media(dark=True)
        path = os.path.join(self.folder.name, 'page.pdf')
        page.value('''window.addEventListener('beforeprint', () => { window.printed =
            [...document.querySelectorAll('.plot svg')].map(s => s.getBoundingClientRect().width); })''')
        page.pdf(path)
        self.assertGreater(os.path.getsize(path), 50_000)
        widths = page.value('window.printed')
        self.assertEqual(len(widths), 11)
        self.assertLessEqual(max(widths), 700)
        page.media(dark=False)

    def test_a_phone_scrolls_down_only(self):
        self.page.settle()
        self.page.size(360, 740)
        self.page.settle()
        self.assertLessEqual(self.page.value('document.documentElement.scrollWidth'), 360)
        self.page.size(1200, 900)
        self.page.settle()

    def test_an_empty_database_says_what_would_fill_it(self):
        page = self.browser.open(self.empty)
        self.assertEqual(self.sections(page), [])
        commands = page.value('[...document.querySelectorAll("#missing code")].map(c => c.textContent)')
        self.assertEqual(len(commands), 11)
        self.assertTrue(all('herdsim ' in c and 'empty.db' in c for c in commands), commands)
        self.assertEqual(page.faults(), [])

    def test_a_large_sweep_shows_all_its_points(self):
        page = self.browser.open(report(self.folder.name, 'large', sample_database.large_sweep))
        self.assertIn('1000 points', page.value('document.querySelector("#sweeps-summary").textContent').replace(',', ''))
        self.assertEqual(page.faults(), [])
        data = json.loads(page.value('document.getElementById("data").textContent'))
        self.assertEqual(len(data['tables']['runs']['rows']), 1000)


if __name__ == '__main__':
    if browser.PROGRAM is None:
        print('skipped: no Chromium here (Debian package chromium)')
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as empty:
        probe = os.path.join(empty, 'probe.db')
        sample_database.Sample(probe, SCHEMA).close()
        tried = subprocess.run([HERDSIM, 'report', probe, '-o', os.path.join(empty, 'p.html')], capture_output=True, text=True)
        if 'this build has no page' in tried.stderr:
            print('skipped:', tried.stderr.strip())
            sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
