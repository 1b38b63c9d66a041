#!/usr/bin/env python3
"""Fails when a source includes a folder that its library does not declare, and names the allowed ones.

    check_includes.py SOURCE_DIR LIBRARIES

LIBRARIES has a line a library, "name|folder|dep,dep", as herdsim_library() wrote it. Libraries of one folder share their
arrows. Includes are checked against declared dependencies only, not against what those depend on: an arrow that is used is
an arrow that is declared.
"""
import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


def main():
    root = pathlib.Path(sys.argv[1])
    folder_of, dependencies = {}, collections.defaultdict(set)
    lines = [line.split("|") for line in pathlib.Path(sys.argv[2]).read_text().split("\n") if line]
    for name, folder, _ in lines:
        folder_of[name] = folder
    for name, folder, deps in lines:
        dependencies[folder] |= {folder_of[d] for d in deps.split(",") if d} | {folder}

    faults = 0
    for folder, allowed in sorted(dependencies.items()):
        for source in sorted((root / folder).glob("*.[ch]*")):
            if source.suffix not in (".h", ".cc"):
                continue
            for include in INCLUDE.findall(source.read_text()):
                target = str(pathlib.PurePosixPath(include).parent)
                if target not in allowed:
                    faults += 1
                    print(f"{source.relative_to(root)}: includes {include}; allowed: {', '.join(sorted(allowed))}")
    print(f"{len(dependencies)} folders, {faults} undeclared includes")
    return 1 if faults else 0


sys.exit(main())
