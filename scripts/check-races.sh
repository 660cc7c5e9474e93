#!/usr/bin/env bash
# Runs the programs of Tests/C against the library for C, built with the address and the undefined behaviour
# sanitizer:
#
#   races      streams in three orders from several threads, calls that are stopped, what streams leave behind
#   opens      one directory from eight threads, opened while it closes
#   badinput, nulls, fuzz   what a program may get wrong: a list, each pointer as NULL, and what chance makes
#   plugin     plug-ins that are unloaded
#   limits     too few descriptors and threads, a full disk, no home, no /proc
#   forks      children that open caches, and those of a parent that has one; exit during calls; without the
#              sanitizer, too, with children of a first use
#
# Then races and badinput under valgrind, which sees the inside of the library too (scripts/valgrind.supp says what
# does not count there). Every report is a failure. It takes some two minutes each; under valgrind ten times as long
# where the library was built for debugging.
#
# LIBRARY: as in scripts/examples.sh. RACES_SECONDS: how long opens runs, 10. FUZZ_ROUNDS: 20,000.
set -euo pipefail
cd "$(dirname "$0")/.."
library=$(realpath "${LIBRARY:-.build/library}")
out=.build/examples
work=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-races-XXXXXX")
origin=
trap '[ -z "$origin" ] || kill $origin 2>/dev/null || true; rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache PKG_CONFIG_PATH=$library${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
read -r -a flags < <(pkg-config --cflags --libs tieredcache)
cc=$(scripts/compiler.sh)
mkdir -p "$out" "$work/files"

build() { # SOURCE PROGRAM [FLAG...]
    local source=Tests/C/$1.c program=$out/$2
    [ -e "$source" ] || source=$out/$1.c
    shift 2
    "$cc" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -pedantic "$@" "$source" \
        "${flags[@]}" -pthread "-Wl,-rpath,$library" -o "$program"
}

head -c 2000000 /dev/urandom >"$work/files/film.mp4"
python3 Tests/C/origin.py "$work/files" >"$work/port" &
origin=$!
until [ -s "$work/port" ]; do
    kill -0 $origin
    sleep 0.05
done
url=http://127.0.0.1:$(cat "$work/port")

# What was freed stays allocated with this sanitizer, for a while; 1 MB of it, so that a leak shows.
export ASAN_OPTIONS=quarantine_size_mb=1:detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
python3 Tests/C/nulls.py Sources/CTieredCache/include/tieredcache.h >"$out/nulls.c"
for program in races badinput nulls fuzz; do
    build $program $program-sanitized -fsanitize=address,undefined Tests/C/end.c
done
for program in opens limits; do build $program $program-sanitized -fsanitize=address,undefined; done
build forks forks-sanitized -fsanitize=address,undefined -DSANITIZED
build forks forks
timeout 600 "$out/races-sanitized" "$url/film.mp4" "$url/hang" 1000 10000
timeout 300 "$out/badinput-sanitized" "$url/film.mp4"
# Their jobs stay in their directories.
XDG_CACHE_HOME=$work/nulls timeout 60 "$out/nulls-sanitized" "$url/film.mp4"
XDG_CACHE_HOME=$work/fuzz timeout 600 "$out/fuzz-sanitized" "$url/film.mp4" "${FUZZ_ROUNDS:-20000}"
# Its last caches are still closing in the background when it ends; what they hold is no leak.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout 600 "$out/opens-sanitized" "$url/film.mp4" "${RACES_SECONDS:-10}"
# A volume of one megabyte, where a mount namespace can be had.
small=(bash -c 'mount -t tmpfs -o size=1m none "$1" && shift && exec "$@" "$0"' "$work/small" "$work/small")
mkdir "$work/small"
namespace=(unshare --mount)
[ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
limits=("$out/limits-sanitized" "$url/film.mp4" "$work/files/film.mp4")
if "${namespace[@]}" "${small[@]}" true 2>/dev/null; then
    timeout 600 "${namespace[@]}" "${small[@]}" "${limits[@]}"
else
    echo "check-races: no mount namespace here, so that no volume was too small" >&2
    timeout 600 "${limits[@]}"
fi
# With all of its parts, and what the sanitizer bears.
timeout 600 "$out/forks" "$url/film.mp4" "$work/files/film.mp4"
# Some of its processes end while their caches are open.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout 600 "$out/forks-sanitized" "$url/film.mp4" "$work/files/film.mp4"
build plugin plugin-sanitized -fsanitize=address,undefined -ldl -Wl,--as-needed
timeout 60 "$out/plugin-sanitized" "$url/film.mp4" "$(realpath "$library/libtieredcache.so")"
echo "check-races: the address and the undefined behaviour sanitizer report nothing"

if ! command -v valgrind >/dev/null; then
    echo "check-races: valgrind is not installed; the races did not run under it" >&2
    exit 0
fi
for program in races badinput; do build $program $program; done
watched() { # COMMAND...
    # Memory that the runtime of Swift keeps until the end is no leak; races.c counts what grows.
    timeout 3600 valgrind --quiet --error-exitcode=99 --leak-check=no --suppressions=scripts/valgrind.supp \
        --log-file="$work/valgrind" "$@" || {
        status=$?
        cat "$work/valgrind" >&2
        echo "check-races: valgrind ends with status $status" >&2
        exit 1
    }
}
RACES_LIMIT_MS=2000 watched "$out/races" "$url/film.mp4" "$url/hang" 1000 10000 32768
watched "$out/badinput" "$url/film.mp4"
echo "check-races: valgrind reports nothing"
