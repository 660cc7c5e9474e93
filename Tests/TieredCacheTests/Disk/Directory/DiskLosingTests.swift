import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// A directory that is removed, or loses its LOCK, under its owner.
@Suite("Disk: directories that go", .timeLimit(.minutes(10)))
struct DiskLosingTests {
    /// What others remove.
    enum Removal: String, CaseIterable, CustomTestStringConvertible {
        case root, content, entries, lock, staging

        var testDescription: String { rawValue }

        func perform(on disk: TestDisk) throws {
            switch self {
            case .root: try disk.deleteDirectory("")
            case .content:
                for name in ["FORMAT", "LOCK"] { try disk.delete(name) }
                for name in ["entries", "staging"] { try disk.deleteDirectory(name) }
            case .entries: try disk.deleteDirectory("entries")
            case .lock: try disk.delete("LOCK")
            case .staging: try disk.deleteDirectory("staging")
            }
        }
    }

    private func tier(_ disk: TestDisk) -> DiskTier {
        let (options, time, fileSystem) = (disk.options(), disk.time, disk.fileSystem)
        return DiskTier(time: time) { () throws(CacheError) in
            try DiskStore(options, fileSystem: fileSystem, timeSource: time)
        }
    }

    @Test(
        "the owner opens it again at once, and what is open is read on",
        arguments: DiskKind.allCases,
        Removal.allCases
    )
    func again(kind: DiskKind, removal: Removal) throws {
        let disk = TestDisk(kind)
        let tier = tier(disk)
        let first = try tier.store()
        let lease = try first.store(bytes(200_000), for: key("a"))
        let text = try first.store(bytes(100), for: key("b"))
        try removal.perform(on: disk)
        // A record that is replaced goes through `staging`; all else is seen by a look.
        if removal == .staging {
            #expect(throws: CacheError.self) { try text.updateMetadata([7]) }
        }
        let second = try tier.store()
        #expect(second !== first && second.access.canWrite && !second.isLost)
        #expect(tier.openStore === second && tier.storageError == nil)
        try second.store(bytes(300), for: key("c"))
        #expect(disk.paths(".record").count == (removal.keepsEntries ? 3 : 1))
        #expect(try disk.open().access.canWrite == false)
        #expect(firstDifference(lease.read(200_000), bytes(200_000)) == nil)
        #expect(firstDifference(text.read(100), bytes(100)) == nil)
        let error = #expect(throws: CacheError.self) { try lease.setPinned(true) }
        #expect(error?.code == .localStorage)
        #expect(try second.usage().bytes == disk.allocatedBytes)
        tier.close()
    }

    @Test("a body whose file was deleted under it is not promised", arguments: DiskKind.allCases)
    func bodies(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        let lease = try store.store(bytes(200_000), for: key("a"))
        for path in disk.paths(".body") { try disk.delete(path) }
        let error = #expect(throws: CacheError.self) { try lease.setPinned(true) }
        #expect(error?.code == .localStorage)
        #expect(firstDifference(lease.read(200_000), bytes(200_000)) == nil)
    }

    @Test("nor is it promised once more where it was pinned before", arguments: DiskKind.allCases)
    func pinnedBodies(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        let lease = try store.store(bytes(200_000), for: key("a"))
        try lease.setPinned(true)
        #expect(try store.setPinned(true, of: key("a")))
        for path in disk.paths(".body") { try disk.delete(path) }
        let error = #expect(throws: CacheError.self) { try store.setPinned(true, of: key("a")) }
        #expect(error?.code == .localStorage)
    }

    @Test("what was lost again is opened ten seconds later, and refuses to write until then")
    func atMostEveryTenSeconds() throws {
        let disk = TestDisk(.memory)
        let tier = tier(disk)
        let first = try tier.store()
        try disk.deleteDirectory("")
        let second = try tier.store()
        #expect(second !== first)
        disk.time.advance(by: .seconds(9))
        try disk.deleteDirectory("")
        #expect(try tier.store() === second)
        #expect(tier.openStore == nil && tier.storageError?.code == .localStorage)
        let error = #expect(throws: CacheError.self) { try second.store([1], for: key("a")) }
        #expect(error?.message.contains("removed") == true)
        #expect(disk.files.isEmpty)
        disk.time.advance(by: .seconds(1))
        #expect(try tier.store() !== second)
        #expect(tier.storageError == nil)
    }

    @Test("an owner whose LOCK another process has made anew is its guest, and exceeds no limit")
    func twoOwners() throws {
        let disk = TestDisk(.posix)
        let limit: Int64 = 4 << 20
        var options = disk.options(limit: limit)
        options.didLeave = { _ in }
        let time = disk.time
        let tier = DiskTier(time: time) { [options] () throws(CacheError) in
            try DiskStore(options, timeSource: time)
        }
        try tier.store().store(bytes(1 << 20), for: key("a"))
        let entry = try tier.store().makeEntry(
            for: key("b"),
            metadata: [],
            completeLength: 2 << 20
        )
        let writer = try entry.beginWriting(at: 0)
        try writer.write(bytes(1 << 20))
        try disk.delete("LOCK")
        let other = try disk.open(limit: limit)
        #expect(other.access.canWrite)
        // A writer that is under way, and all that comes later.
        #expect(throws: CacheError.self) { try writer.write(bytes(1 << 20)) }
        for number in 0..<8 {
            try other.store(bytes(700_000), for: key("\(number)"))
            #expect(throws: CacheError.self) {
                try tier.store().store(bytes(700_000), for: key("guest \(number)"))
            }
            #expect(disk.allocatedBytes <= limit, "\(number)")
        }
        #expect(try tier.store().access.canWrite == false)
        #expect(
            try firstDifference(tier.store().entry(for: key("7"))?.read(700_000), bytes(700_000))
                == nil
        )
        // Whatever the guest does at its end, the other's charges are right.
        tier.close()
        other.closeIdle()
        #expect(try other.usage().bytes == disk.allocatedBytes)
        #expect(try other.verify(repair: false).damaged == 0)
    }

    @Test("an owner that has lost its LOCK leaves no snapshot to the next one")
    func noSnapshot() throws {
        let disk = TestDisk(.posix)
        var options = disk.options()
        options.minimumSnapshotEntries = 1
        let first = try disk.open(options)
        try first.store(bytes(100), for: key("a"))
        try disk.delete("LOCK")
        let second = try disk.open(options)
        first.close()
        #expect(disk.paths("INDEX").isEmpty)
        try second.store(bytes(100), for: key("b"))
        second.close()
        #expect(disk.paths("INDEX").count == 1)
    }

    @Test("a disk that cannot be asked has lost nothing")
    func storageError() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        disk.memory.fail(.inspect, with: .ioError, times: 2)
        store.look()
        #expect(!store.isLost)
    }

    @Test("a guest opens a directory that was removed by its path, and owns it")
    func guest() throws {
        let disk = TestDisk(.memory)
        let owner = try disk.open()
        let tier = tier(disk)
        #expect(try tier.store().access.canWrite == false)
        try disk.deleteDirectory("")
        disk.time.advance(by: .seconds(10))
        #expect(try tier.store().access.canWrite)
        owner.close()
        try tier.store().store([1], for: key("a"))
        #expect(disk.paths(".record").count == 1)
    }
}

extension DiskLosingTests.Removal {
    /// Whether the entries are still there.
    fileprivate var keepsEntries: Bool { self == .lock || self == .staging }
}
