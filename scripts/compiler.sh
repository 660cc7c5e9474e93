#!/usr/bin/env bash
# Prints the compiler for C (`compiler.sh`) or for C++ (`compiler.sh ++`): CC or CXX, that of the machine, or else the
# clang of the Swift toolchain.
set -euo pipefail
chosen=${CC-}
[ -z "${1-}" ] || chosen=${CXX-}
[ -n "$chosen" ] || chosen=$(command -v "c${1:-c}" || command -v "clang${1-}" ||
    echo "$(dirname "$(readlink -f "$(command -v "${SWIFT:-swift}")")")/clang${1-}")
echo "$chosen"
