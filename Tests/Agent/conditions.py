#!/usr/bin/env python3
"""Downloads that require something of the machine, with a real agent and mocked services (bus.py): one that requires an
unmetered network and no battery waits, runs, stops when a condition fails, and goes on with what has come.

usage: conditions.py TIEREDCACHE DIRECTORY
"""

import http.server
import os
import subprocess
import sys
import threading
import time

import client

PROGRAM, ROOT = sys.argv[1], os.path.abspath(sys.argv[2])
SOCKET = os.path.join(ROOT, "socket")
BODY = os.urandom(4 << 20)
sent = 0


class Origin(http.server.BaseHTTPRequestHandler):
    """A body that comes slowly, in ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global sent
        first = int(self.headers.get("Range", "bytes=0-").split("=")[1].split("-")[0])
        self.send_response(206 if first else 200)
        self.send_header("ETag", '"one"')
        self.send_header("Accept-Ranges", "bytes")
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(BODY) - 1}/{len(BODY)}")
        self.send_header("Content-Length", str(len(BODY) - first))
        self.end_headers()
        for start in range(first, len(BODY), 65536):
            try:
                self.wfile.write(BODY[start : start + 65536])
            except OSError:
                return
            sent += len(BODY[start : start + 65536])
            time.sleep(0.05)

    def log_message(self, *_):
        pass


def expect(condition, what):
    if not condition:
        print(f"check-agent: conditions: FAILED: {what}", file=sys.stderr)
        agent.terminate()
        sys.exit(1)


def until(gid, check, what):
    for _ in range(600):
        status = client.call(SOCKET, "aria2.tellStatus", gid)
        if check(status):
            return status
        time.sleep(0.05)
    expect(False, f"{what}: {status}")


def say(line):
    services.stdin.write(line + "\n")
    services.stdin.flush()
    expect(services.stdout.readline().strip() == "ok", line)


os.makedirs(ROOT)
origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
threading.Thread(target=origin.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{origin.server_port}/film"
services = subprocess.Popen(
    ["/usr/bin/python3", os.path.join(os.path.dirname(os.path.abspath(__file__)), "bus.py")],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)
bus = services.stdout.readline().strip()
agent = subprocess.Popen(
    [PROGRAM, "agent", "--directory", os.path.join(ROOT, "cache"), "--socket", SOCKET],
    env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": bus, "DBUS_SESSION_BUS_ADDRESS": bus}, stdout=subprocess.PIPE,
)
agent.stdout.readline()
say("network-manager 1")
say("power yes")

gid = client.call(
    SOCKET, "aria2.addUri", [url], {"dir": os.path.join(ROOT, "out"), "out": "film", "require": "charging,unmetered"}
)
until(gid, lambda status: status.get("waitsFor") == ["unmetered", "charging"], "it waits for both")
# Sessions and the agent's tests on other machines: what nothing says holds.
expect(client.call(SOCKET, "tieredcache.show", gid)["unknown"] == [], "both are known")
say("network-manager 2")
until(gid, lambda status: status.get("waitsFor") == ["charging"], "it waits for the other one")
expect(sent == 0, "nothing is asked before")
say("power no")
until(gid, lambda status: status["status"] == "active" and int(status["completedLength"]) > 1 << 20, "it runs")
say("network-manager 3")
stopped = until(gid, lambda status: status["status"] == "waiting", "it stops on a metered network")
expect(stopped["waitsFor"] == ["unmetered"], "it says what it waits for")
client.call(SOCKET, "tieredcache.require", gid, ["charging"])
until(gid, lambda status: status["status"] == "complete", "it ends")
with open(os.path.join(ROOT, "out", "film"), "rb") as file:
    expect(file.read() == BODY, "the file is the body")
expect(sent <= len(BODY) + (256 << 10), f"{sent} bytes came for {len(BODY)}")
try:
    client.call(SOCKET, "tieredcache.require", gid, ["wifi"])
    expect(False, "a condition that is none is taken")
except client.Refused:
    pass
shown = subprocess.run(
    [PROGRAM, "add", "--socket", SOCKET, "--directory", os.path.join(ROOT, "cache"), "--dir", ROOT, "--require",
     "storage,idle", url + "2"], capture_output=True, text=True, check=True,
).stdout.split()[0]
expect(client.call(SOCKET, "tieredcache.show", shown)["unknown"] == ["idle"], "what nothing says is told")

agent.terminate()
expect(agent.wait(20) == 0, "it ends with 0")
services.stdin.close()
services.wait(20)
print("check-agent: conditions: it waits, runs, stops and goes on as the machine is")
