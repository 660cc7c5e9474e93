import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Entries whose file is closed and whose head stays in memory.
@Suite("Disk: dormant entries", .timeLimit(.minutes(10)))
struct DiskDormantTests {
    private static let sizes = [0, 1000, 65_536, 200_000]

    /// A store with one descriptor to spare, in which `a` rests behind `b`.
    private func storeWithDormantEntry(_ disk: TestDisk, size: Int) throws -> DiskStore {
        var options = disk.options()
        options.maximumOpenEntries = 1
        let store = try disk.open(options)
        for name in ["a", "b"] {
            try store.store(bytes(size, seed: name == "a" ? 1 : 2), for: key(name))
        }
        #expect(
            try firstDifference(store.entry(for: key("b"))?.read(size + 1), bytes(size, seed: 2))
                == nil
        )
        try #require(store.isDormant(key("a")))
        return store
    }

    @Test("a dormant entry is a hit that reads no record", arguments: DiskKind.allCases, sizes)
    func hit(kind: DiskKind, size: Int) throws {
        let disk = TestDisk(kind)
        let store = try storeWithDormantEntry(disk, size: size)
        guard case .ready(let entry?) = store.entryWithoutBlocking(for: key("a")) else {
            Issue.record("no hit")
            return
        }
        #expect(!store.isDormant(key("a")))
        #expect(entry.metadata == [1, 2, 3])
        #expect(entry.readCached(size + 1) == .ready(bytes(size, seed: 1)))
        #expect(store.isDormant(key("b")))
    }

    @Test("only the file itself is opened again")
    func calls() throws {
        let disk = TestDisk(.memory)
        let store = try storeWithDormantEntry(disk, size: 1000)
        let before = disk.memory.calls.count
        #expect(
            try firstDifference(store.entry(for: key("a"))?.read(1000), bytes(1000, seed: 1)) == nil
        )
        #expect(disk.memory.calls.dropFirst(before).map(\.call) == [.open, .inspect, .read])
    }

    @Test("a store that is closed while an entry is opened again keeps none")
    func closed() throws {
        let store = try storeWithDormantEntry(TestDisk(.memory), size: 1000)
        let found = try #require(store.state.withLock { $0.open.residents.find(key("a")) })
        store.close()
        let (count, removed) = store.state.withLock { state in
            state.open.residents.didReopen(found)
            return (state.open.residents.openCount, state.open.residents.removeDormant(found))
        }
        #expect(count == 0 && removed == nil)
    }

    @Test("a file that was removed meanwhile is a miss", arguments: DiskKind.allCases)
    func removed(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try storeWithDormantEntry(disk, size: 1000)
        for path in disk.paths(".record") {
            try disk.delete(path)
        }
        #expect(try store.entry(for: key("a")) == nil)
        #expect(store.entryWithoutBlocking(for: key("a")).isMiss)
    }

    @Test(
        "a file that was changed meanwhile is verified again",
        arguments: DiskKind.allCases,
        [1000, 200_000]
    )
    func changed(kind: DiskKind, size: Int) throws {
        let disk = TestDisk(kind)
        let store = try storeWithDormantEntry(disk, size: size)
        for path in disk.paths(size > 65_536 ? ".body" : ".record") {
            // Another length, so that it is seen whatever the clock's grain is.
            try disk.write(disk.content(path).map { $0 ^ 0xFF } + [0], path)
        }
        let entry = try store.entry(for: key("a"))
        #expect(entry?.read(size) ?? [] == [])
    }

    @Test("heads cost no more memory than they may", arguments: [0, 3000])
    func bounded(limit: Int) throws {
        var options = TestDisk(.memory).options()
        options.maximumOpenEntries = 2
        options.maximumHeadMemory = limit
        let disk = TestDisk(.memory)
        let store = try disk.open(options)
        for number in 0..<20 {
            try store.store(bytes(100), for: key("\(number)"))
        }
        let (open, cost, count) = store.state.withLock {
            ($0.open.residents.openCount, $0.open.residents.dormantCost, $0.open.residents.count)
        }
        #expect(open == 2)
        #expect(cost <= limit)
        #expect(count == (limit == 0 ? 2 : 5))
    }

    @Test("replacing and removing a dormant entry leaves nothing of it", arguments: sizes)
    func replaced(size: Int) throws {
        let disk = TestDisk(.memory)
        let store = try storeWithDormantEntry(disk, size: size)
        try store.store(bytes(size, seed: 3), for: key("a"))
        #expect(
            try firstDifference(store.entry(for: key("a"))?.read(size), bytes(size, seed: 3)) == nil
        )
        #expect(
            try firstDifference(store.entry(for: key("b"))?.read(size), bytes(size, seed: 2)) == nil
        )
        try #require(store.isDormant(key("a")))
        #expect(try store.remove(key("a")))
        #expect(try store.entry(for: key("a")) == nil)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }
}

extension DiskStore {
    func isDormant(_ key: CacheKey) -> Bool {
        state.withLock { $0.open.residents.find(key)?.isDormant ?? false }
    }
}

extension NonBlocking where Value == DiskEntry? {
    var isMiss: Bool {
        if case .ready(nil) = self { true } else { false }
    }
}
