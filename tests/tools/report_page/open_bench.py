"""How long a report of a sweep of 1,000 points takes to open, beside its goal: python3 open_bench.py HERDSIM SOURCE_FOLDER"""
import sys
import tempfile

import browser

GOAL_S = 2.0

if __name__ == '__main__':
    if browser.PROGRAM is None:
        sys.exit('skipped: no Chromium here (Debian package chromium)')
    import report_page_test
    import sample_database
    with tempfile.TemporaryDirectory() as folder:
        path = report_page_test.report(folder, 'large', sample_database.large_sweep)
        with browser.Browser() as chromium:
            chromium.open(path)
            best = min(chromium.open(path).opened_in_s for _ in range(3))
    print(f'report of 1,000 points opens in {best:.2f} s, goal {GOAL_S:.0f} s: {"met" if best <= GOAL_S else "missed"}')
