#!/usr/bin/env python3
"""An origin on loopback for the checks of the C library. It serves the files of DIRECTORY, with ranges.

    origin.py DIRECTORY      prints its port, and serves until it is killed

    /NAME              the file, fresh for an hour
    /stall/COUNT/NAME  the same, but of the bytes from COUNT on none ever comes
    /plain/NAME        the file, by an origin that knows no ranges
    /hang              takes the request, and says nothing
    /sent/NAME         how many bytes of the bodies of /NAME were sent
    /waiting           how many requests get nothing any more
"""
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sent = {}
waiting = 0
lock = threading.Lock()


class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        if self.path == "/hang":
            return self.hang()
        if self.path == "/waiting":
            return self.answer(200, str(waiting).encode(), {})
        if self.path.startswith("/sent/"):
            return self.answer(200, str(sent.get(self.path[5:], 0)).encode(), {})
        limit = None
        path = self.path
        if stall := re.fullmatch(r"/stall/(\d+)(/.*)", path):
            limit, path = int(stall[1]), stall[2]
        try:
            with open(os.path.join(sys.argv[1], os.path.basename(path)), "rb") as file:
                body = file.read()
        except OSError:
            return self.answer(404, b"no such file\n", {})
        fields = {"ETag": f'"{len(body)}"', "Accept-Ranges": "bytes", "Cache-Control": "max-age=3600",
                  "Content-Type": "video/mp4"}
        status, total = 200, len(body)
        if path.startswith("/plain/"):
            del fields["Accept-Ranges"]
        elif asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(asked[1]), min(int(asked[2] or total), total - 1)
            if first > last:
                return self.answer(416, b"", fields | {"Content-Range": f"bytes */{total}"})
            status, body = 206, body[first:last + 1]
            limit = None if limit is None else max(limit - first, 0)
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
            if limit is not None:
                piece = piece[:max(limit - start, 0)]
            self.wfile.write(piece)
            with lock:
                sent[self.path] = sent.get(self.path, 0) + len(piece)
            if limit is not None and start + len(piece) >= limit:
                return self.hang()

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


server = Server(("127.0.0.1", 0), Origin)
print(server.server_address[1], flush=True)
server.serve_forever()
