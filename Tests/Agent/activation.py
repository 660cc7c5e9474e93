#!/usr/bin/env python3
"""Starts the agent as systemd does: with a socket that listens already, and a socket to report at (sd_listen_fds(3),
sd_notify(3)); by systemd-socket-activate where that is installed, too. It has to answer the connection that has started
it, to say that it is ready, to leave the socket alone, and to leave when nothing is left to do.

usage: activation.py TIEREDCACHE DIRECTORY
"""

import os
import shutil
import socket
import subprocess
import sys
import time

import client

PROGRAM, ROOT = sys.argv[1], os.path.abspath(sys.argv[2])
SOCKET = os.path.join(ROOT, "socket")


def expect(condition, what):
    if not condition:
        print(f"check-agent: activation: FAILED: {what}", file=sys.stderr)
        sys.exit(1)


def ask():
    begin = time.monotonic()
    expect("TieredCache" in client.call(SOCKET, "aria2.getVersion")["enabledFeatures"], "another answer")
    return (time.monotonic() - begin) * 1000


def arguments(name):
    return [PROGRAM, "agent", "--directory", os.path.join(ROOT, name), "--idle", "1s"]


def by_hand():
    """What systemd itself does, twice on one socket."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    listener.listen(16)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(os.path.join(ROOT, "notify"))
    notify.settimeout(30)
    for _ in range(2):
        environment = {**os.environ, "LISTEN_FDS": "1", "NOTIFY_SOCKET": os.path.join(ROOT, "notify")}

        def prepare():
            if listener.fileno() != 3:
                os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)
            os.environ.update(environment, LISTEN_PID=str(os.getpid()))

        # The environment is that of the child, which alone knows its number.
        child = os.fork()
        if child == 0:
            prepare()
            os.execv(PROGRAM, arguments("by-hand"))
        print(f"FIGURE agent: {ask():.0f} ms from the connection to its answer, the start of the process included")
        while b"READY=1" not in notify.recv(4096):
            pass  # The one before says that it ends.
        _, status = os.waitpid(child, 0)
        expect(status == 0, f"it ends with {status}")
        expect(os.path.exists(SOCKET), "it takes systemd's socket away")
    os.unlink(SOCKET)


def by_systemd():
    if not shutil.which("systemd-socket-activate"):
        print("check-agent: activation: there is no systemd-socket-activate here; left out")
        return
    activator = subprocess.Popen(
        ["systemd-socket-activate", "--listen", SOCKET, *arguments("by-systemd")], stderr=subprocess.DEVNULL
    )
    while not os.path.exists(SOCKET):
        expect(activator.poll() is None, "systemd-socket-activate does not listen")
        time.sleep(0.05)
    ask()
    expect(activator.wait(30) == 0, "it does not leave when nothing is left to do")


os.makedirs(ROOT)
by_hand()
by_systemd()
print("check-agent: activation: started by its socket, ready, and gone when idle")
