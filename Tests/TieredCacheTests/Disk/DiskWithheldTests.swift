import HTTPCaching
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Records that the disk does not give for a moment: that is not their absence.
@Suite("Disk: records that are withheld", .timeLimit(.minutes(10)))
struct DiskWithheldTests {
    private static let film = bytes(400_000, seed: 1)

    private let disk = TestDisk(.memory)

    /// A store with one entry, whose record and body no descriptor is open of.
    private func filled(
        _ change: (inout DiskStore.Options) -> Void = { _ in }
    ) throws -> DiskStore {
        var options = disk.options()
        change(&options)
        let store = try disk.open(options)
        try store.store(Self.film, for: key("film"))
        store.closeIdle()
        return store
    }

    private func expectFilm(_ store: DiskStore) throws {
        let entry = try #require(try store.entry(for: key("film")))
        #expect(entry.isComplete)
        #expect(firstDifference(entry.read(400_000), Self.film) == nil)
    }

    @Test(
        "what was withheld at the start is known once a look-up reads it",
        arguments: [Errno.ioError, .tooManyOpenFiles, .noMemory]
    )
    func withheldAtFirst(_ errno: Errno) throws {
        let disk = TestDisk(.memory)
        let (film, text) = (bytes(200_000, seed: 1), bytes(100, seed: 2))
        do {
            let store = try disk.open()
            try store.store(film, for: key("pinned"), class: .pinned)
            try store.store(film, for: key("film"))
            try store.store(text, for: key("text"))
            try store.store(text, for: key("next"), class: .prefetched)
        }
        let stored = disk.time.wallTime().nanoseconds / 1_000_000_000
        disk.time.advance(by: .seconds(100))
        let store = try disk.open()
        disk.memory.fail(.read, with: errno, times: .max)
        try store.loadIndex()
        disk.memory.heal()
        // Any of them may be pinned.
        try store.trim(to: 0)
        #expect(try store.usage().entries == 4)
        for name in ["pinned", "film", "text", "next"] {
            #expect(try store.entry(for: key(name), isUse: false) != nil)
        }
        let listed = try store.list()
        #expect(listed.map(\.lastUse) == Array(repeating: stored, count: 4))
        #expect(listed.filter(\.isPrefetched).map(\.key) == [key("next")])
        try store.trim(to: 0)
        #expect(try store.list().map(\.key) == [key("pinned")])
        #expect(try firstDifference(store.entry(for: key("pinned"))?.read(200_000), film) == nil)
        store.closeIdle()
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
    }

    @Test("where a crash has left two bodies nothing is taken for free that is there")
    func severalBodies() throws {
        let disk = TestDisk(.memory)
        do {
            let store = try disk.open()
            try store.store(Self.film, for: key("film"))
        }
        let body = try #require(disk.paths(".body").first)
        let stem = body.dropLast("0123456789abcdef.body".count)
        disk.memory.put(bytes(100_000, seed: 3), at: "\(disk.root)/\(stem)0000000000000001.body")
        let store = try disk.open()
        disk.memory.fail(.read, with: .ioError, times: .max)
        try store.loadIndex()
        disk.memory.heal()
        try expectFilm(store)
        store.closeIdle()
        try store.trim(to: 0)
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
        try expectFilm(store)
    }

    @Test("a list names what it cannot read, and has all else", arguments: [false, true])
    func listed(byGuest: Bool) throws {
        let owner = try filled()
        try owner.store(bytes(100), for: key("text"))
        owner.closeIdle()
        let store = byGuest ? try disk.open() : owner
        // A guest reads each record twice.
        let film = EntryName(digest: disk.options().digest(key("film"))).record
        disk.memory.fail(.read, with: .ioError, times: byGuest ? .max : 1)
        var reported: [CacheError] = []
        let listed = try store.list { reported.append($0) }
        disk.memory.heal()
        #expect(listed.count == (byGuest ? 0 : 1))
        #expect(reported.count == (byGuest ? 2 : 1))
        #expect(reported.allSatisfy { $0.code == .localStorage })
        if byGuest { #expect(reported.contains { $0.message.contains(film) }) }
        reported = []
        #expect(try store.list { reported.append($0) }.count == 2)
        #expect(reported.isEmpty)
    }

    /// Its record is read for its key, and again under the lock.
    @Test("what cannot be read may be pinned: it is not evicted", arguments: [2, Int.max])
    func evicted(times: Int) throws {
        let gone = Guarded<[CacheKey?]>([])
        let store = try filled { $0.didLeave = { one in gone.withLock { $0.append(one.key) } } }
        disk.memory.fail(.read, with: .ioError, times: times)
        try store.trim(to: 0)
        disk.memory.heal()
        #expect(gone.withLock { $0.isEmpty })
        // It may have been pinned since it was chosen, and nothing else protects it from its
        // successor.
        #expect(store.slot(of: key("film"))?.queue == .pinned)
        try expectFilm(store)
        #expect(store.slot(of: key("film"))?.queue == .used)
        store.closeIdle()
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
        disk.memory.fail(.read, with: .ioError)
        try store.trim(to: 0)
        #expect(gone.withLock { $0 } == [key("film")])
        #expect(try store.list().isEmpty)
    }

    @Test("nor does it lose its tail, or leave as a whole instead")
    func shortened() throws {
        let store = try filled {
            $0.hugeBody = 200_000
            $0.headLength = 65_536
        }
        disk.memory.fail(.read, with: .ioError)
        try store.trim(to: 0)
        try expectFilm(store)
        store.closeIdle()
        try store.trim(to: 200_000)
        #expect(try store.list().map(\.storedBytes) == [65_536])
    }

    /// The calls that read: a look at the directory, one at the entry, its seven blocks, and one
    /// more at the record where a block is damaged.
    @Test("verify says what it could not look at, and repairs none of it", arguments: [0, 1, 9])
    func verified(skipped: Int) throws {
        let store = try filled()
        let body = try #require(disk.paths(".body").first)
        #expect(disk.memory.tamper("\(disk.root)/\(body)") { $0[0] ^= 1 })
        disk.memory.fail(.read, with: .ioError, skipping: skipped)
        var found: [DiskFinding] = []
        let result = try store.verify(repair: true) { found.append($0) }
        disk.memory.heal()
        #expect(found.map(\.kind) == [.damagedRecord])
        #expect(found.allSatisfy { !$0.isRepaired })
        #expect(result.damaged == 1 && result.repaired == 0)
        found = []
        _ = try store.verify(repair: true) { found.append($0) }
        #expect(found.map(\.kind) == [.damagedBlocks])
        #expect(found.map(\.blocks) == [[0]])
    }
}

extension DiskStore {
    /// What the index knows of an entry.
    fileprivate func slot(of key: CacheKey) -> DiskIndex.Slot? {
        state.withLock { $0.entries.index[name(of: key)] }
    }
}
