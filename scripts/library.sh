#!/usr/bin/env bash
# Builds the library for C into .build/library:
#
#   libtieredcache.so.0   the library; its number is TIERED_ABI of the header
#   libtieredcache.so     a link to it, which -ltieredcache finds
#   libtieredcache.so.0.debug   the names of what is hidden in it, which valgrind and debuggers find
#   tieredcache.h         the header
#   tieredcache.pc        for pkg-config, as of this directory
#
#   scripts/library.sh                            builds
#   scripts/library.sh install PREFIX [DESTDIR]   copies it below DESTDIR/PREFIX: lib, include, lib/pkgconfig
#
# The runtime of Swift is linked into it and hidden: a version script exports what scripts/library.symbols
# lists, and nothing else. -Bsymbolic binds what is inside to itself, also where the host is written in Swift. The
# library stays loaded (nodelete), since its threads do. --wrap keeps SwiftNIO and the runtime from changing what
# the host's signals do, and signals from its threads (Sources/CTieredCache/wrappers.c). SwiftPM cannot say all that, so it builds an archive, and
# this script links it. The first build takes some 6 minutes on 2 cores; a later one builds what has changed.
#
# It takes Swift 6.3, which compares functions with the header (Package.swift leaves the target out otherwise).
#
# LIBRARY_SCRATCH: where SwiftPM builds; .build/library/scratch by default. LIBRARY_SYMBOLS=yes: keeps symbols.
set -euo pipefail
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
out=$PWD/.build/library
scratch=${LIBRARY_SCRATCH:-.build/library/scratch}
header=Sources/CTieredCache/include/tieredcache.h

[ "$(uname)" = Linux ] || { echo "library: the library is for Linux" >&2; exit 1; }
has=$("$swift" --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p' | head -n 1)
printf '6.3\n%s\n' "$has" | sort --version-sort --check=quiet ||
    { echo "library: the library takes Swift 6.3, and this is $has" >&2; exit 1; }
abi=$(awk '$2 == "TIERED_ABI" { print $3 }' "$header")
version=$(sed -n 's/.*version: "\(.*\)",/\1/p' Sources/TieredCacheCLI/RootCommand.swift)
name=libtieredcache.so.$abi

write_pc() { # FILE PREFIX LIBRARIES HEADERS
    cat >"$1" <<PC
prefix=$2
libdir=$3
includedir=$4

Name: tieredcache
Description: A cache for the bytes of URLs, for media players
Version: $version
Libs: -L\${libdir} -ltieredcache
Cflags: -I\${includedir}
PC
}

if [ "${1-}" = install ]; then
    [ $# -ge 2 ] || { echo "usage: library.sh install PREFIX [DESTDIR]" >&2; exit 64; }
    prefix=$2 root=${3-}$2
    [ -e "$out/$name" ] || { echo "library: run 'make library' first" >&2; exit 1; }
    install -d "$root/lib/pkgconfig" "$root/include"
    install -m 644 "$out/$name" "$root/lib/$name"
    ln -sfn "$name" "$root/lib/libtieredcache.so"
    install -m 644 "$header" "$root/include/tieredcache.h"
    # shellcheck disable=SC2016 # pkg-config puts the prefix in.
    write_pc "$root/lib/pkgconfig/tieredcache.pc" "$prefix" '${prefix}/lib' '${prefix}/include'
    echo "library: installed below $root"
    exit 0
fi

mkdir -p "$out"
build=("$swift" build --configuration release --product TieredCacheC --static-swift-stdlib
    --scratch-path "$scratch")
"${build[@]}"
bin=$("${build[@]}" --show-bin-path)
# The objects rather than the archive: the driver hides what comes from archives, and does not look into them for
# the libraries that objects ask for.
objects=$bin/TieredCacheC.product/Objects.LinkFileList
{
    echo '{ global:'
    sed 's/$/;/' scripts/library.symbols
    echo 'local: *; };'
} >"$out/exports.map"

linked=$out/$name.new
"${swift}c" -emit-library -static-stdlib -use-ld=lld -o "$linked" "@$objects" \
    -Xlinker "-soname=$name" -Xlinker "--version-script=$out/exports.map" \
    -Xlinker --gc-sections -Xlinker --icf=safe -Xlinker -Bsymbolic \
    -Xlinker -z -Xlinker nodelete -Xlinker -z -Xlinker now -Xlinker -z -Xlinker relro \
    -Xlinker --wrap=signal -Xlinker --wrap=sigaction -Xlinker --wrap=pthread_create
# The names of what is hidden, for valgrind and debuggers: beside the library, and not in it.
strip --strip-debug "$linked"
objcopy --only-keep-debug "$linked" "$out/$name.debug"
strip --strip-unneeded --remove-section=.comment "$linked"
objcopy --add-gnu-debuglink="$out/$name.debug" "$linked"
mv "$linked" "$out/$name"
ln -sfn "$name" "$out/libtieredcache.so"
cp "$header" "$out/tieredcache.h"
write_pc "$out/tieredcache.pc" "$out" "$out" "$out"
echo "library: $out/$name, $(stat -c %s "$out/$name") bytes"
