#!/usr/bin/env python3
"""Copies the public headers with their plain comments turned into documentation comments, for Doxygen. Line numbers stay.

    doxygen_input.py SOURCE_FOLDER COPY FOLDER...

A comment above a declaration documents it, one behind it documents what is before it, the one on top the file. Their text is
plain: no character of it is a command, and indented lines are examples.
"""
import pathlib
import re
import sys

COMMENT = re.compile(r"^\s*// ?(.*)$")
TRAILING = re.compile(r"^(.*\S)\s*// (.*)$")


def escaped(text):
    return re.sub(r"([\\@&$#<>\"%|])", r"\\\1", text).replace("::", r"\::")


def block(lines, top):
    """Lines of one comment as a documentation comment."""
    out, example = [], False
    for i, line in enumerate(lines):
        indented = line.startswith("  ")
        # An example goes on over an empty line inside it.
        inside = indented or (example and not line.strip() and any(l.startswith("  ") for l in lines[i + 1:i + 2]))
        begin = r"\verbatim " if inside and not example else ""
        end = r"\endverbatim " if example and not inside else ""
        out.append("/// " + end + begin + (line if inside else escaped(line)))
        example = inside
    if example:
        out[-1] += r" \endverbatim"
    return [r"/// \file"] + out if top else out


def documented(text):
    out, comment, top = [], [], True
    text = text.replace("\n\n", "\n", 1)  # makes up for the line of \\file
    for line in text.split("\n"):
        whole = COMMENT.match(line)
        if whole:
            comment.append(whole.group(1))
            continue
        if comment:
            out += block(comment, top)
            top, comment = False, []
        behind = TRAILING.match(line)
        out.append(f"{behind.group(1)} ///< {escaped(behind.group(2))}" if behind else line)
    return "\n".join(out + (block(comment, top) if comment else []))


def main():
    source, copy = (pathlib.Path(name) for name in sys.argv[1:3])
    for folder in sys.argv[3:]:
        for header in sorted((source / folder).rglob("*.h")):
            target = copy / header.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(documented(header.read_text()))


main()
