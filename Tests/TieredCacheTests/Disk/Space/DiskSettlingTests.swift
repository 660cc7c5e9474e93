import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// File systems that show late, or too early, what files are allocated.
@Suite("Disk: allocation that shows late", .timeLimit(.minutes(10)))
struct DiskSettlingTests {
    private let time = ManualTimeSource()
    private let memory: InMemoryFileSystem

    init() {
        memory = InMemoryFileSystem(time: time)
    }

    private func open(limit: Int64) throws -> DiskStore {
        var options = DiskStore.Options(root: "/cache", limit: limit)
        options.minimumFree = 0
        options.maximumOpenEntries = 4
        options.hugeBody = 600_000
        options.headLength = 65_536
        return try DiskStore(options, fileSystem: memory, timeSource: time)
    }

    @Test("a record that a kill has cut short counts as what is left of it")
    func cutShort() throws {
        let disk = TestDisk(.memory)
        try disk.open().store(bytes(60_000), for: key("a"))
        let record = try #require(disk.paths(".record").first)
        #expect(disk.memory.tamper("\(disk.root)/\(record)") { $0.removeSubrange(50_000...) })
        let store = try disk.open()
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test(
        "the limit holds where nothing shows what it takes for seconds",
        arguments: [0, 30_000, 65_536, 200_000, 900_000]
    )
    func late(size: Int) throws {
        let limit: Int64 = 4 << 20
        memory.delayAllocation()
        let store = try open(limit: limit)
        for number in 0..<200 {
            try store.store(bytes(size), for: key("\(number)"), metadata: bytes(5000))
            if number % 3 == 0 {
                try store.entry(for: key("\(number)"))?.updateMetadata(bytes(9000))
            }
            #expect(memory.peakAllocatedBytes <= limit, "\(number)")
            #expect(store.chargedBytes <= limit)
        }
        // The next owner comes before anything shows.
        store.close()
        let next = try open(limit: limit)
        for number in 200..<250 {
            try next.store(bytes(size), for: key("\(number)"))
            #expect(memory.peakAllocatedBytes <= limit, "\(number)")
        }
        #expect(try next.verify(repair: false).damaged == 0)
    }

    @Test("what was charged too high is right once the entry has left memory")
    func ahead() throws {
        let store = try open(limit: 64 << 20)
        memory.allocateAhead(1 << 20)
        for number in 0..<6 {
            try store.store(bytes(200_000), for: key("\(number)"))
        }
        #expect(store.chargedBytes > memory.allocatedBytes + (2 << 20))
        time.advance(by: .seconds(60))
        store.closeIdle()
        memory.allocateAhead(0)
        #expect(store.chargedBytes == memory.allocatedBytes)
        #expect(
            try firstDifference(store.entry(for: key("3"))?.read(200_000), bytes(200_000)) == nil
        )
    }

    @Test("what has shown in time is charged as it is, not as it was written")
    func compressed() throws {
        memory.delayAllocation()
        let store = try open(limit: 64 << 20)
        try store.store(bytes(1 << 20), for: key("a"))
        #expect(store.chargedBytes >= 1 << 20)
        time.advance(by: .seconds(31))
        store.closeIdle()
        // It never shows more: a file system that compresses.
        #expect(store.chargedBytes < 65_536)
    }
}
