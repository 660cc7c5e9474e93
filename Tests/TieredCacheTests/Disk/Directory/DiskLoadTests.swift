import Foundation
import TestParts
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

    @Test(
        "all operations on tens of thousands of entries go on",
        .tags(.long),
        arguments: DiskKind.allCases
    )
    func load(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        var options = disk.options(limit: 96 << 20)
        options.hugeBody = 1 << 20
        options.headLength = 131_072
        // Many entries leave memory, each of which was used.
        options.maximumOpenEntries = 16
        options.maximumHeadMemory = 256 << 10
        let load = try DiskLoad(disk, options, count: #require(Self.small[kind]))
        defer { load.watch.stop() }
        DispatchQueue.concurrentPerform(iterations: DiskLoad.threads) { load.run(thread: $0) }
        #expect(load.failures.all == [])
        #expect(load.done.count == DiskLoad.Operation.allCases.count)
        let store = load.store
        #expect(try store.verify(repair: false).damaged == 0)
        load.watch.didProgress()
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(store.reservedBytes == 0)
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
