#!/usr/bin/env bash
# Builds a one-line program on the TieredCache library alone, its traits off, and checks three
# promises: the library builds without SwiftNIO, and such a program does not
# load full Foundation (FoundationEssentials is allowed); AsyncHTTPClient has a trait of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
swift=${SWIFT:-swift}
work=$root/.build/verify-no-foundation
mkdir -p "$work/Sources/Embedder"

cat >"$work/Package.swift.new" <<PACKAGE
// swift-tools-version:6.2
import PackageDescription

let package = Package(
    name: "Embedder",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "TieredCache", path: "../..", traits: [])],
    targets: [
        .executableTarget(
            name: "Embedder",
            dependencies: [.product(name: "TieredCache", package: "TieredCache")]
        )
    ]
)
PACKAGE
cat >"$work/Sources/Embedder/main.swift.new" <<'SWIFT'
import TieredCache

print(CacheKey(explicit: "embedded").string)
SWIFT
# Untouched files keep their dates, and the build of the last time its validity.
for file in "$work/Package.swift" "$work/Sources/Embedder/main.swift"; do
    cmp -s "$file.new" "$file" || cp "$file.new" "$file"
    rm "$file.new"
done

# Run inside the directory: from outside, a relative path to this package is not found.
cd "$work"
log=$work/build.log
"$swift" build --product Embedder >"$log" 2>&1 || {
    grep -E "error|warning: unre" "$log" >&2 || cat "$log" >&2
    echo "verify-no-foundation: TieredCache does not build without its traits" >&2
    exit 1
}
program=$("$swift" build --show-bin-path)/Embedder
"$program" >/dev/null

# Counted rather than grep -q, which would end nm early and hide the match behind pipefail.
if [ "$(nm "$program" | grep -c 'NIOPosix')" -ne 0 ]; then
    echo "verify-no-foundation: SwiftNIO is linked although the traits are off" >&2
    exit 1
fi
libraries=$(ldd "$program")
if grep -qE '(^|[[:space:]/])libFoundation\.so|libFoundationNetworking\.so' <<<"$libraries"; then
    echo "verify-no-foundation: a program that only imports TieredCache loads full Foundation:" >&2
    grep Foundation <<<"$libraries" >&2
    exit 1
fi

# With the transport alone, what only AsyncHTTPClient needs is not even resolved.
mkdir -p "$work/transport"
sed -e 's|path: "../.."|path: "../../.."|' -e 's|traits: \[\]|traits: ["HTTPClient"]|' Package.swift >"$work/transport/Package.swift"
cp -R Sources "$work/transport"
(cd "$work/transport" && rm -f Package.resolved && "$swift" package resolve >"$log" 2>&1) || {
    cat "$log" >&2
    exit 1
}
if grep -q '"async-http-client"' "$work/transport/Package.resolved"; then
    echo "verify-no-foundation: AsyncHTTPClient is resolved although its trait is off" >&2
    exit 1
fi
echo "verify-no-foundation: TieredCache builds without its traits and without full Foundation"
