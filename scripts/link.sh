#!/usr/bin/env bash
# How the library for C and the plug-ins are linked: scripts/library.sh and scripts/plugins.sh read this file.
#
# The runtime of Swift is linked in and hidden: a version script exports what a list names, and nothing else.
# -Bsymbolic binds what is inside to itself, also where the host is written in Swift. What was loaded stays loaded
# (nodelete), since its threads do. --wrap keeps SwiftNIO and the runtime from changing what the host's signals do,
# signals from its threads, and Dispatch from ending a host without descriptors (Sources/CTieredCache/wrappers.c). A
# host may fork before it opens a cache (Sources/CTieredCache/forked.c).

# link_shared OUTPUT SYMBOLS OBJECTS ARGUMENT...
#   SYMBOLS: a file with the names to export, one a line. OBJECTS: the list of objects that SwiftPM leaves. The
#   arguments go to swiftc: further objects and libraries.
link_shared() {
    local output=$1 symbols=$2 objects=$3
    shift 3
    {
        echo '{ global:'
        sed 's/$/;/' "$symbols"
        echo 'local: *; };'
    } >"$output.map"
    "$(scripts/compiler.sh)" -std=c11 -O2 -fPIC -Wall -Wextra -Werror -c Sources/CTieredCache/forked.c \
        -o "$output.forked.o"
    "${SWIFT:-swift}c" -emit-library -static-stdlib -use-ld=lld -o "$output" "@$objects" "$output.forked.o" "$@" \
        -Xlinker "--version-script=$output.map" \
        -Xlinker --gc-sections -Xlinker --icf=safe -Xlinker -Bsymbolic \
        -Xlinker -z -Xlinker nodelete -Xlinker -z -Xlinker now -Xlinker -z -Xlinker relro \
        -Xlinker --wrap=signal -Xlinker --wrap=sigaction -Xlinker --wrap=pthread_create -Xlinker --wrap=open
    rm -f "$output.map" "$output.forked.o"
}

# exported FILE: the names that it exports, in order.
exported() { nm --dynamic --defined-only --format=posix "$1" | cut -d ' ' -f 1 | LC_ALL=C sort; }

# needs_swift FILE: whether it needs what a machine without Swift has not; prints that.
needs_swift() { ldd "$1" | grep -E 'libswift|libFoundation|lib_Foundation|libBlocksRuntime|libdispatch|not found'; }
