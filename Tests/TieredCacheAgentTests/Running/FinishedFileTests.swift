import FoundationEssentials
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCacheAgent

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The file of a download on file systems that know less.
@Suite("Finished files", .timeLimit(.minutes(5)))
struct FinishedFileTests {
    private static func place(
        _ directory: FilePath,
        _ name: String
    ) throws -> DownloadPath {
        let options = DownloadOptions(["dir": directory.string, "out": name])
        return try DownloadPath(options, uri: "http://a/")
    }

    private static func file(_ place: DownloadPath, of body: FilePath) throws -> FinishedFile {
        let file = try FinishedFile(at: place) { _ in -EOPNOTSUPP }
        #expect(try file.copy(body) { true } == 4)
        return file
    }

    @Test("Without unnamed files it has a hidden name until it is complete, and none is left")
    func hidden() throws {
        let files = try TemporaryDirectory("tieredcache-finished")
        try files.write("film", to: "body")
        let body = files.appending("body")
        let names = {
            try FileManager.default.contentsOfDirectory(atPath: files.appending("out").string)
        }
        let place = try Self.place(files.path, "out/a")
        do {
            let file = try Self.file(place, of: body)
            #expect(try names().count == 1)
            #expect(try names().allSatisfy { $0.hasSuffix(".part") })
            let identity = try #require(file.identity)
            #expect(try file.link(as: place.path, overwrites: false))
            #expect(try files.read("out/a") == "film")
            #expect(try #require(FinishedFile.identity(of: place.path)) == identity)
        }
        do {
            let second = try Self.file(place, of: body)
            #expect(try !second.link(as: place.path, overwrites: false))
        }
        #expect(try names() == ["a"])
        try files.write("mine", to: "out/a")
        #expect(try Self.file(place, of: body).link(as: place.path, overwrites: true))
        #expect(try files.read("out/a") == "film")
        #expect(try names() == ["a"])
    }

    @Test(
        "To another kind of file system it is read and written",
        .enabled(if: access("/dev/shm", W_OK) == 0)
    )
    func otherFileSystem() throws {
        let files = try TemporaryDirectory("tieredcache-finished")
        let mark = UInt64.random(in: 0 ... .max)
        let body = FilePath("/dev/shm/tieredcache-test-\(mark)")
        let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) }
        try Data(bytes).write(to: URL(filePath: body.string))
        defer { unlink(body.string) }
        let place = try Self.place(files.path, "out/a")
        let file = try FinishedFile(at: place)
        #expect(try file.copy(body) { true } == 3_000_000)
        #expect(try file.link(as: place.path, overwrites: false))
        #expect(try files.bytes("out/a") == bytes)
    }
}
