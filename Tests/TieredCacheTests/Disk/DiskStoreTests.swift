import SystemPackage
import Testing

@testable import TieredCache

@Suite("DiskStore", .timeLimit(.minutes(1)))
struct DiskStoreTests {
    let directory = TemporaryDirectory()

    private func open(limit: Int64 = 64 << 20) throws -> DiskStore {
        var options = DiskStore.Options(root: directory.path.appending("cache"), limit: limit)
        options.minimumFree = 0
        return try DiskStore(options)
    }

    @Test(
        "a stored body is read back, in this store and in the next",
        arguments: [0, 1, 4096, 65_535, 65_536, 65_537, 1 << 20, 3_000_001]
    )
    func roundTrip(count: Int) throws {
        let body = bytes(count)
        do {
            let store = try open()
            let made = try store.store(body, for: key("a"), metadata: [7, 8, 9])
            #expect(made.isComplete)
            #expect(made.read(count + 10) == body)
            #expect(try store.entry(for: key("b")) == nil)
        }
        let store = try open()
        let entry = try #require(try store.entry(for: key("a")))
        #expect(entry.metadata == [7, 8, 9])
        #expect(entry.completeLength == Int64(count))
        #expect(entry.isComplete)
        #expect(entry.read(count + 10) == body)
        #expect(entry.read(at: Int64(count / 2), count) == Array(body[(count / 2)...]))
        #expect(try store.usage().entries == 1)
        #expect(try store.verify(repair: false).damaged == 0)
    }

    @Test("a partial body keeps its blocks over a restart, and the rest is a gap")
    func partial() throws {
        let body = bytes(300_000)
        do {
            let store = try open()
            let entry = try store.makeEntry(
                for: key("a"),
                metadata: [],
                completeLength: 300_000
            )
            let fill = try entry.beginFill(at: 65_536)
            try fill.write(body[65_536..<(65_536 * 3 + 100)])
            #expect(entry.held(at: 65_536) == 65_536..<196_708)
            #expect(entry.read(at: 196_600, 1000) == Array(body[196_600..<196_708]))
            #expect(entry.read(at: 0, 10) == [])
            #expect(try store.entry(for: key("a")) === entry)
        }
        let store = try open()
        let entry = try #require(try store.entry(for: key("a")))
        #expect(entry.heldRanges.ranges == [65_536..<196_608])
        #expect(entry.nextGap(in: 0..<300_000) == 0..<65_536)
        #expect(entry.nextGap(in: 70_000..<300_000) == 196_608..<300_000)
        #expect(entry.read(at: 100_000, 1000) == Array(body[100_000..<101_000]))
        try entry.beginFill(at: 0).write(body)
        #expect(entry.isComplete)
        #expect(entry.read(400_000) == body)
        let path = try #require(try store.bodyPath(for: key("a")))
        #expect(try TestFile.read(path) == body)
    }
}
