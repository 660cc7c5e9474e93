import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// The word of a record that says that the body was found to be what was promised.
@Suite("Disk tier: recorded comparisons", .timeLimit(.minutes(1)))
struct DiskComparisonTests {
    private static let key = CacheKey(explicit: "film")

    private static func digest(_ byte: UInt8) throws -> [ContentDigest] {
        [try #require(ContentDigest(.sha256, bytes: Array(repeating: byte, count: 32)))]
    }

    private func compare(_ entry: DiskEntry, with promised: [ContentDigest]) {
        let isCurrent = entry.didCompare(
            with: BodyExpectation(promised: promised, expected: []),
            found: promised,
            outcome: .right,
            version: entry.decisionVersion
        )
        #expect(isCurrent)
        entry.recordComparison()
    }

    /// Whether the next process finds a comparison with `promised`.
    private func isRecorded(_ promised: [ContentDigest], on disk: TestDisk) throws -> Bool {
        let store = try disk.open()
        let entry = try #require(try store.entry(for: Self.key))
        return withExtendedLifetime(store) { entry.isRecorded(promised) }
    }

    @Test(
        "it is found by the next process, for the same promise alone",
        arguments: DiskKind.allCases,
        [10, 200_000]
    )
    func found(_ kind: DiskKind, _ count: Int) throws {
        let disk = TestDisk(kind)
        let promised = try Self.digest(7)
        do {
            let store = try disk.open()
            let entry = try store.store(bytes(count), for: Self.key)
            compare(entry, with: promised)
            // Read on without a checksum, whatever was written behind the body.
            #expect(entry.readCached(count) == .ready(bytes(count)))
            withExtendedLifetime(store) {}
        }
        #expect(try isRecorded(promised, on: disk))
        #expect(try !isRecorded(Self.digest(8), on: disk))
        #expect(try disk.open().entry(for: Self.key)?.read(count + 8) == bytes(count))
        let result = try disk.open().verify(repair: false)
        #expect(result.damaged == 0)
    }

    @Test("without a comparison there is none", arguments: [10, 200_000])
    func absent(_ count: Int) throws {
        let disk = TestDisk(.memory)
        try disk.open().store(bytes(count), for: Self.key)
        #expect(try !isRecorded(Self.digest(7), on: disk))
    }

    @Test("a record that is replaced, as by a pin, keeps that of a body in a file of its own")
    func replaced() throws {
        let disk = TestDisk(.memory)
        let promised = try Self.digest(7)
        do {
            let store = try disk.open()
            let entry = try store.store(bytes(200_000), for: Self.key)
            compare(entry, with: promised)
            try entry.setPinned(true)
            try entry.updateMetadata([1, 2, 3, 4, 5, 6, 7, 8, 9])
            withExtendedLifetime(store) {}
        }
        #expect(try isRecorded(promised, on: disk))
    }

    @Test("a comparison of what is pinned is recorded by another record")
    func pinned() throws {
        let disk = TestDisk(.memory)
        let promised = try Self.digest(7)
        do {
            let store = try disk.open()
            let entry = try store.store(bytes(200_000), for: Self.key, class: [.pinned])
            compare(entry, with: promised)
            withExtendedLifetime(store) {}
        }
        #expect(try isRecorded(promised, on: disk))
    }

    @Test("it says nothing about a block that was written again with other bytes")
    func otherBytes() throws {
        let disk = TestDisk(.memory)
        let promised = try Self.digest(7)
        do {
            let store = try disk.open()
            let entry = try store.store(bytes(200_000), for: Self.key)
            compare(entry, with: promised)
            entry.lose(1)
            let other = bytes(65_536, seed: 9)
            try other.withUnsafeBytes { try entry.beginWriting(at: 65_536).writeAndEnd($0) }
            #expect(entry.isComplete)
            let step = entry.nextStep(
                for: BodyExpectation(promised: promised, expected: []),
                length: nil
            )
            guard case .compare = step else {
                Issue.record("it counts as compared")
                return
            }
            withExtendedLifetime(store) {}
        }
        #expect(try !isRecorded(promised, on: disk))
    }

    @Test("a comparison that a write overtakes is none")
    func overtaken() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        let entry = try store.store(bytes(200_000), for: Self.key)
        let version = entry.decisionVersion
        entry.lose(1)
        let other = bytes(65_536, seed: 9)
        try other.withUnsafeBytes { try entry.beginWriting(at: 65_536).writeAndEnd($0) }
        let isCurrent = entry.didCompare(
            with: BodyExpectation(promised: try Self.digest(7), expected: []),
            found: [],
            outcome: .right,
            version: version
        )
        #expect(!isCurrent)
        withExtendedLifetime(store) {}
    }

    // MARK: Guests

    @Test("a guest compares once what the owner has not compared")
    func guest() throws {
        let disk = TestDisk(.memory)
        let owner = try disk.open()
        try owner.store(bytes(200_000), for: Self.key)
        let guest = try disk.open()
        #expect(!guest.access.canWrite)
        let promised = try Self.digest(7)
        let first = try #require(try guest.entry(for: Self.key))
        compare(first, with: promised)
        let second = try #require(try guest.entry(for: Self.key))
        #expect(second !== first)
        #expect(second.isRecorded(promised))
        #expect(try !second.isRecorded(Self.digest(8)))
        withExtendedLifetime(owner) {}
    }

    // MARK: Records that change

    @Test(
        "a record whose lengths were changed from outside gets no word anywhere",
        arguments: [
            (56, [0, 0, 32, 0]), (60, [0, 0, 32, 0]), (40, [0, 0, 0, 0, 4, 0, 0, 0]), (24, [1]),
        ] as [(Int, [UInt8])]
    )
    func hostileLengths(_ offset: Int, _ word: [UInt8]) throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        let entry = try store.store(bytes(200_000), for: Self.key)
        let path = try #require(disk.paths(".record").first)
        var record = try disk.content(path)
        record.replaceSubrange(offset..<offset + word.count, with: word)
        try disk.write(record, path)
        compare(entry, with: try Self.digest(7))
        #expect(try disk.content(path) == record)
        withExtendedLifetime(store) {}
    }

    @Test("the record of a small body that turns out to be damaged has no word for a checksum")
    func damagedInline() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        let entry = try store.store(bytes(1000), for: Self.key)
        compare(entry, with: try Self.digest(7))
        let path = try #require(disk.paths(".record").first)
        try disk.write(Array(disk.content(path)[..<200]), path)
        try entry.updateMetadata([1, 2, 3, 4, 5, 6, 7, 8, 9])
        #expect(try disk.content(path).count == Int(entry.record.tableOffset))
        withExtendedLifetime(store) {}
    }

    @Test("what other metadata promise is due before their change returns")
    func otherPromise() throws {
        let promised = try Self.digest(7)
        let watched = Guarded<DiskEntry?>(nil)
        let due = Guarded<[Bool]>([])
        let disk = WatchedFileSystem(InMemoryFileSystem()) { call, _ in
            guard call == .sync, let entry = watched.withLock({ $0 }),
                entry.metadata == [9, 9, 9, 9]
            else { return }
            let isDue = entry.awaitsDecision { _ in promised }
            due.withLock { $0.append(isDue) }
        }
        var options = DiskStore.Options(root: "/cache", limit: 64 << 20)
        options.minimumFree = 0
        let store = try DiskStore(options, fileSystem: disk, timeSource: ManualTimeSource())
        let entry = try store.store(bytes(200_000), for: Self.key, class: [.pinned])
        #expect(!entry.awaitsDecision { _ in [] })
        watched.withLock { $0 = entry }
        try entry.updateMetadata([9, 9, 9, 9])
        let last = watched.withLock { $0.take() }
        #expect(due.withLock { !$0.isEmpty && $0.allSatisfy { $0 } })
        withExtendedLifetime((store, last)) {}
    }
}
