import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("DiskStore: what is set aside", .timeLimit(.minutes(10)))
struct DiskQuarantineTests {
    private static let count = 200_000

    /// A store with an entry that was set aside, and is not open any more.
    private func withQuarantined(
        _ kind: DiskKind,
        size: Int = count,
        limit: Int64 = 64 << 20,
        _ body: (TestDisk, DiskStore) throws -> Void
    ) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(limit: limit)
        try setAside("a", size: size, in: store)
        try body(disk, store)
    }

    private func setAside(_ name: String, size: Int = count, in store: DiskStore) throws {
        let entry = try store.store(bytes(size), for: key(name))
        #expect(try store.quarantine(entry))
        // Its reader reads on.
        #expect(entry.isSuperseded)
        var first = [UInt8](repeating: 0, count: 1000)
        #expect(first.withUnsafeMutableBytes { entry.read(at: 0, into: $0) } == 1000)
        #expect(firstDifference(first, Array(bytes(size).prefix(1000))) == nil)
    }

    private func aside(_ disk: TestDisk) -> [String] {
        disk.files.keys.filter { $0.hasPrefix("quarantine/") }.sorted()
    }

    @Test(
        "It is never served, takes room below the limit, and its bytes are there",
        arguments: DiskKind.allCases,
        [1000, count]
    )
    func setAside(kind: DiskKind, size: Int) throws {
        try withQuarantined(kind, size: size) { disk, store in
            #expect(try store.entry(for: key("a")) == nil)
            #expect(try store.list().isEmpty)
            #expect(try store.usage().bytes == disk.allocatedBytes)
            #expect(disk.paths(".record").allSatisfy { $0.hasPrefix("quarantine/") })
            #expect(aside(disk).count == (size > 65_536 ? 2 : 1))
            let file = try #require(
                aside(disk).last { $0.hasSuffix(size > 65_536 ? "body" : "record") }
            )
            #expect(try firstDifference(disk.content(file).suffix(size), bytes(size)[...]) == nil)
        }
    }

    @Test("A restart counts it, and a guest does not see it", arguments: DiskKind.allCases)
    func restart(kind: DiskKind) throws {
        try withQuarantined(kind) { disk, store in
            store.close()
            let again = try disk.open()
            #expect(try again.usage().bytes == disk.allocatedBytes)
            #expect(try again.entry(for: key("a")) == nil)
            let guest = try disk.open()
            #expect(try guest.entry(for: key("a")) == nil)
            again.releaseQuarantine(of: key("a"))
            #expect(aside(disk).isEmpty)
            #expect(try again.usage().bytes == disk.allocatedBytes)
        }
    }

    @Test("It goes before anything else when room is needed", arguments: DiskKind.allCases)
    func room(kind: DiskKind) throws {
        try withQuarantined(kind, limit: 1 << 20) { disk, store in
            for index in 0..<3 { try store.store(bytes(Self.count), for: key("\(index)")) }
            #expect(aside(disk).count == 2)
            try store.store(bytes(Self.count), for: key("3"))
            #expect(aside(disk).isEmpty)
            #expect(try store.list().count == 4)
            #expect(try store.usage().bytes == disk.allocatedBytes)
        }
    }

    @Test("verify names it, and repairing or clearing removes it", arguments: DiskKind.allCases)
    func verified(kind: DiskKind) throws {
        for isRepair in [true, false] {
            try withQuarantined(kind) { disk, store in
                var found: [DiskFinding] = []
                let result = try store.verify(repair: false) { found.append($0) }
                #expect(result == DiskVerification())
                #expect(found.map(\.kind) == [.quarantined, .quarantined])
                #expect(found.allSatisfy { $0.path.string.contains("/quarantine/") })
                if isRepair { _ = try store.verify(repair: true) } else { try store.removeAll() }
                #expect(aside(disk).isEmpty)
                #expect(try store.usage().bytes == disk.allocatedBytes)
            }
        }
    }

    @Test("One body per key, four in all, and a quarter of the limit", arguments: DiskKind.allCases)
    func bounded(kind: DiskKind) throws {
        try withQuarantined(kind) { disk, store in
            try setAside("a", size: 300_000, in: store)
            #expect(aside(disk).count == 2)
            for name in ["b", "c", "d"] { try setAside(name, in: store) }
            #expect(aside(disk).count == 8)
            try setAside("e", in: store)
            #expect(aside(disk).count == 2)
            try disk.write([1], "quarantine/note")
            try store.setLimit(2 << 20)
            try setAside("f", in: store)
            try setAside("g", in: store)
            #expect(try aside(disk).count <= 5 && store.usage().bytes <= 512 << 10)
            let large = try store.store(bytes(600_000), for: key("large"))
            #expect(try !store.quarantine(large))
            // What is not set aside is removed: it is not what was promised.
            #expect(try store.entry(for: key("large")) == nil)
            try store.removeAll()
            // What is not ours stays.
            #expect(aside(disk) == ["quarantine/note"])
        }
    }

    @Test("What has been replaced is not set aside any more", arguments: DiskKind.allCases)
    func replaced(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        let old = try store.store(bytes(Self.count), for: key("a"))
        try store.store(bytes(Self.count, seed: 2), for: key("a"))
        #expect(try !store.quarantine(old))
        #expect(aside(disk).isEmpty)
        #expect(try store.entry(for: key("a")) != nil)
    }
}
