// Counts what the hot decisions allocate, which has to be nothing. Exits with 1 where it is not.

import CAllocationCount
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

@main
enum Allocations {
    private static let rounds = 100_000

    static func main() async throws {
        guard allocation_count_works() != 0 else {
            return print("allocations cannot be counted on this system")
        }
        guard count({ _ = [UInt8](unsafeUninitializedCapacity: 1 << 20) { $1 = 1 } }) > 0 else {
            fatalError("the counter does not count")
        }
        let counted = [
            ("freshness decision on a parsed response", decisions()),
            ("hit in memory", try await hits()),
        ]
        for (name, count) in counted { print("\(name): \(count) allocations in \(rounds)") }
        // What another thread of the process does meanwhile may be counted too.
        if counted.contains(where: { $0.1 > rounds / 1000 }) { exit(1) }
    }

    private static func count(_ body: () -> Void) -> UInt {
        let before = allocation_count()
        body()
        return allocation_count() - before
    }

    private static func decisions() -> UInt {
        let received = WallTime(seconds: 1_800_000_000)
        let fields: HTTPFields = [
            .cacheControl: "public, max-age=3600, stale-while-revalidate=60",
            .date: HTTPDate.format(received), .eTag: "\"5f2d-9a\"",
            .lastModified: "Thu, 01 Jan 2026 00:00:00 GMT",
        ]
        let stored = ResponseFacts(
            status: 200,
            fields: fields,
            requestTime: received,
            responseTime: received
        )
        let request = RequestFacts(method: .get, fields: [.cacheControl: "max-stale=5"])
        return count {
            for step in 0..<rounds { decide(stored, request, at: received, step) }
        }
    }

    @inline(never)
    private static func decide(
        _ stored: ResponseFacts,
        _ request: RequestFacts,
        at time: WallTime,
        _ step: Int
    ) {
        let decision = ReuseDecision(
            stored: stored,
            request: request,
            rules: CacheRules(),
            now: time.advanced(by: .seconds(step & 0xFFF))
        )
        withExtendedLifetime(decision) {}
    }

    private static func hits() async throws -> UInt {
        var configuration = MediaCache.Configuration(directory: nil)
        configuration.transport = NoTransport()
        configuration.respondsToMemoryPressure = false
        let cache = try MediaCache(configuration)
        let request = try CacheRequest("http://origin.example/a")
        do throws(CacheError) {
            try await cache.store(Data(repeating: 7, count: 4096), for: request)
        } catch {
            // Without a directory the memory tier has it all the same.
            guard error.code == .localStorage else { throw error }
        }
        let found = count {
            for _ in 0..<rounds {
                guard cache.cachedData(for: request) != nil else { fatalError("not stored") }
            }
        }
        await cache.shutdown()
        return found
    }
}

private struct NoTransport: Transport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        throw TransportError(.connect, "the benchmark has no origin")
    }

    func shutdown() async {}
}
