import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// The next generation of a complete pinned entry takes its name when it is complete.
@Suite("Disk: the next generation of what is pinned", .timeLimit(.minutes(10)))
struct DiskSuccessionTests {
    private static let old = bytes(200_000, seed: 1)

    private static func open(_ disk: TestDisk, _ old: [UInt8] = old) throws -> DiskStore {
        let store = try disk.open()
        try store.store(old, for: key("a"), metadata: [1], class: .pinned)
        return store
    }

    /// What everybody finds: the whole of one generation, pinned.
    private static func expect(
        _ store: DiskStore,
        _ tag: UInt8,
        _ body: [UInt8],
        isPinned: Bool = true,
        location: SourceLocation = #_sourceLocation
    ) throws {
        let entry = try #require(try store.entry(for: key("a")), sourceLocation: location)
        #expect(entry.metadata == [tag] && entry.isComplete, sourceLocation: location)
        #expect(entry.isPinned == isPinned, sourceLocation: location)
        #expect(entry.read(body.count + 1) == body, sourceLocation: location)
    }

    /// What is charged is what is allocated, and nothing lies about.
    private static func expectExact(
        _ store: DiskStore,
        _ disk: TestDisk,
        location: SourceLocation = #_sourceLocation
    ) throws {
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes, sourceLocation: location)
        #expect(store.reservedBytes == 0, sourceLocation: location)
        #expect(try store.verify(repair: false).damaged == 0, sourceLocation: location)
    }

    @Test(
        "The old one is found until the new one is complete, then the new one is",
        arguments: DiskKind.allCases,
        [0, 1000, 65_536, 150_000]
    )
    func succeeds(_ kind: DiskKind, _ count: Int) throws {
        for (isLengthKnown, awaitsDecision) in [
            (true, false), (true, true), (false, false), (false, true),
        ] {
            for old in [bytes(1000), Self.old] {
                let disk = TestDisk(kind)
                let store = try Self.open(disk, old)
                let reader = try #require(try store.entry(for: key("a")))
                let new = bytes(count, seed: 2)
                let entry = try store.makeEntry(
                    for: key("a"),
                    metadata: [2],
                    completeLength: isLengthKnown ? Int64(count) : nil,
                    class: .prefetched,
                    succession: DiskSuccession(awaitsDecision: awaitsDecision)
                )
                if !isLengthKnown || awaitsDecision || count > 0 {
                    try Self.expect(store, 1, old)
                    #expect(entry.isSuccessor && entry.isPinned)
                    let writer = try entry.beginWriting(at: 0)
                    try writer.write(new.dropLast())
                    try Self.expect(store, 1, old)
                    #expect(entry.read(count) == Array(new.dropLast()))
                    try writer.write(new.suffix(1))
                    if !isLengthKnown { try writer.finish() } else { writer.end() }
                }
                #expect(entry.isComplete && entry.read(count + 1) == new)
                if awaitsDecision {
                    try Self.expect(store, 1, old)
                    #expect(entry.isSuccessor)
                    try entry.takeName()
                }
                #expect(!entry.isSuccessor && !entry.isSuperseded && reader.isSuperseded)
                try Self.expect(store, 2, new)
                // A reader of the old one reads on.
                #expect(reader.read(old.count) == old)
                withExtendedLifetime((reader, entry)) {}
                try Self.expect(try disk.open(), 2, new)
            }
        }
    }

    @Test("Room is charged exactly, and given back", arguments: DiskKind.allCases, [true, false])
    func room(_ kind: DiskKind, _ isFinished: Bool) throws {
        let disk = TestDisk(kind)
        let store = try Self.open(disk)
        let before = disk.allocatedBytes
        do {
            let entry = try store.makeEntry(for: key("a"), metadata: [2], completeLength: 150_000)
            let writer = try entry.beginWriting(at: 0)
            try writer.write(bytes(150_000, seed: 2)[..<(isFinished ? 150_000 : 131_072)])
            store.closeIdle()
            #expect(try store.usage().bytes == disk.allocatedBytes)
            // Whatever it finds is ours alone.
            #expect(try store.verify(repair: true).damaged == 0)
            #expect(
                firstDifference(entry.read(131_072), Array(bytes(150_000, seed: 2).prefix(131_072)))
                    == nil
            )
        }
        try Self.expectExact(store, disk)
        if !isFinished { #expect(disk.allocatedBytes == before) }
        #expect(disk.files.keys.filter { $0.contains("entries/") }.count == 2)
        try Self.expect(store, isFinished ? 2 : 1, isFinished ? bytes(150_000, seed: 2) : Self.old)
    }

    @Test("The limit holds for both together; where it leaves no room, the old one stays")
    func limit() throws {
        let disk = TestDisk(.memory)
        let store = try Self.open(disk)
        try store.setLimit(300_000)
        let error = #expect(throws: CacheError.self) {
            let entry = try store.makeEntry(for: key("a"), metadata: [2], completeLength: 250_000)
            try entry.beginWriting(at: 0).write(bytes(250_000))
        }
        #expect(error?.code == .localStorage && disk.allocatedBytes <= 300_000)
        try Self.expect(store, 1, Self.old)
    }

    @Test("One that begins later takes the place of one that waits", arguments: [1000, 150_000])
    func supersedes(_ count: Int) throws {
        let disk = TestDisk(.memory)
        let store = try Self.open(disk)
        let first = try store.makeEntry(for: key("a"), metadata: [2], completeLength: 200_000)
        let writer = try first.beginWriting(at: 0)
        try writer.write(Self.old[..<131_072])
        // At once, or by a download of its own.
        try store.store(bytes(count, seed: 3), for: key("a"), metadata: [3])
        #expect(first.isSuperseded && first.read(131_072) == Array(Self.old.prefix(131_072)))
        try writer.write(Self.old[131_072...])
        try first.takeName()
        #expect(first.isComplete && first.read(200_000) == Self.old)
        try Self.expect(store, 3, bytes(count, seed: 3))
    }

    @Test("An explicit end ends both", arguments: 0..<3)
    func removed(_ kind: Int) throws {
        let disk = TestDisk(.posix)
        let store = try Self.open(disk)
        let entry = try store.makeEntry(for: key("a"), metadata: [2], completeLength: 150_000)
        let writer = try entry.beginWriting(at: 0)
        try writer.write(bytes(131_072, seed: 2))
        switch kind {
        case 0: try store.remove(key("a"))
        case 1: try store.removeAll()
        default: store.close()
        }
        #expect(entry.isSuperseded && entry.read(131_072) == bytes(131_072, seed: 2))
        if kind < 2 {
            try writer.write(bytes(150_000, seed: 2)[131_072...])
            #expect(try store.entry(for: key("a")) == nil)
        }
        #expect(disk.files.keys.filter { $0.contains("entries/") }.count == (kind < 2 ? 0 : 2))
    }

    @Test("A pin that is set or taken away meanwhile counts for both", arguments: [true, false])
    func pins(_ isOnSuccessor: Bool) throws {
        let disk = TestDisk(.memory)
        let store = try Self.open(disk)
        let new = bytes(150_000, seed: 2)
        let entry = try store.makeEntry(for: key("a"), metadata: [2], completeLength: 150_000)
        let named = try #require(try store.entry(for: key("a")))
        let asked = isOnSuccessor ? entry : named
        try asked.setPinned(false)
        #expect(!entry.isPinned && !named.isPinned && entry.isSuccessor)
        try asked.setPinned(true)
        #expect(entry.isPinned && named.isPinned && entry.isSuccessor)
        #expect(try store.setPinned(false, of: key("a")))
        try entry.beginWriting(at: 0).write(new)
        try Self.expect(store, 2, new, isPinned: false)
        #expect(try store.setPinned(true, of: key("a")))
        try Self.expect(store, 2, new)
    }

    @Test("Evicted after its pin was taken away, the old one still has an heir")
    func evicted() throws {
        let disk = TestDisk(.memory)
        let store = try Self.open(disk)
        let entry = try store.makeEntry(for: key("a"), metadata: [2], completeLength: 150_000)
        #expect(try store.setPinned(false, of: key("a")))
        store.closeIdle()
        _ = try store.trim(to: 0)
        #expect(try store.entry(for: key("a")) == nil)
        try entry.beginWriting(at: 0).write(bytes(150_000, seed: 2))
        try Self.expect(store, 2, bytes(150_000, seed: 2), isPinned: false)
        withExtendedLifetime(entry) {}
    }

    @Test("A pinned entry that is not complete is replaced at once, and hands its pin on")
    func incomplete() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        var entry = try store.makeEntry(
            for: key("a"),
            metadata: [1],
            completeLength: 200_000,
            class: .pinned
        )
        // Before there is a block, while it is open, and after that.
        for (tag, closes) in [(2, false), (3, false), (4, true)] as [(UInt8, Bool)] {
            entry = try store.makeEntry(for: key("a"), metadata: [tag], completeLength: 200_000)
            #expect(entry.isPinned && !entry.isSuccessor)
            #expect(try store.entry(for: key("a"))?.metadata == [tag])
            try entry.beginWriting(at: 0).write(Self.old[..<65_536])
            if closes { store.closeIdle() }
        }
        try store.store(bytes(1000), for: key("a"), metadata: [5])
        try Self.expect(store, 5, bytes(1000))
    }

    @Test("What is no next generation leaves what is pinned alone")
    func spared() throws {
        let disk = TestDisk(.memory)
        let store = try Self.open(disk)
        let succession = DiskSuccession(sparesPinned: true)
        let errors = [
            #expect(throws: CacheError.self) {
                try store.makeEntry(
                    for: key("a"),
                    metadata: [2],
                    completeLength: 5,
                    class: [],
                    succession: succession
                )
            },
            #expect(throws: CacheError.self) {
                let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
                try store.store(
                    nothing,
                    for: key("a"),
                    metadata: [2],
                    class: [],
                    succession: succession
                )
            },
        ]
        #expect(errors.map(\.?.code) == [.notStorable, .notStorable])
        #expect(try !store.remove(key("a"), because: .replaced, sparesPinned: true))
        try Self.expect(store, 1, Self.old)
        #expect(try store.setPinned(false, of: key("a")))
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        try store.store(nothing, for: key("a"), metadata: [2], class: [], succession: succession)
        try Self.expect(store, 2, [], isPinned: false)
    }

    @Test("A successor with a wrong body is thrown away, and what is pinned stays")
    func quarantined() throws {
        let disk = TestDisk(.memory)
        let store = try Self.open(disk)
        let entry = try store.makeEntry(
            for: key("a"),
            metadata: [2],
            completeLength: 150_000,
            class: [],
            succession: DiskSuccession(awaitsDecision: true)
        )
        try entry.beginWriting(at: 0).write(bytes(150_000, seed: 2))
        #expect(try store.quarantine(entry))
        try entry.takeName()
        try Self.expect(store, 1, Self.old)
        withExtendedLifetime(entry) {}
    }

    @Test("What cannot be read just now counts as pinned, and stays")
    func unreadable() throws {
        let disk = TestDisk(.memory)
        let store = try Self.open(disk)
        store.closeIdle()
        for isSpared in [false, true] {
            disk.memory.fail(.read, with: .ioError)
            let error = #expect(throws: CacheError.self) {
                if isSpared {
                    _ = try store.remove(key("a"), because: .replaced, sparesPinned: true)
                } else {
                    _ = try store.makeEntry(for: key("a"), metadata: [2], completeLength: 150_000)
                }
            }
            #expect(error?.code == .localStorage)
            disk.memory.heal()
            store.closeIdle()
        }
        try Self.expect(store, 1, Self.old)
        // An outright removal removes it all the same.
        store.closeIdle()
        disk.memory.fail(.read, with: .ioError)
        #expect(try store.remove(key("a")) == false)
        #expect(try store.entry(for: key("a")) == nil)
    }

    /// Each call that the disk gets while the name changes hands fails once.
    @Test("Where the disk fails, the old one or the new one is found", arguments: [1000, 150_000])
    func failures(_ count: Int) throws {
        let new = bytes(count, seed: 2)
        let calls = try succeed(new, failing: nil)
        #expect(calls >= 6)
        for index in 0..<calls { _ = try succeed(new, failing: index) }
    }

    /// - Returns: how many calls the disk got.
    private func succeed(_ new: [UInt8], failing index: Int?) throws -> Int {
        let disk = TestDisk(.memory)
        let store = try Self.open(disk)
        let length = Int64(new.count)
        let entry = try store.makeEntry(for: key("a"), metadata: [2], completeLength: length)
        let before = disk.memory.calls.count
        if let index { disk.memory.fail(nil, with: .ioError, times: 1, skipping: index) }
        var failure: CacheError?
        do throws(CacheError) {
            try entry.beginWriting(at: 0).write(new)
        } catch {
            failure = error
        }
        let calls = disk.memory.calls.count - before
        disk.memory.heal()
        for store in [store, try disk.open()] {
            let found = try #require(try store.entry(for: key("a")), "call \(index ?? -1)")
            let isNew = found.metadata == [2]
            #expect(found.isPinned && found.isComplete, "call \(index ?? -1)")
            #expect(found.read(200_001) == (isNew ? new : Self.old), "call \(index ?? -1)")
            #expect(isNew || failure != nil, "call \(index ?? -1)")
        }
        withExtendedLifetime(entry) {}
        return calls
    }
}
