// swift-tools-version:6.2
import PackageDescription

/// The settings that every target of ours is held to, and no dependency.
let house: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "TieredCache",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .visionOS(.v2), .watchOS(.v11)],
    products: [
        .library(name: "TieredCache", targets: ["TieredCache"]),
        .library(name: "HTTPCaching", targets: ["HTTPCaching"]),
        .library(name: "TieredCacheProxy", targets: ["TieredCacheProxy"]),
        .library(name: "TieredCacheAgent", targets: ["TieredCacheAgent"]),
        .library(name: "TieredCacheObservability", targets: ["TieredCacheObservability"]),
        .library(name: "TieredCacheTesting", targets: ["TieredCacheTesting"]),
        .library(name: "TieredCacheHTTPClient", targets: ["TieredCacheHTTPClient"]),
        .library(name: "TieredCacheFoundation", targets: ["TieredCacheFoundation"]),
        .library(name: "TieredCacheImages", targets: ["TieredCacheImages"]),
        .executable(name: "tieredcache", targets: ["TieredCacheCLI"]),
    ],
    traits: [
        .trait(
            name: "HTTPClient",
            description:
                "The transport on SwiftNIO. Without it, pass your own Transport."
        ),
        .trait(
            name: "AsyncHTTPClient",
            description: "The product TieredCacheHTTPClient, for users of AsyncHTTPClient.",
            enabledTraits: ["HTTPClient"]
        ),
        .default(enabledTraits: ["AsyncHTTPClient", "HTTPClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2", traits: []),
    ],
    targets: [
        .systemLibrary(
            name: "CLibcrypto",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]
        ),
        .systemLibrary(
            name: "CXXHash",
            pkgConfig: "libxxhash",
            providers: [.apt(["libxxhash-dev"]), .brew(["xxhash"])]
        ),
        .systemLibrary(
            name: "CZlib",
            pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]
        ),
        .target(name: "CLinuxCalls"),
        .target(
            name: "HTTPCaching",
            dependencies: [
                "CLibcrypto",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(
                    name: "RawStructuredFieldValues",
                    package: "swift-http-structured-headers"
                ),
            ],
            swiftSettings: house
        ),
        .target(
            name: "HTTPTransport",
            dependencies: [
                // For `TargetURI`: one reader of authorities.
                "HTTPCaching",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ],
            swiftSettings: house
        ),
        .target(
            name: "TieredCache",
            dependencies: [
                "CLibcrypto",
                "CLinuxCalls",
                "CXXHash",
                "CZlib",
                "HTTPCaching",
                .target(name: "HTTPTransport", condition: .when(traits: ["HTTPClient"])),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "OrderedCollections", package: "swift-collections"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(
                    name: "NIOCore",
                    package: "swift-nio",
                    condition: .when(traits: ["HTTPClient"])
                ),
                .product(
                    name: "NIOPosix",
                    package: "swift-nio",
                    condition: .when(traits: ["HTTPClient"])
                ),
            ],
            swiftSettings: house
        ),
        .target(
            name: "TieredCacheProxy",
            dependencies: [
                "CLinuxCalls",
                "HTTPCaching",
                "TieredCache",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: house
        ),
        .target(
            name: "TieredCacheAgent",
            dependencies: [
                "CLinuxCalls",
                "CXXHash",
                "HTTPCaching",
                "TieredCache",
                "TieredCacheProxy",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "OrderedCollections", package: "swift-collections"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: house
        ),
        .target(
            name: "TieredCacheObservability",
            dependencies: [
                "HTTPCaching",
                "TieredCache",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Instrumentation", package: "swift-distributed-tracing"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: house
        ),
        .target(
            name: "TieredCacheTesting",
            dependencies: [
                "CLinuxCalls",
                "HTTPCaching",
                "TieredCache",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: house
        ),
        .target(
            name: "TieredCacheHTTPClient",
            dependencies: [
                "HTTPCaching",
                "TieredCache",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(
                    name: "NIOCore",
                    package: "swift-nio",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(
                    name: "NIOHTTP1",
                    package: "swift-nio",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
            ],
            swiftSettings: house
        ),
        // The only one with full Foundation.
        .target(
            name: "TieredCacheFoundation",
            dependencies: [
                "HTTPCaching",
                "TieredCache",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: house
        ),
        .target(
            name: "TieredCacheImages",
            dependencies: [
                "HTTPCaching",
                "TieredCache",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: house
        ),
        .executableTarget(
            name: "TieredCacheCLI",
            dependencies: [
                "CLinuxCalls",
                "HTTPCaching",
                "TieredCache",
                "TieredCacheAgent",
                "TieredCacheProxy",
                "TieredCacheTesting",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Subprocess", package: "swift-subprocess"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: house
        ),
        .target(
            name: "TieredCacheImageLibraries",
            dependencies: [
                "TieredCache",
                "TieredCacheFoundation",
                "TieredCacheImages",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            path: "Examples/ImageLibraries",
            swiftSettings: house
        ),
        .executableTarget(
            name: "TieredCacheExamples",
            dependencies: [
                "HTTPCaching",
                "TieredCache",
                "TieredCacheAgent",
                "TieredCacheFoundation",
                "TieredCacheHTTPClient",
                "TieredCacheProxy",
                "TieredCacheTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Subprocess", package: "swift-subprocess"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            path: "Examples",
            exclude: ["C", "Gallery", "ImageLibraries", "README.md", "ResponseCache"],
            swiftSettings: house
        ),
        // What decides when a test runs.
        .target(name: "TestParts", path: "Tests/TestParts", swiftSettings: house),
        // Stands in front of the runtime's allocator, for tests that count objects.
        .target(name: "CAllocatedObjects", path: "Tests/CAllocatedObjects"),
        .testTarget(
            name: "HTTPCachingTests",
            dependencies: [
                "HTTPCaching",
                "TestParts",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "HTTPTransportTests",
            dependencies: [
                "HTTPTransport",
                "TestParts",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheTests",
            dependencies: [
                "CAllocatedObjects",
                "CZlib",
                "HTTPTransport",
                "TestParts",
                "TieredCache",
                "TieredCacheObservability",
                "TieredCacheTesting",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            exclude: ["Disk/Fixtures"],
            swiftSettings: house
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["HTTPCaching", "TestParts", "TieredCache", "TieredCacheTesting"],
            exclude: ["Mutations"],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheProxyTests",
            dependencies: [
                "TestParts",
                "TieredCacheProxy",
                "TieredCacheTesting",
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheAgentTests",
            dependencies: [
                "TestParts",
                "TieredCache",
                "TieredCacheAgent",
                "TieredCacheTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "OrderedCollections", package: "swift-collections"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheObservabilityTests",
            dependencies: [
                "TieredCache",
                "TieredCacheObservability",
                "TieredCacheProxy",
                "TieredCacheTesting",
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheTestingTests",
            dependencies: ["TestParts", "TieredCache", "TieredCacheTesting"],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheCLITests",
            dependencies: [
                "TestParts",
                "TieredCacheCLI",
                "TieredCacheTesting",
                .product(name: "Subprocess", package: "swift-subprocess"),
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheHTTPClientTests",
            dependencies: [
                "TestParts",
                "TieredCacheHTTPClient",
                "TieredCacheTesting",
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheFoundationTests",
            dependencies: [
                "TestParts",
                "TieredCacheFoundation",
                "TieredCacheTesting",
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "TieredCacheImagesTests",
            dependencies: [
                "TestParts",
                "TieredCache",
                "TieredCacheFoundation",
                "TieredCacheImageLibraries",
                "TieredCacheImages",
                "TieredCacheTesting",
            ],
            swiftSettings: house
        ),
        .executableTarget(
            name: "DiskKillWorker",
            dependencies: [
                "TieredCache",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests/DiskKillWorker",
            swiftSettings: house
        ),
        // The clients with a cache as a proxy, for tests of caches from outside.
        .executableTarget(
            name: "ClientForwarder",
            dependencies: [
                "TieredCache",
                "TieredCacheFoundation",
                "TieredCacheHTTPClient",
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Tests/ClientForwarder",
            swiftSettings: house
        ),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "ClientForwarder",
                "DiskKillWorker",
                "TestParts",
                "TieredCache",
                "TieredCacheAgent",
                "TieredCacheCLI",
                "TieredCacheExamples",
                "TieredCacheProxy",
                "TieredCacheTesting",
                .product(name: "Subprocess", package: "swift-subprocess"),
            ],
            swiftSettings: house
        ),
    ],
    swiftLanguageModes: [.v6]
)

// The library for C. Its functions are checked against the header, which takes Swift 6.3, and its
// descriptors to wait with are those of Linux.
#if compiler(>=6.3) && os(Linux)
package.products.append(
    .library(name: "TieredCacheC", type: .static, targets: ["TieredCacheC"])
)
package.targets += [
    // Linked where the runtime of Swift is inside, see scripts/link.sh.
    .target(name: "CTieredCache", exclude: ["forked.c"]),
    .target(
        name: "TieredCacheC",
        dependencies: [
            "CLinuxCalls",
            "CTieredCache",
            "HTTPCaching",
            "TieredCache",
            "TieredCacheAgent",
            "TieredCacheProxy",
            .product(name: "HTTPTypes", package: "swift-http-types"),
            .product(name: "Logging", package: "swift-log"),
            .product(name: "NIOCore", package: "swift-nio"),
            .product(name: "NIOPosix", package: "swift-nio"),
            .product(name: "SystemPackage", package: "swift-system"),
        ],
        swiftSettings: house
    ),
    .testTarget(
        name: "TieredCacheCTests",
        dependencies: [
            "CTieredCache",
            "TestParts",
            "TieredCache",
            "TieredCacheAgent",
            "TieredCacheC",
            "TieredCacheTesting",
            .product(name: "HTTPTypes", package: "swift-http-types"),
            .product(name: "Logging", package: "swift-log"),
            .product(name: "SystemPackage", package: "swift-system"),
        ],
        swiftSettings: house
    ),
]
#endif
