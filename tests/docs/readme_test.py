#!/usr/bin/env python3
"""Runs the console blocks of a document and compares what they print with what the document says.

    readme_test.py DOCUMENT PROGRAM_FOLDER             fails where they differ
    readme_test.py DOCUMENT PROGRAM_FOLDER --accept    writes what they print into the document, cut where it was cut

In a ```console block a line that starts with "$ " is a command, which goes on in lines behind it that start with "> "; the
lines up to the next one are its output, standard error included. "..." alone on a line stands for any lines, and within a
line for any text. Commands run in an empty folder with the programs on the PATH.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def console_blocks(text):
    return re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(block):
    command, output = None, []
    for line in block.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, output
            command, output = line[2:], []
        elif line.startswith("> ") and not output:
            command += "\n" + line[2:]
        else:
            output.append(line)
    if command is not None:
        yield command, output


def pattern_of(lines):
    parts = []
    for line in lines:
        if line == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(r"[^\n]*".join(re.escape(piece.rstrip()) for piece in line.split("...")) + r"[ ]*\n")
    return re.compile("".join(parts) + r"\Z")


def cut_like(expected, printed):
    """What is printed, as far as the document shows it; None where it leaves out more than the end."""
    lines = [line.rstrip() for line in printed.splitlines()]
    if "..." not in "\n".join(expected):
        return lines
    if expected[-1] == "..." and "..." not in "\n".join(expected[:-1]):
        return lines[:len(expected) - 1] + ["..."]
    return None


def main():
    document, programs = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    accept = "--accept" in sys.argv[3:]
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
    ran = failed = 0
    text = document.read_text()
    with tempfile.TemporaryDirectory() as folder:
        for block in console_blocks(text):
            for command, expected in commands(block):
                if command.startswith("tools/"):
                    continue  # installs and builds: what runs this test
                run = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
                ran += 1
                printed = "\n".join(line.rstrip() for line in run.stdout.splitlines()) + "\n" if run.stdout else ""
                if pattern_of(expected).match(printed):
                    continue
                accepted = cut_like(expected, printed) if accept else None
                if accepted is not None:
                    shown = "$ " + command.replace("\n", "\n> ")
                    old, new = ("\n".join([shown] + lines) + "\n" for lines in (expected, accepted))
                    assert old in text, command
                    text = text.replace(old, new, 1)
                    continue
                failed += 1
                print(f"$ {command}\n--- the document says\n" + "\n".join(expected) + f"\n--- it prints\n{printed}")
    if accept:
        document.write_text(text)
    print(f"{document.name}: {ran} commands, {failed} differ")
    return 1 if failed or not ran else 0


sys.exit(main())
