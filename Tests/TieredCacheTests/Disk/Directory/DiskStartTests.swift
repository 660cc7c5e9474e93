import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What opening a directory costs, and what a snapshot saves.
@Suite("Disk: start", .timeLimit(.minutes(10)))
struct DiskStartTests {
    /// Notes the calls on a disk of the machine.
    private final class Watched: Sendable {
        let calls = Guarded<[(call: FileSystemError.Call, name: String)]>([])

        func store(_ options: DiskStore.Options) throws(CacheError) -> DiskStore {
            calls.withLock { $0 = [] }
            let fileSystem = WatchedFileSystem(POSIXFileSystem(mayBlockAnyThread: true)) {
                [self] call, name in
                calls.withLock { $0.append((call, name)) }
            }
            return try DiskStore(options, fileSystem: fileSystem)
        }

        func count(_ isWanted: ((call: FileSystemError.Call, name: String)) -> Bool) -> Int {
            calls.withLock { $0.count(where: isWanted) }
        }

        var recordsOpened: Int { count { $0.call == .open && $0.name.hasSuffix(".record") } }
    }

    private let disk = TestDisk(.posix)
    private let watched = Watched()

    private var options: DiskStore.Options {
        var options = disk.options(limit: 1 << 30)
        options.minimumSnapshotEntries = 1
        return options
    }

    private var snapshot: FilePath { disk.root.appending("INDEX") }

    private func writer(_ range: Range<Int>) throws {
        let store = try DiskStore(options)
        for number in range {
            try store.store(bytes(100, seed: UInt64(number)), for: key("\(number)"))
        }
    }

    /// Makes every directory look as if it had rested before the snapshot was written.
    private func age() throws {
        let store = try DiskStore(options)
        try store.loadIndex()
        try disk.age()
    }

    @Test("opening and the first hit make as many calls for many entries as for few")
    func constant() throws {
        var counts: [Int] = []
        for range in [0..<10, 10..<2000] {
            try writer(range)
            try FileManager.default.removeItem(atPath: snapshot.string)
            let store = try watched.store(options)
            let entry = try #require(try store.entry(for: key("5")))
            #expect(firstDifference(entry.read(100), bytes(100, seed: 5)) == nil)
            #expect(watched.recordsOpened <= 1)
            counts.append(watched.count { _ in true })
        }
        #expect(counts[0] == counts[1])
    }

    @Test("a snapshot saves reading the records, and is gone while the owner works")
    func used() throws {
        try writer(0..<500)
        try age()
        let expected = try DiskStore(options).usage()
        #expect(FileManager.default.fileExists(atPath: snapshot.string))
        let store = try watched.store(options)
        let used = try store.usage()
        #expect(watched.recordsOpened == 0)
        #expect(watched.count { $0.call == .sync } == 1)
        #expect(used == expected)
        #expect(used.entries == 500)
        #expect(used.bytes == disk.allocatedBytes)
        #expect(!FileManager.default.fileExists(atPath: snapshot.string))
        #expect(try store.verify(repair: false).damaged == 0)
    }

    @Test("the order of use and the classes go through a snapshot")
    func order() throws {
        try writer(0..<20)
        do {
            let store = try DiskStore(options)
            try store.store(bytes(10), for: key("pinned"), class: .pinned)
            try store.store(bytes(10), for: key("prefetched"), class: .prefetched)
            for number in [3, 1, 2] {
                _ = try store.entry(for: key("\(number)"))
                store.persistUses()
            }
        }
        try age()
        let order = { (store: DiskStore) in
            try store.loadIndex()
            return store.state.withLock {
                $0.entries.index.oldest(100) { _ in true }.map(\.name)
            }
        }
        let read = try order(DiskStore(options))
        try FileManager.default.removeItem(atPath: snapshot.string)
        let scanned = try order(DiskStore(options))
        #expect(read == scanned)
        #expect(read.count == 21)
        #expect(read.first == EntryName(digest: key("prefetched").digest))
        let last = [3, 1, 2].map { EntryName(digest: key("\($0)").digest) }
        #expect(Array(read.suffix(3)) == last)
    }

    @Test("a directory that changed since is read, the others are not")
    func stale() throws {
        try writer(0..<500)
        try age()
        let gone = try #require(disk.paths(".record").first)
        try disk.delete(gone)
        let store = try watched.store(options)
        let used = try store.usage()
        #expect(used.entries == 499)
        #expect(used.bytes == disk.allocatedBytes)
        #expect((0..<20).contains(watched.recordsOpened))
    }

    @Test("a copy that is allocated otherwise does not believe the snapshot of the original")
    func copied() throws {
        try writer(0..<300)
        do {
            let store = try DiskStore(options)
            let film = try store.makeEntry(for: key("film"), metadata: [], completeLength: 8 << 20)
            for offset in [0, 4 << 20] as [Int64] {
                try film.beginWriting(at: offset).write(bytes(65_536))
            }
        }
        try age()
        let original = disk.allocatedBytes
        let copy = disk.root.removingLastComponent().appending("copy")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/cp")
        process.arguments = ["-a", "--sparse=never", disk.root.string, copy.string]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        var copied = options
        copied.root = copy
        let store = try watched.store(copied)
        let used = try store.usage()
        #expect(used.entries == 301)
        #expect(used.bytes > original + (3 << 20))
        #expect(used.bytes == TestDisk.files(below: copy).values.reduce(0, +))
    }

    @Test("a directory that changed just before the snapshot was written is read")
    func racy() throws {
        try writer(0..<50)
        let store = try watched.store(options)
        #expect(try store.usage().entries == 50)
        // The machine's clock decides how many; that all is right is what counts.
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    enum Damage: CaseIterable {
        case empty, cutOff, flipped, zeroed, garbage, link
    }

    @Test("a damaged snapshot is noticed and the directory read", arguments: Damage.allCases)
    func damaged(damage: Damage) throws {
        try writer(0..<300)
        try age()
        var content = try disk.content("INDEX")
        switch damage {
        case .empty: content = []
        case .cutOff: content = Array(content[..<(content.count / 2)])
        case .flipped: content[content.count / 2] ^= 1
        case .zeroed: content = content.map { _ in 0 }
        case .garbage: content = bytes(content.count, seed: 3)
        case .link: break
        }
        if damage == .link {
            let outside = disk.root.removingLastComponent().appending("outside").string
            try FileManager.default.moveItem(atPath: snapshot.string, toPath: outside)
            try FileManager.default.createSymbolicLink(
                atPath: snapshot.string,
                withDestinationPath: outside
            )
        } else {
            try disk.write(content, "INDEX")
        }
        let store = try watched.store(options)
        let used = try store.usage()
        #expect(used.entries == 300)
        #expect(used.bytes == disk.allocatedBytes)
        #expect(watched.recordsOpened > 0)
        #expect(try store.verify(repair: false).damaged == 0)
    }

    @Test("a snapshot that does not fit below the limit is not written")
    func noRoom() throws {
        var options = options
        options.limit = 64 << 10
        do {
            let store = try DiskStore(options)
            for number in 0..<8 {
                try store.store(bytes(4000, seed: UInt64(number)), for: key("\(number)"))
            }
        }
        #expect(!FileManager.default.fileExists(atPath: snapshot.string))
        #expect(disk.allocatedBytes <= options.limit)
    }

    @Test("what is in use when the store closes is in the snapshot as it stays")
    func leased() throws {
        try writer(0..<100)
        try age()
        var lease: DiskEntry?
        do {
            let store = try DiskStore(options)
            let entry = try store.makeEntry(for: key("film"), metadata: [], completeLength: nil)
            let writer = try entry.beginWriting(at: 0)
            try writer.write(bytes(65_536))
            writer.end()
            lease = entry
        }
        let error = #expect(throws: CacheError.self) { try lease?.beginWriting(at: 65_536) }
        #expect(error?.code == .shutDown)
        lease = nil
        let store = try DiskStore(options)
        let used = try store.usage()
        #expect(used.bytes == disk.allocatedBytes)
        #expect(used.entries == 101)
    }
}
