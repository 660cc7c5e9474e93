#!/bin/sh
# Builds the benchmarks and prints the table of ratios. Arguments are passed on: parts of row names,
# --rounds N, --strict.
set -eu
cd "$(dirname "$0")"

missing=""
for package in libleveldb-dev libssl-dev libxxhash-dev pkg-config; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "Installing what the benchmarks compare with and link to:$missing" >&2
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq >&2
    # shellcheck disable=SC2086
    $sudo apt-get install -y -qq $missing >&2
fi

scratch=${BENCHMARK_SCRATCH:-.build}
swift build -c release --scratch-path "$scratch" >&2
exec "$scratch/release/HitPath" "$@"
