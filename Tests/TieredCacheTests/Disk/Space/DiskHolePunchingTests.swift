import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Huge entries leave block by block: tails before heads, and what is read is left.
@Suite("Disk: cold blocks", .timeLimit(.minutes(10)))
struct DiskHolePunchingTests {
    private static let huge = bytes(2 << 20, seed: 1)
    private static let other = bytes(2 << 20, seed: 2)

    /// A store in which 1 MiB is huge and a head is two blocks.
    private func options(_ disk: TestDisk, limit: Int64) -> DiskStore.Options {
        var options = disk.options(limit: limit)
        options.hugeBody = 1 << 20
        options.headLength = 131_072
        return options
    }

    private func expectTrue(_ store: DiskStore, _ disk: TestDisk) throws {
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(try store.verify(repair: false).damaged == 0)
    }

    @Test("the tail of a huge entry leaves, its head stays", arguments: DiskKind.allCases)
    func tail(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(options(disk, limit: 4 << 20))
        try store.store(Self.huge, for: key("huge"))
        try store.store(bytes(1000), for: key("small"))
        try store.store(Self.other, for: key("other"))
        let entry = try #require(try store.entry(for: key("huge")))
        #expect(entry.storedRanges.ranges == [0..<131_072])
        #expect(Self.huge.holds(entry.read(1 << 20), at: 0))
        #expect(!entry.isComplete)
        #expect(try store.entry(for: key("small")) != nil)
        #expect(try store.entry(for: key("other"))?.isComplete == true)
        #expect(store.counters.shortened == 1 && store.counters.evictions == 0)
        try expectTrue(store, disk)
        // What left can be fetched again, and it is the other one that loses its tail.
        try entry.beginWriting(at: 131_072).write(Self.huge[131_072...])
        #expect(entry.isComplete && Self.huge.holds(entry.read(2 << 20), at: 0))
        #expect(try store.entry(for: key("other"))?.isComplete == false)
        try expectTrue(store, disk)
    }

    @Test("heads go last, but old heads do not fill the cache", arguments: DiskKind.allCases)
    func heads(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(options(disk, limit: 4 << 20))
        for number in 0..<14 {
            disk.time.advance(by: .seconds(1))
            try store.store(bytes(3 << 19, seed: UInt64(number)), for: key("\(number)"))
            #expect(try store.usage().bytes <= 4 << 20)
        }
        let list = try store.list()
        let heads = list.filter { !$0.isComplete }
        #expect(heads.allSatisfy { $0.storedBytes == 131_072 })
        #expect(heads.count >= 3)
        #expect(heads.reduce(0) { $0 + $1.allocatedBytes } <= 1 << 20 + 200_000)
        // The newest ones of each.
        #expect(try store.entry(for: key("13"))?.isComplete == true)
        #expect(try store.entry(for: key("11")) != nil)
        #expect(try store.entry(for: key("0")) == nil)
        try store.trim(to: 0)
        #expect(try store.list().isEmpty)
        try expectTrue(store, disk)
    }

    @Test(
        "what is pinned, or whose path was given away, keeps all blocks",
        arguments: DiskKind.allCases
    )
    func spared(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(options(disk, limit: 7 << 20))
        try store.store(Self.huge, for: key("pinned"), class: .pinned)
        try store.store(Self.huge, for: key("path"))
        _ = try #require(try store.bodyPath(for: key("path")))
        store.persistUses()
        try store.store(Self.other, for: key("other"))
        try store.store(Self.other, for: key("another"))
        #expect(try store.entry(for: key("pinned"))?.isComplete == true)
        #expect(try store.entry(for: key("path")) == nil)
        try expectTrue(store, disk)
    }

    @Test("in use: head, playing window and what comes next stay", arguments: DiskKind.allCases)
    func inUse(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(options(disk, limit: 5 << 20))
        let film = bytes(4 << 20, seed: 5)
        let lease = try store.store(film, for: key("film"))
        // Playing in the middle: regions are 256 KiB here.
        #expect(film.holds(lease.read(at: 2 << 20, 65_536), at: 2 << 20))
        try store.store(Self.huge, for: key("new"))
        #expect(try store.entry(for: key("new"))?.isComplete == true)
        let stored = lease.storedRanges
        #expect(stored.ranges.contains { $0.lowerBound == 0 && $0.upperBound >= 131_072 })
        let window: Range<Int64> = 2 << 20..<(2 << 20 + 524_288)
        #expect(stored.ranges.contains { $0.clamped(to: window) == window })
        #expect(!lease.isComplete)
        for range in stored.ranges {
            let read = lease.read(at: range.lowerBound, Int(range.upperBound - range.lowerBound))
            #expect(film.holds(read, at: Int(range.lowerBound)))
            #expect(Int64(read.count) == range.upperBound - range.lowerBound)
        }
        let gap = try #require(lease.nextGap(in: 0..<(4 << 20)))
        #expect(gap.lowerBound == 131_072)
        #expect(lease.read(at: gap.lowerBound, 100).isEmpty)
        #expect(try store.usage().bytes <= 5 << 20)
        let usage = try store.usage().bytes
        #expect(usage == disk.allocatedBytes)
        #expect(try store.verify(repair: false).damaged == 0)
    }

    @Test("a download alone does not eat its own beginning", arguments: DiskKind.allCases)
    func nobodyReads(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(options(disk, limit: 5 << 20))
        try store.store(Self.huge, for: key("pinned"), class: .pinned)
        let entry = try store.makeEntry(for: key("film"), metadata: [], completeLength: 4 << 20)
        let writer = try entry.beginWriting(at: 0)
        #expect(throws: CacheError.self) {
            for piece in 0..<64 { try writer.write(bytes(65_536, seed: UInt64(piece))) }
        }
        #expect(entry.storedRange(at: 0) != nil && entry.storedRanges.ranges.count <= 1)
    }

    @Test("where holes cannot be made, the entry leaves as a whole")
    func unsupported() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open(options(disk, limit: 4 << 20))
        try store.store(Self.huge, for: key("huge"))
        disk.memory.fail(.resize, with: .notSupported, times: .max)
        try store.store(Self.other, for: key("other"))
        #expect(try store.entry(for: key("huge")) == nil)
        try expectTrue(store, disk)
    }

    @Test("a guest that could not say that it reads sees gaps, never zeros")
    func guest() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open(options(disk, limit: 4 << 20))
        try store.store(Self.huge, for: key("huge"))
        store.closeIdle()
        let guest = try disk.open(options(disk, limit: 4 << 20))
        #expect(!guest.access.canWrite)
        // Its share in the body, which would keep the owner from punching.
        disk.memory.fail(.lock, with: .notSupported, times: 1)
        let entry = try #require(try guest.entry(for: key("huge")))
        #expect(Self.huge.holds(entry.read(2 << 20), at: 0))
        try store.store(Self.other, for: key("other"))
        #expect(store.counters.shortened == 1)
        let read = entry.read(2 << 20)
        #expect(Self.huge.holds(read, at: 0))
        #expect(read.count == 131_072)
        if case .ready(let cached) = entry.readCached(at: 1 << 20, 65_536) {
            #expect(cached.isEmpty)
        }
    }

    @Test("a reader of a closed store, while the next owner evicts, sees gaps")
    func closed() throws {
        let disk = TestDisk(.posix)
        var store: DiskStore? = try disk.open(options(disk, limit: 4 << 20))
        try store?.store(Self.huge, for: key("huge"))
        let lease = try #require(try store?.entry(for: key("huge")))
        #expect(Self.huge.holds(lease.read(2 << 20), at: 0))
        store = nil
        let next = try disk.open(options(disk, limit: 4 << 20))
        try next.store(Self.other, for: key("other"))
        #expect(next.counters.shortened == 1)
        #expect(lease.read(2 << 20).count == 131_072)
    }
}
