#!/usr/bin/env python3
"""An origin on loopback for scripts/check-library.sh; prints its port.

/film is a megabyte of which byte N is N % 251, with ranges; /silent takes a request and says nothing.
"""
import http.server
import re
import threading

FILM = bytes(number % 251 for number in range(1 << 20))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/silent":
            threading.Event().wait()
        if self.path != "/film":
            self.send_error(404)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first = int(wanted[1]) if wanted else 0
        last = min(int(wanted[2] or len(FILM)), len(FILM) - 1) if wanted else len(FILM) - 1
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(FILM)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Content-Type", "video/mp4")
        self.send_header("ETag", '"film"')
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(FILM[first:last + 1])

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
