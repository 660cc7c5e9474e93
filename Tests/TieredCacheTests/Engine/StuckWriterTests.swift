import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Downloads whose writes the disk does not end delay no hit and no lookup (invariants 7 and 12).
@Suite("Stuck writers", .timeLimit(.minutes(5)))
struct StuckWriterTests {
    /// What the disk does not end.
    enum Stuck: CaseIterable {
        /// Writes of large bodies, each with a lock of its own.
        case bodies
        /// The write of a small record, with the lock that all names share.
        case record

        var bodyLength: Int { self == .bodies ? 200_000 : 1000 }
        /// How many writers the disk has when all of them are stuck: the others wait for the lock.
        var writers: Int { self == .bodies ? 8 : 1 }
    }

    private static let downloads = 16
    private static let stored = 0..<60
    /// After this time the use of an entry that leaves memory is due to be written.
    private static let useInterval = Duration.seconds(200)

    private let disk = TestDisk(.memory)
    private let gate = DiskGate()

    private func open(_ stuck: Stuck, isCold: Bool) throws -> MediaCache {
        var configuration = disk.configuration
        configuration.maximumDownloads = Self.downloads
        configuration.maximumDownloadsPerHost = Self.downloads
        configuration.transport = ScriptedTransport(time: disk.time) { _, _ in
            ScriptedResponse(
                status: 200,
                fields: [
                    .cacheControl: "max-age=60", .contentLength: "\(stuck.bodyLength)",
                ],
                steps: [.bytes(bytes(stuck.bodyLength))]
            )
        }
        var parts = EngineParts()
        parts.fileSystem = WatchedFileSystem(disk.memory, isCold: isCold) { [gate] call, _ in
            if call == .write || call == .resize { gate.pass() }
        }
        parts.adjustDisk = { options in
            // Nearly each lookup makes another entry leave memory.
            options.maximumOpenEntries = 2
            options.maximumHeadMemory = 0
            if stuck == .record {
                options.digest = { MD5Digest(high: $0.digest.high, low: 7) }
            }
        }
        return try MediaCache(configuration, parts: parts)
    }

    private func stored(_ number: Int) throws -> CacheRequest {
        var request = try CacheRequest("http://example.com/stored/\(number)")
        request.policy = .cacheOnly
        return request
    }

    private func body(_ number: Int) -> Data { Data(repeating: UInt8(number), count: 100 + number) }

    @Test(
        "More stuck writers than threads: hits in memory and on disk, and cold lookups, go on",
        arguments: Stuck.allCases,
        [false, true]
    )
    func stuckWriters(_ stuck: Stuck, isCold: Bool) async throws {
        let filled = try open(stuck, isCold: false)
        for number in Self.stored { try await filled.store(body(number), for: stored(number)) }
        await filled.shutdown()

        let cache = try open(stuck, isCold: isCold)
        disk.time.advance(by: Self.useInterval)
        let hot = try CacheRequest("http://example.com/hot")
        try await cache.store(body(50), for: hot)
        #expect(try await cache.usage().entries == Self.stored.count + 1)
        gate.shut()
        // A test that hangs ends when its time is over.
        try await withTaskCancellationHandler {
            try await withThrowingTaskGroup(of: Void.self) { downloads in
                for number in 0..<Self.downloads {
                    downloads.addTask {
                        let request = try CacheRequest("http://example.com/new/\(number)")
                        let data = try await cache.data(for: request)
                        #expect(data == Data(bytes(stuck.bodyLength)))
                    }
                }
                for await waiting in gate.arrivals where waiting == stuck.writers { break }
                for number in Self.stored {
                    let response = try await cache.response(for: stored(number))
                    #expect(response.source == .disk)
                    #expect(try await response.body.collect() == body(number))
                    #expect(cache.cachedData(for: hot) != nil)
                }
                #expect(cache.statistics.diskHits == Self.stored.count)
                #expect(gate.waiters.allSatisfy { $0.hasPrefix("tc-write-") }, "\(gate.waiters)")
                gate.open()
                try await downloads.waitForAll()
            }
        } onCancel: {
            gate.open()
        }
        await cache.shutdown()
        #expect(try disk.open().verify(repair: false).damaged == 0)
    }
}
