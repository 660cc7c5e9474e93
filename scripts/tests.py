#!/usr/bin/env python3
"""Builds and runs the tests of one part, in several processes at once.

    scripts/tests.py [PART] [--suites REGEX] [--repeat N] [--processes N] [--slowest N] [-- ARGUMENT...]

PART is one of these, by the tags of the tests (Tests/TestParts/Tags.swift):

    quick    what has none of the tags below, and a few cases of what is `.seeded`: what `make test` runs, the default
    player   what starts a real player
    server   what starts another server
    long     what takes long, and what is `.seeded` with all of its cases
    all      everything, with all cases

ARGUMENTs go to `swift build` (a sanitizer); TEST_BUILD=no takes .build/debug as it is. REGEX picks suites by module
and name. --repeat runs the part up to N times, and stops at the first failure.

Suites run in several processes of the test bundle (TEST_PROCESSES; one more than there are cores, since tests wait),
in each of them one test after the other. Tests with the tag `.alone` come after the others, in one process. The
bundle runs by itself, not below `swift test`, which hands its output on in blocks: the last lines of a run that is
ended from outside would be missing.

A suite in which only tests with the tag `.realTime` failed runs once more, by itself, after all others. If it passes
then, the run passes, and says so: `unsteady: ...`. docs/testing.md tells what to do then. A process that prints
nothing for TEST_SILENCE seconds (300) hangs: the stacks of its threads are printed, and it ends. A test that hung or
ended its process has failed and does not run again; what the process did not come to runs in another one.

Logs are in .build/tests/PART. Rows of tables in them, `| ...`, are printed at the end. The last line is "N passed,
N failed, N skipped"; exits with 1 if a test failed.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("quick", "player", "server", "long", "all")
# Most of what takes long is in these, and begins first.
FIRST = ("IntegrationTests", "SimulationTests", "TieredCacheProxyTests")
SUITES_OF_A_PROCESS = 12

Test = collections.namedtuple("Test", "name suite title tags")


def say(text):
    print(text, flush=True)


def name_of(identifier):
    """What --filter compares: the identifier of a test without its place in the sources."""
    return re.sub(r"/[^/]*\.swift:\d+:\d+$", "", identifier)


def events(path):
    """The records of an event stream. The last line may be cut, where the process was killed."""
    if path.exists():
        # Not splitlines(): what tests are called with has other ends of lines in it.
        for line in filter(None, path.read_text(encoding="utf-8", errors="replace").split("\n")):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                return


class Bundle:
    """The tests as they were built."""

    def __init__(self, arguments):
        place = ".build/debug"
        if os.environ.get("TEST_BUILD") != "no":
            build = [os.environ.get("SWIFT", "swift"), "build", "--build-tests", *arguments]
            subprocess.run(build, check=True, cwd=ROOT)
            build.append("--show-bin-path")
            place = subprocess.run(build, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip()
        self.path = ROOT / place / "TieredCachePackageTests.xctest"

    def command(self, stream, *arguments):
        # Version 0 of the stream has the tags.
        return [str(self.path), "--testing-library", "swift-testing", *arguments, "--event-stream-output-path",
                str(stream), "--experimental-event-stream-version", "0"]

    def tests(self, stream):
        subprocess.run(self.command(stream, "--list-tests"), check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        records = [record["payload"] for record in events(stream) if record["kind"] == "test"]
        # The list tells of each suite and test its own tags alone.
        tags = {name_of(record["id"]): record.get("_tags", []) for record in records}
        found = []
        for record in records:
            if record["kind"] == "function":
                name = name_of(record["id"])
                ways = name.split("/")
                inherited = [tag for length in range(1, len(ways) + 1) for tag in tags.get("/".join(ways[:length]), [])]
                found.append(Test(name, ways[0], record.get("displayName") or record["name"],
                                  frozenset(tag.rpartition(".")[2] for tag in inherited)))
        return found


class Run:
    """What has become of the tests so far."""

    def __init__(self, bundle, tests, logs):
        self.bundle = bundle
        self.all = {test.name: test for test in tests}
        self.logs = logs
        self.silence = int(os.environ.get("TEST_SILENCE", "300"))
        self.lock = threading.Lock()
        self.processes = 0
        self.passed = set()
        self.skipped = set()
        self.failures = {}  # test: what it said
        self.broken = set()  # tests that hung or ended their process
        self.seconds = {}

    def perform(self, tests, workers):
        """Runs tests, those of a suite in one process, and returns when they have ended."""
        suites = collections.defaultdict(list)
        for test in tests:
            suites[test.suite].append(test)
        order = sorted(suites, key=lambda suite: suite.split(".")[0] not in FIRST)
        batches = collections.deque(order[i:i + SUITES_OF_A_PROCESS] for i in range(0, len(order), SUITES_OF_A_PROCESS))

        def work():
            while True:
                try:
                    batch = batches.popleft()
                except IndexError:
                    return
                remaining = [test for suite in batch for test in suites[suite]]
                while remaining:
                    remaining = self.run_process(remaining)

        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run_process(self, tests):
        """Runs tests in one process; returns those that it did not come to."""
        with self.lock:
            self.processes += 1
            place = self.logs / f"{self.processes:03}"
        stream, log = place.with_suffix(".jsonl"), place.with_suffix(".log")
        filters = [word for test in tests for word in ("--filter", f"^{re.escape(test.name)}(/|$)")]
        with open(log, "w", encoding="utf-8") as output:
            process = subprocess.Popen(self.bundle.command(stream, "--no-parallel", *filters), cwd=ROOT,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            hangs = self.wait(process, log)
        began, said, ended = {}, collections.defaultdict(list), []
        for record in events(stream):
            payload = record["payload"]
            test = self.all.get(name_of(payload.get("testID", "")))
            if record["kind"] != "event" or test is None:
                continue
            now = payload["instant"]["absolute"]
            if payload["kind"] == "testStarted":
                began[test] = now
            elif payload["kind"] == "issueRecorded" and not payload["issue"]["isKnown"]:
                said[test].append(" ".join(message["text"] for message in payload["messages"]))
            elif payload["kind"] in ("testEnded", "testSkipped"):
                ended.append(test)
                self.end(test, said[test], now - began.get(test, now), payload["kind"] == "testSkipped")
        missing = [test for test in tests if test not in ended]
        cut = [test for test in missing if test in began] or missing[:1]
        if not missing and process.returncode != 0 and not any(said.values()):
            # After its tests, or outside of all.
            cut = ended[-1:]
        for test in cut:
            how = "hung" if hangs else f"ended its process with status {process.returncode}"
            with self.lock:
                self.broken.add(test)
            self.end(test, [*said[test], f"it {how}; see {log.relative_to(ROOT)}"])
        return [test for test in missing if test not in cut]

    def wait(self, process, log):
        """Waits for the end of a process. Returns whether it hung and was killed."""
        while True:
            try:
                process.wait(timeout=1)
                return False
            except subprocess.TimeoutExpired:
                if time.time() - log.stat().st_mtime < self.silence:
                    continue
            stacks = subprocess.run([ROOT / "scripts/stacks.sh", str(process.pid)], capture_output=True, text=True)
            say(f"tests: a process has printed nothing for {self.silence} s; its threads:\n{stacks.stdout}")
            process.kill()
            process.wait()
            return True

    def end(self, test, said, seconds=0, is_skipped=False):
        with self.lock:
            self.seconds[test] = seconds
            self.passed.discard(test)
            if said:
                self.failures[test] = said
                for line in said:
                    say(f"✘ {test.name}: {line}")
            elif is_skipped:
                self.skipped.add(test)
            else:
                self.passed.add(test)

    def repeat_unsteady(self):
        """Runs suites once more where only tests failed that depend on the machine's time; returns what passed."""
        unsteady = []
        for suite in {test.suite for test in self.failures}:
            failed = [test for test in self.failures if test.suite == suite]
            if not all("realTime" in test.tags and test not in self.broken for test in failed):
                continue
            first = {test: self.failures.pop(test) for test in failed}
            say(f"tests: {suite} runs once more, by itself")
            self.perform([test for test in self.all.values() if test.suite == suite], 1)
            unsteady += [(test, said[0]) for test, said in first.items() if test not in self.failures]
        return unsteady


def belongs(test, part):
    """Whether a test is one of a part's."""
    own = test.tags & {"player", "server", "long"}
    if part == "quick":
        return not own
    return part == "all" or part in own or part == "long" and "seeded" in test.tags


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="quick", choices=PARTS)
    parser.add_argument("--suites", default="")
    parser.add_argument("--repeat", type=int, default=1)
    processes = int(os.environ.get("TEST_PROCESSES", (os.cpu_count() or 1) + 1))
    parser.add_argument("--processes", type=int, default=processes)
    parser.add_argument("--slowest", type=int, default=5)
    here = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:here])
    if options.part in ("long", "all"):
        os.environ.setdefault("TIEREDCACHE_TEST_CASES", "all")
    logs = ROOT / ".build/tests" / options.part
    logs.mkdir(parents=True, exist_ok=True)
    for old in logs.iterdir():
        old.unlink()
    bundle = Bundle(sys.argv[here + 1:])
    tests = bundle.tests(logs / "list.jsonl")
    chosen = [test for test in tests if belongs(test, options.part) and re.search(options.suites, test.suite)]
    if not chosen:
        sys.exit("tests: no test fits")
    began = time.monotonic()
    for _ in range(options.repeat):
        run = Run(bundle, chosen, logs)
        run.perform([test for test in chosen if "alone" not in test.tags], options.processes)
        run.perform([test for test in chosen if "alone" in test.tags], 1)
        unsteady = run.repeat_unsteady()
        if run.failures:
            break
    seconds = round(time.monotonic() - began)
    slow = sorted(run.seconds, key=run.seconds.get, reverse=True)[:options.slowest]
    for test in slow:
        say(f"tests: {run.seconds[test]:6.1f} s  {test.name}")
    for log in sorted(logs.glob("*.log")):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("| "):
                say(line)
    for test, said in run.failures.items():
        say(f"✘ {test.name}: {said[0]}")
    for test in run.skipped:
        say(f"skipped: {test.name}")
    for test, said in unsteady:
        say(f"unsteady: {test.name}: {said}")
    say(f"tests: {options.part}: {len(chosen)} tests in {len({test.suite for test in chosen})} suites,"
        f" {seconds} s in {options.processes} processes")
    say(f"{len(run.passed)} passed, {len(run.failures)} failed, {len(run.skipped)} skipped")
    sys.exit(1 if run.failures else 0)


main()
