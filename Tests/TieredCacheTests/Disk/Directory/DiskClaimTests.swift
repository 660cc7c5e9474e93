import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Writing before the index is there: what LOCK claims is enough to keep the limit.
@Suite("Disk: claims", .timeLimit(.minutes(10)))
struct DiskClaimTests {
    private static let limit: Int64 = 4 << 20

    private static func open(
        _ disk: any FileSystem,
        limit: Int64 = limit,
        fewest: Int = 1,
        time: ManualTimeSource = ManualTimeSource()
    ) throws -> DiskStore {
        var options = DiskStore.Options(root: "/cache", limit: limit)
        options.minimumFree = 0
        options.minimumSnapshotEntries = fewest
        options.hugeBody = 300_000
        options.headLength = 65_536
        return try DiskStore(options, fileSystem: disk, timeSource: time)
    }

    /// A disk as a process leaves it that is killed.
    private static func killed(
        count: Int,
        size: Int = 1000,
        limit: Int64 = limit
    ) throws -> InMemoryFileSystem {
        let memory = InMemoryFileSystem(time: ManualTimeSource())
        let store = try open(memory, limit: limit)
        for number in 0..<count {
            try store.store(bytes(size, seed: UInt64(number)), for: key("\(number)"))
        }
        return memory.afterCrash(.everythingKept)
    }

    private static func claim(_ disk: InMemoryFileSystem) -> Int64? {
        disk.content(of: "/cache/LOCK").flatMap { text in
            LockFile(String(decoding: text, as: UTF8.self)).claim
        }
    }

    private static func records(_ calls: ArraySlice<FileSystemCall>) -> Int {
        Set(calls.map(\.path).filter { $0.hasSuffix(".record") }).count
    }

    @Test("after a crash the first write reads its own directory alone")
    func firstWrite() throws {
        let disk = try Self.killed(count: 800)
        #expect(Self.claim(disk) != nil)
        let store = try Self.open(disk)
        let before = disk.calls.count
        try store.store(bytes(500), for: key("new"))
        // Some three of 800 are in one of 256 directories.
        #expect((1..<30).contains(Self.records(disk.calls[before...])))
        #expect(!store.state.withLock { $0.entries.isLoaded })
        #expect(try store.remove(key("5")))
        #expect(try firstDifference(store.entry(for: key("new"))?.read(500), bytes(500)) == nil)
        #expect(!store.state.withLock { $0.entries.isLoaded })
        let usage = try store.usage()
        #expect(usage.entries == 800)
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(try store.verify(repair: false).damaged == 0)
    }

    @Test("a small directory has no claim, and nothing is synced for one")
    func small() throws {
        let disk = InMemoryFileSystem(time: ManualTimeSource())
        let store = try Self.open(disk, fewest: 100)
        for number in 0..<99 { try store.store(bytes(10), for: key("\(number)")) }
        #expect(Self.claim(disk) == nil)
        try store.store(bytes(10), for: key("99"))
        #expect(Self.claim(disk) == nil)
        try store.store(bytes(10), for: key("100"))
        #expect(try #require(Self.claim(disk)) >= disk.allocatedBytes)
    }

    @Test("whatever is done, no call finds more on disk than is claimed", arguments: 0..<8)
    func bound(seed: UInt64) throws {
        let disk = InMemoryFileSystem(time: ManualTimeSource())
        let violations = Guarded<[String]>([])
        let calls = Guarded(0)
        let watched = WatchedFileSystem(disk) { call, name in
            calls.withLock { $0 += 1 }
            let allocated = disk.allocatedBytes
            let claim = Self.claim(disk)
            guard allocated > min(claim ?? .max, Self.limit) else { return }
            violations.withLock { $0.append("\(call) \(name): \(allocated) of \(claim ?? -1)") }
        }
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<6 {
            let store = try Self.open(watched)
            // Half of the rounds write before everything is read.
            if generator.next() % 2 == 0 { try store.loadIndex() }
            for _ in 0..<60 { Work.step(store, &generator) }
            #expect(try store.usage().bytes >= disk.allocatedBytes, "seed \(seed)")
            if generator.next() % 2 == 0 { store.close() }
        }
        #expect(calls.withLock { $0 } > 1000)
        #expect(violations.withLock { $0 } == [], "seed \(seed)")
    }

    @Test(
        "crash, reopen, write while the index is being read: limit and accounts",
        .tags(.seeded),
        arguments: TestCases.few(3, of: UInt64(0)..<12)
    )
    func whileLoading(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var disk = try Self.killed(count: 300, size: 9000)
        for round in 0..<4 {
            let context = "seed \(seed), round \(round)"
            let current = disk
            let store = try Self.open(current)
            let die = Guarded(generator)
            current.forgetPeak()
            let problems = Guarded<[String]>([])
            // Writes come between any two of the 256 directories.
            try store.loadIndex {
                var generator = die.withLock { $0 }
                // What does not fit has to wait for the index, which waits for this call.
                let room = store.state.withLock { $0.space.limit - $0.space.bytes }
                if generator.next() % 4 == 0, room > 1 << 20 { Work.step(store, &generator) }
                if current.allocatedBytes > Self.limit {
                    problems.withLock { $0.append("\(current.allocatedBytes) bytes, \(context)") }
                }
                die.withLock { $0 = generator }
                return false
            }
            generator = die.withLock { $0 }
            #expect(problems.withLock { $0 } == [])
            store.closeIdle()
            #expect(try store.usage().bytes == current.allocatedBytes, "\(context)")
            #expect(try store.usage().entries == current.recordCount, "\(context)")
            #expect(current.peakAllocatedBytes <= Self.limit, "\(context)")
            #expect(try store.verify(repair: false).damaged == 0, "\(context)")
            disk = current.afterCrash(.everythingKept)
        }
    }

    @Test("where the claim leaves no room a write waits for the index and evicts what is oldest")
    func full() throws {
        let limit: Int64 = 2 << 20
        let disk = try Self.killed(count: 230, size: 4096, limit: limit)
        disk.forgetPeak()
        let store = try Self.open(disk, limit: limit)
        for number in 0..<20 {
            try store.store(bytes(60_000), for: key("new \(number)"))
            #expect(disk.allocatedBytes <= limit)
        }
        #expect(store.state.withLock { $0.entries.isLoaded })
        for number in 0..<20 { #expect(try store.entry(for: key("new \(number)")) != nil) }
        #expect(disk.peakAllocatedBytes <= limit)
        #expect(store.counters.evictions > 0)
    }

    @Test("what was used or written while the index was read is the newest afterwards")
    func order() throws {
        let disk = try Self.killed(count: 100)
        let time = ManualTimeSource()
        time.advance(by: .seconds(200))
        let store = try Self.open(disk, time: time)
        _ = try store.entry(for: key("8"))
        store.persistUses()
        time.advance(by: .seconds(1))
        let used = try #require(try store.entry(for: key("7")))
        store.persistUses()
        time.advance(by: .seconds(1))
        try store.store(bytes(10), for: key("written"))
        try store.loadIndex()
        let order = store.state.withLock {
            $0.entries.index.oldest(200) { _ in true }.map(\.name)
        }
        #expect(order.count == 101)
        let newest = ["7", "8", "written"].map { EntryName(digest: key($0).digest) }
        #expect(Set(order.suffix(3)) == Set(newest))
        withExtendedLifetime(used) {}
    }

    @Test("a process that ends before it has read everything hands on what was known")
    func handedOn() throws {
        let disk = TestDisk(.posix)
        var options = disk.options(limit: 1 << 30)
        options.minimumSnapshotEntries = 1
        do {
            let store = try DiskStore(options)
            for number in 0..<300 { try store.store(bytes(100), for: key("\(number)")) }
            store.close()
        }
        // Long ago, so that what the snapshot says is believed.
        try disk.age()
        do {
            let store = try DiskStore(options)
            try store.loadIndex()
        }
        do {
            let store = try DiskStore(options)
            try store.store(bytes(100), for: key("new"))
            #expect(!store.state.withLock { $0.entries.isLoaded })
        }
        let opened = Guarded(0)
        let watched = WatchedFileSystem(POSIXFileSystem(mayBlockAnyThread: true)) { call, name in
            if call == .open, name.hasSuffix(".record") { opened.withLock { $0 += 1 } }
        }
        let store = try DiskStore(options, fileSystem: watched)
        #expect(try store.usage().entries == 301)
        // The directory that was written to may be too new to be believed.
        #expect(opened.withLock { $0 } < 20)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("a write beside the snapshot reads it, and leaves nothing for the next start")
    func snapshot() throws {
        let disk = InMemoryFileSystem(time: ManualTimeSource())
        do {
            let store = try Self.open(disk)
            for number in 0..<300 { try store.store(bytes(100), for: key("\(number)")) }
        }
        #expect(disk.files["/cache/INDEX"] != nil)
        let store = try Self.open(disk)
        try store.store(bytes(100), for: key("new"))
        #expect(disk.files["/cache/INDEX"] == nil)
        #expect(!store.state.withLock { $0.entries.isLoaded })
        #expect(try store.usage().entries == 301)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test(
        "a claim that is damaged, missing or wrong costs time, never the accounts",
        arguments: ["", "1\n", "garbage \n\n", "1\n12 34\n", "low", "high"]
    )
    func wrong(text: String) throws {
        let disk = try Self.killed(count: 200)
        let claim: Int64? = text == "low" ? 4096 : text == "high" ? Self.limit * 2 : nil
        let content = claim.map { LockFile(claim: $0).encoded } ?? Array(text.utf8)
        #expect(disk.tamper("/cache/LOCK") { $0 = content })
        let store = try Self.open(disk)
        try store.store(bytes(5000), for: key("new"))
        #expect(store.state.withLock { $0.entries.isLoaded } == (text != "low"))
        #expect(try store.usage().entries == 201)
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(disk.allocatedBytes <= Self.limit)
    }

    @Test("a claim that cannot be raised refuses the write, and the next one tries again")
    func failing() throws {
        let disk = try Self.killed(count: 200)
        let store = try Self.open(disk)
        disk.fail(.sync, with: .ioError)
        let error = #expect(throws: CacheError.self) {
            try store.store(bytes(200_000), for: key("new"))
        }
        #expect(error?.code == .localStorage)
        #expect(try #require(Self.claim(disk)) >= disk.allocatedBytes)
        disk.heal()
        try store.store(bytes(200_000), for: key("new"))
        #expect(try store.usage().entries == 201)
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("a claim far too high is lowered when everything is known, and when the store closes")
    func lowered() throws {
        let disk = try Self.killed(count: 400)
        do {
            let store = try Self.open(disk)
            try store.loadIndex()
            let high = try #require(Self.claim(disk))
            _ = try store.trim(to: 300_000)
            #expect(Self.claim(disk) == high)
            store.close()
            #expect(try #require(Self.claim(disk)) < high)
        }
        let crashed = disk.afterCrash(.everythingKept)
        #expect(crashed.tamper("/cache/LOCK") { $0 = LockFile(claim: Self.limit).encoded })
        let store = try Self.open(crashed)
        try store.loadIndex()
        let low = try #require(Self.claim(crashed))
        #expect(low < Self.limit && low >= crashed.allocatedBytes)
    }

    @Test("an index that cannot be read yet is read by the next write")
    func interrupted() throws {
        let disk = try Self.killed(count: 300)
        let store = try Self.open(disk)
        let asked = Guarded(0)
        let error = #expect(throws: CacheError.self) {
            try store.loadIndex {
                asked.withLock {
                    $0 += 1
                    return $0 > 100
                }
            }
        }
        #expect(error?.code == .cancelled)
        try store.store(bytes(100), for: key("new"))
        #expect(try store.usage().entries == 301)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }
}

/// Steps of a seeded random workload; what the cache refuses is part of it.
private enum Work {
    static func step(_ store: DiskStore, _ generator: inout SeededGenerator) {
        let name = key("\(generator.next() % 400)")
        let size = [10, 5000, 60_000, 150_000, 400_000][Int(generator.next() % 5)]
        do throws(CacheError) {
            switch generator.next() % 8 {
            case 0: _ = try store.remove(name)
            case 1: try store.entry(for: name)?.updateMetadata(bytes(Int(generator.next() % 9000)))
            case 2: _ = try store.bodyPath(for: name)
            case 3: try fillPart(store, name, size)
            default: try store.store(bytes(size), for: name)
            }
        } catch {
            // Too large beside what is in use: refusing is right, and what is charged is looked at.
            #expect(error.code == .localStorage)
        }
    }

    private static func fillPart(
        _ store: DiskStore,
        _ name: CacheKey,
        _ size: Int
    ) throws(CacheError) {
        let entry = try store.makeEntry(for: name, metadata: [], completeLength: Int64(size))
        let writer = try entry.beginWriting(at: 0)
        try writer.write(bytes(size / 2))
        writer.end()
    }
}

extension InMemoryFileSystem {
    fileprivate var recordCount: Int { files.keys.count { $0.hasSuffix(".record") } }
}
