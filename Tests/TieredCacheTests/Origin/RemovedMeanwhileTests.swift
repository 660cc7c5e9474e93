import FoundationEssentials
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A response that arrives after a removal brings nothing back that was removed.
@Suite("Removals during a transfer", .timeLimit(.minutes(1)))
struct RemovedMeanwhileTests {
    private let time = ManualTimeSource()

    private func withCache(
        _ transport: ScriptedTransport,
        hasDirectory: Bool = true,
        _ body: (MediaCache) async throws -> Void
    ) async throws {
        try await CacheFixture.run { fixture in
            try await fixture.withCache { configuration in
                configuration.transport = transport
                configuration.timeSource = time
                if !hasDirectory { configuration.path = nil }
            } _: { cache in
                try await body(cache)
            }
        }
    }

    private enum Removal: CaseIterable {
        case one
        case all
        case invalidation
    }

    @Test(
        "a confirmation brings no entry of the memory tier back",
        arguments: Removal.allCases,
        [false, true]
    )
    private func confirmation(removal: Removal, hasDirectory: Bool) async throws {
        let transport = ScriptedTransport(time: time) { _, index in
            var fields: HTTPFields = [.eTag: "\"1\"", .cacheControl: "max-age=60"]
            if index == 0 { fields[.contentLength] = "3" }
            var answer = ScriptedResponse(
                status: index == 0 ? 200 : 304,
                fields: fields,
                steps: index == 0 ? [.bytes([1, 2, 3])] : []
            )
            if index > 0 { answer.headDelay = .seconds(1) }
            return answer
        }
        try await withCache(transport, hasDirectory: hasDirectory) { cache in
            let request = try CacheRequest("http://example.com/a")
            #expect(try await cache.data(for: request) == Data([1, 2, 3]))
            let memory = cache.engine.storage.memory
            #expect(memory.entry(forKey: request.key) != nil)
            time.advance(by: .seconds(100))
            let again = Task { try await cache.data(for: request) }
            await transport.waitForRequests(2)
            await time.waitForSleeper(within: .seconds(1))
            switch removal {
            case .one: #expect(try await cache.remove(request))
            case .all: try await cache.removeAll()
            case .invalidation: await cache.engine.storage.invalidate(request.key)
            }
            time.advance(by: .seconds(1))
            #expect(try await again.value == Data([1, 2, 3]))
            #expect(memory.entry(forKey: request.key) == nil)
            if removal != .invalidation {
                #expect(cache.cachedData(for: request) == nil)
            }
        }
    }

    @Test("a transfer that lingers stores no new representation of a removed entry")
    func lingering() async throws {
        let transport = ScriptedTransport(time: time) { _, index in
            guard index > 0 else {
                return ScriptedResponse(
                    status: 206,
                    fields: [
                        .contentLength: "65536", .contentRange: "bytes 0-65535/1000000",
                        .eTag: "\"1\"", .cacheControl: "max-age=600",
                    ],
                    steps: [.bytes(Array(repeating: 1, count: 65_536))]
                )
            }
            var answer = ScriptedResponse(
                status: 200,
                fields: [
                    .contentLength: "100000", .eTag: "\"2\"", .cacheControl: "max-age=600",
                    .acceptRanges: "bytes",
                ],
                steps: [.bytes(Array(repeating: 2, count: 100_000))]
            )
            answer.headDelay = .seconds(1)
            return answer
        }
        try await withCache(transport) { cache in
            let request = try CacheRequest("http://example.com/film")
            _ = try await cache.bytes(for: request, range: 0..<65_536).collect()
            try await beginAndLeave(request, cache: cache, transport: transport)
            let transfers = cache.engine.transfers
            let shared = transfers.shared(for: request)
            while !shared.hasLingering { await Task.yield() }
            #expect(try await cache.remove(request))
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            while !transfers.queue.snapshot().transfers.isEmpty { await Task.yield() }
            #expect(transport.requests.count == 2)
            #expect(try await cache.entry(for: request) == nil)
        }
    }

    /// Reads bytes that are not stored, and leaves before the origin has answered.
    private func beginAndLeave(
        _ request: CacheRequest,
        cache: MediaCache,
        transport: ScriptedTransport
    ) async throws {
        let reader = try await cache.reader(for: request)
        let reading = Task { try await reader.bytes(at: 70_000, count: 10) }
        await transport.waitForRequests(2)
        reading.cancel()
        _ = await reading.result
    }
}

extension SharedTransfers {
    fileprivate var hasLingering: Bool {
        state.withLock { $0.resource.transfers.values.contains { $0.lingeringEnd != nil } }
    }
}
