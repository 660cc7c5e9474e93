import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Transfers of one body that come to where another one has begun, or whose reader has left.
@Suite("Transfers that meet", .timeLimit(.minutes(1)))
struct OverlappingTransferTests {
    private static let block = 65_536
    private static let length = 24 << 20
    private static let middle = 12 << 20
    private static let film = (0..<length / block).reduce(into: Data()) { film, number in
        film.append(Data(repeating: UInt8(truncatingIfNeeded: number), count: block))
    }

    private let fixture = DigestFixture()
    private var time: ManualTimeSource { fixture.time }

    /// An origin whose answers each make a pause before the block at an offset.
    private func transport(_ pauses: [(offset: Int, Duration)]) -> ScriptedTransport {
        ScriptedTransport(time: time) { request, index in
            let asked = request.head.headerFields[.range].flatMap { RangeRequest($0)?.specs.first }
            let all = Int64(Self.length)
            let range = asked?.resolved(completeLength: all) ?? 0..<all
            var fields: HTTPFields = [
                .contentLength: "\(range.count)", .acceptRanges: "bytes", .eTag: "\"film\"",
                .cacheControl: "max-age=60",
            ]
            if asked != nil {
                fields[.contentRange] =
                    "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(all)"
            }
            var steps: [ScriptedResponse.Step] = []
            let (first, end) = (Int(range.lowerBound), Int(range.upperBound))
            for start in stride(from: first, to: end, by: Self.block) {
                if index < pauses.count, pauses[index].offset == start {
                    steps.append(.delay(pauses[index].1))
                }
                let next = min(start + Self.block, end)
                steps.append(.bytes([UInt8](Self.film[start..<next])))
            }
            return ScriptedResponse(status: asked == nil ? 200 : 206, fields: fields, steps: steps)
        }
    }

    @Test("one that comes to where another goes on leaves the rest to it")
    func follows() async throws {
        let ahead = Self.middle + 8 * Self.block
        let transport = transport([(Self.block, .milliseconds(1)), (ahead, .seconds(1))])
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            let whole = try await cache.response(for: request)
            await transport.waitForBytesPulled(Self.block)
            var second = request
            second.range = .bounded(Int64(Self.middle)..<Int64(Self.length))
            let part = try await cache.response(for: second)
            let rest = Task { try await part.body.collect() }
            await transport.waitForBytesPulled(9 * Self.block)
            #expect(transport.requests.count == 2)
            let all = Task { try await whole.body.collect() }
            let queue = cache.engine.transfers.queue
            await time.waitForSleeper(within: .milliseconds(1))
            time.advance(by: .milliseconds(1))
            while queue.snapshot().count(.running) > 1 { await Task.yield() }
            #expect(transport.bytesPulled == ahead)
            let bytes = try await time.advance(by: .seconds(1), until: rest).get()
            #expect(firstDifference(bytes, Self.film[Self.middle...]) == nil)
            #expect(try await firstDifference(all.value, Self.film) == nil)
            #expect(transport.requests.count == 2)
            #expect(transport.bytesPulled == Self.length)
        }
    }

    @Test("one that its reader has left brings a rest of less than 1 MiB whole")
    func shortRest() async throws {
        let start = Self.length - 15 * Self.block
        let transport = transport([(start + Self.block, .milliseconds(1))])
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            do {
                let reader = try await cache.reader(
                    for: request,
                    at: Int64(start),
                    expectedEnd: Int64(Self.length)
                )
                _ = try await reader.read(at: Int64(start), count: 1000)
            }
            await time.waitForSleeper(within: .milliseconds(1))
            time.advance(by: .milliseconds(1))
            let queue = cache.engine.transfers.queue
            while !queue.snapshot().transfers.isEmpty { await Task.yield() }
            let stored = try #require(try await cache.entry(for: request)).storedBytes
            #expect(stored == 15 * Int64(Self.block))
            #expect(transport.requests.count == 1)
        }
    }
}
