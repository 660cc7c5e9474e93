// swift-tools-version:6.2
import PackageDescription

// Apart from the engine's package: only a build with `--sanitize fuzzer` links these programs, for
// whose `main` is libFuzzer's.
let package = Package(
    name: "Fuzzing",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "TieredCache", path: "..", traits: []),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-system.git", from: "1.8.1"),
    ],
    targets: [
        .executableTarget(
            name: "EngineFuzzer",
            dependencies: [
                .product(name: "HTTPCaching", package: "TieredCache"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "TieredCache", package: "TieredCache"),
                .product(name: "TieredCacheTesting", package: "TieredCache"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
        .executableTarget(
            name: "RecordFuzzer",
            dependencies: [
                .product(name: "HTTPCaching", package: "TieredCache"),
                .product(name: "TieredCache", package: "TieredCache"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
        .executableTarget(
            name: "FieldFuzzer",
            dependencies: [
                .product(name: "HTTPCaching", package: "TieredCache"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
        .executableTarget(
            name: "PlaylistFuzzer",
            dependencies: [.product(name: "HTTPCaching", package: "TieredCache")],
            swiftSettings: [
                .treatAllWarnings(as: .error),
                // As the sources expect, which are the proxy's.
                .enableUpcomingFeature("InternalImportsByDefault"),
            ]
        ),
        .executableTarget(
            name: "ResponseFuzzer",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: [
                .treatAllWarnings(as: .error),
                // As the sources expect, which are the transport's.
                .enableUpcomingFeature("InternalImportsByDefault"),
            ]
        ),
        .executableTarget(
            name: "RequestFuzzer",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: [
                .treatAllWarnings(as: .error),
                // As the sources expect, which are the proxy's.
                .enableUpcomingFeature("InternalImportsByDefault"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
