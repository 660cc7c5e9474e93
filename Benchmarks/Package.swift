// swift-tools-version:6.2
import PackageDescription

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "TieredCache", path: ".."),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .executableTarget(
            name: "Allocations",
            dependencies: [
                "CAllocationCount",
                .product(name: "HTTPCaching", package: "TieredCache"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "TieredCache", package: "TieredCache"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
        .target(name: "CAllocationCount"),
        // Runs programs and imports nothing: what it measures is the program as it is installed.
        .executableTarget(
            name: "ColdDownload",
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
        .executableTarget(
            name: "DiskScale",
            dependencies: [
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "TieredCache", package: "TieredCache"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
        .systemLibrary(
            name: "CBenchCrypto",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"])]
        ),
        .target(
            name: "CLevelDBCache",
            linkerSettings: [.linkedLibrary("leveldb")]
        ),
        .executableTarget(
            name: "HitPath",
            dependencies: [
                "CBenchCrypto",
                "CLevelDBCache",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "TieredCache", package: "TieredCache"),
                .product(name: "TieredCacheFoundation", package: "TieredCache"),
                .product(name: "TieredCacheHTTPClient", package: "TieredCache"),
                .product(name: "HTTPCaching", package: "TieredCache"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)
