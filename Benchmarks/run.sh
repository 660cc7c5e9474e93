#!/bin/sh
# Builds the benchmarks and prints the table of ratios, what the proxy costs, then what many entries on
# disk cost, what the library for C costs, and then a cold download of 256 MiB beside curl's; for proxy
# and download the program itself is built, for the library that.
# `--json FILE`, as the first argument, writes the ratios to FILE too, an object a line: compare.py reads it.
# Further arguments are passed on: parts of row names, --rounds N, --strict; with any, the table alone is
# printed. BENCHMARK_ENTRIES is how many entries the second part makes, by default 100,000.
set -eu
json=""
if [ "${1:-}" = --json ]; then
    [ $# -ge 2 ] || { echo "run.sh: --json wants a file" >&2; exit 64; }
    : >"$2"
    json=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
    shift 2
fi
cd "$(dirname "$0")"

missing=""
for package in curl libleveldb-dev libssl-dev libxxhash-dev nginx openssl pkg-config wrk; do
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
# The program whose proxy is measured; not built where only other rows are wanted.
case "${*:-proxy}" in
*prox* | *figure* | --*)
    if [ -z "${TIEREDCACHE_PROGRAM:-}" ]; then
        (cd .. && swift build -c release --product tieredcache) >&2
        TIEREDCACHE_PROGRAM=$(cd .. && pwd)/.build/release/tieredcache
        export TIEREDCACHE_PROGRAM
    fi
    ;;
esac
[ $# -eq 0 ] || exec "$scratch/release/HitPath" ${json:+--json "$json"} "$@"
"$scratch/release/HitPath" ${json:+--json "$json"}
echo
"$scratch/release/Allocations"
echo
"$scratch/release/DiskScale" --entries "${BENCHMARK_ENTRIES:-100000}"
echo
# The library for C: a part of what it takes is built in ../.build/library.
./library.sh ${json:+--json "$json"}
echo
exec "$scratch/release/ColdDownload" "$TIEREDCACHE_PROGRAM" ${json:+7 "$json"}
