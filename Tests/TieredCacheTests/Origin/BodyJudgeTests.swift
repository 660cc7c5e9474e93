import Dispatch
import FoundationEssentials
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Row 27: no reader of a body with a promised digest ends before the body was compared with it.
@Suite("Promised digests and their readers", .timeLimit(.minutes(1)))
struct BodyJudgeTests {
    /// Holds up one call of the disk until the reader that it must not overtake has ended, or half
    /// a second has passed since it could have.
    private final class Holdup: Sendable {
        let isReached = Latch<Void>()
        private let mayEnd = DispatchSemaphore(value: 0)
        private let hasEnded = DispatchSemaphore(value: 0)

        func hold() {
            guard isReached.complete(with: .success(())) else { return }
            mayEnd.wait()
            _ = hasEnded.wait(timeout: .now() + .milliseconds(500))
        }

        /// From now on nothing but the held call keeps the reader from its end.
        func readerMayEnd() { mayEnd.signal() }

        func readerHasEnded() { hasEnded.signal() }
    }

    /// The end of the body in its last block.
    private static let tail = 4321
    private static let body = Data((0..<65_536 + tail).map { UInt8(truncatingIfNeeded: $0 / 7) })
    private static let wrong = Data(repeating: 1, count: body.count)

    private let time = ManualTimeSource()

    private func withCache(
        _ disk: any FileSystem,
        _ transport: ScriptedTransport,
        _ body: (MediaCache) async throws -> Void
    ) async throws {
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.transport = transport
        configuration.timeSource = time
        configuration.respondsToMemoryPressure = false
        configuration.minimumFreeDisk = 0
        configuration.keepsHistory = false
        configuration.maximumSegments = 2
        let cache = try MediaCache(configuration, fileSystem: disk)
        do {
            try await body(cache)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
    }

    /// A response, in two chunks of which the second one ends the last block.
    private func answer(_ bytes: Data) -> ScriptedResponse {
        ScriptedResponse(
            status: 200,
            fields: [
                .contentLength: "\(bytes.count)", .acceptRanges: "bytes",
                .eTag: "\"\(bytes[0])\"", .cacheControl: "max-age=60",
            ],
            steps: [
                .bytes([UInt8](bytes.prefix(65_536 + 1000))),
                .bytes([UInt8](bytes.dropFirst(65_536 + 1000))),
            ]
        )
    }

    private func request(promising body: Data? = nil) throws -> CacheRequest {
        var request = try CacheRequest("http://example.com/film")
        guard let body else { return request }
        var digest: ContentDigest?
        if let context = DigestContext(.sha256) {
            let isTaken = body.withUnsafeBytes { context.update($0) }
            if isTaken { digest = context.finish() }
        }
        request.expectedDigests = [try #require(digest)]
        return request
    }

    @Test(
        "a reader that has read the last block before it was sealed waits for the comparison",
        arguments: [false, true]
    )
    func unsealed(isTransferOfOther: Bool) async throws {
        let holdup = Holdup()
        let disk = WatchedFileSystem(
            InMemoryFileSystem(time: time),
            watchWriting: { if $0 == Self.tail { holdup.hold() } },
            watch: { _, _ in }
        )
        let transport = ScriptedTransport(time: time) { _, _ in answer(Self.wrong) }
        try await withCache(disk, transport) { cache in
            let request = try request(promising: Self.body)
            let first = try await cache.response(
                for: isTransferOfOther ? self.request() : request
            )
            _ = await holdup.isReached.wait()
            let response = isTransferOfOther ? try await cache.response(for: request) : first
            let reading = Task { try await response.body.collect() }
            if !isTransferOfOther {
                // The reader waits for the end of its transfer, at first two seconds at most.
                await time.waitForSleeper(within: .seconds(2))
                time.advance(by: .seconds(2))
            }
            holdup.readerMayEnd()
            let result = await reading.result
            holdup.readerHasEnded()
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == .representationChanged)
            #expect(try await cache.entry(for: request) == nil)
            #expect(transport.requests.count == 1)
            withExtendedLifetime(first) {}
        }
    }

    @Test("a body that is being compared is no hit yet")
    func hitMeanwhile() async throws {
        let holdup = Holdup()
        let transport = ScriptedTransport(time: time) { _, index in
            answer(index == 0 ? Self.wrong : Self.body)
        }
        // The comparison reads the body.
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, _ in
            if call == .read, transport.requests.count > 0 { holdup.hold() }
        }
        try await withCache(disk, transport) { cache in
            let request = try request(promising: Self.body)
            let first = try await cache.response(for: request)
            _ = await holdup.isReached.wait()
            let plain = try RepeatedRequest(self.request())
            #expect(cache.responder.hit(for: plain, range: nil) == nil)
            let reading = Task { try await cache.data(for: request) }
            holdup.readerMayEnd()
            let bytes = try await reading.value
            holdup.readerHasEnded()
            #expect(firstDifference(bytes, Self.body) == nil)
            #expect(cache.cachedData(for: request) == Self.body)
            #expect(cache.responder.hit(for: plain, range: nil) != nil)
            withExtendedLifetime(first) {}
        }
    }

    @Test("a job that has read the last block before it was sealed waits for the comparison")
    func job() async throws {
        let half = 256 * 65_536
        let length = 2 * half + 5
        let holdup = Holdup()
        let disk = WatchedFileSystem(
            InMemoryFileSystem(time: time),
            watchWriting: { if $0 == 5 { holdup.hold() } },
            watch: { _, _ in }
        )
        let transport = ScriptedTransport(time: time) { _, index in
            var fields: HTTPFields = [.acceptRanges: "bytes", .cacheControl: "max-age=60"]
            if index < 2 { fields[.eTag] = "\"1\"" }
            if index == 1 {
                fields[.contentLength] = "\(length - half)"
                fields[.contentRange] = "bytes \(half)-\(length - 1)/\(length)"
                return ScriptedResponse(
                    status: 206,
                    fields: fields,
                    steps: [
                        .bytes(Array(repeating: 1, count: half + 2)), .bytes([1, 1, 1]),
                    ]
                )
            }
            fields[.contentLength] = "\(length)"
            return ScriptedResponse(
                status: 200,
                fields: fields,
                steps: [
                    .bytes(Array(repeating: 1, count: 65_536)),
                    // The second request comes to its end first.
                    .delay(.seconds(index == 0 ? 1 : 0)),
                    .bytes(Array(repeating: 1, count: half - 65_536)),
                    .bytes(Array(repeating: 1, count: half + 5)),
                ]
            )
        }
        try await withCache(disk, transport) { cache in
            let request = try request(promising: Self.body)
            let handle = try await cache.downloads.start(request)
            _ = await holdup.isReached.wait()
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            while handle.status.bytes < length { await Task.yield() }
            holdup.readerMayEnd()
            let error = await #expect(throws: CacheError.self) { try await handle.wait() }
            holdup.readerHasEnded()
            #expect(error?.code == .integrityFailed)
            #expect(try await cache.entry(for: request) == nil)
        }
    }
}
