import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Directories that older versions wrote, migrated in place.
@Suite("Disk: migration", .timeLimit(.minutes(10)))
struct DiskMigrationTests {
    static let versions = 1...DiskDirectory.formatVersion

    /// A disk with a version's fixture on it.
    private func disk(_ kind: DiskKind, _ version: Int) throws -> TestDisk {
        let disk = TestDisk(kind)
        guard kind == .memory else {
            try DiskFixture.copy(version: version, to: disk.root)
            return disk
        }
        let source = TestDisk(.posix)
        try DiskFixture.copy(version: version, to: source.root)
        for path in source.files.keys {
            try disk.write(source.content(path), path)
        }
        return disk
    }

    private func expectEntries(
        _ store: DiskStore,
        _ comment: Comment? = nil,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        for fixture in DiskFixture.entries {
            let entry = try #require(
                try store.entry(for: fixture.key),
                comment,
                sourceLocation: location
            )
            #expect(entry.metadata == fixture.metadata, comment, sourceLocation: location)
            #expect(
                firstDifference(entry.read(fixture.length), Array(fixture.body[..<fixture.stored]))
                    == nil,
                comment,
                sourceLocation: location
            )
            #expect(entry.completeLength == Int64(fixture.length), sourceLocation: location)
            #expect(
                entry.isPinned == fixture.entryClass.contains(.pinned),
                sourceLocation: location
            )
        }
    }

    private func recordVersions(_ disk: TestDisk) throws -> [Int] {
        try disk.paths(".record").compactMap { path in
            try disk.content(path).withUnsafeBytes(Record.version(of:))
        }
    }

    @Test("every version's entries are served at once", arguments: DiskKind.allCases, versions)
    func served(kind: DiskKind, version: Int) throws {
        let disk = try disk(kind, version)
        let bodies = try disk.paths(".body").map { try disk.content($0) }
        let store = try disk.open()
        try expectEntries(store)
        #expect(
            try firstDifference(disk.paths(".body").map { try disk.content($0) }, bodies) == nil
        )
    }

    @Test(
        "records become current ones, bodies keep their bytes, FORMAT says so",
        arguments: versions
    )
    func migrated(version: Int) throws {
        for kind in DiskKind.allCases {
            let disk = try disk(kind, version)
            let bodies = try disk.paths(".body").map { try disk.content($0) }
            let store = try disk.open()
            try store.loadIndex()
            let current = DiskDirectory.formatVersion
            #expect(try recordVersions(disk) == DiskFixture.entries.map { _ in current })
            #expect(try disk.content("FORMAT") == Array("tieredcache format \(current)\n".utf8))
            #expect(
                try firstDifference(disk.paths(".body").map { try disk.content($0) }, bodies) == nil
            )
            #expect(try store.usage().entries == DiskFixture.entries.count)
            #expect(try store.usage().bytes == disk.allocatedBytes)
            #expect(try store.verify(repair: false).damaged == 0)
            try expectEntries(store)
        }
    }

    @Test("a partial body goes on where it ended", arguments: versions)
    func resumed(version: Int) throws {
        let disk = try disk(.posix, version)
        let fixture = try #require(DiskFixture.entries.first { $0.stored < $0.length })
        let store = try disk.open()
        let entry = try #require(try store.entry(for: fixture.key))
        let writer = try entry.beginWriting(at: Int64(fixture.stored))
        try writer.write(fixture.body[fixture.stored...])
        try writer.finish()
        #expect(entry.isComplete)
        #expect(firstDifference(entry.read(fixture.length), fixture.body) == nil)
    }

    @Test("the order of use and the classes are kept")
    func order() throws {
        let disk = try disk(.posix, 1)
        let store = try DiskStore(disk.options())
        let list = try store.list()
        let next = DiskFixture.entries.filter { $0.entryClass.contains(.prefetched) }.map(\.key)
        #expect(list.filter(\.isPrefetched).map(\.key) == next)
        // Seconds taken for nanoseconds would be in 1970.
        #expect(list.allSatisfy { $0.lastUse >= 1_500_000_000 })
    }

    @Test("a crash at any call leaves a directory that is migrated at the next start")
    func interrupted() throws {
        let disk = try disk(.memory, 1)
        var isDone = false
        for changes in 0..<1000 where !isDone {
            // What was written long ago is on the medium.
            let before = disk.memory.afterCrash(.everythingKept)
            before.crash(afterChanges: changes)
            isDone =
                (try? DiskStore(disk.options(), fileSystem: before).loadIndex()) != nil
            for outcome in [CrashOutcome.everythingKept, .unsyncedLost, .mixed(seed: 7)] {
                let after = before.afterCrash(outcome)
                let store = try DiskStore(disk.options(), fileSystem: after)
                try expectEntries(store, "after \(changes) changes, \(outcome)")
                try store.loadIndex()
                let records = after.files.keys.filter { $0.hasSuffix(".record") }
                let versions = records.compactMap { path in
                    after.content(of: path)?.withUnsafeBytes(Record.version(of:))
                }
                #expect(versions == DiskFixture.entries.map { _ in DiskDirectory.formatVersion })
            }
        }
        #expect(isDone)
    }

    @Test("a guest and a directory that cannot be written read what an older version wrote")
    func readOnly() throws {
        let disk = try disk(.memory, 1)
        let before = try disk.files.keys.map { try disk.content($0) }
        disk.memory.fail(.lock, with: .readOnlyFileSystem)
        let store = try disk.open()
        #expect(!store.access.canWrite)
        try expectEntries(store)
        #expect(try store.list().count == DiskFixture.entries.count)
        let now = try disk.files.keys.filter { $0 != "LOCK" }.map { try disk.content($0) }
        #expect(Set(now) == Set(before))
    }

    @Test("the fixture of this version is what this version writes")
    func current() throws {
        let disk = TestDisk(.posix)
        try DiskFixture.write(to: disk.root.string)
        let kept = TestDisk(.posix)
        try DiskFixture.copy(version: DiskDirectory.formatVersion, to: kept.root)
        #expect(Set(kept.files.keys) == Set(disk.files.keys).subtracting(["LOCK"]))
        for path in kept.paths(".body") {
            #expect(try firstDifference(kept.content(path), disk.content(path)) == nil)
        }
        for path in kept.paths(".record") {
            // Times differ, and with them the checksum.
            let (old, new) = (try kept.content(path), try disk.content(path))
            #expect(old.prefix(8) == new.prefix(8))
            #expect(old[24..<48] == new[24..<48])
            #expect(old[56...] == new[56...])
        }
    }
}
