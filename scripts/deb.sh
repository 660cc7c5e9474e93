#!/usr/bin/env bash
# Makes Debian packages in .build/deb, of what `make library` and a release build leave:
#
#   libtieredcache0      the library; the number is that of its soname
#   libtieredcache-dev   header, link, pkg-config file, pages and examples
#   tieredcache          the program, its manual page, completions for three shells, units of systemd
#   mpv-tieredcache, gstreamer1.0-tieredcache, vlc-plugin-tieredcache
#                        the plug-ins of .build/plugins; one that is not there is left out, and named
#
# They need nothing of Swift: its runtime is inside. What they depend on dpkg-shlibdeps tells from the files. The
# same commit gives the same bytes. The program takes some 3 minutes on 2 cores the first time.
#
# LIBRARY: where the library is; .build/library by default. LIBRARY_SCRATCH: as in scripts/library.sh.
# DEB_COMPRESSION: as in `dpkg-deb -Z`; xz by default.
# TIEREDCACHE_PROGRAM: a program that is built already, with --static-swift-stdlib.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
library=$(realpath "${LIBRARY:-.build/library}")
scratch=${LIBRARY_SCRATCH:-.build/library/scratch}
header=Sources/CTieredCache/include/tieredcache.h
abi=$(awk '$2 == "TIERED_ABI" { print $3 }' "$header")
soname=libtieredcache.so.$abi
fail() {
    echo "deb: $1" >&2
    exit 1
}
[ -e "$library/$soname" ] || fail "no $soname in $library: run 'make library' first"
for tool in dpkg-deb dpkg-shlibdeps dpkg-architecture python3; do
    command -v $tool >/dev/null || fail "$tool is missing: apt-get install dpkg dpkg-dev python3"
done

if [ -z "${TIEREDCACHE_PROGRAM-}" ]; then
    build=("$swift" build --configuration release --product tieredcache --static-swift-stdlib
        --scratch-path "$scratch")
    "${build[@]}"
    TIEREDCACHE_PROGRAM=$("${build[@]}" --show-bin-path)/tieredcache
fi

upstream=$(sed -n 's/.*version: "\(.*\)",/\1/p' Sources/TieredCacheCLI/RootCommand.swift)
version=${upstream/-/\~}-1 # 1.0.0-beta comes before 1.0.0
architecture=$(dpkg-architecture -qDEB_HOST_ARCH)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
maintainer="TieredCache <$(git log -1 --format=%ae 2>/dev/null || echo root@localhost)>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
out=.build/deb
rm -rf "$out"
mkdir -p "$out/work/debian"
work=$(realpath "$out/work")

stage() { # PACKAGE: its root
    echo "$work/$1"
}
put() { # PACKAGE MODE FILE PATH
    install -D -m "$2" "$3" "$(stage "$1")/$4"
}

# ---- What is in them ----

runtime=libtieredcache$abi
put "$runtime" 644 "$library/$soname" "usr/lib/$multiarch/$soname"
strip --strip-unneeded --remove-section=.comment --remove-section=.gnu_debuglink \
    "$(stage "$runtime")/usr/lib/$multiarch/$soname"

dev=libtieredcache-dev
put $dev 644 "$header" usr/include/tieredcache.h
mkdir -p "$(stage $dev)/usr/lib/$multiarch/pkgconfig"
ln -s "$soname" "$(stage $dev)/usr/lib/$multiarch/libtieredcache.so"
scripts/library.sh pc /usr "\${prefix}/lib/$multiarch" "\${prefix}/include" \
    >"$(stage $dev)/usr/lib/$multiarch/pkgconfig/tieredcache.pc"
put $dev 644 docs/c-api.md usr/share/doc/$dev/c-api.md
put $dev 644 docs/c-hosts.md usr/share/doc/$dev/c-hosts.md
for example in Examples/C/*.c Examples/C/*.py; do
    put $dev 644 "$example" "usr/share/doc/$dev/examples/${example##*/}"
done

program=tieredcache
put $program 755 "$TIEREDCACHE_PROGRAM" usr/bin/tieredcache
strip --strip-all --remove-section=.comment "$(stage $program)/usr/bin/tieredcache"
complete() { # SHELL PATH
    mkdir -p "$(dirname "$(stage $program)/usr/share/$2")"
    # It is read by a shell, and never run: without a first line that names one.
    "$TIEREDCACHE_PROGRAM" --generate-completion-script "$1" | sed '1{/^#!/d}' >"$(stage $program)/usr/share/$2"
}
complete bash bash-completion/completions/tieredcache
complete zsh zsh/vendor-completions/_tieredcache
complete fish fish/vendor_completions.d/tieredcache.fish
mkdir -p "$(stage $program)/usr/share/man/man1" "$(stage $program)/usr/lib/systemd/user"
"$TIEREDCACHE_PROGRAM" --experimental-dump-help |
    python3 scripts/manual.py "$upstream" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)" |
    gzip -9n >"$(stage $program)/usr/share/man/man1/tieredcache.1.gz"
units=$(stage $program)/usr/lib/systemd/user
hardening='NoNewPrivileges=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RestrictRealtime=yes'
cat >"$units/tieredcache.socket" <<'UNIT'
[Unit]
Description=Downloads of TieredCache, asked for by the JSON-RPC of aria2
Documentation=man:tieredcache(1)

[Socket]
ListenStream=%t/tieredcache.sock
SocketMode=0600

[Install]
WantedBy=sockets.target
UNIT
cat >"$units/tieredcache.service" <<UNIT
[Unit]
Description=Downloads of TieredCache
Documentation=man:tieredcache(1)
Requires=tieredcache.socket
After=tieredcache.socket

# It ends when nothing is left to do; the next connection starts it again, after a crash, too.
[Service]
Type=notify
ExecStart=/usr/bin/tieredcache agent
$hardening
UNIT
cat >"$units/tieredcache-serve.service" <<UNIT
[Unit]
Description=Cache for media players, on 127.0.0.1
Documentation=man:tieredcache(1)

# The address is in \`journalctl --user --unit tieredcache-serve\`; port and token stay the same.
[Service]
ExecStart=/usr/bin/tieredcache serve
Restart=on-failure
$hardening

[Install]
WantedBy=default.target
UNIT

# As those of Debian: mpv loads what is in /etc/mpv/scripts for everybody.
plugins=()
plugin() { # PACKAGE FILE PATH
    if [ -e ".build/plugins/$2" ]; then
        put "$1" 644 ".build/plugins/$2" "$3/${2##*/}"
        put "$1" 644 docs/plugins.md "usr/share/doc/$1/plugins.md"
        plugins+=("$1")
    else
        echo "deb: $1 is left out: run 'make plugins' first, with the headers of its player" >&2
    fi
}
plugin mpv-tieredcache mpv/tieredcache.so usr/lib/mpv-tieredcache
plugin gstreamer1.0-tieredcache gstreamer/libgsttieredcache.so "usr/lib/$multiarch/gstreamer-1.0"
plugin vlc-plugin-tieredcache vlc/libtieredcache_plugin.so "usr/lib/$multiarch/vlc/plugins/access"
if [ -e "$(stage mpv-tieredcache)" ]; then
    mkdir -p "$(stage mpv-tieredcache)/etc/mpv/scripts"
    ln -s /usr/lib/mpv-tieredcache/tieredcache.so "$(stage mpv-tieredcache)/etc/mpv/scripts/tieredcache.so"
fi

# ---- What is said of them ----

# The licences of what is inside, and the notices that go with it, from the packages that were built.
copyright() {
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: TieredCache"
    printf '\nFiles: *\n'
    sed -n 's/^Copyright (c) /Copyright: /p' LICENSE
    echo "License: MIT"
    paragraph LICENSE
    printf '\nFiles: usr/lib/* usr/bin/*\nCopyright: Apple Inc. and the authors of Swift and of its packages\n'
    printf 'License: Apache-2.0 with Runtime Library Exception, and others\n'
    printf ' The runtime of Swift and these packages are linked in. The Apache License 2.0 is in\n'
    printf ' /usr/share/common-licenses/Apache-2.0.\n'
    local checkout file
    for checkout in "${checkouts[@]}"; do
        for file in "$checkout"/LICENSE* "$checkout"/NOTICE*; do
            [ -e "$file" ] || continue
            printf ' .\n ==== %s: %s ====\n' "${checkout##*/}" "${file##*/}"
            # One copy of the Apache License is on the machine.
            if [[ ${file##*/} == LICENSE* ]] && grep -q 'Apache License' "$file"; then
                printf ' Apache License 2.0\n'
                sed -n '/Runtime Library Exception/,$p' "$file" | indented
            else
                indented <"$file"
            fi
        done
    done
}
indented() { sed -e 's/[[:space:]]*$//' -e 's/^$/./' -e 's/^/ /'; }
paragraph() { tail -n +5 "$1" | indented; }
for place in "$scratch/checkouts" .build/checkouts; do
    checkouts=("$place"/*)
    [ ! -d "${checkouts[0]}" ] || break
done
[ -d "${checkouts[0]}" ] || fail "no packages in $scratch/checkouts or .build/checkouts, and so no licences of them"
copyright >"$work/copyright"
gzip -9n <CHANGELOG.md >"$work/changelog.gz"
cat <<CHANGES | gzip -9n >"$work/changelog.Debian.gz"
tieredcache ($version) unstable; urgency=medium

  * Version $upstream; see changelog.gz.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGES

printf 'Source: tieredcache\n\nPackage: tieredcache\nArchitecture: any\n' >"$work/debian/control"
depends() { # FILE: the packages with the libraries that it needs
    local found
    # Its warnings are of symbols that the runtime of Swift takes from others, and shown where it fails.
    if ! found=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info "$1" 2>"$work/shlibdeps"); then
        cat "$work/shlibdeps" >&2
        fail "dpkg-shlibdeps does not know what $1 needs"
    fi
    found=$(sed -n 's/^shlibs:Depends=//p' <<<"$found")
    [ -n "$found" ] || fail "dpkg-shlibdeps finds nothing that $1 needs"
    echo "$found"
}

pack() { # PACKAGE SECTION DEPENDS MULTI-ARCH SUMMARY TEXT
    local root
    root=$(stage "$1")
    mkdir -p "$root/DEBIAN"
    for file in copyright changelog.gz changelog.Debian.gz; do
        put "$1" 644 "$work/$file" "usr/share/doc/$1/$file"
    done
    cat >"$root/DEBIAN/control" <<CONTROL
Package: $1
Source: tieredcache
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -k -s --apparent-size --exclude=DEBIAN "$root" | cut -f 1)
Depends: $3
Section: $2
Priority: optional
Multi-Arch: $4
Description: $5
$(fold -s -w 76 <<<"$6" | sed -e 's/[[:space:]]*$//' -e 's/^/ /')
CONTROL
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    chmod -R u=rwX,go=rX "$root"
    dpkg-deb --root-owner-group --build "-Z${DEB_COMPRESSION:-xz}" "$root" "$out" >/dev/null
    echo "deb: $out/$1_${version}_$architecture.deb, $(stat -c %s "$out/$1_${version}_$architecture.deb") bytes"
}

root=$(stage "$runtime")
mkdir -p "$root/DEBIAN"
echo "libtieredcache $abi $runtime (>= ${version%-*})" >"$root/DEBIAN/shlibs"
{
    echo "$soname $runtime #MINVER#"
    sed "s/\$/@Base ${version%-*}/; s/^/ /" scripts/library.symbols
} >"$root/DEBIAN/symbols"
echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"

about="It stores the bytes of URLs in memory and on disk while a player reads, seeks and waits for as little as \
possible; each byte is fetched once, and damaged or outdated ones never reach the player."
needs=$(depends "$root/usr/lib/$multiarch/$soname")
pack "$runtime" libs "$needs" same \
    "cache for the bytes of URLs, for media players" "$about This is the library for programs in C and C++."
pack $dev libdevel "$runtime (= $version)" same \
    "cache for the bytes of URLs, for media players: for development" "$about This is what programs are compiled with."
needs=$(depends "$(stage $program)/usr/bin/tieredcache")
pack $program utils "$needs" foreign \
    "cache for the bytes of URLs: program and proxy" "$about This is a program, which also is a proxy for any player."
for package in ${plugins[@]+"${plugins[@]}"}; do
    file=$(find "$(stage "$package")/usr/lib" -name '*.so')
    needed=$(depends "$file")
    case $package in
    mpv-*) name=mpv player="mpv (>= 0.35)" ;;
    gstreamer*) name="applications with GStreamer" player= ;;
    # The interface of plug-ins is that of VLC 3.0 alone.
    vlc-*) name=VLC player="vlc-plugin-base (>= 3.0), vlc-plugin-base (<< 3.1)" ;;
    esac
    pack "$package" video "$needed${player:+, $player}" no "cache for the films that players fetch: plug-in for $name" \
        "$about With this plug-in $name uses it for http and https, without any change of URLs. It needs nothing else \
of TieredCache."
done
rm -rf "$work"
