#!/usr/bin/env bash
# Prints what each thread of a process is doing: stacks.sh PID
set -euo pipefail
[[ ${1:-} =~ ^[0-9]+$ ]] || { echo "usage: stacks.sh PID" >&2; exit 64; }
if command -v gdb >/dev/null; then
    timeout 300 gdb -p "$1" -batch -nx -ex 'set pagination off' -ex 'thread apply all bt 30' 2>/dev/null && exit 0
fi
# Without a debugger: the thread, and the system call that it waits in.
for task in /proc/"$1"/task/*; do
    echo "$(cat "$task/comm"): $(cat "$task/wchan" 2>/dev/null) $(cat "$task/syscall" 2>/dev/null)"
done
