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
    private typealias Holdup = DigestFixture.Holdup

    private static let tail = DigestFixture.tail
    private static let body = DigestFixture.body
    private static let wrong = DigestFixture.wrong

    private let fixture = DigestFixture()
    private var time: ManualTimeSource { fixture.time }

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
        // What only one request expects concerns no other one.
        let answer = try fixture.answer(
            Self.wrong,
            promising: isTransferOfOther ? Self.body : nil
        )
        let transport = ScriptedTransport(time: time) { _, _ in answer }
        try await fixture.withCache(disk, transport) { cache in
            let request = try fixture.request(promising: isTransferOfOther ? nil : Self.body)
            let first = try await cache.response(for: request)
            _ = await holdup.isReached.wait()
            let response = isTransferOfOther ? try await cache.response(for: request) : first
            let reading = Task { try await response.body.collect() }
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
        let answers = try [Self.wrong, Self.body].map { bytes in
            try fixture.answer(bytes, promising: Self.body)
        }
        let transport = ScriptedTransport(time: time) { _, index in answers[min(index, 1)] }
        // The comparison reads the body.
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, _ in
            if call == .read, transport.requests.count > 0 { holdup.hold() }
        }
        try await fixture.withCache(disk, transport) { cache in
            let request = try fixture.request()
            let first = try await cache.response(for: request)
            _ = await holdup.isReached.wait()
            let plain = RepeatedRequest(request)
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
        try await fixture.withCache(disk, transport) { cache in
            let request = try fixture.request(promising: Self.body)
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
