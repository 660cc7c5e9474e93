"""A terminal front end that people have, aria2tui, driven by its keys and read from its screen."""

import fcntl
import importlib.util
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pyte

# Not imported here: it takes standard error away.
if importlib.util.find_spec("aria2tui") is None:
    raise ImportError("aria2tui")

ROWS, COLUMNS, PATIENCE = 40, 200, 30
CONFIGURATION = """[general]
url = "http://127.0.0.1"
port = "{port}"
token = "{secret}"
startup_commands = []
restart_commands = []
refresh_timer = 1
global_stats_timer = 1
[appearance]
theme = 3
show_right_pane_default = false
right_pane_default_index = 0
"""
DOWNLOAD = re.compile(r"\b(active|waiting|paused|complete|error|removed)\s+(\S+)\s+([\d.]+[KMG]?B)\s")
# It asks for the name at the terminal, where a process without one has none.
START = "import os, aria2tui.aria2tui_app as app; os.getlogin = lambda: 'nobody'; app.aria2tui()"


class Terminal:
    """The front end before a server; a context."""

    def __init__(self, port, secret, directory):
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, "config.toml")
        with open(path, "w") as file:
            file.write(CONFIGURATION.format(port=port, secret=secret))
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.environ.update(HOME=directory, ARIA2TUI_CONFIG_PATH=path, TERM="xterm-256color", LC_ALL="C.UTF-8")
            os.execv(sys.executable, [sys.executable, "-c", START])
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.descriptor)

    def press(self, keys):
        os.write(self.descriptor, keys.encode())

    def until(self, what, is_there):
        """Reads what is drawn until it is so; the lines of the screen, blanks taken together."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if select.select([self.descriptor], [], [], 0.2)[0]:
                self.stream.feed(os.read(self.descriptor, 1 << 16))
                continue
            # Nothing was drawn for a moment.
            lines = [re.sub(r"\s+", " ", line).strip() for line in self.screen.display]
            if is_there(lines):
                return lines
        raise SystemExit("aria2tui never shows " + what + ":\n" + "\n".join(filter(None, self.screen.display)))

    def downloads(self, wanted):
        """The list, once it has these states by name: state, name and size of each."""

        is_there = lambda lines: {name: state for state, name, _ in rows(lines)} == wanted
        return rows(self.until(f"the downloads {wanted}", is_there))

    def choose(self, name, operation):
        """Chooses an operation for a download of the list."""
        names = [row[1] for row in rows(self.screen.display)]
        self.press("g" + "j" * names.index(name) + "\n")
        menu = self.until(f"the operation {operation}", lambda lines: operation in lines)
        choices = [line for line in menu[menu.index("Select operation") + 1 :] if line]
        self.press("j" * choices.index(operation) + "\n")


def rows(lines):
    """State, name and size of each download of the list."""
    return [match.groups() for match in map(DOWNLOAD.search, lines) if match]
