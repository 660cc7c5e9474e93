#!/usr/bin/env bash
# Builds and runs every test; arguments go to `swift build` (a sanitizer).
#
# The test bundle runs by itself, not below `swift test`, which hands its output on in blocks: the
# last lines of a run that is ended from outside would be missing. One test runs after the other:
# many of them keep both cores of a small machine busy, and tests that all begin at once pass their
# time limits. A test that fails now and then has a defect, in itself or in what it tests: repeat.sh.
# A run that takes longer than TEST_TIMEOUT seconds (2700) hangs; the stacks of its threads are
# printed, and it ends.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
patience=${TEST_TIMEOUT:-2700}

"$swift" build --build-tests "$@"
bundle=$("$swift" build --build-tests --show-bin-path "$@")/TieredCachePackageTests.xctest

"$bundle" --testing-library swift-testing --no-parallel </dev/null &
tests=$!
trap 'kill $tests 2>/dev/null || true' EXIT
(
    for ((second = 0; second < patience; second++)); do
        sleep 1
        kill -0 $tests 2>/dev/null || exit 0
    done
    echo "test.sh: the tests hang; these are the stacks of their threads:" >&2
    scripts/stacks.sh $tests >&2
    kill -KILL $tests
) &
wait $tests && status=0 || status=$?
trap - EXIT
[ $status -eq 0 ] || { echo "test.sh: the tests ended with status $status" >&2; exit 1; }
