#!/usr/bin/env python3
"""The same session of real clients against aria2c and against the agent, compared call by call.

usage: session.py TIEREDCACHE DIRECTORY      (needs aria2c; aria2p, aioaria2 and aria2tui where they are installed)

Both servers get the same calls in the same order. What a program sees is compared after what may differ is taken out:
identifiers, paths of the directory, rates, numbers of connections, pieces. Prints each difference; exits with 1 then.
"""

import asyncio
import hashlib
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

PROGRAM, ROOT = sys.argv[1], os.path.abspath(sys.argv[2])
SECRET = "a-secret"
os.makedirs(ROOT, exist_ok=True)


class Origin(http.server.BaseHTTPRequestHandler):
    """/NAME-LENGTH[-RATE]: bytes of NAME, with ranges; anything else is 404."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        found = re.match(r"/(\w+)-(\d+)(?:-(\d+))?$", self.path)
        if not found:
            return self.send_error(404)
        length, rate = int(found[2]), int(found[3] or 0)
        data = body(found[1], length)
        start, end = 0, length
        wanted = re.match(r"bytes=(\d+)-(\d*)$", self.headers.get("Range") or "")
        if wanted:
            start, end = int(wanted[1]), min(length, int(wanted[2] or length) + (1 if wanted[2] else 0))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{length}")
        else:
            self.send_response(200)
        self.send_header("ETag", f'"{found[1]}"')
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        try:
            while start < end:
                piece = min(16384, end - start)
                self.wfile.write(data[start : start + piece])
                start += piece
                if rate:
                    time.sleep(piece / rate)
        except OSError:
            self.close_connection = True


def body(name, length):
    seed = hashlib.sha256(name.encode()).digest()
    return (seed * (length // len(seed) + 1))[:length]


class Server:
    def __init__(self, name, port, command):
        self.name, self.port = name, port
        self.files = os.path.join(ROOT, name)
        os.makedirs(self.files, exist_ok=True)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(1000):
            try:
                if "result" in self.call("aria2.getVersion"):
                    return
            except OSError:
                time.sleep(0.01)
        raise SystemExit(f"{name} does not answer")

    def call(self, method, *parameters, raw=None):
        message = raw or json.dumps(
            {"jsonrpc": "2.0", "id": "x", "method": method, "params": [f"token:{SECRET}", *parameters]}
        )
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/jsonrpc", message.encode())
        try:
            with urllib.request.urlopen(request) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return {"status": error.code, **json.loads(error.read() or b"{}")}

    def until(self, gid, states):
        for _ in range(3000):
            status = self.call("aria2.tellStatus", gid).get("result", {})
            if status.get("status") in states:
                return status
            time.sleep(0.01)
        raise SystemExit(f"{self.name}: {gid} does not become one of {states}: {status}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


# What the two may tell in different ways; docs/agent-protocol.md says why.
VARYING = {
    "downloadSpeed", "connections", "bitfield", "numPieces", "pieceLength", "errorMessage", "sessionId",
    "enabledFeatures", "completedLength", "verifiedLength", "verifyIntegrityPending",
}


def visible(server, value, key=None):
    if isinstance(value, dict):
        return {k: visible(server, v, k) for k, v in sorted(value.items()) if k not in VARYING}
    if key == "uris" and isinstance(value, list):
        # aria2c lists a URI once more for each request that it may still make with it.
        value = list({entry["uri"]: entry for entry in reversed(value)}.values())[::-1]
    if isinstance(value, list):
        return [visible(server, v, key) for v in value]
    return value.replace(server.files, "DIR") if isinstance(value, str) else value


def session(server, origin):
    """Yields a name and what a program sees, for each step."""
    tell = lambda name, value: (name, visible(server, value))
    url = lambda target: f"http://127.0.0.1:{origin}/{target}"
    options = {"dir": server.files}
    a, b, c, d = (f"{n:016x}" for n in (0xA1, 0xB2, 0xC3, 0xD4))
    bad = [
        ("{", None), ("7", None), ('{"id":1}', None), ('{"id":1,"method":"aria2.getVersion","params":{}}', None),
        ('[{"id":1,"method":"system.listNotifications"},3,{"id":2}]', "onBt"),
    ]
    for raw, differs in bad:
        if not differs:
            yield tell(raw, server.call(None, raw=raw))
    for method, parameters in [
        ("aria2.foo", []), ("aria2.addUri", []), ("aria2.addUri", ["x"]), ("aria2.addUri", [[]]),
        ("aria2.addUri", [["foo"]]), ("aria2.addUri", [[url("x-1")], {"split": "abc"}]),
        ("aria2.addUri", [[url("x-1")], {"gid": "12"}]), ("aria2.addUri", [[url("x-1")], {}, -1]),
        ("aria2.addUri", [[url("x-1")], {}, "x"]), ("aria2.tellStatus", ["ab"]), ("aria2.tellStatus", ["zz"]),
        ("aria2.tellStatus", [7]), ("aria2.tellStatus", [""]), ("aria2.remove", ["ab"]),
        ("aria2.tellWaiting", [0]), ("aria2.tellWaiting", [0, "1"]),
        ("aria2.changeGlobalOption", [{"max-concurrent-downloads": "0"}]),
    ]:
        yield tell(f"{method} {parameters}", server.call(method, *parameters))
    # The finished file, and what is told of it.
    yield tell("add", server.call("aria2.addUri", [url("film-300000")], {**options, "gid": a}))
    server.until(a, ["complete"])
    yield tell("complete", server.call("aria2.tellStatus", a))
    yield tell("keys", server.call("aria2.tellStatus", a, ["gid", "status", "totalLength", "errorCode"]))
    yield tell("files", server.call("aria2.getFiles", a))
    with open(os.path.join(server.files, "film-300000"), "rb") as file:
        yield "bytes", file.read() == body("film", 300000)
    # Pause and go on; what may be done in which state.
    slow = url("slow-3000000-1000000")
    yield tell("add slow", server.call("aria2.addUri", [slow], {**options, "gid": b, "out": "s.bin"}))
    server.until(b, ["active"])
    while server.call("aria2.tellStatus", b)["result"]["totalLength"] == "0":
        time.sleep(0.01)
    yield tell("active", server.call("aria2.tellActive", ["gid", "status", "totalLength"]))
    yield tell("servers", server.call("aria2.getServers", b))
    yield tell("unpause one that runs", server.call("aria2.unpause", b))
    yield tell("pause", server.call("aria2.pause", b))
    server.until(b, ["paused"])
    yield tell("pause again", server.call("aria2.pause", b))
    yield tell("servers of a paused one", server.call("aria2.getServers", b))
    yield tell("waiting", server.call("aria2.tellWaiting", 0, 10, ["gid", "status"]))
    # The order.
    for gid in (c, d):
        yield tell("add paused", server.call("aria2.addUri", [url("p-10")], {**options, "gid": gid, "pause": "true"}))
    yield tell("paused, not begun", server.call("aria2.tellStatus", c, ["gid", "status", "totalLength", "errorCode"]))
    yield tell("uris", server.call("aria2.getUris", c))
    for position, how in [(0, "POS_SET"), (1, "POS_CUR"), (-1, "POS_END"), (99, "POS_SET"), (0, "POS_X")]:
        yield tell(f"position {position} {how}", server.call("aria2.changePosition", d, position, how))
        yield tell("order", server.call("aria2.tellWaiting", 0, 10, ["gid"]))
    yield tell("from the end", server.call("aria2.tellWaiting", -1, 2, ["gid"]))
    yield tell("change uri", server.call("aria2.changeUri", c, 1, [url("p-10")], [url("q-10"), url("r-10")]))
    yield tell("uris", server.call("aria2.getUris", c))
    yield tell("change option", server.call("aria2.changeOption", c, {"max-tries": "7"}))
    yield tell("option", server.call("aria2.getOption", c).get("result", {}).get("max-tries"))
    yield tell("remove one that waits", server.call("aria2.remove", c))
    yield tell("it is forgotten", server.call("aria2.tellStatus", c))
    yield tell("stat", server.call("aria2.getGlobalStat"))
    multicall = [
        {"methodName": "aria2.tellStatus", "params": [f"token:{SECRET}", b, ["status"]]},
        {"methodName": "x", "params": [f"token:{SECRET}"]}, 7, {},
        {"methodName": "aria2.tellStatus", "params": ["token:wrong", b]},
        {"methodName": "system.multicall", "params": [[]]},
    ]
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "system.multicall", "params": [multicall]})
    yield tell("multicall", server.call(None, raw=raw))
    yield tell("go on", server.call("aria2.unpause", b))
    server.until(b, ["complete"])
    with open(os.path.join(server.files, "s.bin"), "rb") as file:
        yield "bytes", file.read() == body("slow", 3000000)
    # All at once, and by force.
    e, f = (f"{n:016x}" for n in (0xE5, 0xF6))
    for gid, target in [(e, "e-3000000-1000000"), (f, "f-3000000-1000000")]:
        yield tell("add", server.call("aria2.addUri", [url(target)], {**options, "gid": gid}))
        server.until(gid, ["active"])
    state = lambda gid: server.call("aria2.tellStatus", gid, ["status"])
    for all_of_them, paused in [("aria2.pauseAll", (d, e, f)), ("aria2.forcePauseAll", (e, f))]:
        yield tell(all_of_them, server.call(all_of_them))
        for gid in paused:
            server.until(gid, ["paused"])
        yield tell("go on with all", server.call("aria2.unpauseAll"))
        server.until(d, ["complete"])
        for gid in (e, f):
            server.until(gid, ["active"])
    yield tell("pause by force", server.call("aria2.forcePause", e))
    server.until(e, ["paused"])
    yield tell("pause by force again", server.call("aria2.forcePause", e))
    yield tell("remove by force", server.call("aria2.forceRemove", f))
    server.until(f, ["removed"])
    yield tell("remove by force again", server.call("aria2.forceRemove", f))
    yield tell("remove by force what is paused", server.call("aria2.forceRemove", e))
    yield tell("removed", [state(e), server.call("aria2.tellStatus", f, ["status", "errorCode", "totalLength"])])
    # Failures, removal, results.
    yield tell("add lost", server.call("aria2.addUri", [url("lost")], {**options, "gid": c}))
    yield tell("lost", server.until(c, ["error"]))
    yield tell("pause a result", server.call("aria2.pause", c))
    yield tell("stopped", server.call("aria2.tellStopped", 0, 10, ["gid", "status", "errorCode"]))
    yield tell("stopped from the end", server.call("aria2.tellStopped", -1, 2, ["gid"]))
    yield tell("remove a result", server.call("aria2.removeDownloadResult", c))
    yield tell("once more", server.call("aria2.removeDownloadResult", c))
    yield tell("all", server.call("aria2.purgeDownloadResult"))
    yield tell("none", server.call("aria2.tellStopped", 0, 10))
    yield tell("wrong secret", server.call(None, raw='{"id":1,"method":"aria2.getVersion","params":["token:x"]}'))


def with_aria2p(server, origin):
    """The calls of aria2p's own functions."""
    import aria2p

    api = aria2p.API(aria2p.Client(host="http://127.0.0.1", port=server.port, secret=SECRET))
    download = api.add_uris([f"http://127.0.0.1:{origin}/p2p-200000"], options={"dir": server.files})
    server.until(download.gid, ["complete"])
    download.update()
    yield "aria2p", (download.status, download.total_length, download.progress, download.name, download.is_complete)
    yield "aria2p files", [str(f.path).replace(server.files, "DIR") for f in download.files]
    paused = api.add_uris([f"http://127.0.0.1:{origin}/p3-20"], options={"dir": server.files, "pause": "true"})
    yield "aria2p list", sorted(d.status for d in api.get_downloads())
    yield "aria2p move", api.move_to_top(paused)
    yield "aria2p options", api.get_options([paused])[0].max_tries
    yield "aria2p resume", api.resume([paused])
    server.until(paused.gid, ["complete"])
    yield "aria2p purge", api.purge()
    yield "aria2p none", len(api.get_downloads())


def with_aioaria2(server, origin):
    """Answers and notifications over a WebSocket."""
    import aioaria2

    async def talk():
        told, ended = [], asyncio.Event()
        client = await aioaria2.Aria2WebsocketClient.new(f"http://127.0.0.1:{server.port}/jsonrpc", token=SECRET)

        def note(kind, ends=False):
            async def take(_, message):
                told.append((kind, message["params"][0]["gid"]))
                if ends:
                    ended.set()
            return take

        client.onDownloadStart(note("start"))
        client.onDownloadPause(note("pause"))
        client.onDownloadStop(note("stop"))
        client.onDownloadError(note("error", True))
        client.onDownloadComplete(note("complete", True))
        gids = {}
        for name, target in [("whole", "w-100000"), ("lost", "lost")]:
            ended.clear()
            gid = await client.addUri([f"http://127.0.0.1:{origin}/{target}"], {"dir": server.files})
            gids[gid] = name
            await asyncio.wait_for(ended.wait(), 30)
        status = await client.tellStatus(gid, ["status", "errorCode"])
        await client.close()
        return [(kind, gids[gid]) for kind, gid in told], status

    told, status = asyncio.run(talk())
    yield "aioaria2 notifications", told
    yield "aioaria2 status", status


def with_aria2tui(server, origin):
    """What a person sees and does in a terminal."""
    from terminal import Terminal

    server.call("aria2.purgeDownloadResult")
    for name, target, options, state in [
        ("whole", "t1-300000", {}, "complete"), ("lost", "lost", {}, "error"), ("later", "t2-200000", {"pause": "true"}, "paused"),
        ("slow", "t3-30000000-1000000", {}, "active"),
    ]:
        add = server.call("aria2.addUri", [f"http://127.0.0.1:{origin}/{target}"], {"dir": server.files, "out": name, **options})
        server.until(add["result"], [state])
    with Terminal(server.port, SECRET, os.path.join(server.files, "home")) as terminal:
        seen = {"whole": "complete", "lost": "error", "later": "paused", "slow": "active"}
        yield "aria2tui list", terminal.downloads(seen)
        for operation, name, state in [
            ("Pause Download(s)", "slow", "paused"), ("Resume Download(s)", "later", "complete"),
            ("Resume Download(s)", "slow", "active"), ("Remove Download(s)", "slow", "removed"),
        ]:
            terminal.choose(name, operation)
            seen[name] = state
            yield f"aria2tui {operation} {name}", terminal.downloads(seen)
    yield "aria2tui purge", server.call("aria2.purgeDownloadResult")["result"]


def main():
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    origin = httpd.server_address[1]
    ports = [free_port(), free_port()]
    servers = [
        Server("aria2c", ports[0], [
            "aria2c", "--enable-rpc", f"--rpc-listen-port={ports[0]}", f"--rpc-secret={SECRET}", "--no-conf",
        ]),
        Server("agent", ports[1], [
            PROGRAM, "agent", "--directory", os.path.join(ROOT, "cache"), "--rpc-port", str(ports[1]),
            "--rpc-secret", SECRET,
        ]),
    ]
    wrong = count = 0
    try:
        for steps in [session, with_aria2p, with_aioaria2, with_aria2tui]:
            try:
                pairs = [list(steps(server, origin)) for server in servers]
            except ImportError as error:
                print(f"left out: {error}")
                continue
            for (name, theirs), (_, ours) in zip(*pairs):
                count += 1
                if theirs != ours:
                    wrong += 1
                    print(f"{name}\n  aria2c: {json.dumps(theirs)}\n  agent:  {json.dumps(ours)}")
    finally:
        for server in servers:
            server.stop()
    print(f"{count} results of aria2c and the agent compared, {wrong} differ")
    sys.exit(1 if wrong else 0)


def free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


main()
