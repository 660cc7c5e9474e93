#!/usr/bin/env python3
"""The five cases in which the downloads of an application end, with real processes: an agent, an application that is a
connection of this script, and its command. Takes two minutes, since an application has one to attach.

usage: sessions.py TIEREDCACHE DIRECTORY

Exits with 1 where anything is wrong.
"""

import http.server
import os
import signal
import subprocess
import sys
import threading
import time

import client

PROGRAM, ROOT = sys.argv[1], os.path.abspath(sys.argv[2])
SOCKET = os.path.join(ROOT, "socket")
RAN = os.path.join(ROOT, "ran")
go = threading.Event()  # What the bodies wait for.


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = self.path.encode() * 1000
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body[:10])
            go.wait()
            self.wfile.write(body[10:])
        except OSError:
            pass


class Application(client.WebSocket):
    """A connection that is attached to a session."""

    def __init__(self, session):
        super().__init__(SOCKET)
        self.told = []  # What came beside answers.
        self.results = self.call("tieredcache.attach", session)["results"]
        self.before = self.until_drained()

    def call(self, method, *parameters):
        self.send(method, *parameters)
        while "id" not in (answer := self.receive()):
            self.told.append(answer)
        if "error" in answer:
            raise client.Refused(answer["error"]["message"])
        return answer["result"]

    def until_drained(self):
        while not any("Drained" in message["method"] for message in self.told):
            self.told.append(self.receive())
        told, self.told = self.told, []
        return [message["params"][0]["gid"] for message in told if "onDownload" in message["method"]]

    def until_complete(self, gids):
        missing = set(gids)
        while missing:
            message = self.told.pop(0) if self.told else self.receive()
            if message["method"] == "aria2.onDownloadComplete":
                missing.discard(message["params"][0]["gid"])


def call(method, *parameters):
    """One call of a program that is not attached."""
    return client.call(SOCKET, method, *parameters)


agent = None


def start_agent():
    global agent
    agent = subprocess.Popen(
        [PROGRAM, "agent", "--directory", os.path.join(ROOT, "cache"), "--socket", SOCKET, "--json"],
        stdout=subprocess.PIPE,
    )
    if not agent.stdout.readline():
        raise RuntimeError("the agent does not start")


def kill_agent():
    """All that a reboot does, too."""
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    os.unlink(SOCKET)


def runs(session):
    if not os.path.exists(RAN):
        return 0
    with open(RAN) as file:
        return file.read().split().count(session)


def add(session, path):
    options = {"session": session, "dir": os.path.join(ROOT, "out")}
    return call("aria2.addUri", [f"http://127.0.0.1:{origin.server_port}/{session}/{path}"], options)


def until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(what)
        time.sleep(0.1)


def make(session, count):
    """Downloads that wait for their bodies, in a session with a command."""
    go.clear()
    words = ["/bin/sh", "-c", f'echo "$TIEREDCACHE_SESSION" >> {RAN}']
    call("tieredcache.attach", session, {"on-complete": words})
    return [add(session, str(number)) for number in range(count)]


def expect(condition, what):
    if not condition:
        raise RuntimeError(what)


def in_front():
    gids = make("front", 3)
    application = Application("front")
    go.set()
    application.until_complete(gids)
    expect(application.call("tieredcache.acknowledge", "front", gids) == 3, "not all can be acknowledged")
    application.close()
    expect(call("tieredcache.attach", "front")["results"] == [], "acknowledged results are there")
    return "front", 0


def attached_and_silent():
    gids = make("silent", 3)
    application = Application("silent")
    go.set()
    time.sleep(2)  # It reads nothing.
    application.until_complete(gids)
    expect(runs("silent") == 0, "the command runs though an application is attached")
    application.call("tieredcache.acknowledge", "silent")
    application.close()
    return "silent", 0


def silent_under_pressure():
    """More notifications than any buffer has; for each download the last one is its newest state."""
    call("aria2.changeGlobalOption", {"max-concurrent-downloads": "64"})
    gids = make("pressure", 64)
    application = Application("pressure")
    for _ in range(40):  # It reads nothing.
        call("aria2.pauseAll")
        call("aria2.unpauseAll")
    go.set()
    until(lambda: len(call("aria2.tellStopped", 0, 1000, ["gid"])) >= 64, 30, "pressure: not all end")
    told = []
    while sum(message["method"] == "aria2.onDownloadComplete" for message in told) < len(gids):
        told.append(application.receive())
    newest = {message["params"][0]["gid"]: message["method"] for message in told}
    expect(sorted(newest) == sorted(gids), "pressure: told of others")
    expect(set(newest.values()) == {"aria2.onDownloadComplete"}, "pressure: an older state comes behind the newest")
    print(f"check-agent: sessions: {len(told)} of some {64 * 81} notifications came to who did not read")
    expect(len(told) < 64 * 80, "pressure: all were kept")
    application.call("tieredcache.acknowledge", "pressure")
    application.close()
    call("aria2.changeGlobalOption", {"max-concurrent-downloads": "5"})
    return "pressure", 0


def dead():
    gids = make("dead", 3)
    go.set()
    until(lambda: runs("dead") == 1, 20, "dead: the command does not run")
    # What is left waits for the application, after a reboot, too.
    kill_agent()
    start_agent()
    application = Application("dead")
    expect(sorted(application.before) == sorted(gids), f"dead: told of {application.before}")
    expect(sorted(application.results) == sorted(gids), "dead: other results")
    application.call("tieredcache.acknowledge", "dead", gids)
    application.close()
    return "dead", 1


def started_again():
    gids = make("again", 3)
    application = Application("again")
    go.set()
    application.until_complete(gids)
    application.close()
    for _ in range(2):
        application = Application("again")
        expect(sorted(application.before) == sorted(gids), f"again: told of {application.before}")
    go.clear()
    new = application.call(
        "aria2.addUri", [f"http://127.0.0.1:{origin.server_port}/again/new"], {"dir": os.path.join(ROOT, "out")}
    )
    go.set()
    application.until_complete([new])
    application.call("tieredcache.acknowledge", "again")
    application.close()
    return "again", 0


def started_without_attaching():
    gids = make("without", 2)
    application = Application("without")
    go.set()
    application.until_complete(gids)
    application.close()
    begin = time.monotonic()
    # It is there, and asks other things.
    call("aria2.tellActive")
    until(lambda: runs("without") == 1, 80, "without: the command does not run")
    expect(time.monotonic() - begin > 55, "without: the command runs too early")
    kill_agent()
    start_agent()
    expect(sorted(call("tieredcache.attach", "without")["results"]) == sorted(gids), "without: results are lost")
    return "without", 1


def outsiders():
    """Two sessions, and a person's front end."""
    make("one", 1)
    make("two", 1)
    application = Application("one")
    expect(len(application.call("aria2.tellActive")) == 1, "a session sees another one")
    expect(len(call("aria2.tellActive")) >= 2, "a front end does not see all")
    application.close()
    go.set()
    return "outsiders", 0


os.makedirs(ROOT)
origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
origin.daemon_threads = True
threading.Thread(target=origin.serve_forever, daemon=True).start()
status = 0
start_agent()
try:
    for case in (
        in_front, attached_and_silent, silent_under_pressure, dead, started_again, started_without_attaching, outsiders,
    ):
        session, expected = case()
        expect(runs(session) == expected, f"{case.__name__}: the command ran {runs(session)} times")
        print(f"check-agent: sessions: {case.__name__.replace('_', ' ')}")
except (RuntimeError, OSError, client.Closed, client.Refused) as error:
    print(f"check-agent: sessions: FAILED: {error!r}", file=sys.stderr)
    status = 1
finally:
    agent.send_signal(signal.SIGTERM)
    if agent.wait(10) != 0:
        print("check-agent: sessions: the agent does not end as it should", file=sys.stderr)
        status = 1
sys.exit(status)
