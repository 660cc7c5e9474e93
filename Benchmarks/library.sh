#!/usr/bin/env bash
# What the library for C costs, see C/library.c: `library.sh [--json FILE] [--strict]`. Builds the library where it
# is not there. LIBRARY: as in scripts/examples.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -e "${LIBRARY:-.build/library}/tieredcache.pc" ] || scripts/library.sh >&2
library=$(realpath "${LIBRARY:-.build/library}")
work=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-bench-XXXXXX")
origin=
trap '[ -z "$origin" ] || kill $origin 2>/dev/null || true; rm -rf "$work"' EXIT
read -r -a flags < <(PKG_CONFIG_PATH=$library pkg-config --cflags --libs tieredcache)
"$(scripts/compiler.sh)" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -pedantic Benchmarks/C/library.c "${flags[@]}" \
    "-Wl,-rpath,$library" -o "$work/library"
mkdir "$work/files"
head -c 33554432 /dev/urandom >"$work/files/film.mp4"
python3 Tests/C/origin.py "$work/files" >"$work/port" &
origin=$!
until [ -s "$work/port" ]; do
    kill -0 $origin
    sleep 0.05
done
XDG_CACHE_HOME=$work/cache "$work/library" "http://127.0.0.1:$(cat "$work/port")/film.mp4" "$work/files/film.mp4" "$@"
