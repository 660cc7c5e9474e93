import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What is not there costs no call of the disk, once the directory was read through.
@Suite("Disk: what is not there", .timeLimit(.minutes(10)))
struct DiskAbsentTests {
    /// How often the disk was asked.
    private final class Calls: Sendable {
        private let names = Guarded<[String]>([])

        func note(_ name: String) { names.withLock { $0.append(name) } }

        /// What was asked since this was asked for before.
        func take() -> [String] {
            names.withLock { names in
                defer { names = [] }
                return names
            }
        }
    }

    private func open(_ disk: TestDisk, _ calls: Calls) throws -> DiskStore {
        let watched = WatchedFileSystem(disk.fileSystem, isCold: true) { call, name in
            // Whether the directory is still there is asked at each write.
            if name.hasPrefix("entries/") || name.hasSuffix(".record") {
                calls.note("\(call) \(name)")
            }
        }
        return try DiskStore(disk.options(), fileSystem: watched, timeSource: disk.time)
    }

    @Test("A lookup needs no disk where the index is loaded", arguments: DiskKind.allCases)
    func lookup(_ kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let before = try disk.open()
        try before.store(bytes(100), for: key("there"))
        before.close()
        let calls = Calls()
        let store = try open(disk, calls)
        #expect(store.entryWithoutBlocking(for: key("absent")).isWaiting)
        try store.loadIndex()
        _ = calls.take()
        #expect(store.entryWithoutBlocking(for: key("absent")).isMiss)
        #expect(calls.take().isEmpty)
        #expect(store.entryWithoutBlocking(for: key("there")).isWaiting)
        #expect(try store.entry(for: key("there"))?.read(100) == bytes(100))
    }

    @Test("A new entry removes nothing where nothing is", arguments: DiskKind.allCases)
    func making(_ kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let calls = Calls()
        let store = try open(disk, calls)
        try store.loadIndex()
        _ = calls.take()
        let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: 100)
        #expect(calls.take().isEmpty)
        try entry.beginWriting(at: 0).write(bytes(100))
        #expect(entry.read(100) == bytes(100))
    }

    @Test("What was put there from outside is replaced all the same", arguments: DiskKind.allCases)
    func outside(_ kind: DiskKind) throws {
        let disk = TestDisk(kind)
        do {
            let before = try disk.open()
            try before.store(bytes(100), for: key("a"))
            before.close()
        }
        let path = try #require(disk.paths(".record").first)
        let record = try disk.content(path)
        let store = try disk.open()
        try store.removeAll()
        try store.loadIndex()
        try disk.write(record, path)
        let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: 100)
        try entry.beginWriting(at: 0).write(bytes(100, seed: 2))
        #expect(try store.entry(for: key("a"))?.read(100) == bytes(100, seed: 2))
        store.close()
        #expect(try disk.open().entry(for: key("a"))?.read(100) == bytes(100, seed: 2))
    }
}

extension NonBlocking {
    fileprivate var isWaiting: Bool {
        if case .wouldBlock = self { true } else { false }
    }
}
