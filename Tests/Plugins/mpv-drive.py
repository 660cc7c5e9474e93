#!/usr/bin/env python3
"""Drives mpv over its socket, and tells what happens and how long it took.

    mpv-drive.py DIRECTORY [ACTION...] -- MPV-ARGUMENT...

mpv is started with the arguments, the URL among them, paused. Actions, in order:

    start          waits for the first picture              start MS
    seek=SECONDS   to exactly there                         seek SECONDS MS, picture SECONDS DIGEST
    get=PROPERTY   its value as JSON                        PROPERTY VALUE
    await=PROPERTY=TEXT   until its value has TEXT in it; 20 s at most
    waiting        until the origin lets a request wait; 20 s at most
    asked=PATH     until the origin was asked for it; 20 s at most
    play           on to the end, eight times as fast       end REASON
    send=WORD,...  a command of mpv
Then it is told to quit: quit MS STATUS. A wait that takes too long is an error.
"""
import atexit
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

directory, *rest = sys.argv[1:]
cut = rest.index("--")
actions, arguments = rest[:cut], rest[cut + 1:]
# A socket's name is short.
path = os.path.join(directory, f"mpv{os.getpid()}")
origin = next((m[0] for word in arguments if (m := re.match(r"http://127.0.0.1:\d+", word))), None)


class Player:
    def __init__(self):
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            ["mpv", "--vo=null", "--ao=null", "--ao-null-untimed=yes", "--no-terminal", "--pause",
             "--screenshot-png-compression=1", f"--input-ipc-server={path}", *arguments], stdin=subprocess.DEVNULL)
        # It does not outlive its driver.
        atexit.register(self.process.kill)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        while True:
            try:
                self.socket.connect(path)
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() - self.begin > 20:
                    sys.exit("mpv does not listen")
                time.sleep(0.005)
        self.lines = self.socket.makefile("r")
        self.number = 0

    def send(self, *command):
        self.number += 1
        message = {"command": list(command), "request_id": self.number}
        self.socket.sendall(json.dumps(message).encode() + b"\n")
        return self.number

    def until(self, holds):
        for line in self.lines:
            message = json.loads(line)
            if holds(message):
                return message
            if message.get("event") == "end-file" and message.get("reason") == "error":
                sys.exit(f"mpv: {message}")
        sys.exit("mpv has gone")

    def ask(self, *command):
        number = self.send(*command)
        return self.until(lambda message: message.get("request_id") == number and "error" in message)

    def event(self, name):
        return self.until(lambda message: message.get("event") == name)


def patiently(what, holds):
    end = time.monotonic() + 20
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what} did not happen")
        time.sleep(0.05)


def fetched(name):
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{origin}/{name}", timeout=10) as answer:
        return json.load(answer)


def since(moment):
    return round((time.monotonic() - moment) * 1000)


signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
player = Player()
for action in actions:
    name, _, value = action.partition("=")
    begin = time.monotonic()
    if name == "start":
        player.event("playback-restart")
        print("start", since(player.begin))
    elif name == "seek":
        player.send("seek", float(value), "absolute+exact")
        player.event("seek")
        player.event("playback-restart")
        print("seek", value, since(begin))
        picture = os.path.join(directory, "picture.png")
        player.ask("screenshot-to-file", picture, "video")
        with open(picture, "rb") as file:
            print("picture", value, hashlib.md5(file.read()).hexdigest())
    elif name == "get":
        print(value, json.dumps(player.ask("get_property", value).get("data")))
    elif name == "await":
        value, _, text = value.partition("=")
        patiently(action, lambda: text in json.dumps(player.ask("get_property", value).get("data")))
    elif name == "waiting":
        patiently(action, lambda: fetched("waiting") > 0)
    elif name == "asked":
        patiently(action, lambda: fetched("report").get(value, {}).get("bytes", 0) > 0)
    elif name == "play":
        player.send("set_property", "speed", 8)
        player.send("set_property", "pause", False)
        print("end", player.event("end-file")["reason"])
    elif name == "send":
        player.ask(*value.split(","))
    sys.stdout.flush()
begin = time.monotonic()
try:
    player.send("quit")
except OSError:
    pass  # It has ended with its film.
player.process.wait(60)
print("quit", since(begin), player.process.returncode)
