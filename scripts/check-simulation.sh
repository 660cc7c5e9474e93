#!/usr/bin/env bash
# Shows that the simulation finds what it was made to find: takes repairs of the engine back, one at a time,
# and runs the simulation until it fails.
#
#   scripts/check-simulation.sh [NAME...]
#
# NAME are names of Tests/SimulationTests/Mutations/NAME.patch, by default all. Each patch is applied to a copy
# of the sources in .build/check-simulation, which is built there; then its own seed is run (the line "Seed: N"
# of the patch), and if that one passes, seeds from 1 on for SEARCH_SECONDS seconds (600). With all repairs in
# place the same seeds have to pass, else they would say nothing. Prints a row of docs/simulation.md for each.
# Exits with 1 where a repair that is missing is not noticed. Takes half an hour on 2 cores.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
swift=${SWIFT:-swift}
search_seconds=${SEARCH_SECONDS:-600}
mutations=$root/Tests/SimulationTests/Mutations
work=$root/.build/check-simulation
if [ $# -eq 0 ]; then
    for patch in "$mutations"/*.patch; do set -- "$@" "$(basename "$patch" .patch)"; done
fi
mkdir -p "$work"
# In a work tree git passes over files that the repository ignores.
export GIT_CEILING_DIRECTORIES=$root/.build

# Makes the sources those of the repository. Dates are kept, so that the next build compiles what has changed.
restore() {
    rm -rf "$work/Sources" "$work/Tests"
    mkdir "$work/Tests"
    cp -a Sources "$work"
    cp -a Tests/SimulationTests "$work/Tests"
    {
        cat Package.swift
        echo 'let kept: Set = ["CLibcrypto", "CLinuxCalls", "CXXHash", "CZlib", "HTTPCaching", "HTTPTransport", "SimulationTests",'
        echo '    "TestParts", "TieredCache", "TieredCacheTesting"]'
        echo 'package.targets.removeAll { !kept.contains($0.name) }'
        echo 'package.products.removeAll { !kept.contains($0.name) }'
    } >"$work/Package.swift.new"
    cmp -s "$work/Package.swift.new" "$work/Package.swift" || cp "$work/Package.swift.new" "$work/Package.swift"
    if [ -e Package.resolved ]; then cp -a Package.resolved "$work"; fi
}

# Without traits: the simulation needs no TLS, whose library takes longest to compile.
build() {
    (cd "$work" && "$swift" build --disable-default-traits --product TieredCachePackageTests) \
        >"$work/build.log" 2>&1 && return
    grep -E 'error' "$work/build.log" >&2 || tail -n 20 "$work/build.log" >&2
    return 1
}

# Runs seeds from FIRST on for SECONDS seconds, one at least; prints how it ended.
simulate() { # FIRST SECONDS
    local bundle=$work/.build/debug/TieredCachePackageTests.xctest
    (cd "$work" && TIEREDCACHE_SIMULATION_FIRST=$1 TIEREDCACHE_SIMULATION_SECONDS=$2 \
        "$bundle" --testing-library swift-testing --filter SimulationTests/promises) >"$work/run.log" 2>&1 || true
    grep -oE -m 1 'seed [0-9]+ begins: .*|all is well: .*' "$work/run.log" || {
        echo "check-simulation: the run ended in another way; see $work/run.log" >&2
        return 1
    }
}

seed_of() { # NAME
    sed -n 's/^Seed: //p' "$mutations/$1.patch"
}

restore
build
for name in "$@"; do
    ended=$(simulate "$(seed_of "$name")" 0)
    case $ended in
    "all is well"*) ;;
    *)
        echo "check-simulation: fails with all repairs in place: $ended" >&2
        exit 1
        ;;
    esac
done

missed=0
for name in "$@"; do
    patch=$mutations/$name.patch
    restore
    (cd "$work" && git apply "$patch")
    build
    ended=$(simulate "$(seed_of "$name")" 0)
    case $ended in "all is well"*) ended=$(simulate 1 "$search_seconds") ;; esac
    what=$(sed -n '1s/^Takes the repair of defect \(.*\) back: \(.*\)\.$/\1: \2/p' "$patch")
    case $ended in
    "all is well"*)
        echo "check-simulation: not noticed: $what; $ended" >&2
        missed=$((missed + 1))
        ;;
    *) echo "| $what | $name | $(sed -E 's/^seed .*FAILED: seed ([0-9]+), step ([0-9]+): /\1 | \2 | /' <<<"$ended") |" ;;
    esac
done
[ "$missed" -eq 0 ]
