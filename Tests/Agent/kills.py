#!/usr/bin/env python3
"""Kills the agent at random instants with twenty downloads: none is lost, none is made twice, every byte is right.

usage: kills.py TIEREDCACHE|aria2c DIRECTORY KILLS [SEED]

After each SIGKILL the agent is started again, and has to know each download that it has answered for; what it has told
to be there, whole blocks of it, is not asked for again. Prints how many bytes the origin has written beyond those of the
files, what was in sockets at a kill included; exits with 1 where anything is wrong.

The same with aria2c, which saves its session and what it has each second: what it loses is added again, and counted.
"""

import functools
import http.server
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time

PROGRAM, ROOT, KILLS = sys.argv[1], os.path.abspath(sys.argv[2]), int(sys.argv[3])
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
COUNT, LENGTH, RATE = 20, 2_000_000 + 50_000 * KILLS, 2_000_000
BLOCK = 65536
IS_ARIA2 = os.path.basename(PROGRAM) == "aria2c"
FILES, SOCKET, SESSION = (os.path.join(ROOT, name) for name in ("files", "socket", "session"))
port = 0  # Of aria2c.
sent = 0
stored = {}  # What the agent has told last, by the path.
asked_again = []
lock = threading.Lock()


@functools.cache
def body(name):
    return random.Random(name).randbytes(LENGTH)


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        global sent
        if self.headers.get("If-None-Match") == '"one"':
            # All of it has come before a kill, and is confirmed before the file is made.
            self.send_response(304)
            self.send_header("ETag", '"one"')
            self.end_headers()
            return
        data, start = body(self.path), 0
        wanted = re.match(r"bytes=(\d+)-(\d*)$", self.headers.get("Range") or "")
        end = LENGTH
        if wanted:
            start, end = int(wanted[1]), min(LENGTH, int(wanted[2]) + 1 if wanted[2] else LENGTH)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{LENGTH}")
        else:
            self.send_response(200)
        if start < stored.get(self.path, 0) // BLOCK * BLOCK:
            asked_again.append(f"{self.path} from {start}, though {stored[self.path]} were there")
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        try:
            while start < end:
                piece = data[start : min(end, start + 32768)]
                self.wfile.write(piece)
                start += len(piece)
                with lock:
                    sent += len(piece)
                time.sleep(len(piece) / RATE)
        except OSError:
            self.close_connection = True


def connect():
    if IS_ARIA2:
        return socket.create_connection(("127.0.0.1", port), 30)
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(30)
    one.connect(SOCKET)
    return one


def ask(method, *parameters):
    message = json.dumps({"id": 1, "method": method, "params": parameters}).encode()
    with connect() as one:
        one.sendall(
            b"POST /jsonrpc HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(message) + message
        )
        answer = b""
        while part := one.recv(65536):
            answer += part
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])["result"]


def start():
    global port
    if not IS_ARIA2:
        agent = subprocess.Popen(
            [PROGRAM, "agent", "--json", "--directory", os.path.join(ROOT, "cache"), "--socket", SOCKET],
            stdout=subprocess.PIPE,
        )
        if not agent.stdout.readline():
            raise SystemExit("the agent does not start")
        return agent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    saved = [f"--input-file={SESSION}"] if os.path.exists(SESSION) else []
    agent = subprocess.Popen(
        ["aria2c", "--no-conf", "--quiet", "--enable-rpc", f"--rpc-listen-port={port}", f"--save-session={SESSION}",
         "--save-session-interval=1", "--auto-save-interval=1", *saved]
    )
    while agent.poll() is None:
        try:
            connect().close()
            return agent
        except OSError:
            time.sleep(0.01)
    raise SystemExit("aria2c does not start")


def is_complete(gid):
    """Whether aria2c, which forgets its results, has made the file."""
    path = os.path.join(FILES, f"{int(gid, 16) - 1}.bin")
    return os.path.exists(path) and not os.path.exists(path + ".aria2") and os.path.getsize(path) == LENGTH


def states():
    keys = ["gid", "status", "completedLength"]
    found = ask("aria2.tellActive", keys) + ask("aria2.tellWaiting", 0, 100, keys) + ask("aria2.tellStopped", 0, 100, keys)
    for one in found:
        path = f"/{int(one['gid'], 16) - 1}.bin"
        stored[path] = max(stored.get(path, 0), int(one["completedLength"]))
    return {one["gid"]: one["status"] for one in found}


def main():
    os.makedirs(ROOT, exist_ok=True)
    http.server.ThreadingHTTPServer.handle_error = lambda *_: None  # A client that was killed.
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    chance = random.Random(SEED)
    agent, gids, wrong, kills, lost = start(), [], [], 0, 0
    while True:
        try:
            for number in range(COUNT):
                url = f"http://127.0.0.1:{httpd.server_address[1]}/{number}.bin"
                gid = f"{number + 1:016x}"
                if gid in gids:
                    continue
                if gid not in states():
                    ask("aria2.addUri", [url], {"dir": FILES, "gid": gid})
                gids.append(gid)
            now = states()
            for gid in set(gids) - set(now) if IS_ARIA2 else []:
                if not is_complete(gid):
                    lost += 1
                    gids.remove(gid)
                else:
                    now[gid] = "complete"
            for gid in set(gids) - set(now):
                # It has passed from one list to the next between two calls; one that is lost fails here.
                now[gid] = ask("aria2.tellStatus", gid, ["status"])["status"]
        except KeyError:
            wrong.append(f"after {kills} kills one of {sorted(set(gids) - set(now))} is lost")
            break
        except (OSError, IndexError, ValueError):
            now = None  # It was killed meanwhile.
        if now is not None:
            if set(now) - set(gids):
                wrong.append(f"after {kills} kills: {sorted(set(now) - set(gids))} were never added")
            if all(status == "complete" for status in now.values()) and len(now) == COUNT:
                break
            if any(status in ("error", "removed") for status in now.values()):
                wrong.append(f"{now}")
                break
        if kills < KILLS:
            time.sleep(chance.random() * 0.25)
            agent.kill()
            agent.wait()
            agent, kills = start(), kills + 1
        else:
            time.sleep(0.05)
    agent.terminate()
    agent.wait()
    if sorted(os.listdir(FILES)) != sorted(f"{number}.bin" for number in range(COUNT)):
        wrong.append(f"files: {sorted(os.listdir(FILES))}")
    for number in range(COUNT):
        with open(os.path.join(FILES, f"{number}.bin"), "rb") as file:
            if file.read() != body(f"/{number}.bin"):
                wrong.append(f"{number}.bin has wrong bytes")
    wrong += [] if IS_ARIA2 else asked_again
    more = sent - COUNT * LENGTH
    name = "aria2c" if IS_ARIA2 else "agent"
    print(
        f"FIGURE {name}: {kills} kills, {COUNT} downloads: {lost} lost, {len(wrong)} wrong; {more} bytes sent again, "
        f"{more // max(1, kills)} a kill (seed {SEED})"
    )
    for line in wrong:
        print(line)
    sys.exit(1 if wrong and not IS_ARIA2 else 0)


main()
