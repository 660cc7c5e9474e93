import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// The end of a body of unknown length.
@Suite("Disk: the end of a body", .timeLimit(.minutes(10)))
struct DiskFinishTests {
    private static let body = bytes(150_000, seed: 3)

    /// A small body has no file before its end, a large one has.
    @Test(
        "Where the disk refuses the end, memory and disk agree, and it can be tried again",
        arguments: [1000, 131_072, 150_000]
    )
    func refused(_ count: Int) throws {
        let calls = try finish(count, failing: nil, isTriedAgain: false)
        #expect(calls >= 2)
        for index in 0..<calls {
            for isTriedAgain in [true, false] {
                _ = try finish(count, failing: index, isTriedAgain: isTriedAgain)
            }
        }
    }

    /// - Returns: how many calls the disk got.
    private func finish(_ count: Int, failing index: Int?, isTriedAgain: Bool) throws -> Int {
        let body = Self.body.prefix(count)
        let context = "\(count) bytes, call \(index ?? -1), again \(isTriedAgain)"
        let disk = TestDisk(.memory)
        let store = try disk.open()
        let entry = try store.makeEntry(for: key("a"), metadata: [1], completeLength: nil)
        let writer = try entry.beginWriting(at: 0)
        try writer.write(body)
        let before = disk.memory.calls.count
        if let index { disk.memory.fail(nil, with: .ioError, times: 1, skipping: index) }
        var failure: CacheError?
        do throws(CacheError) {
            try writer.finish()
        } catch {
            failure = error
        }
        let calls = disk.memory.calls.count - before
        disk.memory.heal()
        #expect(entry.read(count + 1) == Array(body), "\(context)")
        if failure != nil {
            let onDisk = store.record(of: entry.name)?.record
            if let onDisk {
                #expect(onDisk.completeLength == entry.completeLength, "\(context)")
            }
            #expect(onDisk == nil || !entry.isComplete, "\(context)")
            if isTriedAgain {
                try writer.finish()
            } else {
                writer.end()
                #expect(!entry.isComplete, "\(context)")
                let again = try entry.beginWriting(
                    at: entry.nextGap(in: 0..<150_000)?.lowerBound ?? 0
                )
                try again.write(body.dropFirst(Int(again.position)))
                try again.finish()
            }
        }
        #expect(entry.isComplete && entry.completeLength == Int64(count), "\(context)")
        withExtendedLifetime(entry) {}
        let found = try #require(try disk.open().entry(for: key("a")), "\(context)")
        #expect(found.isComplete && found.read(count + 1) == Array(body), "\(context)")
        return calls
    }
}
