#!/usr/bin/env bash
# Builds and runs every test; arguments go to `swift test` (a sanitizer, a filter).
#
# Building and running are two steps, so that a failed build ends here and the closing line of
# the test run is the last line of the output. One test runs after the other: many of them keep
# both cores of a small machine busy, and tests that all begin at once pass their time limits.
# A test that fails now and then has a defect, in itself or in what it tests: see repeat.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}

"$swift" build --build-tests "$@"
"$swift" test --skip-build --disable-xctest --no-parallel "$@"
