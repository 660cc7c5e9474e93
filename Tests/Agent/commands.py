#!/usr/bin/env python3
"""The commands of people beside an agent, each a real process: they start it, give it downloads, pause, resume, cancel,
list and watch them, also after it was killed; `get` and `serve` share its directory, and a film is read while it comes.

usage: commands.py TIEREDCACHE DIRECTORY
"""

import http.server
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import client

PROGRAM, ROOT = sys.argv[1], os.path.abspath(sys.argv[2])
CACHE, FILES = os.path.join(ROOT, "cache"), os.path.join(ROOT, "files")
SOCKET = os.path.join(CACHE, "AGENT")
LENGTH = 24_000_000  # A seek within 8 MiB waits for what comes
os.makedirs(FILES)
body = random.Random(1).randbytes(LENGTH)
gate = threading.Event()
sent = {}
lock = threading.Lock()


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


class Origin(http.server.BaseHTTPRequestHandler):
    """/NAME: the body, with ranges; slowly behind two megabytes until the gate is open, but for the second half."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        wanted = re.match(r"bytes=(\d+)-(\d*)$", self.headers.get("Range") or "")
        start, end = (int(wanted[1]), int(wanted[2] or LENGTH - 1) + 1) if wanted else (0, LENGTH)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{LENGTH}")
        self.send_header("ETag", f'"{self.path}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        place = start
        try:
            while place < end:
                piece = body[place : min(end, place + 65536)]
                self.wfile.write(piece)
                place += len(piece)
                with lock:
                    sent[self.path] = sent.get(self.path, 0) + len(piece)
                if start < LENGTH // 2 and place >= 2_000_000:
                    gate.wait(0.3)
        except OSError:
            self.close_connection = True


def run(*words, status=0):
    done = subprocess.run(
        [PROGRAM, words[0], "--directory", CACHE, *words[1:]], capture_output=True, text=True, timeout=120
    )
    expect(done.returncode == status, f"{words} ends with {done.returncode}: {done.stderr}")
    return done.stdout


def downloads():
    return {os.path.basename(one["url"]): one for one in map(json.loads, run("downloads", "--json").splitlines())}


def until(what, condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"in vain: {what}: {downloads()}")
        time.sleep(0.02)


def agent():
    """The number of its process."""
    with open(os.path.join(CACHE, "LOCK")) as file:
        return int(re.search(r"\d+", file.read())[0])


def url(name):
    return f"http://127.0.0.1:{port}/{name}"


def is_whole(name):
    with open(os.path.join(FILES, name), "rb") as file:
        return file.read() == body


def begin():
    """`add` starts the agent, and the others find it."""
    gid = run("add", "--dir", FILES, url("a")).split()[0]
    run("add", "--dir", FILES, "--out", "second", url("b"))
    until("both run", lambda: all(one["state"] == "active" and one["bytes"] for one in downloads().values()))
    expect(downloads()["a"]["gid"] == gid, "another identifier")
    expect(not os.listdir(FILES), "a file before its end")


def pause():
    run("pause", url("a"))
    run("pause", url("a"), url("b"))
    expect({one["state"] for one in downloads().values()} == {"paused"}, "not paused")
    run("resume", url("b"))
    until("it goes on", lambda: downloads()["b"]["state"] == "active")
    expect(downloads()["a"]["state"] == "paused", "more than one goes on")
    run("pause", url("unknown"), status=66)
    run("cancel", url("b"))
    expect(downloads()["b"]["state"] == "removed", "not cancelled")


def after_kill():
    before = downloads()["a"]["bytes"]
    expect(before >= 1_000_000, f"only {before} bytes have come")
    os.kill(agent(), signal.SIGKILL)
    until("it is gone", lambda: not connects())
    one = downloads()["a"]
    expect(one["state"] == "paused" and one["bytes"] == before, f"after a kill: {one}")


def connects():
    try:
        client.connect(SOCKET).close()
        return True
    except OSError:
        return False


def beside():
    """While it comes, it is played: to its end, by another way than the download's."""
    run("resume", url("a"))
    until("it runs", lambda: downloads()["a"]["state"] == "active")
    local = run("url", url("a")).split()[0]
    request = urllib.request.Request(local, headers={"Range": f"bytes={LENGTH - 1000}-"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        expect(answer.status == 206 and answer.read() == body[-1000:], "other bytes")
    expect(not os.path.exists(os.path.join(FILES, "a")), "a file before its end")
    gate.set()
    until("the file is there", lambda: os.path.exists(os.path.join(FILES, "a")))
    expect(is_whole("a"), "another file")
    expect(run("get", "--output", os.path.join(ROOT, "got"), url("a")) == "", "get says something")
    with open(os.path.join(ROOT, "got"), "rb") as file:
        expect(file.read() == body, "get gives other bytes")
    expect(sent["/a"] <= LENGTH + 4_000_000, f"{sent['/a']} bytes of {LENGTH}")


def watch():
    watcher = subprocess.Popen(
        [PROGRAM, "watch", "--directory", CACHE, "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        names = set()
        told = {json.loads(watcher.stdout.readline())["state"] for _ in range(2)}
        expect(told == {"complete", "removed"}, f"other states: {told}")
        run("add", "--dir", FILES, url("c"))
        while "complete" not in names:
            one = json.loads(watcher.stdout.readline())
            if one["url"].endswith("/c"):
                names.add(one["state"])
        watcher.send_signal(signal.SIGINT)
        expect(watcher.wait(20) == 0, f"Ctrl-C ends it with {watcher.returncode}")
    finally:
        watcher.kill()
    expect(is_whole("c"), "another file")


def under_serve():
    """`serve` has the directory: what the agent has rests, and the list says so."""
    os.kill(agent(), signal.SIGTERM)
    until("it is gone", lambda: not connects())
    server = subprocess.Popen([PROGRAM, "serve", "--directory", CACHE, "--port", "0"], stdout=subprocess.PIPE)
    try:
        server.stdout.readline()
        done = subprocess.run([PROGRAM, "downloads", "--directory", CACHE], capture_output=True, text=True)
        expect(done.returncode == 0 and "agent" in done.stderr, f"downloads beside serve: {done}")
        run("add", "--dir", FILES, url("d"), status=75)
    finally:
        server.terminate()
        server.wait(20)


httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
threading.Thread(target=httpd.serve_forever, daemon=True).start()
port = httpd.server_address[1]
status = 0
try:
    for step in (begin, pause, after_kill, beside, watch, under_serve):
        step()
        print(f"check-agent: commands: {step.__name__.replace('_', ' ')}", flush=True)
except (Failure, OSError, subprocess.TimeoutExpired, client.Closed, client.Refused) as error:
    print(f"check-agent: commands: FAILED: {step.__name__}: {error!r}", file=sys.stderr)
    status = 1
finally:
    if connects():
        client.call(SOCKET, "aria2.shutdown")
sys.exit(status)
