#!/usr/bin/env bash
# Installs what this repository needs from Debian or Ubuntu, and only what is missing.
#
#   scripts/setup.sh build   what building needs:
#     libssl-dev      MD5 through libcrypto (file names of the disk tier)
#     libxxhash-dev   XXH3, the checksum of every block
#     zlib1g-dev      a dependency of SwiftNIO's extras
#     pkg-config      how SwiftPM finds the three above
#   scripts/setup.sh test    that, and what `make test` needs:
#     curl, openssl   the tests' second client, and their certificates
#     python3         runs the tests; python3-yaml the check of workflow files, and the comparison of benchmarks
#   scripts/setup.sh         that, and what `make check` needs:
#     nginx           the real origin of the integration tests
#     aria2           what the agent is compared with (scripts/check-agent.sh)
#     abigail-tools   what of the library for C has changed since the last version; left out where it
#                     cannot be had
#     ffmpeg, mpv, gstreamer, vlc, chromium
#                     the players that the proxy is tested with; where they cannot be had, those tests
#                     are skipped and say so
#     python3-dbusmock
#                     services that say what a machine is like (Tests/Agent/bus.py)
#     totem, xvfb, dbus-daemon
#                     an application with the plug-in for GStreamer, and a display for it (33 MB)
#     libmpv-dev, libavformat-dev, libgstreamer-plugins-base1.0-dev, libvlc-dev
#                     what the hosts in Examples/C embed; without one its host is left out
#     libvlccore-dev  with libmpv-dev and those of GStreamer: what the plug-ins are built with
#     gcc             builds those hosts, and Tests/C with the address sanitizer
#     dpkg-dev        tells what the Debian packages depend on (scripts/deb.sh)
#     valgrind        watches Tests/C/races.c; without it that run is left out
#
# On macOS `build` takes the libraries from Homebrew; that was never run.
set -euo pipefail

what=${1:-check}
[[ $what == build || $what == test || $what == check ]] || { echo "usage: setup.sh [build|test]" >&2; exit 64; }

command -v "${SWIFT:-swift}" >/dev/null 2>&1 || {
    echo "setup: no Swift here; install 6.2 or later from https://www.swift.org/install" >&2
    exit 1
}

if [ "$(uname)" = Darwin ]; then
    [ "$what" = build ] || echo "setup: tests need Linux; installing what building needs" >&2
    for formula in openssl@3 xxhash zlib pkgconf; do
        brew list --versions "$formula" >/dev/null || brew install "$formula"
    done
    exit 0
fi

missing=()

need() { # PACKAGE TEST...: PACKAGE is missing if TEST fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

has_header() { echo "#include <$1>" | "${CC:-cc}" -E -x c - ; }
has_program() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1"; }
# Without a C compiler a header's file must do.
command -v "${CC:-cc}" >/dev/null 2>&1 || has_header() { [ -e "/usr/include/$1" ] || compgen -G "/usr/include/*/$1"; }

need libssl-dev has_header openssl/evp.h
need libxxhash-dev has_header xxhash.h
need zlib1g-dev has_header zlib.h
need pkg-config has_program pkg-config

players=()
want() { # PROGRAM PACKAGE...: the packages bring a player that only its own tests need
    local program=$1
    shift
    has_program "$program" >/dev/null 2>&1 || players+=("$@")
}
want_module() { # MODULE PACKAGE: the package brings a module of pkg-config that a host in Examples/C embeds
    pkg-config --exists "$1" 2>/dev/null || players+=("$2")
}
if [ "$what" != build ]; then
    need curl has_program curl
    need openssl has_program openssl
    need python3 has_program python3
    need python3-yaml python3 -c 'import yaml'
fi
if [ "$what" = check ]; then
    need nginx has_program nginx
    need aria2 has_program aria2c
    want abidiff abigail-tools
    want ffmpeg ffmpeg
    want mpv mpv
    want gst-play-1.0 gstreamer1.0-plugins-base-apps gstreamer1.0-plugins-base gstreamer1.0-libav \
        gstreamer1.0-plugins-good
    # Transport streams, as in HLS.
    compgen -G '/usr/lib/*/gstreamer-1.0/libgstmpegtsdemux.so' >/dev/null ||
        players+=(gstreamer1.0-plugins-bad)
    want cvlc vlc-bin vlc-plugin-base
    want totem totem
    want Xvfb xvfb
    want dbus-run-session dbus-daemon
    # Debian's own Python, whatever comes first in PATH.
    /usr/bin/python3 -c 'import dbusmock' 2>/dev/null || players+=(python3-dbusmock)
    want chromium chromium
    want_module mpv libmpv-dev
    want_module libavformat libavformat-dev
    want_module gstreamer-app-1.0 libgstreamer-plugins-base1.0-dev
    want_module libvlc libvlc-dev
    want_module libjpeg libjpeg-dev
    want_module libpng libpng-dev
    want_module vlc-plugin libvlccore-dev
    want cc gcc libc6-dev
    want dpkg-shlibdeps dpkg-dev
    want valgrind valgrind
fi

if [ $((${#missing[@]} + ${#players[@]})) -eq 0 ]; then
    echo "setup: all packages that are needed here are installed"
    exit 0
fi

fail() {
    if [ ${#missing[@]} -eq 0 ]; then
        echo "setup: $1; the tests with ${players[*]} will be skipped" >&2
        exit 0
    fi
    echo "setup: $1" >&2
    echo "setup: please install: ${missing[*]}" >&2
    exit 1
}

command -v apt-get >/dev/null || fail "this is no Debian or Ubuntu: apt-get is missing"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "installing needs root, and there is no sudo"
    as_root=(sudo)
fi

echo "setup: installing ${missing[*]-} ${players[*]-} (what for: see scripts/setup.sh)"
export DEBIAN_FRONTEND=noninteractive
${as_root[@]+"${as_root[@]}"} apt-get update -q >/dev/null || fail "apt-get update failed"
# Tests start their own nginx; the one of the system must not start with the installation.
install() {
    ${as_root[@]+"${as_root[@]}"} env RUNLEVEL=1 apt-get install -q -y --no-install-recommends "$@"
}
[ ${#missing[@]} -eq 0 ] || install "${missing[@]}" || fail "apt-get install failed"
[ ${#players[@]} -eq 0 ] || install "${players[@]}" ||
    echo "setup: no ${players[*]} here; the tests with these players will be skipped" >&2
