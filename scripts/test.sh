#!/usr/bin/env bash
# Builds and runs every test; arguments go to `swift test` (a sanitizer, a filter).
#
# Building and running are two steps, so that a failed build ends here and the closing line of
# the test run is the last line of the output. One test runs after the other: many of them keep
# both cores of a small machine busy, and tests that all begin at once pass their time limits.
#
# Hundreds of these tests meet real sockets, disks, processes and players. Where at most three
# suites failed they run once more, by themselves, and their names are printed; what fails twice
# fails. A suite that is named here often has a defect, in itself or in what it tests.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT

"$swift" build --build-tests "$@"
run=("$swift" test --skip-build --disable-xctest --no-parallel)
if "${run[@]}" --xunit-output "$report/tests.xml" "$@"; then exit 0; fi

failed=$(scripts/failed-suites.sh "$report/tests.xml")
[ -n "$failed" ] && [ "$(wc -l <<<"$failed")" -le 3 ] || exit 1
echo "failed once, run again:" $failed
"${run[@]}" "$@" --filter "$(paste -sd '|' <<<"$failed")"
