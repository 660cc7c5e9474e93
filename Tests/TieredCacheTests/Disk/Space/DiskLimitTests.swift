import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// The byte limit and the floor of free space, between any two calls (invariant 4).
@Suite("Disk: limits at every instant", .timeLimit(.minutes(10)))
struct DiskLimitTests {
    @Test(
        "several threads that store, fill, replace and remove never exceed the limit",
        arguments: [1, 2, 3] as [UInt64]
    )
    func concurrent(seed: UInt64) throws {
        let disk = TestDisk(.memory)
        let limit: Int64 = 2 << 20
        var options = disk.options(limit: limit)
        options.hugeBody = 600_000
        options.headLength = 65_536
        let store = try disk.open(options)
        let failures = Failures()
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            var generator = SeededGenerator(seed: seed &* 31 &+ UInt64(thread))
            for _ in 0..<80 {
                do throws(CacheError) {
                    try Self.step(store, &generator)
                } catch {
                    // Four bodies at once may need more than there is; nothing else may fail.
                    if !error.isOfFullCache { failures.add("\(error)") }
                }
            }
        }
        #expect(failures.all.isEmpty, "seed \(seed)")
        #expect(disk.memory.peakAllocatedBytes <= limit, "seed \(seed)")
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes, "seed \(seed)")
        #expect(store.reservedBytes == 0, "seed \(seed)")
        #expect(try store.verify(repair: false).damaged == 0, "seed \(seed)")
    }

    @Test(
        "after each step of four threads at once, the charges are what the disk says",
        arguments: DiskKind.allCases,
        [1, 2, 3, 4] as [UInt64]
    )
    func booksAfterEachStep(kind: DiskKind, seed: UInt64) throws {
        let disk = TestDisk(kind)
        let limit: Int64 = 2 << 20
        var options = disk.options(limit: limit)
        options.hugeBody = 600_000
        options.headLength = 65_536
        let store = try disk.open(options)
        let failures = Failures()
        for step in 0..<60 {
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                let number = UInt64(step * 4 + thread)
                var generator = SeededGenerator(seed: seed &* 7919 &+ number)
                do throws(CacheError) {
                    try Self.step(store, &generator)
                } catch {
                    if !error.isOfFullCache { failures.add("\(error)") }
                }
            }
            store.closeIdle()
            let usage = try store.usage().bytes
            #expect(usage == disk.allocatedBytes, "seed \(seed), step \(step)")
            #expect(usage <= limit && store.reservedBytes == 0, "seed \(seed), step \(step)")
        }
        #expect(failures.all.isEmpty, "seed \(seed)")
    }

    private static func step(
        _ store: DiskStore,
        _ generator: inout SeededGenerator
    ) throws(CacheError) {
        let number = Int.random(in: 0..<16, using: &generator)
        let name = key("\(number)")
        switch generator.next() % 8 {
        case 0...2:
            try store.store(shared(3000 * number), for: name)
        case 3:
            try store.store(shared(700_000), for: name)
        case 4, 5:
            let entry = try store.makeEntry(for: name, metadata: [], completeLength: 300_000)
            let start = Int(generator.next() % 4) * 65_536
            try entry.beginWriting(at: Int64(start)).write(shared(300_000)[start...])
        case 6:
            try store.remove(name)
        default:
            if let entry = try store.entry(for: name) { _ = entry.read(70_000) }
        }
    }

    private static let content = bytes(700_000)

    private static func shared(_ count: Int) -> [UInt8] { Array(content[..<count]) }

    @Test("small entries from many threads find room as long as anything can leave")
    func noSpuriousRefusal() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open(limit: 600 << 10)
        let failures = Failures()
        DispatchQueue.concurrentPerform(iterations: 6) { thread in
            for number in 0..<60 {
                do throws(CacheError) {
                    try store.store(Self.shared(9000), for: key("\(thread) \(number)"))
                } catch {
                    failures.add("\(error)")
                }
            }
        }
        #expect(failures.all.isEmpty)
        #expect(disk.memory.peakAllocatedBytes <= 600 << 10)
    }

    @Test("eviction begins above 95 % and ends at 90 %")
    func watermarks() throws {
        let disk = TestDisk(.memory)
        let limit: Int64 = 1000 * 4096
        let store = try disk.open(limit: limit)
        var highest: Int64 = 0
        var number = 0
        while store.counters.evictions == 0 {
            highest = max(highest, try store.usage().bytes)
            try store.store(Self.shared(3000), for: key("\(number)"))
            number += 1
        }
        // What a store reserves counts, so the last one is at most that far below.
        #expect(highest <= limit / 100 * 95)
        #expect(highest >= limit / 100 * 95 - 3 * 4096)
        let after = try store.usage().bytes
        #expect(after <= limit / 100 * 90 + 4096 && after >= limit / 100 * 90 - 3 * 4096)
    }

    @Test("a limit that is lowered holds at once, for what may leave", arguments: DiskKind.allCases)
    func lowered(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(limit: 8 << 20)
        for number in 0..<20 {
            disk.time.advance(by: .seconds(1))
            try store.store(bytes(200_000), for: key("\(number)"))
        }
        let pinned = try store.store(bytes(200_000), for: key("pinned"), class: .pinned)
        try store.setLimit(1 << 20)
        #expect(try store.usage().limit == 1 << 20)
        #expect(try store.usage().bytes <= (1 << 20) / 100 * 90)
        #expect(pinned.isComplete && pinned.read(200_000) == bytes(200_000))
        #expect(try store.entry(for: key("19")) != nil)
        #expect(throws: CacheError.self) { try store.store(bytes(2 << 20), for: key("large")) }
        try store.setLimit(100_000)
        #expect(try store.list().map(\.key) == [key("pinned")])
        #expect(throws: CacheError.self) { try store.store([1], for: key("small")) }
        #expect(throws: CacheError.self) { try store.setLimit(0) }
        try store.setLimit(8 << 20)
        try store.store([1], for: key("small"))
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test(
        "a damaged inline body counts as long as it is open, also once it was fetched again",
        arguments: [100, 60_000],
        [false, true]
    )
    func damagedInline(size: Int, isReplacedBefore: Bool) throws {
        let disk = TestDisk(.memory)
        do { try disk.open().store(bytes(size), for: key("a")) }
        let path = disk.paths(".record")[0]
        var content = try disk.content(path)
        content[content.count - 1] ^= 1
        try disk.write(content, path)
        let store = try disk.open()
        try store.loadIndex()
        let entry = try #require(try store.entry(for: key("a")))
        #expect(entry.read(size).isEmpty)
        let writer = try entry.beginWriting(at: 0)
        // Removed meanwhile, it keeps what it has open.
        if isReplacedBefore { try store.store(bytes(10), for: key("a")) }
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
        try writer.write(bytes(size))
        #expect(firstDifference(entry.read(size), bytes(size)) == nil)
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
        try store.store(bytes(300), for: key("a"))
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
        #expect(disk.memory.allocatedBytes > disk.allocatedBytes)
        withExtendedLifetime((entry, writer)) {}
    }

    @Test("a limit that the directory's own files exceed is refused, and nothing is made")
    func tooLow() throws {
        let disk = TestDisk(.posix)
        for limit in [.min, -1, 0, 1, 4096, DiskStoreOptions.minimumLimit - 1] {
            let error = #expect(throws: CacheError.self) { try disk.open(limit: limit) }
            #expect(error?.code == .invalidArgument)
        }
        #expect(!FileManager.default.fileExists(atPath: disk.root.string))
        let store = try disk.open(limit: DiskStoreOptions.minimumLimit)
        #expect(throws: CacheError.self) { try store.store([1], for: key("a")) }
        #expect(throws: CacheError.self) { try store.setLimit(DiskStoreOptions.minimumLimit - 1) }
        #expect(disk.allocatedBytes <= DiskStoreOptions.minimumLimit)
        // A guest has no limit.
        var options = disk.options(limit: 1)
        options.isReader = true
        #expect(try disk.open(options).list().isEmpty)
    }

    @Test("a directory opened with a lower limit is brought below it", arguments: DiskKind.allCases)
    func openedLower(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        do {
            let store = try disk.open(limit: 8 << 20)
            for number in 0..<10 { try store.store(bytes(300_000), for: key("\(number)")) }
        }
        let store = try disk.open(limit: 1 << 20)
        try store.loadIndex()
        #expect(disk.allocatedBytes <= 1 << 20)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    // MARK: The floor of free space

    private func atFloor(_ disk: TestDisk) throws -> DiskStore {
        disk.memory.setCapacity(2 << 20)
        var options = disk.options()
        options.minimumFree = 512 << 10
        return try disk.open(options)
    }

    @Test("at the floor, own entries make room for new ones, and the floor holds")
    func floorEvicts() throws {
        let disk = TestDisk(.memory)
        let store = try atFloor(disk)
        for number in 0..<30 {
            disk.time.advance(by: .seconds(1))
            try store.store(bytes(200_000), for: key("\(number)"))
            #expect(disk.memory.peakAllocatedBytes <= 3 << 19)
        }
        #expect(try store.entry(for: key("29"))?.isComplete == true)
        #expect(try store.entry(for: key("0")) == nil)
        #expect(disk.allocatedBytes > 1 << 20)
    }

    @Test("where others took the room, nothing is evicted for nothing; it is tried again in time")
    func floorTakenByOthers() throws {
        let disk = TestDisk(.memory)
        let store = try atFloor(disk)
        try store.store(bytes(200_000), for: key("old"))
        disk.memory.put(bytes(3 << 19), at: "/elsewhere/file")
        disk.time.advance(by: .seconds(1))
        let error = #expect(throws: CacheError.self) {
            try store.store(bytes(200_000), for: key("new"))
        }
        #expect(error?.code == .localStorage)
        #expect(error?.message.contains("must stay free") == true)
        #expect(try store.entry(for: key("old"))?.isComplete == true)
        disk.memory.delete("/elsewhere/file")
        disk.time.advance(by: .seconds(9))
        try store.store(bytes(200_000), for: key("new"))
        #expect(store.reservedBytes == 0)
    }

    @Test("several threads at the floor stay above it")
    func concurrentFloor() throws {
        let disk = TestDisk(.memory)
        let store = try atFloor(disk)
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 0..<40 {
                disk.time.advance(by: .milliseconds(7))
                do throws(CacheError) {
                    try store.store(Self.shared(30_000), for: key("\(thread) \(number)"))
                } catch {
                    continue  // Others had reserved what was left.
                }
            }
        }
        #expect(disk.memory.peakAllocatedBytes <= 3 << 19)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    // MARK: Progress

    @Test("one file that cannot be removed does not stop the others", arguments: [1, 3])
    func failedDeletes(times: Int) throws {
        let disk = TestDisk(.memory)
        let store = try disk.open(limit: 8 << 20)
        for number in 0..<10 {
            disk.time.advance(by: .seconds(1))
            try store.store(bytes(100_000), for: key("\(number)"))
        }
        disk.memory.fail(.remove, with: .ioError, times: times)
        #expect(try store.trim(to: 500_000) <= 500_000)
        #expect(store.counters.housekeepingErrors == times)
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        disk.memory.fail(.remove, with: .ioError, times: .max)
        #expect(try store.trim(to: 0) > 0)
        disk.memory.heal()
        #expect(try store.trim(to: 0) < 10_000)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }
}

/// What went wrong on other threads.
final class Failures: Sendable {
    private let list = Guarded<[String]>([])

    var all: [String] { list.withLock { $0 } }

    func add(_ message: String) {
        list.withLock { $0.append(message) }
    }
}
