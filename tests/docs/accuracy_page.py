#!/usr/bin/env python3
"""Holds the table of software stacks in docs/accuracy.md to the figures that accuracy_test.cc is held to.

    accuracy_page.py PAGE ACCURACY_TEST.cc             fails where they differ
    accuracy_page.py PAGE ACCURACY_TEST.cc --accept    writes the page's table anew
"""
import pathlib
import re
import sys

ROW = re.compile(r'\{"([^"]+)",\s*([-\d.]+),\s*([-\d.]+),\s*([-\d.]+),\s*([-\d.]+)')
BEGIN, END = "<!-- stacks: begin -->\n", "<!-- stacks: end -->"


def pair(median, p90):
    return "" if float(median) < 0 else f"{median} / {p90}"


def table(source):
    lines = ["| stack, type, GPU | rows | here | arithmetic |", "|---|---|---|---|"]
    for group, median, p90, naive_median, naive_p90 in ROW.findall(source):
        stack, rows = re.match(r"(.*) (tier \d \w+)$", group).groups()
        lines.append(f"| {stack} | {rows} | {pair(median, p90)} | {pair(naive_median, naive_p90)} |")
    return "\n".join(lines) + "\n"


def main():
    page = pathlib.Path(sys.argv[1])
    expected = table(pathlib.Path(sys.argv[2]).read_text())
    before, rest = page.read_text().split(BEGIN)
    found, after = rest.split(END)
    rows = expected.count("\n") - 2
    if rows < 10:
        sys.exit(f"{sys.argv[2]}: {rows} rows were found in it; its layout has changed")
    if "--accept" in sys.argv[3:]:
        page.write_text(before + BEGIN + expected + END + after)
    elif found != expected:
        sys.exit(f"{page}: its table is not that of the test; write it with --accept. It should be\n{expected}")
    print(f"{rows} rows")


main()
