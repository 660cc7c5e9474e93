#!/usr/bin/env bash
# Builds and runs every test; arguments go to `swift test` (a sanitizer, a filter).
#
# Building and running are two steps, so that a failed build ends here and the closing line of
# the test run is the last line of the output. TEST_PARALLELISM=--no-parallel runs one test after
# the other: the sanitizer is so slow that tests which all begin at once pass their time limits.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}

"$swift" build --build-tests "$@"
"$swift" test --skip-build --disable-xctest "${TEST_PARALLELISM:---parallel}" "$@"
