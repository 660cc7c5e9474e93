#if os(Linux) && DEBUG && HTTPClient
import HTTPTypes
import NIOCore
import TestParts
import Testing

@testable import TieredCache

/// What each walk may take: locks, tasks, objects, handovers, calls of the file system (invariant
/// 15).
///
/// Counted and not timed, so that a busy machine changes nothing. A step that lowers a number writes
/// it down here and in docs/architecture.md; no step raises one. One job runs at a time, in the
/// order in which jobs were queued (``Walk``), so that each number is exact for one tree; what is
/// compared is only whether it is more than the budget.
@Suite("Budgets", .serialized, .tags(.alone), .timeLimit(.minutes(10)))
struct BudgetTests {
    private static let memoryHit =
        Budget(locks: 1, tasks: 0, instances: 0, handovers: 0, calls: 0)
    private static let diskHit =
        Budget(locks: 29, tasks: 1, instances: 8, handovers: 2, calls: 1)
    private static let memoryMiss =
        Budget(locks: 60, tasks: 1, instances: 14, handovers: 3, calls: 0)
    private static let storedMiss =
        Budget(locks: 124, tasks: 1, instances: 16, handovers: 3, calls: 5)
    private static let confirmation =
        Budget(locks: 71, tasks: 1, instances: 16, handovers: 3, calls: 8)
    private static let chunk =
        Budget(locks: 75, tasks: 0, instances: 1, handovers: 2, calls: 8)

    // MARK: The walks

    @Test("A hit in memory")
    func hitInMemory() async throws {
        let request = try CacheRequest("http://origin.example/a")
        let walk = Walk(
            answer: { _ in Self.small },
            setUp: { _ = try await $0.data(for: request) },
            body: { _ = try await $0.data(for: request) },
            evidence: { $0.memoryHits }
        )
        try await check("memory hit", walk.count(), Self.memoryHit)
    }

    @Test("A hit on disk, of an open file whose pages are in memory")
    func hitOnDisk() async throws {
        let request = try CacheRequest("http://origin.example/a")
        let walk = Walk(
            answer: { _ in Self.small },
            setUp: { _ = try await $0.data(for: request) },
            // The hit before has brought it into memory.
            prepare: { _ = $0.engine.storage.memory.remove(request.key) },
            body: { _ = try await $0.response(for: request).body.collect() },
            evidence: { $0.diskHits }
        )
        try await check("disk hit, warm, `response`", walk.count(), Self.diskHit)
    }

    @Test("A miss of 4 KiB, without a disk tier")
    func missInMemory() async throws {
        let request = try CacheRequest("http://origin.example/a")
        let walk = Walk(
            hasDirectory: false,
            answer: { _ in Self.small },
            prepare: { _ = $0.engine.storage.memory.remove(request.key) },
            body: { _ = try await $0.data(for: request) },
            evidence: { $0.downloadsFinished }
        )
        try await check("miss, 4 KiB, memory only", walk.count(), Self.memoryMiss)
    }

    @Test("A miss of 4 KiB, stored")
    func storedMiss() async throws {
        // The same name again, since each directory of names is made when one is first in it.
        let request = try CacheRequest("http://origin.example/a")
        let walk = Walk(
            answer: { _ in Self.small },
            prepare: { try await $0.remove(request) },
            body: { _ = try await $0.data(for: request) },
            evidence: { $0.downloadsFinished }
        )
        try await check("miss, 4 KiB, stored", walk.count(), Self.storedMiss)
    }

    @Test("A conditional request that ends in 304, of what is in memory and on disk")
    func confirmation() async throws {
        let request = try CacheRequest("http://origin.example/a")
        let walk = Walk(
            answer: { request in
                let isKnown = request.headerFields[.ifNoneMatch] != nil
                return isKnown ? Self.unchanged : Self.answer([Self.bytes(4096)], "no-cache")
            },
            setUp: { _ = try await $0.data(for: request) },
            body: { _ = try await $0.data(for: request) },
            evidence: { $0.revalidationsUnchanged }
        )
        try await check("304", walk.count(), Self.confirmation)
    }

    @Test("Each 64 KiB of a large body that is stored and read as it comes")
    func chunks() async throws {
        let few = try await stream(chunks: 32).count()
        let many = try await stream(chunks: 64).count()
        check("each chunk of a large body", few.each(of: 32, in: many), Self.chunk)
    }

    private func stream(chunks: Int) throws -> Walk {
        let request = try CacheRequest("http://origin.example/film")
        let part = Self.bytes(64 << 10)
        return Walk(
            answer: { _ in Self.answer(Array(repeating: part, count: chunks), "max-age=3600") },
            prepare: { try await $0.remove(request) },
            body: { cache in
                for try await _ in try await cache.response(for: request).body {}
            },
            evidence: { $0.downloadsFinished }
        )
    }

    // MARK: What the origin answers

    private static func bytes(_ count: Int) -> ByteBuffer { ByteBuffer(repeating: 7, count: count) }

    private static let small = answer([bytes(4096)], "max-age=3600")

    private static func answer(
        _ parts: [ByteBuffer],
        _ cacheControl: String
    ) -> WalkOrigin.Answer {
        let length = parts.reduce(0) { $0 + $1.readableBytes }
        return WalkOrigin.Answer(
            200,
            [
                .cacheControl: cacheControl, .contentLength: "\(length)", .eTag: "\"1\"",
                .acceptRanges: "bytes",
            ],
            parts: parts
        )
    }

    private static let unchanged =
        WalkOrigin.Answer(304, [.cacheControl: "no-cache", .eTag: "\"1\""])

    // MARK: Comparing

    private func check(_ name: String, _ count: WalkCount, _ budget: Budget) {
        // Its rows are printed at the end of all tests, see scripts/tests.py.
        print(count.row(name))
        for cost in Cost.allCases {
            #expect(
                count.costs[cost] <= budget[cost],
                "\(name): \(count.costs[cost]) \(cost.rawValue)\(count.story(of: cost))"
            )
        }
    }
}
#endif
