import Foundation
import SystemPackage
import TieredCache

/// The rows of the façade: what awaiting costs where memory has the answer.
enum FacadeRows {
    static func make(where isWanted: (String) -> Bool) throws -> [Row] {
        let name = "await read-through, memory hit"
        return isWanted(name) ? [try readThrough(name)] : []
    }

    private static func readThrough(_ name: String) throws -> Row {
        let directory = FilePath(NSTemporaryDirectory())
            .appending("tieredcache-facade-\(ProcessInfo.processInfo.processIdentifier)")
        var configuration = Configuration(directory: directory)
        configuration.transport = NoTransport()
        let cache = try TieredCache(configuration)
        let samples = Samples(count: 1000)
        let requests = try samples.lookups.map { try CacheRequest($0) }
        try wait {
            for request in requests { try await cache.store(Data(count: 4096), for: request) }
            await cache.shutdown()
            try FileManager.default.removeItem(atPath: directory.string)
        }
        return Row(
            name: name,
            target: 4,
            count: 50_000,
            contenders: [
                Contender("data(for:), awaited") { count in
                    attempt { try wait { try await awaitHits(cache, requests, count) } }
                },
                Contender("cachedData(for:)") { count in
                    for number in 0..<count {
                        let hit = cache.cachedData(for: requests[number % requests.count])
                        precondition(hit?.count == 4096)
                    }
                },
            ]
        )
    }

    private static func awaitHits(
        _ cache: TieredCache,
        _ requests: [CacheRequest],
        _ count: Int
    ) async throws {
        for number in 0..<count {
            let hit = try await cache.data(for: requests[number % requests.count])
            precondition(hit.count == 4096)
        }
    }

    private static func attempt(_ body: () throws -> Void) {
        do { try body() } catch { fatalError("\(error)") }
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

/// There is no origin: all is stored beforehand.
private struct NoTransport: Transport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        throw TransportError(.connect, "the benchmark has no origin")
    }

    func shutdown() async {}
}
