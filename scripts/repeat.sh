#!/usr/bin/env bash
# Runs the most concurrent tests again and again, and stops at the first run that fails.
#
#   scripts/repeat.sh [RUNS [SUITE...]]
#
# RUNS is how often each test runs, by default 1000; SUITE are regular expressions for names of
# suites or tests, by default those in concurrent-tests.txt. Nothing is built: run
# `swift build --build-tests` before. A run that takes longer than REPEAT_TIMEOUT seconds (600) has
# failed as well. The output of the run that failed is kept, and the path of it printed.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-1000}
[[ $runs =~ ^[1-9][0-9]*$ ]] || { echo "repeat.sh: '$runs' is no number of runs" >&2; exit 64; }
shift || true
if [ $# -gt 0 ]; then suites=("$@"); else mapfile -t suites < <(grep -v '^#' scripts/concurrent-tests.txt); fi
filter=$(IFS='|'; echo "${suites[*]}")

bundle=.build/debug/TieredCachePackageTests.xctest
[ -x "$bundle" ] || { echo "repeat.sh: there is no $bundle; build the tests first" >&2; exit 66; }
output=$(mktemp "${TMPDIR:-/tmp}/tieredcache-repeat-XXXXXX")

for ((run = 1; run <= runs; run++)); do
    status=0
    timeout --kill-after=10 "${REPEAT_TIMEOUT:-600}" \
        "$bundle" --testing-library swift-testing --no-parallel --filter "$filter" \
        >"$output" 2>&1 </dev/null || status=$?
    last=$(tail -n 1 "$output")
    if [ $status -ne 0 ]; then
        grep -E '✘|recorded an issue|Fatal error' "$output" | head -n 40 || true
        echo "run $run of $runs failed with status $status: $last"
        echo "its output: $output"
        exit 1
    fi
    # A filter that no test fits would pass for ever.
    grep -qE 'with [1-9][0-9]* tests?' <<<"$last" || { echo "no test ran: $last" >&2; exit 65; }
    echo "run $run of $runs: $last"
done
rm -f "$output"
