#!/usr/bin/env python3
"""Installs a build, builds a small program against it with find_package, and compares its answer with the installed herdsim's.
Makes the Debian package where dpkg's tools are, and looks into it.

    package_test.py SOURCE_FOLDER BUILD_FOLDER
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(*command):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


# Under the prefix, beside the program.
PROGRAM_FILES = ("share/man/man1/herdsim.1", "share/man/man1/herdsim-step.1", "share/bash-completion/completions/herdsim",
                 "share/zsh/vendor-completions/_herdsim", "share/fish/vendor_completions.d/herdsim.fish",
                 "share/doc/herdsim/README.md", "share/doc/herdsim/docs/tutorial.md")


def missing_from_deb(build, folder):
    if not shutil.which("dpkg-shlibdeps"):
        print("no Debian package was made: dpkg-dev is missing")
        return []
    run("cpack", "--config", build / "CPackConfig.cmake", "-B", folder)
    deb, = folder.glob("*.deb")
    listed = run("dpkg-deb", "-c", deb)
    return [name for name in ("bin/herdsim", *PROGRAM_FILES) if f"./usr/{name}\n" not in listed]


def main():
    source, build = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run("cmake", "--install", build, "--prefix", folder / "installed")
        missing = [name for name in PROGRAM_FILES if not (folder / "installed" / name).exists()]
        missing += missing_from_deb(build, folder / "deb")
        if missing:
            sys.exit(f"not installed: {missing}")
        run("cmake", "-S", source / "tests/package/consumer", "-B", folder / "consumer", "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={folder / 'installed'}")
        run("cmake", "--build", folder / "consumer")
        theirs = float(run(folder / "consumer/consumer"))
        step = run(folder / "installed/bin/herdsim", "step", "llama3-8b-1024", "--format", "json")
        ours = json.loads(step)["step_time_s"]
        print(f"step time {theirs} s by the consumer, {ours} s by herdsim")
        return 0 if abs(theirs - ours) < 1e-9 and ours > 0 else 1


sys.exit(main())
