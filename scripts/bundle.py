#!/usr/bin/env python3
"""A test bundle that is none, for scripts/test-scripts.sh: writes the event stream that scripts/tests.py reads.

TESTS are the tests that it has, by what becomes of them:

    passes, fails, skips
    unsteady   fails the first time; has the tag .realTime
    late       fails each time; has the tag .realTime
    crashes    ends the process; has the tag .realTime
    hangs      prints nothing any more
    long       passes; has the tag .long
"""
import json
import os
import pathlib
import re
import signal
import sys
import time

TAGS = {"unsteady": [".realTime"], "late": [".realTime"], "crashes": [".realTime"], "long": [".long"]}
arguments = sys.argv[1:]
stream = open(arguments[arguments.index("--event-stream-output-path") + 1], "w", encoding="utf-8")
filters = [after for word, after in zip(arguments, arguments[1:]) if word == "--filter"]


def write(record, **payload):
    stream.write(json.dumps({"kind": record, "payload": payload}, ensure_ascii=False) + "\n")
    stream.flush()


def event(kind, test, **more):
    write("event", kind=kind, testID=test, instant={"absolute": time.monotonic()}, **more)


failed = False
for what in dict.fromkeys(os.environ["TESTS"].split()):
    suite, name = f"M.{what.capitalize()}", f"M.{what.capitalize()}/{what}()"
    test = f"{name}/file.swift:1:2"
    if "--list-tests" in arguments:
        write("test", kind="suite", id=suite, name=suite, _tags=TAGS.get(what, []))
        write("test", kind="function", id=test, name=f"{what}()")
        continue
    if not any(re.search(pattern, name) for pattern in filters):
        continue
    print(what, flush=True)
    event("testSkipped" if what == "skips" else "testStarted", test)
    seen = pathlib.Path(os.environ["SEEN"])
    if what in ("fails", "late") or what == "unsteady" and not seen.exists():
        seen.touch()
        failed = True
        # A line that is one in JSON, and two for Python's splitlines.
        event("issueRecorded", test, issue={"isKnown": False}, messages=[{"text": f"{what}\u2028 was wrong"}])
    if what == "crashes":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hangs":
        time.sleep(60)
    if what != "skips":
        event("testEnded", test)
sys.exit(failed)
