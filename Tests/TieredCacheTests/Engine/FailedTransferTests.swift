import HTTPTypes
import Logging
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A request after a reported failure gets a transfer of its own, not the failure once more.
@Suite("A transfer that failed", .timeLimit(.minutes(10)))
struct FailedTransferTests {
    /// Looks at the queue in the very instant in which a failure is told.
    private final class Instant: Sendable {
        private struct State {
            var engine: Engine?
            var joinable: [Bool] = []
        }

        private let state = Guarded(State())

        var joinable: [Bool] { state.withLock { $0.joinable } }

        func watch(_ engine: Engine) { state.withLock { $0.engine = engine } }

        func look() {
            guard let engine = state.withLock({ $0.engine }) else { return }
            let transfers = engine.transfers.queue.known
            state.withLock { state in
                state.joinable += transfers.map { $0.position < $0.coverage.upperBound }
            }
        }
    }

    @Test("cannot be joined any more when its failure is told")
    func leavesFirst() async throws {
        let instant = Instant()
        try await RelayFixture.run {
            $0.retries = 1
            $0.logger = Logger(label: "test") { _ in
                ListeningLogHandler { event, _ in
                    guard event.message.description == "download failed" else { return }
                    instant.look()
                }
            }
        } _: { fixture in
            instant.watch(fixture.cache.engine)
            let request = try CacheRequest("http://origin.example/a")
            await #expect(throws: CacheError.self) { try await fixture.cache.data(for: request) }
            #expect(instant.joinable == [false])
            // At once, as often as a client likes: each asks the origin.
            for count in 2...20 {
                await #expect(throws: CacheError.self) {
                    try await fixture.cache.data(for: request)
                }
                #expect(fixture.transport.requests.count == count)
            }
        }
    }
}
