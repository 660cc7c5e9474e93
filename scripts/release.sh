#!/usr/bin/env bash
# Makes a version: checks what a version promises, then tags the commit that is checked out.
#
#   scripts/release.sh [--dry-run] VERSION
#
# VERSION is X.Y.Z or X.Y.Z-PRERELEASE. What must hold: the tree is clean; the version is newer than all tags;
# CHANGELOG.md has a section of it with a date, and nothing below [Unreleased]; the program and the library for C
# say that they are that version; `make test` and `make check` pass; `make api` finds no breaking change, but for a new
# major version, or a new minor one before 1.0.0. `--dry-run` checks all that needs no build, and prints the commands that would follow.
# Pushing the tag is left to the caller.
set -euo pipefail
cd "$(dirname "$0")/.."

refuse() {
    echo "release: $1" >&2
    exit 1
}

is_dry=
if [ "${1-}" = --dry-run ]; then
    is_dry=yes
    shift
fi
[ $# -eq 1 ] || { echo "usage: release.sh [--dry-run] VERSION" >&2; exit 64; }
version=$1

number='(0|[1-9][0-9]*)'
identifier='(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)'
semver="^$number\.$number\.$number(-$identifier(\.$identifier)*)?$"
[[ $version =~ $semver ]] || refuse "'$version' is no version of the form X.Y.Z or X.Y.Z-PRERELEASE"

[ -z "$(git status --porcelain)" ] || refuse "the tree has changes that are not committed"

newest=$(git -c versionsort.suffix=- tag --list --sort=version:refname | grep -E "$semver" | tail -n 1 || true)
[ -z "$(git tag --list "$version")" ] || refuse "there is a tag $version already"
if [ -n "$newest" ]; then
    # In the order of `sort -V` a tilde stands before the end of a line: a prerelease is older than its version.
    last=$(printf '%s\n' "$newest" "$version" | sed 's/-/~/' | sort -V | tail -n 1 | sed 's/~/-/')
    [ "$last" = "$version" ] || refuse "$version is older than $newest"
fi

section() { # HEAD: the lines of CHANGELOG.md below it
    awk -v head="## [$1]" 'index($0, "## ") == 1 { isIn = index($0, head) == 1; next } isIn && NF' CHANGELOG.md
}
grep -qE "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
    refuse "CHANGELOG.md has no line '## [$version] - YYYY-MM-DD'"
[ -n "$(section "$version")" ] || refuse "CHANGELOG.md says nothing of $version"
[ -z "$(section Unreleased)" ] || refuse "CHANGELOG.md has lines below [Unreleased]; they belong to a version"

program=Sources/TieredCacheCLI/RootCommand.swift
grep -qF "version: \"$version\"" "$program" || refuse "$program does not say that it is $version"
library=Sources/TieredCacheC/Functions+Cache.swift
grep -qF "constant(\"$version\")" "$library" || refuse "$library does not say that it is $version"

# Whether programs written for the last version may break: by semantic versioning.
may_break() {
    local old new
    IFS=. read -r -a old <<<"${newest%%-*}"
    IFS=. read -r -a new <<<"${version%%-*}"
    [ "${new[0]}" -gt "${old[0]}" ] || { [ "${new[0]}" -eq 0 ] && [ "${new[1]}" -gt "${old[1]}" ]; }
}

if [ -n "$is_dry" ]; then
    echo "release: $version can be made; without --dry-run this follows:"
    printf '  %s\n' "make test" "make check WITHOUT=check-api" "make api" \
        "git tag --annotate $version, with the section of CHANGELOG.md"
    exit 0
fi

make test || refuse "make test failed; there is no tag"
make check WITHOUT=check-api || refuse "make check failed; there is no tag"
if ! make api; then
    may_break || refuse "$version breaks programs written for $newest; that needs a new major version"
    echo "release: programs written for $newest break, as a version like $version may do"
fi
[ -z "$(git status --porcelain)" ] || refuse "the tests have changed the tree; there is no tag"
{
    echo "TieredCache $version"
    echo
    section "$version"
} | git tag --annotate "$version" --cleanup=verbatim --file=-
echo "release: tagged $(git rev-parse --short HEAD) as $version; it is public after: git push origin $version"
