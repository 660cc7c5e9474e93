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
[ -e "$library/tieredcache.pc" ] || { echo "examples: no tieredcache.pc in $library: run 'make library' first" >&2; exit 1; }
export PKG_CONFIG_PATH=$library${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
mkdir -p "$out"

build() { # NAME MODULE...: the modules are those of pkg-config
    local name=$1 flags
    shift
    if [ $# -gt 0 ] && ! pkg-config --exists "$@"; then
        rm -f "$out/$name"
        echo "examples: $name is left out: pkg-config does not know all of $*" >&2
        return
    fi
    read -r -a flags <<<"$(pkg-config --cflags --libs tieredcache "$@")"
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -pedantic "Examples/C/$name.c" \
        "${flags[@]}" -pthread "-Wl,-rpath,$library" -o "$out/$name"
    echo "examples: $out/$name"
}
build mpv mpv
build ffmpeg libavformat libavcodec libavutil
build gstreamer gstreamer-app-1.0
build vlc libvlc
build epoll
