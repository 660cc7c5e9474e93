#!/usr/bin/env bash
# Finds what breaks programs that were written for the last version: removed or changed public declarations
# of every library product, against the newest version tag (X.Y.Z) that is part of the history. Exits with 1
# where there is one. A change that is meant goes into scripts/api-allowed.txt, each line as it was printed.
# The first run after a version builds the package as it was at the tag: 11 minutes of processor time, some 6 on
# 2 cores. Later runs keep what they know of the tag in .build/api.
set -euo pipefail
cd "$(dirname "$0")/.."

# A prerelease is older than its version.
last=$(git -c versionsort.suffix=- tag --list --merged HEAD --sort=-version:refname |
    grep -m 1 -E '^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$' || true)
if [ -z "$last" ]; then
    echo "api: the history has no version tag (X.Y.Z) yet, so there is nothing to compare with"
    exit 0
fi

arguments=("$last" --baseline-dir .build/api)
[ ! -s scripts/api-allowed.txt ] || arguments+=(--breakage-allowlist-path scripts/api-allowed.txt)
"${SWIFT:-swift}" package diagnose-api-breaking-changes "${arguments[@]}" || {
    echo "api: these changes break programs written for $last" >&2
    exit 1
}
echo "api: nothing breaks programs written for $last"
