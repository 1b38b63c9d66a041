#!/usr/bin/env python3
"""What people meet around the answers: completion in three shells, manual pages, colour, progress, width.

    terminal_test.py HERDSIM COMPLETIONS_FOLDER
"""
import csv
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

COMPLETIONS = pathlib.Path(sys.argv.pop(2)).resolve()
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
ENVIRONMENT = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "TERM": "xterm", "LC_ALL": "C.UTF-8"}
ENVIRONMENT.pop("NO_COLOR", None)

# A line as it was typed, and words that must and must not be offered.
CASES = [
    ("herdsim swee", {"sweep"}, {"step"}),
    ("herdsim step llama3-405b-16", {"llama3-405b-16384"}, {"llama3-8b-1024"}),
    ("herdsim step llama3-8b-1024 --form", {"--format"}, {"--quiet"}),
    ("herdsim step llama3-8b-1024 --format ", {"table", "json", "csv"}, {"llama3-8b-1024"}),
    ("herdsim step llama3-8b-1024 --set parallel.t", {"parallel.tp="}, {"parallel.pp="}),
    ("herdsim step llama3-8b-1024 --set training.schedule=zb", {"training.schedule=zb-v"}, {"training.schedule=gpipe"}),
    ("herdsim sweep llama3-8b-1024 --axis parallel.shard=ZERO1,ZERO", {"parallel.shard=ZERO1,ZERO3"}, set()),
    ("herdsim help fail", {"failures"}, {"models"}),
    ("herdsim plan --model llama3-4", {"llama3-405b"}, {"llama3-8b"}),
]


def run(*words, **options):
    return subprocess.run([str(word) for word in words], env=ENVIRONMENT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, **options)


def on_terminal(*words, environment=ENVIRONMENT):
    """What a program writes to a terminal that is both of its streams."""
    master, slave = pty.openpty()
    process = subprocess.Popen([str(word) for word in words], env=environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    process.wait()
    os.close(master)
    return text.decode()


class Completion(unittest.TestCase):
    def check(self, offered_for):
        for line, wanted, unwanted in CASES:
            offered = offered_for(line)
            self.assertLessEqual(wanted, offered, line)
            self.assertFalse(unwanted & offered, line)

    def test_bash(self):
        def offered(line):
            # Readline's part: words cut at its breaks, and what a word already has up to the last of them.
            script = f"""source {COMPLETIONS}/herdsim.bash
COMP_LINE=$1 COMP_POINT=${{#1}}
_herdsim
printf '%s\\n' "${{COMPREPLY[@]}}\""""
            words = run("bash", "--norc", "-c", script, "-", line).stdout.split("\n")
            typed = line.rsplit(" ", 1)[1]
            kept = typed[:max(typed.rfind("="), typed.rfind(":")) + 1]
            return {kept + word for word in words if word}
        self.check(offered)
        registered = run("bash", "--norc", "-c", f"source {COMPLETIONS}/herdsim.bash; complete -p herdsim").stdout
        self.assertIn("-F _herdsim herdsim", registered)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        def offered(line):
            # Zsh's part: the words before the cursor, and a compadd that tells what it was given.
            script = f"""function compadd {{ local name=$@[-1]; print -rl -- ${{(P)name}} }}
function _files {{ }}
autoload -Uz +X {COMPLETIONS}/_herdsim 2>/dev/null || source {COMPLETIONS}/_herdsim
line=$1
words=(${{(z)line}}); [[ $line == *' ' ]] && words+=('')
CURRENT=$#words; PREFIX=$words[-1]
_herdsim"""
            return set(run("zsh", "-f", "-c", script, "-", line).stdout.split("\n"))
        self.check(offered)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        def offered(line):
            script = f"source {COMPLETIONS}/herdsim.fish; complete -C {line!r}"
            with tempfile.TemporaryDirectory() as home:
                found = subprocess.run(["fish", "--no-config", "-c", script], env={**ENVIRONMENT, "HOME": home}, text=True,
                                       stdout=subprocess.PIPE, timeout=60).stdout
            return {word.split("\t")[0] for word in found.split("\n")}
        self.check(offered)

    def test_the_program_prints_the_scripts(self):
        for shell, name in (("bash", "herdsim.bash"), ("zsh", "_herdsim"), ("fish", "herdsim.fish")):
            self.assertEqual(run(PROGRAM, "completion", shell).stdout, (COMPLETIONS / name).read_text())
        self.assertEqual(run(PROGRAM, "completion", "tcsh").returncode, 2)


class Manual(unittest.TestCase):
    def test_every_command_has_a_page_without_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(PROGRAM, "man", "-o", folder).returncode, 0)
            pages = sorted(pathlib.Path(folder).iterdir())
            self.assertGreater(len(pages), 10)
            if shutil.which("mandoc"):
                lint = run("mandoc", "-T", "lint", "-W", "warning", *pages)
                self.assertEqual(lint.stdout + lint.stderr, "")
            elif shutil.which("groff"):
                for page in pages:
                    self.assertEqual(run("groff", "-ww", "-man", "-T", "ascii", "-z", page).stderr, "", page.name)
            for page in pages:
                text = page.read_text()
                for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"):
                    self.assertIn(f".SH {section}\n", text, page.name)
        self.assertIn("\\-\\-trace", run(PROGRAM, "man", "step").stdout)


class Terminal(unittest.TestCase):
    FAULT = (PROGRAM, "step", "lama3-8b-1024")
    WEEKS = (PROGRAM, "run", "llama3-8b-1024", "--days", "20", "--replicas", "40", "--threads", "1")

    def test_colour_is_for_terminals_alone_and_can_be_refused(self):
        self.assertIn("\x1b[31m", on_terminal(*self.FAULT))
        self.assertNotIn("\x1b", run(*self.FAULT).stderr)
        for refusal in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\x1b", on_terminal(*self.FAULT, environment={**ENVIRONMENT, **refusal}))
        self.assertIn("\x1b[31m", on_terminal(*self.FAULT, environment={**ENVIRONMENT, "NO_COLOR": ""}))

    def test_progress_shows_on_a_terminal_unless_quiet(self):
        self.assertIn("replicas", on_terminal(*self.WEEKS).split("\x1b[K")[1])
        self.assertNotIn("\x1b[K", on_terminal(*self.WEEKS, "--quiet"))
        self.assertEqual(run(*self.WEEKS).stderr, "")
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder, "runs.csv")
            row = "{},Llama2-7B,H100,8,2048,16,1,8,megatron-te"
            table.write_text("\n".join(["id,model,gpu,num_gpus,seq_len,global_batch,tp,dp,software",
                                        *(row.format(i) for i in range(4))]))
            rows = (PROGRAM, "validate", "--table", table)
            self.assertIn(" of 4 rows", on_terminal(*rows))
            self.assertEqual(run(*rows).stderr, "")

    def test_what_people_read_fits_80_columns(self):
        kinds = run(PROGRAM, "completion", "words", "--", "catalog", "").stdout.split()
        commands = [line.split("\t")[0] for line in run(PROGRAM, "completion", "words", "--", "").stdout.splitlines()]
        wide = []
        lines = [["help", kind] for kind in (*kinds, "spec")]
        lines += [[command, "--help"] for command in commands if not command.startswith("-")]
        lines += [["--help"], ["catalog"], ["step", "llama3-8b-1024"], ["topology", "meta-roce-24k"],
                  ["run", "llama3-8b-1024", "--days", "1", "--replicas", "2"], ["validate"],
                  ["rates", "llama3-8b-1024", "--gpus", "1024,8192"],
                  ["compare", "llama3-8b-1024", "llama3-70b-8192"]]
        for words in lines:
            answer = run(PROGRAM, *words)
            self.assertIn(answer.returncode, (0, 1), words)
            wide += [(words, line) for line in answer.stdout.splitlines() if len(line) > 80]
        self.assertEqual(wide, [])

    def test_a_format_that_a_command_lacks_is_refused(self):
        for words in (["spec", "llama3-8b-1024", "--format", "json"], ["help", "spec", "--format", "csv"],
                      ["topology", "meta-roce-24k", "--format", "csv"]):
            self.assertEqual(run(PROGRAM, *words).returncode, 2, words)
        rows = list(csv.reader(run(PROGRAM, "catalog", "models", "--format", "csv").stdout.splitlines()))
        self.assertEqual(rows[0], ["kind", "name", "help"])
        self.assertGreater(len(rows), 10)
        self.assertEqual({(len(row), row[0]) for row in rows[1:]}, {(3, "models")})


unittest.main()
