#!/usr/bin/env python3
"""An origin on loopback for the checks of the C library and of the plug-ins. It serves the files of DIRECTORY, and of
those below it, with ranges.

    origin.py DIRECTORY [PORT]     prints its port, and serves until it is killed

    /NAME               the file, fresh for an hour
    /stall/COUNT/NAME   the same, but of the bytes from COUNT on none ever comes
    /plain/NAME         the file, by an origin that knows no ranges
    /cut/COUNT/NAME     each answer breaks off after COUNT bytes
    /refuse/COUNT/NAME  the first COUNT requests get 503
    /drop/COUNT/NAME    of the first COUNT requests the connection is closed without an answer
    /change/COUNT/NAME  from the COUNT-th request on NAME.new is there instead
    /slow/RATE/NAME     RATE bytes a second
    /moved/NAME         302 to /NAME
    /token/NAME         403 without a field X-Token or Referer
    /hang               takes the request, and says nothing
    /sent/NAME          how many bytes of the bodies of /NAME were sent
    /waiting            how many requests get nothing any more
    /report             requests, answers and bytes of bodies of each path, as JSON
    /forget             forgets what /report and /sent tell
"""
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TYPES = {".m3u8": "application/vnd.apple.mpegurl", ".mpd": "application/dash+xml", ".mkv": "video/x-matroska",
         ".ts": "video/mp2t", ".key": "application/octet-stream", ".html": "text/html"}
sent = {}
asked_for = {}
waiting = 0
lock = threading.Lock()


class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    rate = None

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        if self.path == "/hang":
            return self.hang()
        if self.path == "/waiting":
            return self.answer(200, str(waiting).encode(), {})
        if self.path.startswith("/sent/"):
            return self.answer(200, str(sent.get(self.path[5:], 0)).encode(), {})
        if self.path == "/report":
            with lock:
                report = {path: {"requests": count, "bytes": sent.get(path, 0)} for path, count in asked_for.items()}
            return self.answer(200, json.dumps(report).encode(), {})
        if self.path == "/forget":
            with lock:
                sent.clear()
                asked_for.clear()
            return self.answer(200, b"", {})
        with lock:
            asked_for[self.path] = number = asked_for.get(self.path, 0) + 1
        limit = self.rate = None
        isPlain = False
        path = self.path.split("?")[0]
        while change := re.fullmatch(r"/(?:(plain|token|moved)|(stall|cut|refuse|drop|change|slow)/(\d+))(/.*)", path):
            how, count, path = change[1] or change[2], int(change[3] or 0), change[4]
            if how == "plain":
                isPlain = True
            elif how == "token":
                if "X-Token" not in self.headers and "Referer" not in self.headers:
                    return self.answer(403, b"no token\n", {})
            elif how == "moved":
                return self.answer(302, b"", {"Location": path})
            elif how == "stall":
                limit = (count, self.hang)
            elif how == "cut":
                limit = (count, self.cut)
            elif how == "slow":
                self.rate = count
            elif how == "change":
                path += ".new" if number >= count else ""
            elif number <= count:
                return self.cut() if how == "drop" else self.answer(503, b"not now\n", {})
        try:
            with open(sys.argv[1] + os.path.normpath(path), "rb") as file:
                body = file.read()
        except OSError:
            return self.answer(404, b"no such file\n", {})
        fields = {"ETag": f'"{len(body)}"', "Accept-Ranges": "bytes", "Cache-Control": "max-age=3600",
                  "Content-Type": TYPES.get(os.path.splitext(path.removesuffix(".new"))[1], "video/mp4")}
        status, total = 200, len(body)
        if isPlain:
            del fields["Accept-Ranges"]
        elif asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(asked[1]), min(int(asked[2] or total), total - 1)
            if first > last:
                return self.answer(416, b"", fields | {"Content-Range": f"bytes */{total}"})
            status, body = 206, body[first:last + 1]
            # A place in the file for one that stalls, a count of each answer for one that cuts.
            if limit and limit[1] == self.hang:
                limit = (max(limit[0] - first, 0), self.hang)
            fields["Content-Range"] = f"bytes {first}-{last}/{total}"
        self.answer(status, body, fields, limit)

    def answer(self, status, body, fields, limit=None):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        for start in range(0, len(body), 65536):
            piece = body[start:start + 65536]
            if limit:
                piece = piece[:max(limit[0] - start, 0)]
            self.wfile.write(piece)
            with lock:
                sent[self.path] = sent.get(self.path, 0) + len(piece)
            if limit and start + len(piece) >= limit[0]:
                return limit[1]()
            if self.rate:
                time.sleep(len(piece) / self.rate)

    def cut(self):
        self.close_connection = True

    def hang(self):
        global waiting
        self.close_connection = True
        with lock:
            waiting += 1
        try:
            self.connection.recv(1)  # Until the client has gone.
        finally:
            with lock:
                waiting -= 1

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # The client has gone.

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Origin)
print(server.server_address[1], flush=True)
server.serve_forever()
