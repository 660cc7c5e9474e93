#!/usr/bin/env bash
# Builds and runs every test; arguments go to `swift build` (a sanitizer).
#
# The test bundle runs by itself, not below `swift test`, which hands its output on in blocks: the
# last lines of a run that is ended from outside would be missing. One test runs after the other:
# many of them keep both cores of a small machine busy, and tests that all begin at once pass their
# time limits. A test that fails now and then has a defect, in itself or in what it tests: repeat.sh.
# A run that prints nothing for TEST_SILENCE seconds (300) hangs: it ends, and the stacks of its
# threads are printed, and last of all the test that was running.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
silence=${TEST_SILENCE:-300}

"$swift" build --build-tests "$@"
bundle=$("$swift" build --build-tests --show-bin-path "$@")/TieredCachePackageTests.xctest

log=$(mktemp "${TMPDIR:-/tmp}/tieredcache-tests-XXXXXX")
"$bundle" --testing-library swift-testing --no-parallel </dev/null > >(tee "$log") 2>&1 &
tests=$!
trap 'kill $tests 2>/dev/null || true; rm -f "$log"' EXIT
(
    while sleep 5 && kill -0 $tests 2>/dev/null; do
        [ $(($(date +%s) - $(stat -c %Y "$log"))) -ge "$silence" ] || continue
        running=$(tail -n 3 "$log")
        echo "test.sh: the tests hang; these are the stacks of their threads:" >&2
        scripts/stacks.sh $tests >&2
        echo "test.sh: this was printed last, $silence seconds ago:" >&2
        echo "$running" >&2
        kill -KILL $tests
        exit
    done
) &
wait $tests && status=0 || status=$?
trap 'rm -f "$log"' EXIT
[ $status -eq 0 ] || { echo "test.sh: the tests ended with status $status" >&2; exit 1; }
