import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Bodies of unknown length that begin anywhere: what they take has to fit (invariants 4 and 10).
@Suite("Disk: far offsets", .timeLimit(.minutes(10)))
struct DiskFarOffsetTests {
    private static let block = BlockTable.blockSize

    /// A disk that is asked, before each call, whether more is allocated than the store has booked
    /// and reserved.
    private final class Auditor: Sendable {
        let memory = InMemoryFileSystem()
        private let store = Guarded<DiskStore?>(nil)
        private let excess = Guarded<Int64>(0)

        /// The most that was allocated and neither booked nor reserved.
        var greatestExcess: Int64 { excess.withLock { $0 } }

        func open(limit: Int64) throws -> DiskStore {
            let disk = WatchedFileSystem(memory) { [self] _, _ in audit() }
            var options = DiskStore.Options(root: "/cache", limit: limit)
            options.minimumFree = 0
            let opened = try DiskStore(options, fileSystem: disk, timeSource: ManualTimeSource())
            try opened.loadIndex()
            store.withLock { $0 = opened }
            return opened
        }

        func close() { store.withLock { $0 = nil } }

        func audit() {
            guard let store = store.withLock({ $0 }) else { return }
            let accounted = store.core.state.withLock { $0.ledger.bytes + $0.ledger.reserved }
            let excess = memory.allocatedBytes - accounted
            self.excess.withLock { $0 = max($0, excess) }
        }
    }

    @Test(
        "a fill that begins behind the limit is refused, and nothing is written",
        arguments: [64 << 20, 1 << 40, 1 << 62, .max / 65_536 * 65_536] as [Int64]
    )
    func behindTheLimit(offset: Int64) throws {
        let disk = TestDisk(.memory)
        let store = try disk.open(limit: 64 << 20)
        let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: nil)
        let error = #expect(throws: CacheError.self) {
            try entry.beginFill(at: offset).write(bytes(131_072))
        }
        #expect(error?.code == .localStorage)
        #expect(entry.heldRanges.isEmpty)
        #expect(disk.memory.peakAllocatedBytes < 16_384)
        // What is in reach of the limit can still be stored.
        try entry.beginFill(at: 0).write(bytes(131_072))
        #expect(entry.held(at: 0) == 0..<131_072)
    }

    @Test("no offset traps, also where there is no limit to speak of")
    func withoutLimit() throws {
        let store = try TestDisk(.memory).open(limit: .max)
        let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: nil)
        for offset in [BlockTable.maximumLength, 1 << 62, .max / 65_536 * 65_536] as [Int64] {
            #expect(throws: CacheError.self) {
                try entry.beginFill(at: offset).write(bytes(65_536))
            }
        }
        #expect(throws: CacheError.self) {
            try store.makeEntry(for: key("b"), metadata: [], completeLength: .max)
        }
    }

    @Test("a table that is first written for a far block was reserved", arguments: [nil, 2 << 30])
    func farBlock(completeLength: Int64?) throws {
        let auditor = Auditor()
        let store = try auditor.open(limit: 4 << 30)
        let entry = try store.makeEntry(
            for: key("a"),
            metadata: [],
            completeLength: completeLength
        )
        try entry.beginFill(at: (2 << 30) - 2 * Self.block).write(bytes(131_072))
        try entry.beginFill(at: 0).write(bytes(65_536))
        auditor.audit()
        #expect(auditor.greatestExcess <= 0)
        #expect(try store.usage().bytes == auditor.memory.allocatedBytes)
        auditor.close()
    }

    @Test("a record that is replaced was reserved: with its table, its metadata and its body")
    func replaced() throws {
        let auditor = Auditor()
        let store = try auditor.open(limit: 4 << 30)
        let film = try store.makeEntry(for: key("a"), metadata: [], completeLength: 3 << 30)
        try film.beginFill(at: (3 << 30) - Self.block).write(bytes(65_536))
        try film.updateMetadata([1])
        try film.updateMetadata(bytes(2 << 20))
        let text = try store.store(bytes(60_000), for: key("b"))
        try text.updateMetadata(bytes(1 << 20))
        _ = try store.bodyPath(for: key("b"))
        auditor.audit()
        #expect(auditor.greatestExcess <= 0)
        auditor.close()
    }

    @Test("metadata counts before the first block is written")
    func largeMetadata() throws {
        let auditor = Auditor()
        let store = try auditor.open(limit: 64 << 20)
        let entry = try store.makeEntry(
            for: key("a"),
            metadata: bytes(4 << 20),
            completeLength: 1 << 20
        )
        try entry.beginFill(at: 0).write(bytes(65_536))
        auditor.audit()
        #expect(auditor.greatestExcess <= 0)
        auditor.close()
    }
}
