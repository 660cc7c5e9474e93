#!/usr/bin/env bash
# Finds comment lines beyond 100 columns, which swift-format does not see. Rows of tables may be longer.
# Prints file:line of each, and exits with 1 then.
set -euo pipefail
cd "$(dirname "$0")/.."

export LC_ALL=C.UTF-8 # columns are characters, not bytes
status=0
long=$(grep -rnP --include='*.swift' --exclude-dir=.build '^\s*//(?!/ \|).{100,}$' Package.swift Sources Tests Fuzzing Benchmarks Examples |
    grep -P '^[^:]+:\d+:.{101,}$') || status=$?
[ "$status" -le 1 ] || exit "$status"
if [ -n "$long" ]; then
    echo "check-columns: these comments go beyond column 100:" >&2
    echo "$long" >&2
    exit 1
fi
echo "check-columns: no comment goes beyond column 100"
