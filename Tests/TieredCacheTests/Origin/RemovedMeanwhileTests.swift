import FoundationEssentials
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// An answer that arrives after a removal brings nothing back that was removed.
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
}
