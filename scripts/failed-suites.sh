#!/usr/bin/env bash
# Prints the suites with a failed test, one a line, from the xUnit report named as the argument.
set -euo pipefail
awk '/<testcase /{match($0, /classname="[^"]*"/); suite = substr($0, RSTART + 11, RLENGTH - 12)}
    /<failure/{print suite}' "$1" | sort -u
