import Foundation
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Tens of thousands of small entries beside a few huge ones, all operations at once, in driven
/// time.
///
/// What it looks for is a hang: the watch ends the process where no operation has ended for
/// minutes.
@Suite("Disk: load", .timeLimit(.minutes(20)))
struct DiskLoadTests {
    /// How many small entries there are; fewer in memory, where each name costs a search.
    private static let small: [DiskKind: Int] = [.posix: 20_000, .memory: 4_000]
    private static let huge = (0..<3).map { bytes(2 << 20, seed: UInt64($0 + 1)) }

    @Test("all operations on tens of thousands of entries go on", arguments: DiskKind.allCases)
    func load(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        var options = disk.options(limit: 96 << 20)
        options.hugeBody = 1 << 20
        options.headLength = 131_072
        // Many entries leave memory, each of which was used.
        options.maximumOpenEntries = 16
        options.maximumHeadMemory = 256 << 10
        let store = try disk.open(options)
        let failures = Failures()
        let watch = ProgressWatch()
        defer { watch.stop() }
        let small = try #require(Self.small[kind])
        let share = small / 4
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            var generator = SeededGenerator(seed: UInt64(thread) &* 13 &+ 3)
            for number in 0..<share {
                do throws(CacheError) {
                    let new = thread * share + number
                    try store.store(Self.body(new), for: Self.name(new))
                    let old = Int(generator.next() % UInt64(small))
                    try Self.step(store, disk, &generator, failures, old)
                } catch {
                    if !error.message.contains("pinned or in use") { failures.add("\(error)") }
                }
                watch.didProgress()
            }
        }
        #expect(failures.all == [])
        #expect(try store.verify(repair: false).damaged == 0)
        watch.didProgress()
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(store.reservedBytes == 0)
    }

    private static func name(_ number: Int) -> CacheKey { key("small \(number)") }

    private static func body(_ number: Int) -> [UInt8] {
        bytes(100 + number % 1900, seed: UInt64(number))
    }

    private static func step(
        _ store: DiskStore,
        _ disk: TestDisk,
        _ generator: inout SeededGenerator,
        _ failures: Failures,
        _ number: Int
    ) throws(CacheError) {
        let name = name(number)
        switch generator.next() % 400 {
        case 0..<200:
            if let entry = try store.entry(for: name) { check(entry, number, failures) }
        case 200..<280:
            if case .ready(let entry?) = store.entryWithoutBlocking(for: name) {
                check(entry, number, failures)
            }
        case 280..<310: try store.remove(name)
        case 310..<330: try store.entry(for: name)?.updateMetadata([UInt8(number & 255)])
        case 330..<345: try store.entry(for: name)?.setPinned(generator.next() % 8 == 0)
        case 345..<360: disk.time.advance(by: .seconds(30))
        case 360..<364: store.persistUses()
        case 364..<368: _ = try store.bodyPath(for: name)
        case 368..<370: _ = try store.trim(to: 80 << 20)
        case 370: try store.setLimit((90 + Int64(generator.next() % 6)) << 20)
        case 371 where number % 32 == 0: _ = try store.verify(repair: true)
        case 372 where number % 8 == 0: _ = try store.list()
        default: try fillHuge(store, Int(generator.next() % 3), failures)
        }
    }

    /// Reads a huge body, or goes on filling it: a few blocks a step.
    private static func fillHuge(
        _ store: DiskStore,
        _ number: Int,
        _ failures: Failures
    ) throws(CacheError) {
        let (name, body) = (key("huge \(number)"), huge[number])
        guard let entry = try store.entry(for: name) else {
            _ = try store.makeEntry(for: name, metadata: [], completeLength: Int64(body.count))
            return
        }
        guard let gap = entry.nextGap(in: 0..<Int64(body.count)) else {
            let read = entry.read(body.count)
            if !body.holds(read, at: 0) { failures.add("wrong bytes of huge \(number)") }
            return
        }
        let end = min(gap.upperBound, gap.lowerBound + 262_144)
        let writer = try entry.beginWriting(at: gap.lowerBound)
        try writer.write(body[Int(gap.lowerBound)..<Int(end)])
    }

    private static func check(_ entry: DiskEntry, _ number: Int, _ failures: Failures) {
        let body = body(number)
        let read = entry.read(body.count)
        // A repair may have found it while it was being replaced; fewer bytes are a miss, not a
        // fault.
        if !body.holds(read, at: 0) { failures.add("wrong bytes of \(number)") }
    }
}

/// Ends the process, with a word why, where nothing has gone on for too long.
final class ProgressWatch: Sendable {
    private let steps = Guarded(0)
    private let isStopped = Guarded(false)

    /// - Parameter patience: how many seconds without a step are too many.
    init(patience: Int = 180) {
        let thread = Thread { [weak self] in
            var (seen, idle) = (-1, 0)
            while let self, !self.isStopped.withLock({ $0 }) {
                let now = self.steps.withLock { $0 }
                idle = now == seen ? idle + 1 : 0
                seen = now
                guard idle < patience else { fatalError("no progress after \(now) steps") }
                Thread.sleep(forTimeInterval: 1)
            }
        }
        thread.start()
    }

    func didProgress() { steps.withLock { $0 += 1 } }

    func stop() { isStopped.withLock { $0 = true } }
}
