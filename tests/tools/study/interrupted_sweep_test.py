#!/usr/bin/env python3
"""What ends a sweep from outside: a kill, a full disk, a folder that cannot be written. Nothing finished is lost or repeated.

    interrupted_sweep_test.py PROGRAM
"""
import json
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SWEEP = ["sweep", "llama3-8b-1024", "--set", "gpus=8", "--set", "parallel.dp=", "--set", "model.layers=4",
         "--set", "training.sequence_length=1024", "--set", "training.global_batch=16", "--set", "recovery.spares=0",
         "--axis", "parallel.tp,parallel.dp=(1,8),(2,4),(4,2)", "--axis", "seed=1:4:1",
         "--axis", "reliability.rate_scale=1..1000*10", "--days", "30", "--replicas", "4", "--format", "json", "--quiet"]
POINTS = 3 * 4 * 4


def sweep(program, database, threads=1, **more):
    return subprocess.run([program, *SWEEP, "--threads", str(threads), "--db", str(database)], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def answer(run):
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def stored(database):
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in connection.execute("SELECT result_fingerprint FROM runs ORDER BY run_id")]


def check_killed(program, folder, whole):
    """Killed with no warning after some points, three times over."""
    database = folder / "killed.db"
    kept = []
    for _ in range(3):
        process = subprocess.Popen([program, *SWEEP, "--threads", "1", "--db", str(database)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        begin = time.monotonic()
        while process.poll() is None and time.monotonic() - begin < 60:
            try:
                if len(stored(database)) > len(kept) + 2:
                    break
            except sqlite3.Error:
                pass  # not there yet
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = stored(database)
        assert now[:len(kept)] == kept, "what was stored changed"
        kept = now
    rest = answer(sweep(program, database))
    assert rest["found"] == len(kept) and rest["computed"] == POINTS - len(kept), rest
    assert rest["points"] == whole["points"], "a resumed sweep has other rows"
    assert stored(database)[:len(kept)] == kept


def check_full_disk(program, folder, whole):
    """A file that may grow no further, as on a full disk."""
    database = folder / "full.db"
    limit = 120_000

    def no_larger():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    run = sweep(program, database, preexec_fn=no_larger)
    assert run.returncode == 2, (run.returncode, run.stderr)
    assert str(database) in run.stderr, run.stderr
    kept = stored(database)
    assert 0 < len(kept) < POINTS, len(kept)
    rest = answer(sweep(program, database))
    assert rest["found"] == len(kept), (rest["found"], len(kept))
    assert rest["points"] == whole["points"]


def check_read_only(program, folder):
    if os.geteuid() == 0:
        return  # who may write everywhere
    closed = folder / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    run = sweep(program, closed / "a.db")
    assert run.returncode == 2, run.returncode
    assert "Permission denied" in run.stderr, run.stderr
    assert not list(closed.iterdir())


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        whole = answer(sweep(program, folder / "whole.db"))
        assert whole["computed"] == POINTS and len(whole["points"]) == POINTS, whole["computed"]
        assert answer(sweep(program, folder / "threads.db", threads=3))["points"] == whole["points"]
        check_killed(program, folder, whole)
        check_full_disk(program, folder, whole)
        check_read_only(program, folder)
    print(f"{POINTS} points, killed three times and on a full disk: none lost, none repeated")


main()
