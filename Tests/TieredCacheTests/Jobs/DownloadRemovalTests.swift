import Dispatch
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A job drops its bytes once no run of it can begin a transfer, which would store them again.
@Suite("Downloads: dropping bytes", .timeLimit(.minutes(1)))
struct DownloadRemovalTests {
    /// Holds up a thread of a run until a command that has to wait for it has returned all the
    /// same, or half a second has passed.
    private final class Holdup: Sendable {
        let hasBegun = Latch<Void>()
        private let commandHasReturned = DispatchSemaphore(value: 0)
        private let endedFirst = Guarded(false)

        /// Whether the run went on before the command returned.
        var wasWaitedFor: Bool { endedFirst.withLock(\.self) }

        func hold() {
            guard hasBegun.outcome == nil else { return }
            hasBegun.complete(with: .success(()))
            let result = commandHasReturned.wait(timeout: .now() + .milliseconds(500))
            endedFirst.withLock { $0 = result == .timedOut }
        }

        func didReturn() { commandHasReturned.signal() }
    }

    @Test(
        "bytes are dropped once the run has ended that was about to begin a transfer",
        arguments: [false, true]
    )
    func beginningRun(isPausedBefore: Bool) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1000, cacheControl: "max-age=60"))
            let holdup = Holdup()
            var request = try fixture.request("/film")
            request.onNotice = { if $0 == .queued { holdup.hold() } }
            try await fixture.withCache { [request] cache in
                let handle = try await cache.downloads.start(request)
                _ = await holdup.hasBegun.wait()
                let pausing = isPausedBefore ? Task { await handle.pause() } : nil
                while isPausedBefore, handle.status.state != .paused { await Task.yield() }
                await handle.cancel(keepingBytes: false)
                holdup.didReturn()
                #expect(holdup.wasWaitedFor)
                await pausing?.value
                #expect(handle.status.state == .cancelled)
                #expect(try await cache.entry(for: request) == nil)
            }
        }
    }

    /// Sends on the thread of the reader that begins the transfer.
    private struct AttachedTransport: CancellableTransport {
        let base: ScriptedTransport

        func send(
            _ request: TransportRequest
        ) async throws(TransportError) -> TransportResponse {
            try await base.send(request)
        }

        func shutdown() async { await base.shutdown() }
    }

    @Test("bytes are dropped once the segment has ended that was beginning a transfer")
    func beginningSegment() async throws {
        let holdup = Holdup()
        let transport = ScriptedTransport { _, index in
            guard index == 0 else {
                holdup.hold()
                return .silence
            }
            return ScriptedResponse(
                status: 200,
                fields: [
                    .contentLength: "\(2 * JobSegments.minimumLength)", .acceptRanges: "bytes",
                    .eTag: "\"1\"", .cacheControl: "max-age=60",
                ],
                steps: [.stall]
            )
        }
        try await CacheFixture.run { fixture in
            let request = try fixture.request("/film")
            try await fixture.withCache {
                $0.maximumSegments = 2
                $0.transport = AttachedTransport(base: transport)
            } _: { cache in
                let handle = try await cache.downloads.start(request)
                _ = await holdup.hasBegun.wait()
                await handle.cancel(keepingBytes: false)
                holdup.didReturn()
                #expect(holdup.wasWaitedFor)
                #expect(try await cache.entry(for: request) == nil)
            }
        }
    }

    @Test("an origin that never answers holds up neither the removal nor the shutdown")
    func silentOrigin() async throws {
        let transport = ScriptedTransport { _, _ in .silence }
        try await CacheFixture.run { fixture in
            let requests = try ["/a", "/b", "/c"].map { try fixture.request($0) }
            try await fixture.withCache {
                $0.transport = transport
            } _: { cache in
                let batch = try await cache.downloads.start(requests)
                await transport.waitForRequests(requests.count)
                await batch.downloads[0].cancel(keepingBytes: false)
                await batch.downloads[1].pause()
                await batch.downloads[1].cancel(keepingBytes: false)
                // A run that has ended already is not waited for again.
                await batch.downloads[1].cancel(keepingBytes: false)
                await batch.downloads[1].remove()
                #expect(batch.downloads.prefix(2).allSatisfy { $0.status.state == .cancelled })
            }
        }
    }
}
