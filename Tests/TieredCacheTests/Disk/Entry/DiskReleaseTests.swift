import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// The last reference to a store goes, and leases stay.
@Suite("Disk: stores that go", .timeLimit(.minutes(10)))
struct DiskReleaseTests {
    /// What is left of a store that nothing refers to any more.
    private struct Rest {
        weak var store: DiskStore?
        var lease: DiskEntry
        var writer: BodyWriter
        var promise: RoomPromise
    }

    private func use(_ disk: TestDisk) throws -> Rest {
        let store = try disk.open()
        try store.store(bytes(1000), for: key("resident"))
        let lease = try store.store(bytes(200_000), for: key("lease"))
        let filled = try store.makeEntry(for: key("fill"), metadata: [], completeLength: 200_000)
        let writer = try filled.beginWriting(at: 0)
        try writer.write(bytes(100_000))
        let promise = try store.promiseRoom(1000, for: key("fill"))
        return Rest(store: store, lease: lease, writer: writer, promise: promise)
    }

    @Test(
        "open entries, fills and promises keep no store, and leases read on",
        arguments: DiskKind.allCases
    )
    func released(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let rest = try use(disk)
        #expect(rest.store == nil)
        let next = try disk.open()
        #expect(next.access.canWrite)
        #expect(firstDifference(rest.lease.read(200_000), bytes(200_000)) == nil)
        #expect(
            firstDifference(rest.writer.entry.read(100_000), Array(bytes(200_000)[..<100_000]))
                == nil
        )
        #expect(!rest.lease.checkWritable())
        func expectShutDown(_ body: () throws(CacheError) -> Void) {
            let error = #expect(throws: CacheError.self) { try body() }
            #expect(error?.code == .shutDown)
        }
        expectShutDown { () throws(CacheError) in try rest.writer.write(bytes(100_000)) }
        expectShutDown { () throws(CacheError) in _ = try rest.lease.beginWriting(at: 0) }
        expectShutDown { () throws(CacheError) in try rest.lease.setPinned(true) }
        expectShutDown { () throws(CacheError) in try rest.lease.updateMetadata([1]) }
        expectShutDown { () throws(CacheError) in try rest.lease.checkpoint() }
        rest.writer.end()
        rest.promise.end()
        #expect(try next.verify(repair: false).damaged == 0)
        #expect(try next.entry(for: key("resident"))?.isComplete == true)
    }

    @Test("a body of which nothing was recorded goes with the store")
    func unrecorded() throws {
        let disk = TestDisk(.memory)
        func failToRecord() throws {
            let store = try disk.open()
            try store.store(bytes(1000), for: key("other"))
            do {
                let entry = try store.makeEntry(
                    for: key("a"),
                    metadata: [],
                    completeLength: 200_000
                )
                let writer = try entry.beginWriting(at: 0)
                disk.memory.fail(.write, with: .ioError, times: 1)
                #expect(throws: CacheError.self) { try writer.write(bytes(100_000)) }
                disk.memory.heal()
            }
            try #require(disk.files.keys.contains { $0.hasSuffix(".body") })
        }
        try failToRecord()
        #expect(!disk.files.keys.contains { $0.hasSuffix(".body") })
    }
}
