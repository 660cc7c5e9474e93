import Foundation
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Many threads on one store with few descriptors and little room: lookups with and without
/// blocking, dormant and waking, writers, eviction block by block, removal. Meant for the thread
/// sanitizer too.
@Suite("Disk: many threads", .timeLimit(.minutes(15)))
struct DiskStressTests {
    private static let names = (0..<24).map { key("\($0)") }
    /// What a key's body is, whatever generation: a wrong byte shows.
    private static let bodies = (0..<24).map { bytes(size($0), seed: UInt64($0 + 1)) }

    private static func size(_ number: Int) -> Int {
        [700, 5000, 65_536, 150_000, 400_000, 1 << 20][number % 6]
    }

    @Test("a reader gets the right bytes or none", arguments: DiskKind.allCases)
    func stress(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let limit: Int64 = 4 << 20
        var options = disk.options(limit: limit)
        options.hugeBody = 900_000
        options.headLength = 131_072
        options.maximumOpenEntries = 3
        options.maximumHeadMemory = 12_000
        let store = try disk.open(options)
        let failures = Failures()
        DispatchQueue.concurrentPerform(iterations: 6) { thread in
            var generator = SeededGenerator(seed: UInt64(thread) &* 7 &+ 5)
            for _ in 0..<150 {
                do throws(CacheError) {
                    try Self.step(store, disk, &generator, failures)
                } catch {
                    let isExpected = error.isOfFullCache || error.code == .invalidArgument
                    if !isExpected { failures.add("\(error)") }
                }
            }
        }
        #expect(failures.all.isEmpty)
        if kind == .memory { #expect(disk.memory.peakAllocatedBytes <= limit) }
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(store.reservedBytes == 0)
        #expect(try store.verify(repair: false).damaged == 0)
        for (name, body) in zip(Self.names, Self.bodies) {
            if let entry = try store.entry(for: name) { Self.check(entry, body, failures) }
        }
        #expect(failures.all.isEmpty)
    }

    private static func step(
        _ store: DiskStore,
        _ disk: TestDisk,
        _ generator: inout SeededGenerator,
        _ failures: Failures
    ) throws(CacheError) {
        let number = Int(generator.next() % 24)
        let (name, body) = (names[number], bodies[number])
        switch generator.next() % 16 {
        case 0...5:
            if let entry = try store.entry(for: name) { check(entry, body, failures) }
        case 6...8:
            if case .ready(let entry?) = store.entryWithoutBlocking(for: name) {
                check(entry, body, failures)
            }
        case 9, 10:
            try store.store(body, for: name)
        case 11, 12:
            try fetchGap(store, name, body)
        case 13:
            try store.entry(for: name)?.updateMetadata([UInt8(number)])
        case 14:
            try store.remove(name)
        default:
            disk.time.advance(by: .seconds(20))
            _ = try store.trim(to: Int64(generator.next() % (4 << 20)))
        }
    }

    private static func fetchGap(
        _ store: DiskStore,
        _ name: CacheKey,
        _ body: [UInt8]
    ) throws(CacheError) {
        var entry = try store.entry(for: name)
        if entry == nil {
            entry = try store.makeEntry(
                for: name,
                metadata: [],
                completeLength: Int64(body.count)
            )
        }
        guard let entry, let gap = entry.nextGap(in: 0..<Int64(body.count)) else { return }
        let writer = try entry.beginWriting(at: gap.lowerBound)
        try writer.write(body[Int(gap.lowerBound)..<Int(gap.upperBound)])
    }

    private static func check(_ entry: DiskEntry, _ body: [UInt8], _ failures: Failures) {
        guard let range = entry.storedRanges.ranges.randomElement() else { return }
        let count = Int(range.upperBound - range.lowerBound)
        let read = entry.read(at: range.lowerBound, count)
        if !body.holds(read, at: Int(range.lowerBound)) {
            failures.add("wrong bytes of \(entry.key) in \(range)")
        }
        guard case .ready(let cached) = entry.readCached(at: range.lowerBound, count) else {
            return
        }
        if !body.holds(cached, at: Int(range.lowerBound)) {
            failures.add("wrong cached bytes of \(entry.key) in \(range)")
        }
    }
}
