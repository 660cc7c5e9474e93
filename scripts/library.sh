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
#   scripts/library.sh objects                    builds the objects alone, and prints the list of them
#   scripts/library.sh pc PREFIX LIBRARIES HEADERS   prints a tieredcache.pc
#
# SwiftPM cannot say how it is to be linked, so it builds an archive, and this script links it as scripts/link.sh
# says. The first build takes some 6 minutes on 2 cores; a later one builds what has changed.
#
# It takes Swift 6.3, which compares functions with the header (Package.swift leaves the target out otherwise).
#
# LIBRARY_SCRATCH: where SwiftPM builds; .build/library/scratch by default. LIBRARY_SYMBOLS=yes: keeps symbols.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/link.sh
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

print_pc() { # PREFIX LIBRARIES HEADERS
    cat <<PC
prefix=$1
libdir=$2
includedir=$3

Name: tieredcache
Description: A cache for the bytes of URLs, for media players
Version: $version
Libs: -L\${libdir} -ltieredcache
Cflags: -I\${includedir}
PC
}

if [ "${1-}" = pc ]; then
    print_pc "$2" "$3" "$4"
    exit 0
fi
if [ "${1-}" = install ]; then
    [ $# -ge 2 ] || { echo "usage: library.sh install PREFIX [DESTDIR]" >&2; exit 64; }
    prefix=$2 root=${3-}$2
    [ -e "$out/$name" ] || { echo "library: run 'make library' first" >&2; exit 1; }
    install -d "$root/lib/pkgconfig" "$root/include"
    install -m 644 "$out/$name" "$root/lib/$name"
    ln -sfn "$name" "$root/lib/libtieredcache.so"
    install -m 644 "$header" "$root/include/tieredcache.h"
    # shellcheck disable=SC2016 # pkg-config puts the prefix in.
    print_pc "$prefix" '${prefix}/lib' '${prefix}/include' >"$root/lib/pkgconfig/tieredcache.pc"
    echo "library: installed below $root"
    exit 0
fi

mkdir -p "$out"
build=("$swift" build --configuration release --product TieredCacheC --static-swift-stdlib
    --scratch-path "$scratch")
"${build[@]}" >&2
bin=$("${build[@]}" --show-bin-path)
# The objects rather than the archive: the driver hides what comes from archives, and does not look into them for
# the libraries that objects ask for.
objects=$bin/TieredCacheC.product/Objects.LinkFileList
if [ "${1-}" = objects ]; then
    realpath "$objects"
    exit 0
fi

linked=$out/$name.new
link_shared "$linked" scripts/library.symbols "$objects" -Xlinker "-soname=$name"
# The names of what is hidden, for valgrind and debuggers: beside the library, and not in it.
strip --strip-debug "$linked"
objcopy --only-keep-debug "$linked" "$out/$name.debug"
strip --strip-unneeded --remove-section=.comment "$linked"
objcopy --add-gnu-debuglink="$out/$name.debug" "$linked"
mv "$linked" "$out/$name"
ln -sfn "$name" "$out/libtieredcache.so"
cp "$header" "$out/tieredcache.h"
print_pc "$out" "$out" "$out" >"$out/tieredcache.pc"
echo "library: $out/$name, $(stat -c %s "$out/$name") bytes"
