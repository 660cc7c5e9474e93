#!/usr/bin/env bash
# Builds the library for C (scripts/library.sh) and checks what it promises to a host:
#
#   the header compiles by itself, as C99, C11 and C++17, with all warnings;
#   the library exports what scripts/library.symbols lists, which is what the header declares, and no more;
#   nothing of Swift is needed to load it, it has its number in its name, and it stays loaded;
#   what programs were compiled with for the last version is so still (abidiff), under the same number;
#   pkg-config describes it, here and where it was installed;
#   its runtimes know the number of the thread that loaded it, and that of a child's, and without their names nothing
#   is linked (Sources/CTieredCache/forked.c);
#   a program in C uses it with an empty environment (Tests/LibraryHost/smoke.c), and one in Swift beside a dynamic
#   Foundation of its own (Tests/LibraryHost/host.swift).
#
# Prints what is wrong, and exits with 1 then. CHECK_LIBRARY_BUILD=no: takes .build/library as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/link.sh
root=$PWD
out=$root/.build/library
header=Sources/CTieredCache/include/tieredcache.h
work=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-library-XXXXXX")
origin=
trap '[ -z "$origin" ] || kill "$origin" 2>/dev/null || true; rm -rf "$work"' EXIT

wrong=0
complain() {
    echo "check-library: $1" >&2
    wrong=1
}

cc=$(scripts/compiler.sh)
cxx=$(scripts/compiler.sh ++)

# The header, before anything is built.
echo '#include <tieredcache.h>' >"$work/alone.c"
strict=(-Wall -Wextra -Werror -pedantic -fsyntax-only -I "$(dirname "$header")")
"$cc" -x c -std=c99 "${strict[@]}" "$work/alone.c" || complain "the header is no C99"
"$cc" -x c -std=c11 "${strict[@]}" "$work/alone.c" || complain "the header is no C11"
"$cxx" -x c++ -std=c++17 "${strict[@]}" "$work/alone.c" || complain "the header is no C++17"

declared() { # HEADER: its functions
    grep -oE '\btiered_[a-z_]+\(' "$1" | tr -d '(' | sort -u
}
declared "$header" | diff - scripts/library.symbols >&2 ||
    complain "scripts/library.symbols (>) is not what the header declares (<)"

# The last version, as a library that has its functions and nothing in them: what abidiff compares are types.
stub() { # HEADER LIBRARY
    {
        cat "$1"
        # Declarations, comments left out, made definitions.
        sed -e ':a' -e 's@/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/@@g' -e '/\/\*/{N;ba}' "$1" | tr '\n' ' ' |
            grep -oE '(const char \*|int64_t |int |void |bool |tiered_(agent|cache|stream|job) \*)tiered_[a-z_]+\([^()]*\);' |
            sed -E 's/^void (.*);$/void \1 {}/; s/^([^v].*);$/\1 { return 0; }/'
    } >"$work/stub.c"
    "$cc" -x c -std=c11 -g -shared -fPIC -w -Wl,-soname,libtieredcache.so -o "$2" "$work/stub.c"
}
last=$(git -c versionsort.suffix=- tag --list --merged HEAD --sort=-version:refname |
    grep -m 1 -E '^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$' || true)
number() { awk '$2 == "TIERED_ABI" { print $3 }' "$1"; }
compare_abi() { # OLD-HEADER
    if ! command -v abidiff >/dev/null; then
        echo "check-library: abidiff is not installed; nothing was compared with $last" >&2
        return
    fi
    stub "$1" "$work/old.so"
    stub "$header" "$work/new.so"
    # Numbers are passed as int, which says nothing of them.
    numbers() { grep -oE 'TIERED_[A-Z_]+( = | )(-?[0-9]+|0x[0-9]+)' "$1" | sort -u; }
    numbers "$1" | comm -23 - <(numbers "$header") | grep . >&2 &&
        complain "these numbers of $last are gone; that needs another TIERED_ABI"
    nm --dynamic --defined-only --format=posix "$work/new.so" | cut -d ' ' -f 1 | sort |
        diff - scripts/library.symbols >&2 || complain "the comparison has missed declarations of the header"
    abidiff --no-added-syms --suppressions scripts/library.suppr "$work/old.so" "$work/new.so" >&2 ||
        complain "programs compiled for $last break; that needs another TIERED_ABI"
}
if [ -n "${CHECK_LIBRARY_OLD-}" ]; then
    last=$CHECK_LIBRARY_OLD
    compare_abi "$CHECK_LIBRARY_OLD"
elif [ -z "$last" ] || ! git show "$last:$header" >"$work/old.h" 2>/dev/null; then
    echo "check-library: no version has a library yet, so there is nothing to compare with"
elif [ "$(number "$work/old.h")" = "$(number "$header")" ]; then
    compare_abi "$work/old.h"
fi
[ -z "${CHECK_LIBRARY_OLD-}" ] || exit $wrong

has=$("${SWIFT:-swift}" --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p' | head -n 1)
if ! printf '6.3\n%s\n' "$has" | sort --version-sort --check=quiet; then
    echo "check-library: the library takes Swift 6.3, and this is $has; its header alone was checked"
    exit $wrong
fi

[ "${CHECK_LIBRARY_BUILD-}" = no ] || scripts/library.sh
library=$out/libtieredcache.so.$(number "$header")

nm --dynamic --defined-only --format=posix "$library" | cut -d ' ' -f 1 | sort >"$work/exported"
diff "$work/exported" scripts/library.symbols >&2 ||
    complain "the library exports (<) other functions than scripts/library.symbols lists (>)"
needed=$(ldd "$library")
if grep -qE 'libswift|libFoundation|lib_Foundation|libBlocksRuntime|libdispatch|not found' <<<"$needed"; then
    complain "the library needs what a machine without Swift has not: $needed"
fi
dynamic=$(readelf --dynamic --wide "$library")
grep -qF "[$(basename "$library")]" <<<"$dynamic" || complain "the library has no number in its name"
grep -q NODELETE <<<"$dynamic" || complain "the library could be unloaded"

# Loaded by a program that runs, as a plug-in is: not every thread-local variable may be.
env -i python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).tiered_abi() != int(sys.argv[2]))' \
    "$library" "$(number "$header")" || complain "dlopen fails"

# Not of the library as it is: what is asked for is hidden in it.
if [ "${CHECK_LIBRARY_BUILD-}" != no ]; then
    objects=$(scripts/library.sh objects 2>/dev/null | tail -n 1)
    "$cc" -std=c11 -O1 -fPIC -Wall -Wextra -Werror -c -o "$work/numbers.o" Tests/C/numbers.c
    "$cc" -shared -o "$work/none.so" "$work/numbers.o" 2>/dev/null &&
        complain "what asks for the numbers of threads links without the runtimes"
    echo numbers_are_right >"$work/names"
    link_shared "$work/numbers.so" "$work/names" "$objects" "$work/numbers.o"
    python3 - "$work/numbers.so" <<'PYTHON' || complain "the runtimes have the number of another thread"
import ctypes, os, sys
are_right = ctypes.CDLL(sys.argv[1]).numbers_are_right
assert are_right(), "after loading"
for generation in range(2):
    child = os.fork()
    if child != 0:
        os._exit(0 if os.waitpid(child, 0)[1] == 0 else 1)
    if not are_right():
        os._exit(1)
PYTHON
fi

# A host, by pkg-config as it was installed.
scripts/library.sh install /opt/tieredcache "$work/root" >/dev/null
installed=$work/root/opt/tieredcache
for directory in "$out" "$installed/lib/pkgconfig"; do
    PKG_CONFIG_PATH=$directory pkg-config --validate tieredcache || complain "pkg-config refuses $directory"
done
read -r -a flags < <(PKG_CONFIG_PATH=$installed/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root \
    pkg-config --cflags --libs tieredcache)
"$cc" -std=c11 -O1 -Wall -Wextra -Werror -o "$work/smoke" Tests/LibraryHost/smoke.c "${flags[@]}" \
    -pthread -Wl,-rpath,"$installed/lib"
mkfifo "$work/port"
mkdir "$work/files"
# Byte N of a megabyte is N % 251.
python3 -c 'import sys; sys.stdout.buffer.write(bytes(n % 251 for n in range(1 << 20)))' >"$work/files/film"
python3 Tests/C/origin.py "$work/files" >"$work/port" &
origin=$!
read -r port <"$work/port"
if report=$(env -i "$work/smoke" "$port" "$work/cache"); then
    version=$(sed -n 's/.*version: "\(.*\)",/\1/p' Sources/TieredCacheCLI/RootCommand.swift)
    grep FIGURE <<<"$report" || true
    [ "$(tail -n 1 <<<"$report")" = "$version" ] ||
        complain "the library says that it is $(tail -n 1 <<<"$report"), the program $version"
else
    complain "the host has failed: $report"
fi

# A host in Swift, with the runtime and Foundation of the toolchain beside those inside (swiftlang/swift #81367).
echo "module CTieredCache { header \"$installed/include/tieredcache.h\" export * }" >"$work/module.modulemap"
if "${SWIFT:-swift}c" -swift-version 6 -O -o "$work/swift-host" Tests/LibraryHost/host.swift -I "$work" \
    -L "$installed/lib" -ltieredcache -Xlinker -rpath -Xlinker "$installed/lib"; then
    # Not in a pipe: grep leaves at what it finds, and ldd would fail.
    grep -q libFoundation.so <<<"$(ldd "$work/swift-host")" || complain "the host in Swift has no Foundation of its own"
    "$work/swift-host" "http://127.0.0.1:$port/film" "$work/files/film" "$work/swift-cache" ||
        complain "a host in Swift with Foundation of its own fails"
else
    complain "the host in Swift does not compile"
fi

[ $wrong -eq 0 ] || exit 1
echo "check-library: the library keeps what it promises; $(stat -c %s "$library") bytes, and it needs" \
    "$(sed -n 's/^[[:space:]]*\([^ ]*\) => .*/\1/p' <<<"$needed" | paste -sd ' ')"
