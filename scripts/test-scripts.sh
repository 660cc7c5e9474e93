#!/usr/bin/env bash
# Tests scripts/release.sh and scripts/api.sh in a repository of their own, with make and swift replaced, how
# scripts/check-library.sh compares headers, scripts/tests.py with a bundle that is none, scripts/check.py with targets
# that are none, and Benchmarks/compare.py. Takes seconds, builds nothing. Prints each case that fails, and exits with
# 1 then.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-scripts-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# What the user has configured for git does not count here.
export HOME=$scratch GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@example.com
export GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@example.com
passed=0
failed=0

# A repository in which 0.2.0 can be made. Its Makefile notes what was run, and fails where FAIL says so.
fresh() {
    rm -rf "$scratch/repository" "$scratch/ran"
    mkdir -p "$scratch/repository/scripts" "$scratch/repository/Sources/TieredCacheCLI" \
        "$scratch/repository/Sources/TieredCacheC"
    cd "$scratch/repository"
    git init --quiet --initial-branch=main .
    cp "$root/scripts/release.sh" "$root/scripts/api.sh" scripts/
    # shellcheck disable=SC2016 # make expands these
    printf 'test check api:\n\t@echo $@ >>%s\n\t@case " $$FAIL " in *" $@ "*) exit 1;; esac\n' \
        "$scratch/ran" >Makefile
    say_version 0.2.0
    commit
}

say_version() { # VERSION: program, library and changelog speak of it
    echo "    version: \"$1\"," >Sources/TieredCacheCLI/RootCommand.swift
    echo "constant(\"$1\")" >"Sources/TieredCacheC/Functions+Cache.swift"
    printf '# Changelog\n\n## [Unreleased]\n\n## [%s] - 2026-01-02\n\n- It works.\n' "$1" >CHANGELOG.md
}

commit() { git add -A && git commit --quiet --allow-empty -m "A commit"; }

# What a script says must contain EXPECTED, its status be STATUS.
expect() { # NAME STATUS EXPECTED COMMAND...
    local name=$1 status=$2 expected=$3 said actual=0
    shift 3
    said=$("$@" 2>&1) || actual=$?
    if [ "$actual" -eq "$status" ] && [[ $said == *"$expected"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED %s: status %s, not %s; it said: %s\n' "$name" "$actual" "$status" "$said" >&2
    fi
}

expect_refusal() { # NAME EXPECTED [VERSION]: nothing is tagged either
    local before
    before=$(git tag --list)
    expect "$1" 1 "$2" scripts/release.sh "${3:-0.2.0}"
    expect "$1: no tag" 0 "[$before]" echo "[$(git tag --list)]"
}

ran() { if [ -e "$scratch/ran" ]; then paste -sd ' ' "$scratch/ran"; else echo nothing; fi; }

fresh
expect "no version" 64 usage scripts/release.sh
expect "two versions" 64 usage scripts/release.sh 0.2.0 0.3.0
for version in 0.2 v0.2.0 0.02.0 0.2.0- 0.2.0-01 0.2.0+1 'latest'; do
    expect_refusal "not a version: $version" "is no version" "$version"
done
echo more >>Makefile
expect_refusal "a changed file" "not committed"
git checkout --quiet Makefile
touch stray
expect_refusal "a file that is not committed" "not committed"
rm stray

expect_refusal "no section" "no line '## [0.3.0] - YYYY-MM-DD'" 0.3.0
printf '## [Unreleased]\n\n## [0.2.0]\n\n- It works.\n' >CHANGELOG.md && commit
expect_refusal "a section without date" "no line '## [0.2.0] - YYYY-MM-DD'"
printf '## [Unreleased]\n\n## [0.2.0] - 2026-01-02\n\n## [0.1.0] - 2026-01-01\n\n- Old.\n' >CHANGELOG.md && commit
expect_refusal "an empty section" "says nothing of 0.2.0"
printf '## [Unreleased]\n\n- New.\n\n## [0.2.0] - 2026-01-02\n\n- It works.\n' >CHANGELOG.md && commit
expect_refusal "lines below Unreleased" "below [Unreleased]"

fresh
echo '    version: "0.1.0",' >Sources/TieredCacheCLI/RootCommand.swift && commit
expect_refusal "the program says another version" "does not say that it is 0.2.0"

fresh
echo 'constant("0.1.0")' >"Sources/TieredCacheC/Functions+Cache.swift" && commit
expect_refusal "the library says another version" "does not say that it is 0.2.0"

fresh
git tag 0.2.0
expect_refusal "the tag is there" "already"
git tag --delete 0.2.0 >"$scratch/log"
git tag 0.10.0
expect_refusal "older than the last" "0.2.0 is older than 0.10.0"
git tag --delete 0.10.0 >"$scratch/log"
git tag 0.2.1-beta.1
expect_refusal "older than a prerelease" "0.2.0 is older than 0.2.1-beta.1"
expect "nothing was run for a refusal" 0 nothing ran

fresh
FAIL="test" expect_refusal "failing tests" "make test failed"
expect "failing tests: that was all" 0 test ran
FAIL="check" expect_refusal "failing checks" "make check failed"
git tag 0.2.0-rc.1
FAIL=api expect_refusal "a break in the same minor version" "needs a new major version"
git tag --delete 0.2.0-rc.1 >"$scratch/log"
git tag 0.1.7
FAIL=api expect "a break in a new minor version before 1.0.0" 0 "tagged" scripts/release.sh 0.2.0

fresh
say_version 1.3.0 && commit
git tag 1.2.0
FAIL=api expect_refusal "a break in a minor version" "needs a new major version" 1.3.0
say_version 2.0.0 && commit
FAIL=api expect "a break in a major version" 0 "tagged" scripts/release.sh 2.0.0

fresh
git tag 0.2.0-rc.1
expect "a dry run" 0 "can be made" scripts/release.sh --dry-run 0.2.0
expect "a dry run makes no tag" 0 "[0.2.0-rc.1]" echo "[$(git tag --list)]"
expect "a dry run builds nothing" 0 nothing ran
expect "a version" 0 "as 0.2.0" scripts/release.sh 0.2.0
expect "a version is tested and compared" 0 "test check api" ran
expect "its tag has the section of the changelog" 0 "- It works." git tag --list -n9 0.2.0
expect "its tag is annotated" 0 "tag" git cat-file -t 0.2.0

# scripts/api.sh, where swift says which arguments it got.
fresh
# shellcheck disable=SC2016 # the script expands these
printf '#!/bin/sh\necho "swift got $*"\nexit "${SWIFT_STATUS:-0}"\n' >"$scratch/swift" && chmod +x "$scratch/swift"
export SWIFT=$scratch/swift
expect "no version yet" 0 "no version tag" scripts/api.sh
git tag v0.1 && git tag nightly
expect "other tags are no versions" 0 "no version tag" scripts/api.sh
git tag 0.9.0 && git tag 0.10.0 && git tag 0.10.0-rc.1
expect "the newest version" 0 "diagnose-api-breaking-changes 0.10.0 " scripts/api.sh
SWIFT_STATUS=1 expect "a break" 1 "break programs written for 0.10.0" scripts/api.sh
git checkout --quiet -b side && git commit --quiet --allow-empty -m "Aside" && git tag 0.11.0
git checkout --quiet main
expect "a version of another branch" 0 "diagnose-api-breaking-changes 0.10.0 " scripts/api.sh
echo "API breakage: func f() has been removed" >scripts/api-allowed.txt
expect "what is allowed is passed on" 0 "--breakage-allowlist-path scripts/api-allowed.txt" scripts/api.sh

# scripts/check-library.sh compares headers: what a program was compiled with stays.
cd "$root"
header=Sources/CTieredCache/include/tieredcache.h
compare() { # NAME STATUS EXPECTED SED: the old header is the present one, changed
    command -v abidiff >/dev/null || return 0
    sed "$4" "$header" >"$scratch/old.h"
    CHECK_LIBRARY_OLD=$scratch/old.h expect "$1" "$2" "$3" scripts/check-library.sh
}
compare "the same header" 0 "" ""
compare "a function has come" 0 "" '/^int tiered_abi(void);/d'
compare "a struct has grown at its end" 0 "" '/ read_ahead;/d'
compare "a status has come" 0 "" '/TIERED_E_UNKNOWN = -16/d'
compare "a function has gone" 1 "[D] 'function int tiered_gone" 's/^int tiered_abi(void);/&\nint tiered_gone(void);/'
compare "a result is another type" 1 "return type changed" 's/^int tiered_stream_fd/int64_t tiered_stream_fd/'
compare "a struct has changed in its middle" 1 "another TIERED_ABI" 's/int32_t deadline_ms;/int64_t deadline_ms;/'
compare "a status has another number" 1 "TIERED_E_TIMEOUT = -55" 's/TIERED_E_TIMEOUT = -5,/TIERED_E_TIMEOUT = -55,/'

# scripts/tests.py tells what became of tests.
place=$scratch/tests
mkdir -p "$place/scripts" "$place/.build/debug"
cp scripts/tests.py scripts/check.py "$place/scripts/"
printf '#!/bin/sh\necho its threads\n' >"$place/scripts/stacks.sh" && chmod +x "$place/scripts/stacks.sh"
cp scripts/bundle.py "$place/.build/debug/TieredCachePackageTests.xctest"
run_tests() { # NAME STATUS EXPECTED TESTS [ARGUMENT...]
    local name=$1 status=$2 expected=$3 tests=$4
    shift 4
    rm -f "$scratch/seen"
    TEST_BUILD=no TEST_SILENCE=2 SEEN=$scratch/seen TESTS=$tests expect "$name" "$status" "$expected" \
        "$place/scripts/tests.py" --slowest 0 "$@"
}
run_tests "all pass" 0 "2 passed, 0 failed, 0 skipped" "passes long" all
run_tests "a part by its tag" 0 "1 passed, 0 failed, 0 skipped" "passes long" long
run_tests "one is skipped" 0 "skipped: M.Skips/skips()" "passes skips"
run_tests "one fails" 1 "1 passed, 1 failed, 0 skipped" "passes fails"
run_tests "one that is unsteady passes when it runs once more" 0 "unsteady: M.Unsteady/unsteady(): unsteady" \
    "unsteady passes"
run_tests "one that fails twice" 1 "0 passed, 1 failed, 0 skipped" late
run_tests "one that ends its process, and the others run" 1 "1 passed, 1 failed, 0 skipped" "crashes passes"
run_tests "how it ended" 1 "it ended its process with status -9" crashes
run_tests "one that hangs" 1 "it hung" hangs
run_tests "its threads" 1 "its threads" hangs
run_tests "again and again" 1 "1 failed" "fails" --repeat 3
run_tests "no such suite" 1 "no test fits" passes --suites Q

# scripts/check.py runs what is needed first, and tells of each part.
# shellcheck disable=SC2016 # make expands these
printf '%%:\n\t@case " $$FAIL " in *" $@ "*) exit 3;; esac\n\t@echo "1 passed, 0 failed, 0 skipped"\n' >"$place/Makefile"
run_parts() { # NAME STATUS EXPECTED PARTS
    # shellcheck disable=SC2086
    expect "$1" "$2" "$3" "$place/scripts/check.py" $4
}
run_parts "two parts" 0 "2 passed, 0 failed, 0 skipped" "test check-docs"
FAIL=check-docs run_parts "one fails" 1 "failed with status 2" "check-docs check-library"
FAIL=check-docs run_parts "the other runs" 1 "1 passed" "check-docs check-library"
FAIL=check-library run_parts "one needs it" 1 "not run: check-library failed" "check-library check-hosts"
run_parts "all but one" 0 "13 passed, 0 failed, 0 skipped" "--without=check-api test check"
run_parts "no such part" 1 "there is no part nothing" nothing

expect "Benchmarks/compare.py" 0 OK python3 -B Benchmarks/compare_tests.py

echo "test-scripts: $passed cases passed, $failed failed"
[ "$failed" -eq 0 ]
