#!/usr/bin/env bash
# Builds the hosts of Examples/C into .build/examples, as a program that embeds the library is built: the C
# compiler and pkg-config. `make library` comes before. A host is left out, and named, where its player has no
# header here; scripts/setup.sh installs them.
#
# LIBRARY: the directory of tieredcache.pc; .build/library by default.
set -euo pipefail
cd "$(dirname "$0")/.."
library=$(realpath "${LIBRARY:-.build/library}")
out=.build/examples
[ -e "$library/tieredcache.pc" ] || {
    echo "examples: no tieredcache.pc in $library: run 'make library' first" >&2
    exit 1
}
export PKG_CONFIG_PATH=$library${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
mkdir -p "$out"

# The first program of the page, and what the page quotes from the others.
awk '/^```/ { if (isIn) exit; isIn = $0 == "```c"; next } isIn' docs/c-hosts.md >"$out/first.c"
quoted=$(awk '/^```/ { isIn = $0 == "```c" && ++count > 1; next } /^## / { if ($2 == "Playlists") exit } isIn' \
    docs/c-hosts.md | sed -e 's/^ *//' | grep -vxE '\.\.\.|\}|')
while IFS= read -r line; do
    grep -qF -- "$line" Examples/C/*.c || {
        echo "examples: docs/c-hosts.md quotes a line of no example: $line" >&2
        exit 1
    }
done <<<"$quoted"

build() { # NAME MODULE...: the modules are those of pkg-config
    local name=$1 source=Examples/C/$1.c flags
    shift
    [ -e "$source" ] || source=$out/$name.c
    if [ $# -gt 0 ] && ! pkg-config --exists "$@"; then
        rm -f "$out/$name"
        echo "examples: $name is left out: pkg-config does not know all of $*" >&2
        return
    fi
    read -r -a flags <<<"$(pkg-config --cflags --libs tieredcache "$@")"
    "$(scripts/compiler.sh)" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -pedantic "$source" \
        "${flags[@]}" -pthread "-Wl,-rpath,$library" -o "$out/$name"
    echo "examples: $out/$name"
}
build first
build mpv mpv
build ffmpeg libavformat libavcodec libavutil
build gstreamer gstreamer-app-1.0
build vlc libvlc
build epoll
build agent
