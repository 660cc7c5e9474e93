#!/usr/bin/env bash
# Checks the agent with real processes, in some three minutes. PROGRAM names another program than the debug build's.
#
#   session.py     the same session of real clients (aria2p, aioaria2, and aria2tui in a terminal, from PyPI, which takes the
#                  network once; without them its own calls alone) against aria2c and against the agent, compared call by call
#   kills.py       the agent, and aria2c beside it, are killed KILLS times (20) at random instants
#   sessions.py    downloads end in the five cases of sessions
#   conditions.py  the machine changes under downloads that require something, by mocked services (python3-dbusmock)
#   commands.py    the commands of people, each a process, and get, serve, url beside them
#   activation.py  the agent is started by its socket
#   load.py        a thousand connections, and RESULTS results (10000)
set -euo pipefail
cd "$(dirname "$0")/.."
program=${PROGRAM:-.build/debug/tieredcache}
command -v aria2c >/dev/null || {
    echo "check-agent: there is no aria2c; install the package aria2" >&2
    exit 1
}
clients=.build/agent-clients
if [ ! -e "$clients/complete" ]; then
    python3 -m venv "$clients"
    if "$clients/bin/pip" install --quiet aria2p==0.12.3 aioaria2==1.3.7 aria2tui==0.1.13.4 pyte==0.8.2; then
        touch "$clients/complete"
    else
        echo "check-agent: aria2p, aioaria2 and aria2tui cannot be installed; they are left out"
    fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$(realpath "$program")
"$clients/bin/python" Tests/Agent/session.py "$program" "$work/session"
python3 Tests/Agent/kills.py "$program" "$work/kills" "${KILLS:-20}"
python3 Tests/Agent/kills.py aria2c "$work/kills-of-aria2c" "${KILLS:-20}"
python3 Tests/Agent/sessions.py "$program" "$work/sessions"
python3 Tests/Agent/conditions.py "$program" "$work/conditions"
python3 Tests/Agent/commands.py "$program" "$work/commands"
python3 Tests/Agent/activation.py "$program" "$work/activation"
# A thousand connections, and as many descriptors beside.
ulimit -n 8192 2>/dev/null || true
python3 Tests/Agent/load.py "$program" "$work/load" "${RESULTS:-10000}"
