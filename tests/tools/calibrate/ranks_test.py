#!/usr/bin/env python3
"""Several processes of herdsim-calibrate: what all meet is said once, and one that dies ends all of them.

    ranks_test.py PROGRAM

Exit status 77 where there is no mpirun or the program was built without MPI.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77


def ranks(count):
    command = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(count)]
    return command + (["--allow-run-as-root"] if os.geteuid() == 0 else [])


def check_fault_once(program, folder):
    run = subprocess.run([*ranks(2), program, "run", "--backend", "host", "--for", "no-such-scenario", "-o", folder / "x"],
                         text=True, capture_output=True, timeout=100)
    if "without MPI" in run.stderr:
        return False
    assert run.returncode == 2 and run.stderr.count("no-such-scenario") == 1, run.stderr
    return True


def check_death(program, folder):
    database = folder / "dies.db"
    process = subprocess.Popen([*ranks(2), program, "run", "--backend", "host", "-o", folder / "dies", "--db", database],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    started = time.monotonic()
    while not database.exists() and time.monotonic() - started < 60:
        time.sleep(0.1)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 2, children
    os.kill(int(children[1]), signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0 and "rank 1" in said, said
    assert not (folder / "dies").exists()


def main():
    program = pathlib.Path(sys.argv[1])
    if not shutil.which("mpirun"):
        print("skipped: no mpirun")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        if not check_fault_once(program, pathlib.Path(folder)):
            print("skipped: built without MPI")
            return SKIPPED
        check_death(program, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
