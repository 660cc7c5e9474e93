import Foundation
import SystemPackage
@_spi(Benchmarks) import TieredCache

/// The rows of the façade: what awaiting costs where memory has the answer.
enum FacadeRows {
    static func make(where isWanted: (String) -> Bool) throws -> [Row] {
        let name = "await read-through, memory hit"
        return isWanted(name) ? [try readThrough(name)] : []
    }

    private static func readThrough(_ name: String) throws -> Row {
        let directory = FilePath(NSTemporaryDirectory())
            .appending("tieredcache-facade-\(ProcessInfo.processInfo.processIdentifier)")
        var configuration = MediaCache.Configuration(
            directory: URL(filePath: directory.string)
        )
        configuration.transport = NoTransport()
        // What a loaded machine would have the cache give up could not be had again: there is no
        // origin.
        configuration.respondsToMemoryPressure = false
        let cache = try MediaCache(configuration)
        let samples = Samples(count: 1000)
        let requests = try samples.lookups.map { try CacheRequest($0) }
        let bare = try MemoryCache<CacheKey, Payload>(limits: MemoryLimits(maximumCost: 2000))
        for (number, request) in requests.enumerated() {
            bare.insert(Payload(number), forKey: request.key, cost: 1)
        }
        try wait {
            for request in requests { try await cache.store(Data(count: 4096), for: request) }
            await cache.shutdown()
            try FileManager.default.removeItem(atPath: directory.string)
        }
        let askers = requests.map { Asker(cache: cache, request: $0) }
        return Row(
            name: name,
            target: 4,
            count: 50_000,
            contenders: [
                Contender("data(for:), awaited") { count in
                    attempt { try wait { try await awaitHits(askers, count) } }
                },
                Contender("cachedData(for:)") { count in
                    for number in 0..<count {
                        precondition(askers[number % askers.count].cached()?.count == 4096)
                    }
                },
                Contender("MemoryCache, bare") { count in
                    let span = requests.span
                    var next = 0
                    for _ in 0..<count {
                        precondition(bare.value(forKey: span[next].key) != nil)
                        next = next + 1 == span.count ? 0 : next + 1
                    }
                },
            ]
        )
    }

    private static func awaitHits(_ askers: [Asker], _ count: Int) async throws {
        for number in 0..<count {
            let hit = try await askers[number % askers.count].awaited()
            precondition(hit.count == 4096)
        }
    }

    private static func attempt(_ body: () throws -> Void) {
        do { try body() } catch { fatalError("a hit in memory failed: \(error)") }
    }

    /// Runs asynchronous work from the harness, which is synchronous, once for all operations.
    private static func wait(_ body: @escaping @Sendable () async throws -> Void) throws {
        let done = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var failure: (any Error)?
        Task.detached {
            do { try await body() } catch { failure = error }
            done.signal()
        }
        done.wait()
        if let failure { throw failure }
    }
}

/// A caller that keeps a request and asks again and again: what is measured is the hit, and not the
/// copy of a request out of an array.
private final class Asker: Sendable {
    let cache: MediaCache
    let request: CacheRequest

    init(cache: MediaCache, request: CacheRequest) {
        self.cache = cache
        self.request = request
    }

    @inline(never)
    func cached() -> Data? { cache.cachedData(for: request) }

    @inline(never)
    func awaited() async throws -> Data { try await cache.data(for: request) }
}

/// There is no origin: all is stored beforehand.
private struct NoTransport: Transport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        throw TransportError(.connect, "the benchmark has no origin")
    }

    func shutdown() async {}
}
