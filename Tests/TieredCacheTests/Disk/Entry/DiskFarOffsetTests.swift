import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Bodies of unknown length that begin anywhere: what they take has to fit (invariants 4 and 10).
@Suite("Disk: far offsets", .timeLimit(.minutes(10)))
struct DiskFarOffsetTests {
    private static let block = BlockTable.blockSize

    /// A store, and the most that it has charged and reserved at any call to its disk.
    private final class Auditor: Sendable {
        let memory = InMemoryFileSystem()
        private let store = Guarded<DiskStore?>(nil)
        private let accounted = Guarded<Int64>(0)

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

        /// Runs what writes.
        ///
        /// - Returns: what was allocated meanwhile and neither charged nor reserved, if any was.
        func excess(_ body: () throws -> Void) rethrows -> Int64 {
            accounted.withLock { $0 = 0 }
            memory.forgetPeak()
            try body()
            return max(0, memory.peakAllocatedBytes - accounted.withLock { $0 })
        }

        private func audit() {
            guard let store = store.withLock({ $0 }) else { return }
            let now = store.state.withLock { $0.space.bytes + $0.space.reserved }
            accounted.withLock { $0 = max($0, now) }
        }
    }

    @Test(
        "a writer that begins behind the limit is refused, and nothing is written",
        arguments: [64 << 20, 1 << 40, 1 << 62, .max / 65_536 * 65_536] as [Int64]
    )
    func behindTheLimit(offset: Int64) throws {
        let disk = TestDisk(.memory)
        let store = try disk.open(limit: 64 << 20)
        let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: nil)
        let error = #expect(throws: CacheError.self) {
            try entry.beginWriting(at: offset).write(bytes(131_072))
        }
        #expect(error?.code == .localStorage)
        #expect(entry.storedRanges.isEmpty)
        #expect(disk.memory.peakAllocatedBytes < 16_384)
        // What is in reach of the limit can still be stored.
        try entry.beginWriting(at: 0).write(bytes(131_072))
        #expect(entry.storedRange(at: 0) == 0..<131_072)
    }

    @Test("no offset traps, also where there is no limit to speak of")
    func withoutLimit() throws {
        let store = try TestDisk(.memory).open(limit: .max)
        let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: nil)
        for offset in [BlockTable.maximumLength, 1 << 62, .max / 65_536 * 65_536] as [Int64] {
            #expect(throws: CacheError.self) {
                try entry.beginWriting(at: offset).write(bytes(65_536))
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
        let offset = (2 << 30) - 2 * Self.block
        #expect(
            try auditor.excess { try entry.beginWriting(at: offset).write(bytes(131_072)) } == 0
        )
        #expect(try auditor.excess { try entry.beginWriting(at: 0).write(bytes(65_536)) } == 0)
        #expect(try store.usage().bytes == auditor.memory.allocatedBytes)
        auditor.close()
    }

    @Test("a record that is replaced was reserved: with its table, its metadata and its body")
    func replaced() throws {
        let auditor = Auditor()
        let store = try auditor.open(limit: 4 << 30)
        let film = try store.makeEntry(for: key("a"), metadata: [], completeLength: 3 << 30)
        try film.beginWriting(at: (3 << 30) - Self.block).write(bytes(65_536))
        #expect(try auditor.excess { try film.updateMetadata([1]) } == 0)
        #expect(try auditor.excess { try film.updateMetadata(bytes(2 << 20)) } == 0)
        let text = try store.store(bytes(60_000), for: key("b"))
        #expect(try auditor.excess { try text.updateMetadata(bytes(1 << 20)) } == 0)
        #expect(try auditor.excess { _ = try store.bodyPath(for: key("b")) } == 0)
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
        #expect(try auditor.excess { try entry.beginWriting(at: 0).write(bytes(65_536)) } == 0)
        auditor.close()
    }
}
