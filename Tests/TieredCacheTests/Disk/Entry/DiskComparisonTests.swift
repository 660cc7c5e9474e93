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
}
