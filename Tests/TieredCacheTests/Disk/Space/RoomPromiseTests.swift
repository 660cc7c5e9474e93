import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("Disk: room set aside", .timeLimit(.minutes(10)))
struct RoomPromiseTests {
    @Test(
        "What is promised no other write gets, what is not used comes back",
        arguments: DiskKind.allCases
    )
    func promised(_ kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(limit: 1_000_000)
        let body = bytes(600_000)
        do {
            let promise = try store.promiseRoom(600_000, for: key("a"))
            let error = #expect(throws: CacheError.self) {
                try store.promiseRoom(400_000, for: key("b"))
            }
            #expect(error?.code == .localStorage)
            let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: 600_000)
            let writer = try entry.beginWriting(at: 0, within: promise)
            try writer.write(body[..<300_000])
            // In use, and yet it leaves no room: the rest is to come.
            #expect(throws: CacheError.self) { try store.store(bytes(400_000), for: key("b")) }
            try writer.write(body[300_000...])
            writer.end()
            #expect(entry.isComplete && entry.read(600_001) == body)
            promise.end()
            #expect(store.reservedBytes == 0)
            withExtendedLifetime(promise) {}
        }
        store.closeIdle()
        #expect(store.reservedBytes == 0)
        #expect(try store.usage().bytes == disk.allocatedBytes)
        try store.store(bytes(300_000), for: key("b"))
    }

    @Test("A promise that ends before its write leaves the write what it has taken")
    func endsEarly() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open(limit: 1_000_000)
        let promise = try store.promiseRoom(500_000, for: key("a"))
        #expect(store.reservedBytes >= 500_000)
        let taken = promise.take(100_000, in: store)
        promise.end()
        #expect(taken == 100_000 && store.reservedBytes == 100_000)
        #expect(!promise.endLease(50_000))
        store.endReservation(taken)
        #expect(store.reservedBytes == 0)
        withExtendedLifetime(promise) {}
    }

    @Test("A promise of a directory that was opened again takes nothing from the new books")
    func otherStore() throws {
        let disk = TestDisk(.memory)
        let first = try disk.open(limit: 1_000_000)
        let promise = try first.promiseRoom(500_000, for: key("a"))
        try disk.deleteDirectory("")
        let second = try disk.open(limit: 1_000_000)
        let entry = try second.makeEntry(for: key("a"), metadata: [], completeLength: 300_000)
        try entry.beginWriting(at: 0, within: promise).write(bytes(300_000))
        #expect(entry.isComplete && second.reservedBytes == 0)
        #expect(first.reservedBytes >= 500_000)
        withExtendedLifetime(promise) {}
    }
}
