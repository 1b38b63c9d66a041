#!/usr/bin/env python3
"""Measures this machine, predicts a small data-parallel training loop on two ranks from what it measured, runs that very
loop with MPI and BLAS, and prints both, five times over: each loop beside the probes just before it. The goal is a median
within 15 %. Where others take the cores it says nothing: probes are medians of milliseconds, which a busy machine leaves alone
more often than not, and a step is their sum, of seconds, which it never does. Then what others took is said and the test skips.
usage: host_loop_test.py SOURCE_DIR PROGRAMS"""
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
ROUNDS = 5
GOAL = 0.15
QUIET = 0.1  # of all cores, at most, while the loop runs


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=200)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def others_seconds():
    """Processor time of everything on this machine but the children that this test has waited for."""
    user, nice, system, idle, waiting, *rest = (int(n) for n in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:8])
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - own.ru_utime - own.ru_stime


def share_of_others(seconds_before, began):
    return (others_seconds() - seconds_before) / (time.monotonic() - began) / os.cpu_count()


def main():
    source, programs = (pathlib.Path(a) for a in sys.argv[1:3])
    calibrate = programs / "herdsim-calibrate"
    scenario = source / "tests/tools/calibrate/host_loop.textproto"
    bare = subprocess.run([calibrate, "run", "-o", "/nonexistent/x"], capture_output=True, text=True)
    if bare.returncode == 2:
        assert "no CUDA device" in bare.stderr and bare.stderr.count("\n") == 1, bare.stderr
    if not shutil.which("mpirun"):
        print("skipped: no mpirun")
        return SKIPPED
    began, others = time.monotonic(), others_seconds()
    time.sleep(2)
    if (busy := share_of_others(others, began)) > QUIET:
        print(f"skipped: others take {busy:.0%} of the cores, and measuring would take minutes and tell nothing")
        return SKIPPED
    # Yielding: two ranks may share a core.
    mpi = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", "2"]
    with tempfile.TemporaryDirectory() as folder:
        profile = pathlib.Path(folder) / "host.textproto"
        measure = [*mpi, calibrate, "run", "--backend", "host", "--quick", "--for", scenario, "-o", profile]
        first = run(*measure)
        assert re.search(r"\d+ measured now, 0 kept", first), first
        # The database holds everything: a second run measures nothing.
        assert " 0 measured now" in run(*measure)
        assert "measured" in run(programs / "herdsim", "profile", "show", profile)
        # Another program's file is left alone.
        foreign = pathlib.Path(folder) / "foreign.db"
        foreign.write_text("not a database, and longer than a header of one hundred bytes " * 3)
        refused = subprocess.run([calibrate, "run", "--backend", "host", "--for", scenario, "-o", profile, "--db", foreign],
                                 capture_output=True, text=True)
        assert refused.returncode == 2 and "no SQLite database" in refused.stderr, refused
        assert foreign.read_text().startswith("not a database")
        differences, shares = [], []
        for turn in range(ROUNDS):
            if turn > 0:  # the first has been measured
                profile = pathlib.Path(folder) / f"host{turn}.textproto"
                run(*measure[:-1], profile)
            began, others = time.monotonic(), others_seconds()
            answer = run(*mpi, calibrate, "replay", scenario, "--backend", "host", "--profile", profile, "--steps", "5")
            predicted, measured = (float(re.search(rf"{word}\s+([0-9.]+) s", answer).group(1))
                                   for word in ("predicted", "measured"))
            shares.append(share_of_others(others, began))
            differences.append(predicted / measured - 1)
            print(f"predicted {predicted:.4f} s, measured {measured:.4f} s, difference {differences[-1]:+.1%}; "
                  f"others took {shares[-1]:.0%} of the cores", flush=True)
        median, busy = statistics.median(differences), statistics.median(shares)
        print(f"median difference {median:+.1%}: {'within' if abs(median) <= GOAL else 'beyond'} {GOAL:.0%}")
        if busy > QUIET:
            print(f"skipped: others took {busy:.0%} of the cores, which says nothing of the prediction")
            return SKIPPED
        assert abs(median) <= GOAL, differences
    return 0


if __name__ == "__main__":
    sys.exit(main())
