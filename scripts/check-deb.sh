#!/usr/bin/env bash
# Installs the packages of scripts/deb.sh, uses them, and removes them, in a copy of this machine that is thrown
# away: an overlay of its root in a mount namespace, without the directory of Swift. Checks that
#
#   dpkg installs them and finds their files whole;
#   the program runs and says its version, with an empty environment and without a Swift toolchain;
#   shells and systemd take completions and units, and the manual page has no errors;
#   an example compiles against what was installed, and reads a film, as Python does;
#   players load their plug-ins;
#   nothing is left of them once they are removed.
#
# Where no such namespace can be had nothing is installed, and the script says so. `scripts/deb.sh` comes before.
#
# DEB_ROOT: the root of another system in the place of this machine's, as `debootstrap --variant=minbase` makes it.
# There apt brings what the packages depend on, and gcc, pkg-config and python3 for the example.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1-}" != inside ]; then
    debs=(.build/deb/*.deb)
    [ -e "${debs[0]}" ] || { echo "check-deb: no packages in .build/deb: run 'make deb' first" >&2; exit 1; }
    namespace=(unshare --mount)
    [ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
    work=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-deb-XXXXXX")
    origin=
    trap '[ -z "$origin" ] || kill $origin 2>/dev/null || true; rm -rf "$work"' EXIT
    # shellcheck disable=SC2016 # the inner shell expands these
    if ! "${namespace[@]}" bash -c 'mount -t tmpfs none "$1" && mkdir "$1"/{u,w,m} &&
        mount -t overlay none -o "lowerdir=/,upperdir=$1/u,workdir=$1/w" "$1/m" &&
        chroot "$1/m" dpkg --version' bash "$work" >/dev/null 2>"$work.log"; then
        echo "check-deb: no overlay in a mount namespace here, so that nothing was installed: $(cat "$work.log")" >&2
        rm -f "$work.log"
        exit 0
    fi
    rm -f "$work.log"
    mkdir "$work/files"
    head -c 2000000 /dev/urandom >"$work/files/film.mp4"
    python3 Tests/C/origin.py "$work/files" >"$work/port" &
    origin=$!
    until [ -s "$work/port" ]; do
        kill -0 $origin
        sleep 0.05
    done
    "${namespace[@]}" bash "$0" inside "$work" "$(cat "$work/port")" "${debs[@]}"
    exit
fi

work=$2 url=http://127.0.0.1:$3/film.mp4
shift 3
root=$work/m
swift=$(readlink -f "$(command -v swift)" || true)
# The overlay's own memory, beside the files of this check.
mkdir "$work/overlay" "$root"
mount -t tmpfs none "$work/overlay"
mkdir "$work/overlay/u" "$work/overlay/w"
mount -t overlay none -o "lowerdir=${DEB_ROOT:-/},upperdir=$work/overlay/u,workdir=$work/overlay/w" "$root"
for name in dev proc; do mount --rbind "/$name" "$root/$name"; done
mount -t tmpfs none "$root/tmp"
# /opt/swift/usr/bin/swift: all of /opt/swift.
if [[ -z ${DEB_ROOT-} && $swift == */usr/bin/* ]]; then mount -t tmpfs none "$root${swift%/usr/bin/*}"; fi
cp "$@" "$work/files/film.mp4" "$root/tmp"

wrong=0
complain() {
    echo "check-deb: $1" >&2
    wrong=1
}
in_root() { # COMMAND...: with an empty environment
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp XDG_RUNTIME_DIR=/tmp LC_ALL=C.UTF-8 "$@"
}
files() { # all that a package may leave
    in_root find /usr /etc /var -xdev \( -path /var/cache -o -path /var/lib/dpkg -o -path /var/log \
        -o -path /etc/ld.so.cache \) -prune -o -print | sort
}

files >"$work/before"
names=()
for file in "$root"/tmp/*.deb; do names+=("$(basename "$file" | cut -d _ -f 1)"); done
if [ -n "${DEB_ROOT-}" ]; then
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    in_root env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get update && apt-get install --yes \
        --no-install-recommends /tmp/*.deb gcc libc6-dev pkg-config python3' >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        complain "apt does not install them"
    }
# Images of containers leave documentation out.
elif ! in_root sh -c 'dpkg --path-include="/*" --install /tmp/*.deb' >"$work/log" 2>&1; then
    cat "$work/log" >&2
    complain "dpkg does not install them"
fi
in_root dpkg --listfiles "${names[@]}" >"$work/owned"
in_root dpkg --verify "${names[@]}" || complain "their files are not those of the packages"

[ -z "$(in_root sh -c 'command -v swift')" ] || complain "there is a Swift toolchain, which may hide what is missing"
multiarch=$(grep -m 1 -oE '^/usr/lib/[^/]*linux-gnu[^/]*/libtieredcache' "$work/owned" | cut -d / -f 4)
for file in /usr/bin/tieredcache "/usr/lib/$multiarch/libtieredcache.so"; do
    if in_root ldd "$file" | grep -E 'swift|not found'; then complain "$file needs libraries that are not there"; fi
done
in_root ldconfig -p | grep "libtieredcache.so" >/dev/null || complain "the loader does not know the library"
version=$(sed -n 's/.*version: "\(.*\)",/\1/p' Sources/TieredCacheCLI/RootCommand.swift)
[ "$(in_root tieredcache --version)" = "$version" ] || complain "the program does not say that it is $version"

share=$root/usr/share
check_text() { # TOOL ARGUMENT...: where the tool is there
    in_root sh -c "command -v $1" >/dev/null || return 0
    in_root "$@" >"$work/log" 2>&1 || echo "status $?" >>"$work/log"
    [ ! -s "$work/log" ] || complain "$*: $(head -n 3 "$work/log")"
}
check_text bash -n /usr/share/bash-completion/completions/tieredcache
check_text zsh -n /usr/share/zsh/vendor-completions/_tieredcache
check_text fish -n /usr/share/fish/vendor_completions.d/tieredcache.fish
check_text systemd-analyze --user --man=no verify /usr/lib/systemd/user/tieredcache.socket \
    /usr/lib/systemd/user/tieredcache.service /usr/lib/systemd/user/tieredcache-serve.service
for file in bash-completion/completions/tieredcache zsh/vendor-completions/_tieredcache \
    fish/vendor_completions.d/tieredcache.fish; do
    grep -q prefetch "$share/$file" || complain "$file does not know the commands"
done
if in_root sh -c 'command -v groff' >/dev/null; then
    in_root sh -c 'zcat /usr/share/man/man1/tieredcache.1.gz | groff -man -Tutf8 -ww -z' 2>"$work/log" || true
    [ ! -s "$work/log" ] || complain "the manual page: $(head -n 3 "$work/log")"
fi

# What docs/c-hosts.md promises: a header, pkg-config, and a film.
examples=/usr/share/doc/libtieredcache-dev/examples
if in_root sh -c 'command -v cc && command -v pkg-config' >/dev/null; then
    in_root sh -c "pkg-config --validate tieredcache &&
        cc -D_GNU_SOURCE $examples/epoll.c \$(pkg-config --cflags --libs tieredcache) -o /tmp/epoll &&
        /tmp/epoll $url 10 >/tmp/got 2>/dev/null && cmp /tmp/got /tmp/film.mp4" ||
        complain "an example in C does not read a film"
fi
if in_root sh -c 'command -v python3' >/dev/null; then
    in_root sh -c "python3 $examples/film.py $url 1000000 >/tmp/got &&
        tail -c +1000001 /tmp/film.mp4 | cmp - /tmp/got" || complain "Python does not read a film"
fi
in_root tieredcache get "$url" --policy cache-only --quiet --output /tmp/got ||
    complain "the program does not have what the library has stored"

# The players find their plug-ins.
finds() { # PACKAGE TEXT COMMAND...
    [[ " ${names[*]} " == *" $1 "* ]] && in_root sh -c "command -v $3" >/dev/null || return 0
    in_root "${@:3}" >"$work/log" 2>&1 || true
    grep -qF "$2" "$work/log" || complain "$1: $3 does not load it: $(head -n 3 "$work/log")"
}
finds mpv-tieredcache tieredcache/on_load mpv --msg-level=all=v --vo=null --ao=null "$url"
finds gstreamer1.0-tieredcache tieredcachesrc gst-inspect-1.0 tieredcachesrc

in_root dpkg --purge "${names[@]}" >"$work/log" 2>&1 || complain "dpkg does not remove them: $(cat "$work/log")"
if [ -n "${DEB_ROOT-}" ]; then # what they depend on stays
    grep tieredcache "$work/owned" | while IFS= read -r file; do
        [ ! -e "$root$file" ] || echo "$file"
    done >"$work/left"
    [ ! -s "$work/left" ] || complain "this is left of them: $(cat "$work/left")"
else
    files | diff "$work/before" - >&2 || complain "something is left of them"
fi
if in_root ldconfig -p | grep "libtieredcache.so"; then complain "the loader still knows the library"; fi

[ $wrong -eq 0 ] || exit 1
echo "check-deb: ${names[*]} were installed, used and removed"
