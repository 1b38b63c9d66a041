#!/usr/bin/env python3
"""A sweep under mpirun: the same rows as without, and one that a killed rank ended goes on.

    ranks_test.py PROGRAM

Exit status 77 where there is no mpirun or the program was built without MPI.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SWEEP = ["sweep", "llama3-8b-1024", "--set", "gpus=8", "--set", "parallel.dp=", "--set", "model.layers=4",
         "--set", "training.sequence_length=1024", "--set", "training.global_batch=16", "--set", "recovery.spares=0",
         "--axis", "parallel.tp=1,2,3,4", "--axis", "parallel.micro_batch=1,2", "--format", "json", "--quiet"]


def ranks(count):
    command = ["mpirun", "--oversubscribe", "-n", str(count)]
    return command + (["--allow-run-as-root"] if os.geteuid() == 0 else [])


def sweep(program, launcher, database, more=()):
    run = subprocess.run([*launcher, program, *SWEEP, "--db", str(database), *more], text=True, timeout=120,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return run


def rows(run):
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["points"]


def check_rows(program, folder):
    alone = rows(sweep(program, [], folder / "alone.db"))
    for count in (2, 4):
        run = sweep(program, ranks(count), folder / f"ranks{count}.db")
        assert rows(run) == alone, f"{count} ranks give other rows"
        again = json.loads(sweep(program, ranks(count), folder / f"ranks{count}.db").stdout)
        assert again["computed"] == 0 and again["found"] == len(alone), again
    return alone


def children_of(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in tasks]


def check_death(program, folder, alone):
    """Kills a rank as soon as there is one; whatever was written stays, and the rest is computed."""
    database = folder / "death.db"
    long = ["--axis", "seed=1:40:1"]
    process = subprocess.Popen([*ranks(4), program, *SWEEP, "--db", str(database), *long],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    victims = []
    while len(victims) < 4 and process.poll() is None:
        victims = children_of(process.pid)
        time.sleep(0.01)
    time.sleep(0.3)
    if process.poll() is None:
        os.kill(victims[-1], signal.SIGKILL)
    error = process.communicate(timeout=120)[1]
    if process.returncode != 0:
        assert "signal 9" in error or "Killed" in error, error
    whole = json.loads(sweep(program, ranks(4), database, long).stdout)
    assert whole["computed"] + whole["found"] == 40 * len(alone), whole["computed"]
    assert all("fingerprint" in point for point in whole["points"])


def check_bad_input(program, folder):
    run = sweep(program, ranks(2), folder / "no" / "such.db")
    assert run.returncode == 2, run.returncode
    assert run.stderr.count("such.db") == 1, run.stderr


def check_library(program, folder):
    """One of several processes, without the library of messages and with one that does not load."""
    shutil.copy2(program, folder / "herdsim")
    several = dict(os.environ, OMPI_COMM_WORLD_SIZE="2")

    def said():
        run = subprocess.run([folder / "herdsim", *SWEEP, "--db", str(folder / "never.db")], env=several, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert run.returncode == 2, run
        return run.stderr

    assert "built without Open MPI" in said(), said()
    (folder / "libherdsim_mpi.so").write_text("not a library\n" * 1000)
    error = said()
    assert "does not load: " in error and "invalid ELF header" in error and "built without" not in error, error


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        check_library(program, pathlib.Path(name))
    if shutil.which("mpirun") is None or not (program.parent / "libherdsim_mpi.so").exists():
        print("no mpirun here, or no library of messages")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        alone = check_rows(str(program), folder)
        check_death(str(program), folder, alone)
        check_bad_input(str(program), folder)
    return 0


sys.exit(main())
