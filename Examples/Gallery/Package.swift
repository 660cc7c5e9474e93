// swift-tools-version: 6.2
import PackageDescription

// A package of its own: libjpeg-turbo and libpng are needed by nobody but this example.
let package = Package(
    name: "Gallery",
    platforms: [.macOS(.v26)],
    dependencies: [.package(name: "TieredCache", path: "../..")],
    targets: [
        .systemLibrary(name: "CJPEG", pkgConfig: "libjpeg", providers: [.apt(["libjpeg-dev"])]),
        .systemLibrary(name: "CPNG", pkgConfig: "libpng", providers: [.apt(["libpng-dev"])]),
        .target(name: "CPictures", dependencies: ["CJPEG", "CPNG"]),
        .executableTarget(
            name: "Gallery",
            dependencies: [
                "CPictures",
                .product(name: "TieredCache", package: "TieredCache"),
                .product(name: "TieredCacheImages", package: "TieredCache"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
