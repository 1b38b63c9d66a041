#!/usr/bin/env python3
"""The Python module says what the program says, and raises what the program refuses.

    module_test.py HERDSIM
"""
import json
import subprocess
import sys
import threading
import time
import unittest

try:
    import herdsim
except ImportError:
    print("skipped: the Python module was not built (-DHERDSIM_PYTHON=ON, pybind11-dev, python3-dev)")
    sys.exit(77)

PROGRAM = sys.argv.pop(1)
# How long it took is not part of the answer.
VOLATILE = {"wall_s"}


def printed(*words):
    run = subprocess.run([PROGRAM, *words, "--format", "json", "--quiet"], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


def stable(answer):
    return {key: value for key, value in answer.items() if key not in VOLATILE}


class Module(unittest.TestCase):
    def test_a_step_is_what_the_program_prints(self):
        ours = herdsim.step("llama3-8b-1024", set={"training.precision": "FP8"}, seed=3)
        theirs = printed("step", "llama3-8b-1024", "--set", "training.precision=FP8", "--seed", "3")
        self.assertEqual(stable(ours), stable(theirs))
        self.assertGreater(ours["mfu"], 0.1)

    def test_values_of_every_type_reach_the_scenario(self):
        plain = herdsim.step("llama3-8b-1024")
        other = herdsim.step("llama3-8b-1024", set={"software.dp_overlap": False, "parallel.micro_batch": 1})
        self.assertNotEqual(plain["step_time_s"], other["step_time_s"])
        unfolded = herdsim.step("llama3-8b-1024", set={"gpus": 64, "parallel.dp": 64, "training.global_batch": 64,
                                                       "recovery.spares": 0}, fold=False)
        self.assertEqual(unfolded["simulated_ranks"], 64)

    def test_weeks_are_what_the_program_prints(self):
        ours = herdsim.run("llama3-8b-1024", days=2, replicas=2, threads=1)
        theirs = printed("run", "llama3-8b-1024", "--days", "2", "--replicas", "2", "--threads", "1")
        self.assertEqual(stable(ours), stable(theirs))

    def test_a_sweep_has_a_point_for_each_combination(self):
        grid = herdsim.sweep("llama3-8b-1024", {"training.precision": ["BF16", "FP8"],
                                                ("gpus", "parallel.dp"): [(512, 512), (1024, 1024)]},
                             set={"training.global_batch": 1024, "recovery.spares": 0})
        self.assertEqual(len(grid["points"]), 4)
        self.assertEqual([point["values"]["gpus"] for point in grid["points"]], [512, 1024, 512, 1024])

    def test_every_fault_is_in_the_exception(self):
        with self.assertRaises(herdsim.SpecError) as caught:
            herdsim.step("llama3-8b-1024", set={"parallel.tp": 7, "training.global_batch": 0})
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIn("parallel.tp", str(caught.exception))
        for fault in caught.exception.faults:
            self.assertTrue(fault["problem"])
        with self.assertRaises(herdsim.SpecError) as caught:
            herdsim.step("lama3-8b-1024")
        self.assertEqual(caught.exception.faults[0]["nearest"], "llama3-8b-1024")

    def test_any_command_with_json_can_be_called(self):
        self.assertIn("llama3-405b", [row["name"] for row in herdsim.call("catalog", "models")["models"]])

    def test_other_threads_run_meanwhile(self):
        ended = threading.Event()
        worker = threading.Thread(target=lambda: (herdsim.run("llama3-8b-1024", days=20, replicas=20, threads=1),
                                                  ended.set()))
        worker.start()
        turns = 0
        while not ended.is_set():
            turns += 1
            time.sleep(0.001)
        worker.join()
        # With the lock held, one turn before and one after.
        self.assertGreater(turns, 3)


unittest.main()
