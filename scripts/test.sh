#!/usr/bin/env bash
# Builds and runs every test; arguments go to `swift build` (a sanitizer).
#
# The test bundle runs by itself, not below `swift test`, which hands its output on in blocks: the
# last lines of a run that is ended from outside would be missing. One test runs after the other:
# many of them keep both cores of a small machine busy, and tests that all begin at once pass their
# time limits.
#
# What failed is printed last. A suite that fails now and then has a defect, in itself or in what it
# tests: see repeat.sh.
#
# A run that prints nothing for TEST_SILENCE seconds (300) hangs: it ends, and the stacks of its
# threads are printed, and last of all the test that was running.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
silence=${TEST_SILENCE:-300}

"$swift" build --build-tests "$@"
bundle=$("$swift" build --build-tests --show-bin-path "$@")/TieredCachePackageTests.xctest

output=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-tests-XXXXXX")
tests=
trap '[ -z "$tests" ] || kill $tests 2>/dev/null || true; rm -rf "$output"' EXIT

# Ends the process PID when LOG has not grown for as long as a test may be silent.
end_if_silent() { # PID LOG
    while sleep 5 && kill -0 "$1" 2>/dev/null; do
        [ $(($(date +%s) - $(stat -c %Y "$2"))) -ge "$silence" ] || continue
        running=$(tail -n 3 "$2")
        echo "test.sh: the tests hang; these are the stacks of their threads:" >&2
        scripts/stacks.sh "$1" >&2
        echo "test.sh: this was printed last, $silence seconds ago:" >&2
        echo "$running" >&2
        kill -KILL "$1"
        return
    done
}

# Runs the tests, writes LOG, and says whether all passed.
run() { # LOG
    local log=$1 status=0
    : >"$log"
    "$bundle" --testing-library swift-testing --no-parallel \
        </dev/null > >(tee "$log") 2>&1 &
    tests=$!
    end_if_silent $tests "$log" &
    wait $tests || status=$?
    tests=
    [ $status -eq 0 ] || echo "test.sh: the tests ended with status $status" >&2
    return $status
}

if run "$output/all.log"; then exit 0; fi
echo "test.sh: this failed:" >&2
grep -E '✘|Fatal error' "$output/all.log" | head -n 40 >&2 || true
exit 1
