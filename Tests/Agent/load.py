#!/usr/bin/env python3
"""What an agent bears, and what it costs: a thousand WebSockets of which some read nothing, wrong secrets, another user,
a hundred thousand results, a start. Prints its figures; exits with 1 where anything is wrong.

usage: load.py TIEREDCACHE DIRECTORY [RESULTS]
"""

import http.server
import json
import os
import pwd
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import client

PROGRAM, ROOT = sys.argv[1], os.path.abspath(sys.argv[2])
RESULTS = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
SOCKET = os.path.join(ROOT, "socket")
SECRET = "s3cret"
DRAINED = b"onSessionDrained"


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def figure(text):
    print(f"FIGURE agent: {text}", flush=True)


def call(method, *parameters):
    return client.call(SOCKET, method, *parameters)


def many(calls):
    """The results of calls in one message."""
    members = [{"methodName": method, "params": list(parameters)} for method, *parameters in calls]
    answers = call("system.multicall", members)
    for answer in answers:
        expect(isinstance(answer, list), f"a call of several fails: {answer}")
    return [answer[0] for answer in answers]


def resident():
    """Kilobytes of memory of the agent that are not of its file."""
    with open(f"/proc/{agent.pid}/status") as file:
        rows = dict(line.split(":", 1) for line in file)
    return int(rows["RssAnon"].split()[0])


agent = None
port = None
fresh = 0  # Kilobytes when it has just started.


def start():
    global agent, port
    begin = time.monotonic()
    agent = subprocess.Popen(
        [PROGRAM, "agent", "--directory", os.path.join(ROOT, "cache"), "--socket", SOCKET, "--json", "--rpc-port", "0"],
        stdout=subprocess.PIPE,
        env={**os.environ, "TIEREDCACHE_RPC_SECRET": SECRET},
    )
    port = int(json.loads(agent.stdout.readline())["rpc"].split(":")[2].split("/")[0])
    call("aria2.getVersion")
    return (time.monotonic() - begin) * 1000


def stop():
    agent.terminate()
    begin = time.monotonic()
    expect(agent.wait(10) == 0, "it does not end as it should")
    expect(time.monotonic() - begin < 5, "SIGTERM takes more than five seconds")


def starts():
    global fresh
    figure(f"{start():.0f} ms from its start to its first answer")
    time.sleep(1)
    fresh = resident()
    figure(f"{fresh / 1024:.1f} MiB of its own when idle")
    expect(fresh <= 16 << 10, "an idle agent takes more than 16 MiB")


def first_bytes():
    """From the call to the request at the origin, and from there to an answer's end: what a download costs beyond a
    client that asks itself."""
    came = {}

    class Origin(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            came[self.path] = time.monotonic()
            self.send_response(200)
            self.send_header("ETag", '"one"')
            self.send_header("Content-Length", "1024")
            self.end_headers()
            self.wfile.write(b"x" * 1024)

        def log_message(self, *_):
            pass

    def median(measure):
        times = []
        for number in range(41):
            begin = time.monotonic()
            measure(number)
            while len(came) == 0:
                time.sleep(0.0002)
            times.append((came.popitem()[1] - begin) * 1000)
        return sorted(times)[20]

    def direct(number):
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{url}/direct-{number}").read()

    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{origin.server_port}"
    options = {"dir": os.path.join(ROOT, "first"), "session": "first"}
    alone = median(direct)
    added = median(lambda number: call("aria2.addUri", [f"{url}/added-{number}"], options))
    figure(f"{added:.1f} ms from addUri to its request at the origin; a client itself takes {alone:.1f}")
    while call("tieredcache.acknowledge", "first") or call("aria2.tellActive"):
        time.sleep(0.05)
    origin.shutdown()


def web_sockets():
    before = resident()
    sockets = [client.WebSocket(SOCKET) for _ in range(1000)]
    others = sockets[100:]
    for connection in sockets:
        connection.send("aria2.getVersion")
    for connection in others:
        connection.until(b"TieredCache")
    # Some read nothing of some thousand notifications; the others get each of theirs.
    gids = many([("aria2.addUri", ["http://127.0.0.1:1/x"], {"session": "load", "pause": "true"}) for _ in range(500)])
    many([("aria2.remove", gid) for gid in gids])
    for connection in others[:50]:
        connection.until(gids[-1].encode())
    figure(f"{(resident() - before) / 1000:.1f} KiB for each of 1,000 WebSockets")
    expect(call("aria2.getVersion"), "no answer beside them")
    for connection in sockets:
        connection.close()
    expect(call("tieredcache.acknowledge", "load", gids) == len(gids), "not all are acknowledged")


def wrong_secrets():
    """A hundred in a message are one guess, which waits for a second at least. Ten are answered in a second, and the
    socket answers meanwhile."""
    calls = [{"methodName": "aria2.getVersion", "params": [f"token:{word}"]} for word in ["wrong"] * 99 + [SECRET]]
    message = client.message("system.multicall", [calls])

    def guess():
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        text = json.dumps(client.post(connection, message, f"127.0.0.1:{port}"))
        if "Unauthorized" not in text or "1.36.0" in text:
            failed.append("a wrong secret gets something")

    failed = []
    begin = time.monotonic()
    guesses = [threading.Thread(target=guess) for _ in range(50)]
    for thread in guesses:
        thread.start()
    call("aria2.getVersion")
    for thread in guesses:
        thread.join()
    expect(not failed, failed[:1])
    each = (time.monotonic() - begin) / 50
    expect(each > 0.09, f"a guess takes {each} seconds")
    figure(f"{each * 10_000 / 60:.0f} minutes for ten thousand wrong secrets")


def other_users():
    if os.getuid() != 0:
        print("check-agent: load: only root can be another user here; left out")
        return
    # The user nobody may look there, and is refused by the socket's mode and by its credentials.
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chmod(ROOT, 0o755)
    for mode in (0o600, 0o666):
        os.chmod(SOCKET, mode)
        child = os.fork()
        if child == 0:
            os.setuid(nobody)
            try:
                connection = client.connect(SOCKET)
                connection.sendall(b"GET /jsonrpc?method=aria2.getVersion&id=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                os._exit(1 if connection.recv(4096) else 0)
            except OSError:
                os._exit(0)
        expect(os.waitpid(child, 0)[1] == 0, f"another user gets an answer at mode {mode:o}")
    os.chmod(SOCKET, 0o600)


def results():
    begin = time.monotonic()
    for _ in range(RESULTS // 500):
        gids = many([
            ("aria2.addUri", ["http://127.0.0.1:1/film.mp4"], {"session": "many", "pause": "true"}) for _ in range(500)
        ])
        many([("aria2.remove", gid) for gid in gids])
    figure(f"{RESULTS} downloads added and removed in {time.monotonic() - begin:.0f} s")
    stop()
    figure(f"{start():.0f} ms from its start to its first answer with {RESULTS} results")
    time.sleep(1)
    each = (resident() - fresh) * 1024 / RESULTS
    figure(f"{each:.0f} bytes of memory for each of {RESULTS} results")
    expect(each <= 300, "a result takes more than 300 bytes of memory")
    begin, seen = time.monotonic(), set()
    for offset in range(0, RESULTS, 1000):
        page = call("aria2.tellStopped", offset, 1000, ["gid", "status", "files"])
        expect(len(page) == 1000, f"a page of {len(page)}")
        seen.update(row["gid"] for row in page)
    expect(len(seen) == RESULTS, f"{len(seen)} results in all pages")
    figure(f"{(time.monotonic() - begin) * 1e6 / RESULTS:.0f} µs for each result in pages of 1,000")
    begin, connection = time.monotonic(), client.WebSocket(SOCKET)
    connection.send("tieredcache.attach", "many")
    told = connection.until(DRAINED).count(b"onDownloadStop")
    expect(told == RESULTS, f"told of {told} results")
    figure(f"{time.monotonic() - begin:.1f} s to be told of {RESULTS} results")
    connection.close()
    expect(call("tieredcache.acknowledge", "many") == RESULTS, "not all are acknowledged")


os.makedirs(ROOT)
status = 0
try:
    for step in (starts, first_bytes, web_sockets, wrong_secrets, other_users, results):
        step()
        print(f"check-agent: load: {step.__name__.replace('_', ' ')}", flush=True)
    stop()
except (Failure, OSError, client.Closed, client.Refused) as error:
    print(f"check-agent: load: FAILED: {step.__name__}: {error!r}", file=sys.stderr)
    agent.kill()
    status = 1
sys.exit(status)
