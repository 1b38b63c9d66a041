#!/usr/bin/env python3
"""Measures this machine, predicts a small data-parallel training loop on two ranks from what it measured, runs that very
loop with MPI and BLAS, and prints both. What it asserts is loose: machines that run tests are shared and noisy.
usage: host_loop_test.py SOURCE_DIR PROGRAMS"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=200)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


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
        answer = run(*mpi, calibrate, "replay", scenario, "--backend", "host", "--profile", profile, "--steps", "5")
        print(answer)
        predicted, measured = (float(re.search(rf"{word}\s+([0-9.]+) s", answer).group(1)) for word in ("predicted", "measured"))
        assert 0.2 < predicted / measured < 5, answer
    return 0


if __name__ == "__main__":
    sys.exit(main())
