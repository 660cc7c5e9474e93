import Dispatch
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Shutting down ends in less than five seconds, whatever hangs.
@Suite("Shutdown", .timeLimit(.minutes(5)))
struct ShutdownTests {
    @Test("work that ends in time is waited for")
    func inTime() async {
        let time = ManualTimeSource()
        #expect(await finishing(within: .seconds(1), time: time) { await Task.yield() })
    }

    @Test("work that hangs is left behind when its time is over")
    func late() async {
        let time = ManualTimeSource()
        let gate = Latch<Void>()
        async let hasEnded = finishing(within: .seconds(1), time: time) { _ = await gate.wait() }
        await time.waitForSleepers(1)
        time.advance(by: .seconds(1))
        #expect(await hasEnded == false)
        gate.complete(with: .success(()))
    }

    @Test("a cache that has shut down has released its directory, even from a write under way")
    func releasesTheDirectory() async throws {
        let disk = TestDisk(.memory)
        let cache = try MediaCache(disk.configuration, fileSystem: disk.memory)
        let store = try cache.engine.storage.disk.store()
        try store.beginWriting(looks: false)
        let closed = Latch<Void>()
        Task {
            await cache.shutdown()
            closed.complete(with: .success(()))
        }
        while store.lock.mayBeginWrite { await Task.yield() }
        for _ in 0..<1000 { await Task.yield() }
        #expect(closed.outcome == nil)
        store.endWriting()
        _ = await closed.wait()
        let next = try MediaCache(disk.configuration, fileSystem: disk.memory)
        #expect(next.storageError == nil)
        await next.shutdown()
    }

    @Test("a cache whose disk and origin hang is left within five seconds")
    func hangingDiskAndOrigin() async throws {
        let disk = TestDisk(.memory)
        let hangs = Guarded(false)
        // Each that passes lets the next one pass.
        let turnstile = DispatchSemaphore(value: 0)
        let entered = Latch<Void>()
        let fileSystem = WatchedFileSystem(disk.memory) { _, _ in
            guard hangs.withLock({ $0 }) else { return }
            entered.complete(with: .success(()))
            turnstile.wait()
            turnstile.signal()
        }
        let transport = HangingTransport()
        var configuration = disk.configuration
        configuration.transport = transport
        let cache = try MediaCache(configuration, fileSystem: fileSystem)
        try await cache.store(Data([1]), for: try CacheRequest("http://example.com/a"))
        let work = try await Self.startExchanges(of: cache)
        await transport.waitForRequests(["/download", "/job", "/upload"])
        hangs.withLock { $0 = true }
        let writing = Task {
            try await cache.store(Data([2]), for: try CacheRequest("http://example.com/b"))
        }
        _ = await entered.wait()
        let start = disk.time.monotonicTime()
        let closed = Latch<Void>()
        Task {
            await cache.shutdown()
            closed.complete(with: .success(()))
        }
        // What ends by itself needs no time. A request that waits for its answer does so for longer
        // than any step of the shutdown.
        while closed.outcome == nil {
            if let next = disk.time.timeToNextDeadline, next < .seconds(5) {
                disk.time.advance(by: next)
            }
            await Task.yield()
        }
        #expect(start.duration(to: disk.time.monotonicTime()) < .seconds(5))
        hangs.withLock { $0 = false }
        turnstile.signal()
        transport.release()
        // None of it is left over.
        for task in work { _ = await disk.time.advance(by: .seconds(60), until: task) }
        do {
            try await writing.value
        } catch let error as CacheError {
            // It had not begun to write when the directory was given up.
            #expect(error.code == .shutDown)
        }
    }

    /// Starts a job, which goes on in another life of the cache, a download and an upload.
    private static func startExchanges(
        of cache: MediaCache
    ) async throws -> [Task<Void, any Error>] {
        _ = try await cache.downloads.start(CacheRequest("http://example.com/job"))
        let upload = RelayRequest(
            method: .put,
            target: try TargetURI("http://example.com/upload"),
            body: UploadBody(length: nil) { nil }
        )
        return [
            Task { _ = try await cache.data(for: CacheRequest("http://example.com/download")) },
            Task { _ = try await cache.relay(upload) },
        ]
    }
}

/// A transport without an answer and without an end, whatever is cancelled.
private final class HangingTransport: Transport {
    private let end = Latch<Void>()
    private let paths: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() { (paths, continuation) = AsyncStream.makeStream(of: String.self) }

    /// Returns when it was asked for all of these paths.
    func waitForRequests(_ wanted: Set<String>) async {
        var wanted = wanted
        for await path in paths {
            wanted.remove(path)
            if wanted.isEmpty { return }
        }
    }

    /// Lets all that hangs end.
    func release() { end.complete(with: .success(())) }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        continuation.yield(request.head.path ?? "")
        await hang()
        throw TransportError(.connect, "nothing has answered")
    }

    func shutdown() async { await hang() }

    /// A task of its own is not cancelled with the one that waits for it.
    private func hang() async {
        await Task { [end] in _ = await end.wait() }.value
    }
}
