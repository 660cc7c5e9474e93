import Dispatch
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What a miss must not cost (invariant 15).
@Suite("The cost of a miss", .timeLimit(.minutes(10)))
struct MissCostTests {
    /// Threads that are counted by what is run on them.
    private final class Jobs: Sendable {
        private let counts = Guarded<[String: Int]>([:])

        func count(_ name: String) -> Int { counts.withLock { $0[name] ?? 0 } }

        func executor(_ name: String) -> IOExecutor {
            IOExecutor { job, executor in
                self.counts.withLock { $0[name, default: 0] += 1 }
                DispatchQueue.global().async { job.runSynchronously(on: executor) }
            }
        }
    }

    @Test("What is not stored is neither looked for nor waited for on the threads for reads")
    func reads() async throws {
        let jobs = Jobs()
        var parts = EngineParts()
        parts.fileSystem = InMemoryFileSystem()
        parts.makeExecutor = { jobs.executor($0) }
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.minimumFreeDisk = 0
        configuration.networkMonitor = nil
        configuration.respondsToMemoryPressure = false
        configuration.transport = ScriptedTransport { _, _ in
            ScriptedResponse(
                status: 200,
                fields: [.cacheControl: "max-age=60", .contentLength: "4096"],
                steps: [
                    .bytes([UInt8](repeating: 7, count: 4000)),
                    .bytes([UInt8](repeating: 8, count: 96)),
                ]
            )
        }
        let cache = try MediaCache(configuration, parts: parts)
        try cache.engine.storage.disk.openStore?.loadIndex()
        for number in 0..<20 {
            let data = try await cache.data(for: CacheRequest("http://origin.example/\(number)"))
            #expect(data.count == 4096)
        }
        #expect(jobs.count("tc-io") == 0)
        #expect(jobs.count("tc-write") > 0)
        await cache.shutdown()
    }
}
