import FoundationEssentials
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Origins that cannot do what a reader would like, or change, or fail.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReaderDegradationTests {
    private static let length: Int64 = 3 << 20 + 777

    private static func film(_ change: (inout OriginResource) -> Void = { _ in }) -> OriginResource
    {
        var film = OriginResource.generated(length: length, cacheControl: "max-age=600")
        change(&film)
        return film
    }

    @Test(
        "Without ranges, length, or validator it plays forward, is stored, and is seekable then",
        arguments: ["no ranges", "no length", "no validator", "nothing", "ranges, no validator"]
    )
    func poorOrigins(_ kind: String) async throws {
        let film = Self.film { film in
            if kind != "no length" && kind != "ranges, no validator" {
                film.acceptsRanges = kind == "no validator"
            }
            if kind == "no length" || kind == "nothing" { film.framing = .chunked }
            if kind.hasSuffix("no validator") || kind == "nothing" { film.entityTag = .none }
        }
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: request)
                let all = try await reader.all()
                #expect(firstDifference(all, film.allBytes) == nil, "\(kind)")
                #expect(reader.isSeekable, "\(kind)")
                #expect(reader.size == Self.length)
                let start = Self.length / 2
                let again = try await reader.bytes(at: start, count: 1000)
                #expect(firstDifference(again, film.bytes(start..<start + 1000)) == nil)
                // The end is sealed by the transfer, which may take longer than the last read.
                while !cache.engine.transfers.queue.snapshot().transfers.isEmpty {
                    await Task.yield()
                }
                #expect(try await cache.entry(for: request)?.isComplete == true, "\(kind)")
            }
            // The head may have been paid for twice, and nothing else.
            #expect(fixture.origin.log.bodyBytesWritten <= Self.length + 256 << 10, "\(kind)")
            let asked = fixture.origin.log.exchanges.count
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: request)
                #expect(try await firstDifference(reader.all(), film.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count == asked)
        }
    }

    @Test("Without ranges a seek forward waits for the transfer, and the origin is asked once")
    func seeksWait() async throws {
        let film = Self.film { $0.acceptsRanges = false }
        try await CacheFixture.run { fixture in
            // Not before the reader was asked: complete, it is seekable.
            let gate = OriginGate()
            fixture.origin.serve("/film", film, OriginScript(.wait(for: gate, after: 100_000)))
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                #expect(!reader.isSeekable)
                gate.open()
                let start = Self.length - 1000
                let tail = try await reader.bytes(at: start, count: 2000)
                #expect(firstDifference(tail, film.bytes(start..<Self.length)) == nil)
                #expect(
                    try await firstDifference(reader.bytes(at: 5, count: 10), film.bytes(5..<15))
                        == nil
                )
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test("What may not be stored is read all the same, with seeks", arguments: [true, false])
    func notStored(_ hasValidator: Bool) async throws {
        let film = OriginResource.generated(length: Self.length, cacheControl: "no-store")
            .with { if !hasValidator { $0.entityTag = .none } }
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                #expect(reader.isSeekable == hasValidator)
                #expect(reader.storageError != nil)
                #expect(try await firstDifference(reader.all(), film.allBytes) == nil)
                if hasValidator {
                    let start = Self.length / 2
                    #expect(
                        try await firstDifference(
                            reader.bytes(at: start, count: 1000),
                            film.bytes(start..<start + 1000)
                        ) == nil
                    )
                }
            }
        }
    }

    @Test("A change at the origin never mixes into an open reader")
    func changes() async throws {
        let film = Self.film()
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: request)
                #expect(
                    try await firstDifference(
                        reader.bytes(at: 0, count: 1000),
                        film.bytes(0..<1000)
                    ) == nil
                )
                fixture.origin.update("/film") { $0.version += 1 }
                let error = await #expect(throws: CacheError.self) {
                    _ = try await reader.bytes(at: 2 << 20, count: 1000)
                }
                #expect(error?.code == .representationChanged)
                // What is stored is still of the one generation.
                #expect(
                    try await firstDifference(
                        reader.bytes(at: 100, count: 1000),
                        film.bytes(100..<1100)
                    ) == nil
                )
                let later = try await cache.reader(for: request)
                let changed = try #require(fixture.origin.resource("/film"))
                let new = try await later.bytes(at: 2 << 20, count: 1000)
                #expect(firstDifference(new, changed.bytes(2 << 20..<Int64(2 << 20 + 1000))) == nil)
            }
        }
    }

    @Test("Cuts and errors of the origin are tried again", arguments: [200_000, 300_000, 700_000])
    func cuts(_ offset: Int64) async throws {
        let film = Self.film()
        try await CacheFixture.run { fixture in
            let script = OriginScript.first(1, .cut(after: min(offset, 100_000)))
                .then(1, .status(503)).then(1, .dropped()).then(2, .cut(after: 10_000, .finish))
            fixture.origin.serve("/film", film, script)
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                let bytes = try await reader.bytes(
                    at: offset,
                    count: 500_000,
                    deadline: .seconds(200)
                )
                #expect(firstDifference(bytes, film.bytes(offset..<offset + 500_000)) == nil)
            }
        }
    }

    @Test("A status that passes for a download passes for a reader", arguments: [503, 522, 524])
    func passingStatus(_ status: Int) async throws {
        let film = Self.film()
        try await CacheFixture.run { fixture in
            let script = OriginScript.first(1, .cut(after: 100_000)).then(1, .status(status))
            fixture.origin.serve("/film", film, script)
            // The download gives up at the status; the reader does not.
            try await fixture.withCache({ $0.retries = 1 }) { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                let bytes = try await reader.bytes(
                    at: 0,
                    count: 500_000,
                    deadline: .seconds(200)
                )
                #expect(firstDifference(bytes, film.bytes(0..<500_000)) == nil)
            }
        }
    }

    @Test("Every byte comes when the disk fails at any write", arguments: 0..<8)
    func diskFails(_ skipping: Int) async throws {
        let film = Self.film()
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            let disk = InMemoryFileSystem()
            disk.fail(.write, with: .noSpace, times: .max, skipping: skipping)
            let cache = try MediaCache(fixture.configuration(), fileSystem: disk)
            do {
                let reader = try await cache.reader(for: fixture.request("/film"))
                #expect(
                    try await firstDifference(reader.all(), film.allBytes) == nil,
                    "skipping \(skipping)"
                )
                #expect(reader.storageError != nil)
            } catch {
                await cache.shutdown()
                throw error
            }
            await cache.shutdown()
        }
    }

    @Test("An empty body and a missing one")
    func nothing() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/empty", .generated(length: 0, cacheControl: "max-age=60"))
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/empty"))
                #expect(reader.size == 0)
                #expect(try await reader.all().isEmpty)
                let error = await #expect(throws: CacheError.self) {
                    _ = try await cache.reader(for: fixture.request("/none"))
                }
                #expect(error?.status == 404)
            }
        }
    }
}

extension OriginResource {
    fileprivate func with(_ change: (inout OriginResource) -> Void) -> OriginResource {
        var copy = self
        change(&copy)
        return copy
    }
}
