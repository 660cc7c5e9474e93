import Dispatch
import FoundationEssentials
import Testing
import TieredCacheTesting

@testable import TieredCache

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

    @Test("a cache whose disk and origin hang is left within five seconds")
    func hangingDisk() async throws {
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
        var configuration = MediaCache.Configuration(path: disk.root)
        configuration.timeSource = disk.time
        configuration.minimumFreeDisk = 0
        configuration.keepsHistory = false
        configuration.respondsToMemoryPressure = false
        configuration.transport = ScriptedTransport(time: disk.time) { _, _ in
            ScriptedResponse(failure: .connect)
        }
        let cache = try MediaCache(configuration, fileSystem: fileSystem)
        try await cache.store(Data([1]), for: try CacheRequest("http://example.com/a"))
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
        // What ends by itself needs no time.
        while closed.outcome == nil {
            if disk.time.sleeperCount > 0 { disk.time.advanceToNextDeadline() }
            await Task.yield()
        }
        #expect(start.duration(to: disk.time.monotonicTime()) < .seconds(5))
        hangs.withLock { $0 = false }
        turnstile.signal()
        do {
            try await writing.value
        } catch let error as CacheError {
            // It had not begun to write when the directory was given up.
            #expect(error.code == .shutDown)
        }
    }
}
