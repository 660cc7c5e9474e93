#!/usr/bin/env python3
"""An origin on loopback for what is no film. Prints its port, and serves until it is killed.

    radio.py SOUND        an MP3 file

    /radio.mp3   the sound again and again, without a length, with titles for those that ask for them
    /page.html   a page
    /sound.raw   audio/L16
    /secret.mp4  401
    /late/NAME   the same, half a second later
    /asked       the fields of the last request for something else, a line each, and how many there were
"""
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

with open(sys.argv[1], "rb") as file:
    sound = file.read()
asked = []
PAGE = b"<html><body>Please log in.</body></html>\n" * 50


class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/asked":
            lines = [f"{name}: {value}" for name, value in asked[-1]] if asked else []
            return self.answer(200, "\n".join([*lines, f"{len(asked)} requests"]).encode(), "text/plain")
        asked.append(list(self.headers.items()))
        if path.startswith("/late/"):
            time.sleep(0.5)
            path = path[5:]
        if path == "/radio.mp3":
            self.play()
        elif path == "/page.html":
            self.answer(200, PAGE, "text/html; charset=utf-8")
        elif path == "/sound.raw":
            self.answer(200, bytes(44100), "audio/L16; rate=22050; channels=1")
        elif path == "/secret.mp4":
            self.answer(401, b"", "text/plain")
        else:
            self.answer(404, b"", "text/plain")

    do_HEAD = do_GET

    def answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def play(self):
        has_titles = self.headers.get("Icy-MetaData") == "1"
        self.send_response(200)
        self.send_header("Content-Type", "audio/mpeg")
        self.send_header("Connection", "close")
        if has_titles:
            self.send_header("icy-metaint", "16000")
        self.end_headers()
        self.close_connection = True
        title = bytes([2]) + b"StreamTitle='A song';".ljust(32, b"\0")
        place = 0
        while self.command == "GET":
            self.wfile.write((sound[place:] + sound)[:16000] + (title if has_titles else b""))
            place = (place + 16000) % len(sound)
            time.sleep(0.1)

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # The client has gone.

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
