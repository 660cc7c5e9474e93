#!/usr/bin/env python3
"""An upstream server on loopback for scripts/check-response-cache.sh.

    origin.py     prints its port, and serves until it is killed

    /api/fresh/NAME    fresh for an hour, with a tag
    /api/stale/NAME    the same, but stale at once; 304 where the tag is known
    /api/private/NAME  fresh for an hour, for one client alone, with a cookie
    /api/vary          says what it was asked to `Accept`, by which it varies
    /api/large         LARGE bytes, fresh for an hour
    /api/missing       404
    /api/held          fresh for an hour; answers once /release was asked for
    /api/silent        takes the request, and says nothing
    /asked/PATH        how often /PATH was answered with a body, and how often with 304
    /release           lets /api/held answer
"""
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGE = 20_000_000
answered = {}
lock = threading.Lock()
released = threading.Event()


class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        kind, _, rest = self.path[1:].partition("/")
        if kind == "asked":
            with lock:
                whole, confirmed = answered.get("/" + rest, (0, 0))
            return self.answer(200, f"{whole} {confirmed}".encode(), {})
        if kind == "release":
            released.set()
            return self.answer(200, b"", {})
        return self.call(rest.split("/")[0])

    def call(self, name):
        client = [name for name in ("Cookie", "Authorization") if name in self.headers]
        body = " ".join([self.path, "for", self.headers.get("Accept", "?"), *client]).encode() + b"\n"
        fields = {"Cache-Control": "max-age=3600", "Content-Type": "application/json"}
        if name == "held":
            released.wait()
        elif name == "silent":
            threading.Event().wait()
        elif name == "large":
            body = bytes(range(250)) * (LARGE // 250)
        elif name == "stale":
            fields["Cache-Control"] = "max-age=0"
        elif name == "private":
            fields |= {"Cache-Control": "private, max-age=3600", "Set-Cookie": "a=b"}
        elif name == "vary":
            fields["Vary"] = "Accept"
        status = 404 if name == "missing" else 200
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if status == 200:
            fields["ETag"] = tag
            if self.headers.get("If-None-Match") == tag:
                status, body = 304, b""
        with lock:
            whole, confirmed = answered.get(self.path, (0, 0))
            answered[self.path] = (whole, confirmed + 1) if status == 304 else (whole + 1, confirmed)
        return self.answer(status, body, fields)

    def answer(self, status, body, fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # A client that has left.


server = Server(("127.0.0.1", 0), Origin)
print(server.server_address[1], flush=True)
server.serve_forever()
