import Foundation
import SystemPackage
import Testing

@_spi(Benchmarks) @testable import TieredCache

/// A small directory as each format version wrote it, checked in below `Fixtures/version-N`.
///
/// The fixtures of old versions are never written again. That of the current version is made by
///
/// ```sh
/// TIEREDCACHE_FIXTURE=/tmp/version-2 swift test --filter DiskFixtureTests
/// ```
///
/// with a directory that does not exist yet; `LOCK` and empty directories are left out.
enum DiskFixture {
    struct Entry: Sendable {
        var name: String
        var length: Int
        /// How much of the body is stored, from its start.
        var stored: Int
        var entryClass: DiskEntryClass = []

        var key: CacheKey { CacheKey(explicit: "fixture \(name)") }
        var metadata: [UInt8] { Array("metadata of \(name)".utf8) }
        /// Compresses well, and no two blocks are the same.
        var body: [UInt8] {
            (0..<length).map { UInt8(truncatingIfNeeded: $0 / 251 &* 7 &+ name.utf8.count) }
        }
    }

    static let entries = [
        Entry(name: "text", length: 100, stored: 100),
        Entry(name: "empty", length: 0, stored: 0),
        Entry(name: "film", length: 70_000, stored: 70_000, entryClass: .pinned),
        Entry(name: "part of a film", length: 140_000, stored: 65_536),
        Entry(name: "next", length: 500, stored: 500, entryClass: .prefetched),
    ]

    static func write(to path: String) throws {
        var options = DiskStore.Options(root: FilePath(path), limit: 64 << 20)
        options.minimumFree = 0
        options.generationSeed = 1
        let store = try DiskStore(options)
        for fixture in entries where fixture.stored == fixture.length {
            try store.store(
                fixture.body,
                for: fixture.key,
                metadata: fixture.metadata,
                class: fixture.entryClass
            )
        }
        for fixture in entries where fixture.stored < fixture.length {
            let entry = try store.makeEntry(
                for: fixture.key,
                metadata: fixture.metadata,
                completeLength: Int64(fixture.length),
                class: fixture.entryClass
            )
            let writer = try entry.beginWriting(at: 0)
            try writer.write(fixture.body[..<fixture.stored])
            writer.end()
        }
    }

    /// Copies a version's fixture to where a test may change it.
    static func copy(version: Int, to root: FilePath, file: String = #filePath) throws {
        let source = FilePath(file).removingLastComponent()
            .appending("Fixtures").appending("version-\(version)")
        try FileManager.default.copyItem(atPath: source.string, toPath: root.string)
    }
}

@Suite("Disk: fixtures", .timeLimit(.minutes(10)))
struct DiskFixtureTests {
    @Test("a fixture is written where the environment asks for one")
    func write() throws {
        guard let path = ProcessInfo.processInfo.environment["TIEREDCACHE_FIXTURE"] else { return }
        try DiskFixture.write(to: path)
    }
}
