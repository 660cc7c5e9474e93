#!/usr/bin/env python3
"""Runs parts of the checks, several at once, and tells of each its time and verdict.

    scripts/check.py [--without=PART...] [PART...]

`check` stands for all whose names begin with it; without a PART those run, after `build`. Each is a target of the
Makefile and can be run alone: `make PART`. Here it begins when those that it needs, and that are to run too, have
passed. As many run at once as there are cores (CHECK_JOBS). Parts that compile have a low priority, so that players
keep their time beside them.

The output of a part is in .build/check/PART.log, and of one that fails its end is printed. The last lines are a table
of all parts, and how many tests passed in them. Exits with 1 if a part failed.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / ".build/check"

Part = collections.namedtuple("Part", "needs compiles", defaults=(False,))

# In the order in which they begin where they may. What reads .build needs `build`, or `test`, which builds, and comes
# after check-docs, which writes there. check-deb makes library and plug-ins anew.
PARTS = {
    "test": Part([]),
    "build": Part([], compiles=True),
    "check-docs": Part(["test", "build"], compiles=True),
    "check-library": Part(["test", "build"], compiles=True),
    "check-players": Part(["test", "build", "check-docs"]),
    "check-hosts": Part(["check-library"]),
    "check-plugins": Part(["check-library"]),
    "check-deb": Part(["check-library", "check-hosts", "check-plugins"], compiles=True),
    "check-servers": Part(["test", "build", "check-docs"]),
    "check-long": Part(["test", "build", "check-docs"]),
    "check-agent": Part(["test", "build", "check-docs"]),
    # One behind the other: they build in one place, most of it once.
    "check-response-cache": Part(["test", "build"], compiles=True),
    "check-gallery": Part(["test", "build", "check-response-cache"], compiles=True),
    "check-without-traits": Part(["test", "build"], compiles=True),
    "check-api": Part(["test", "build"], compiles=True),
}


class Checks:
    def __init__(self, names):
        self.waiting = list(names)
        self.running = set()
        self.verdicts = {}  # part: verdict, seconds
        self.condition = threading.Condition()

    def next(self):
        """The part to run next; waits for it. None when nothing is left."""
        with self.condition:
            while True:
                for name in list(self.waiting):
                    needs = [need for need in PARTS[name].needs if need in self.waiting + list(self.running)]
                    broken = [need for need in PARTS[name].needs if self.verdicts.get(need, ("passed",))[0] != "passed"]
                    if broken:
                        self.waiting.remove(name)
                        self.verdicts[name] = (f"not run: {broken[0]} failed", 0)
                    elif not needs:
                        self.waiting.remove(name)
                        self.running.add(name)
                        return name
                if not self.waiting:
                    return None
                self.condition.wait()

    def work(self):
        while name := self.next():
            began = time.monotonic()
            # In one piece: others write at the same time.
            print(f"check: {name} begins\n", end="", flush=True)
            status = self.run(name)
            seconds = round(time.monotonic() - began)
            verdict = "passed" if status == 0 else f"failed with status {status}"
            with self.condition:
                self.running.remove(name)
                self.verdicts[name] = (verdict, seconds)
                print(f"check: {name} {verdict} after {seconds} s", flush=True)
                if status != 0:
                    lines = log_of(name).splitlines()
                    print("\n".join(f"{name}: {line}" for line in lines[-80:]), flush=True)
                self.condition.notify_all()

    @staticmethod
    def run(name):
        environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS")}
        if name not in ("test", "build"):
            environment["TEST_BUILD"] = "no"
        command = ["make", "--no-print-directory", name]
        if PARTS[name].compiles:
            command = ["nice", "-n", "10", *command]
        with open(LOGS / f"{name}.log", "w", encoding="utf-8") as log:
            return subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT, check=False).returncode


def log_of(name):
    path = LOGS / f"{name}.log"
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def main():
    without = {word.removeprefix("--without=") for word in sys.argv[1:] if word.startswith("--without=")}
    names = [word for word in sys.argv[1:] if not word.startswith("--without=")] or ["build", "check"]
    if "check" in names:
        names += [name for name in PARTS if name.startswith("check-")]
    unknown = [name for name in [*names, *without] if name not in PARTS and name != "check"]
    if unknown:
        sys.exit(f"check: there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    names = [name for name in PARTS if name in names and name not in without]
    LOGS.mkdir(parents=True, exist_ok=True)
    checks = Checks(names)
    began = time.monotonic()
    jobs = int(os.environ.get("CHECK_JOBS", os.cpu_count() or 1))
    workers = [threading.Thread(target=checks.work) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for name in names:
        for line in re.findall(r"^(?:unsteady|skipped): .*", log_of(name), re.MULTILINE):
            print(f"check: {name}: {line}")
    print(f"\n{'part':24}{'seconds':>8}  verdict")
    for name in names:
        verdict, seconds = checks.verdicts[name]
        print(f"{name:24}{seconds:8}  {verdict}")
    print(f"{'all':24}{round(time.monotonic() - began):8}")
    counts = [0, 0, 0]
    for name in names:
        for line in re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", log_of(name), re.MULTILINE):
            counts = [sum(pair) for pair in zip(counts, map(int, line))]
    print("\n{} passed, {} failed, {} skipped".format(*counts), flush=True)
    sys.exit(any(verdict != "passed" for verdict, _ in checks.verdicts.values()))


main()
