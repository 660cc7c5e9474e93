import FoundationEssentials
import Synchronization
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Invariant 7: a hit never blocks a shared thread.
@Suite("Slow disk", .timeLimit(.minutes(10)))
struct SlowDiskTests {
    private func requests(_ names: Range<Int>) throws -> [CacheRequest] {
        try names.map { try CacheRequest("http://example.com/\($0)") }
    }

    private func body(_ number: Int) -> Data { Data(repeating: UInt8(number), count: 100 + number) }

    @Test(
        "ten thousand reads of a stuck disk leave the cooperative pool and the memory tier free",
        arguments: [false, true]
    )
    func stuck(keepsHistory: Bool) async throws {
        let place = TestDisk(.posix)
        var configuration = MediaCache.Configuration(path: place.root)
        configuration.minimumFreeDisk = 0
        configuration.keepsHistory = keepsHistory
        configuration.respondsToMemoryPressure = false
        configuration.transport = ScriptedTransport { _, _ in ScriptedResponse(failure: .connect) }
        let cold = try requests(0..<100)
        let filled = try MediaCache(configuration)
        for (number, request) in cold.enumerated() {
            try await filled.store(body(number), for: request)
        }
        await filled.shutdown()

        let gate = DiskGate()
        let disk = WatchedFileSystem(POSIXFileSystem(), isCold: true) { _, _ in gate.pass() }
        let cache = try MediaCache(configuration, fileSystem: disk)
        let hot = try CacheRequest("http://example.com/hot")
        try await cache.store(body(50), for: hot)
        #expect(try await cache.usage().entries == 101)
        gate.shut()

        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<10_000 {
                group.addTask {
                    let bytes = try await cache.data(for: cold[number % 100])
                    #expect(firstDifference(bytes, body(number % 100)) == nil)
                }
            }
            // All threads that may block do.
            for await waiting in gate.arrivals where waiting == 8 { break }
            // More tasks than the pool has threads, each handing its thread on many times: they
            // would never end if reads of the disk held the pool's threads.
            try await withThrowingTaskGroup(of: Void.self) { heartbeats in
                for _ in 0..<16 {
                    heartbeats.addTask {
                        for _ in 0..<500 {
                            let bytes = try await cache.data(for: hot)
                            #expect(bytes.count == 150)
                            await Task.yield()
                        }
                    }
                }
                try await heartbeats.waitForAll()
            }
            #expect(cache.statistics.diskHits == 0)
            gate.open()
            try await group.waitForAll()
        }
        #expect(gate.waiters.count == 8)
        #expect(gate.waiters.allSatisfy { $0.hasPrefix("tc-io-") }, "\(gate.waiters)")
        await cache.shutdown()
    }

    @Test(
        "a hit whose pages are warm makes no call that may block",
        arguments: [100, 65_536, 200_000]
    )
    func warm(size: Int) throws {
        let place = TestDisk(.posix)
        try place.open().store(bytes(size), for: key("a"))
        let calls = Atomic(0)
        let disk = WatchedFileSystem(POSIXFileSystem(mayBlockAnyThread: true)) { _, _ in
            calls.wrappingAdd(1, ordering: .relaxed)
        }
        let store = try DiskStore(place.options(), fileSystem: disk)
        let before = calls.load(ordering: .relaxed)
        guard case .ready(let entry?) = store.entryWithoutBlocking(for: key("a")) else {
            Issue.record("not warm")
            return
        }
        var read: [UInt8] = []
        while case .ready(let part) = entry.readCached(at: Int64(read.count), size - read.count),
            !part.isEmpty
        {
            read += part
        }
        #expect(firstDifference(read, bytes(size)) == nil)
        #expect(calls.load(ordering: .relaxed) == before)
    }
}
