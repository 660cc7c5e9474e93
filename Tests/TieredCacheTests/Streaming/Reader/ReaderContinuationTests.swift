import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Readers that begin with a part of something that the origin sends only as a whole.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReaderContinuationTests {
    /// What the origin says about its representation.
    enum Witness: String, CaseIterable, Sendable {
        case nothing, weakTag, youngDate, oldDate
        case strongTag, strongTagWithoutLength, strongTagClosedAtEnd

        /// Whether bytes of two transfers may be joined.
        var isStrong: Bool { ![.nothing, .weakTag, .youngDate].contains(self) }
    }

    private static let length: Int64 = 6 << 20 + 777
    private static let part: Int64 = 2_300_000

    /// On a machine that has other things to do.
    private static let patient: @Sendable (inout MediaCache.Configuration) -> Void = {
        $0.timeout = .seconds(300)
    }

    private static var options: ReaderOptions {
        var options = ReaderOptions()
        options.deadline = .seconds(300)
        return options
    }

    private static func film(_ witness: Witness, _ control: String) -> OriginResource {
        var film = OriginResource.generated(length: length, cacheControl: control)
        film.acceptsRanges = false
        switch witness {
        case .nothing: film.entityTag = .none
        case .weakTag: film.entityTag = .custom("W/\"1\"")
        case .youngDate:
            film.entityTag = .none
            // Younger than any response.
            film.lastModified = "Fri, 31 Dec 2200 23:59:59 GMT"
        case .oldDate:
            film.entityTag = .none
            film.lastModified = "Sun, 06 Nov 2005 08:49:37 GMT"
        case .strongTag: break
        case .strongTagWithoutLength: film.framing = .chunked
        case .strongTagClosedAtEnd: film.framing = .close
        }
        return film
    }

    /// Leaves a part of the film stored, from its first byte on.
    private static func holdPart(_ fixture: CacheFixture, _ film: OriginResource) async throws {
        let gate = OriginGate()
        fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: part)))
        let request = try fixture.request("/film")
        try await fixture.withCache(Self.patient) { cache in
            let reader = try await cache.reader(for: request, options: Self.options)
            let bytes = try await reader.bytes(at: part - 70_000, count: 1000)
            #expect(firstDifference(bytes, film.bytes(part - 70_000..<part - 69_000)) == nil)
        }
        gate.open()
        try await fixture.withCache(Self.patient) { cache in
            let entry = try #require(try await cache.entry(for: request))
            // The block that had begun to come when the cache was closed is lost.
            #expect(!entry.isComplete && entry.storedBytes >= part - 140_000)
        }
    }

    @Test(
        "Such a part is continued where the origin proves that it has the same, else begun anew",
        arguments: Witness.allCases,
        ["max-age=600", "max-age=0"]
    )
    func parts(_ witness: Witness, _ control: String) async throws {
        let film = Self.film(witness, control)
        try await CacheFixture.run { fixture in
            try await Self.holdPart(fixture, film)
            let before = fixture.origin.log.exchanges.count
            try await fixture.withCache(Self.patient) { cache in
                let reader = try await cache.reader(
                    for: fixture.request("/film"),
                    options: Self.options
                )
                #expect(
                    try await firstDifference(reader.all(), film.allBytes) == nil,
                    "\(witness) \(control)"
                )
                if !witness.isStrong { #expect(reader.bytesFromCache == 0) }
                // Where the length was not known, it is written down after the last byte was given.
                while !cache.engine.transfers.queue.snapshot().transfers.isEmpty {
                    await Task.yield()
                }
                #expect(try await cache.entry(for: reader.request)?.isComplete == true)
            }
            // A question whether it is current, and the whole once more.
            #expect(fixture.origin.log.exchanges.count - before <= 2, "\(witness) \(control)")
        }
    }

    @Test("Where another owns the directory, the rest is given without being stored")
    func withoutOwning() async throws {
        let film = Self.film(.strongTag, "max-age=600")
        try await CacheFixture.run { fixture in
            try await Self.holdPart(fixture, film)
            try await fixture.withCache { _ in
                try await fixture.withCache(Self.patient) { cache in
                    let reader = try await cache.reader(
                        for: fixture.request("/film"),
                        options: Self.options
                    )
                    #expect(try await firstDifference(reader.all(), film.allBytes) == nil)
                    #expect(cache.storageError?.code == .notOwner)
                }
            }
        }
    }

    @Test(
        "So are streamed responses, whole or from the middle on",
        arguments: Witness.allCases,
        [0, 1_000_000, 2_200_000, 4_000_000] as [Int64]
    )
    func responses(_ witness: Witness, _ start: Int64) async throws {
        let film = Self.film(witness, "max-age=600")
        try await CacheFixture.run { fixture in
            try await Self.holdPart(fixture, film)
            let before = fixture.origin.log.exchanges.count
            try await fixture.withCache(Self.patient) { cache in
                var request = try fixture.request("/film")
                if start > 0 { request.range = .openEnded(from: start) }
                let response = try await cache.streamedResponse(
                    for: request,
                    deadline: .seconds(300)
                )
                let bytes = try await response.body.collect()
                #expect(
                    firstDifference(bytes, film.allBytes.dropFirst(Int(start))) == nil,
                    "\(witness) \(start)"
                )
            }
            #expect(fixture.origin.log.exchanges.count - before <= 2, "\(witness) \(start)")
        }
    }

    @Test("What is stored of such a part is given without asking", arguments: Witness.allCases)
    func storedRanges(_ witness: Witness) async throws {
        let film = Self.film(witness, "max-age=600")
        try await CacheFixture.run { fixture in
            try await Self.holdPart(fixture, film)
            let before = fixture.origin.log.exchanges.count
            try await fixture.withCache(Self.patient) { cache in
                var request = try fixture.request("/film")
                request.range = .bounded(1000..<900_000)
                let response = try await cache.streamedResponse(
                    for: request,
                    deadline: .seconds(300)
                )
                let bytes = try await response.body.collect()
                #expect(firstDifference([UInt8](bytes), film.bytes(1000..<900_000)) == nil)
            }
            #expect(fixture.origin.log.exchanges.count == before)
        }
    }

    @Test(
        "Readers of such a part share one transfer",
        arguments: [
            // Without a validator, what is stale has to be fetched again for each.
            (Witness.nothing, "max-age=600"), (.youngDate, "max-age=0"), (.oldDate, "max-age=0"),
        ]
    )
    func sharing(_ witness: Witness, _ control: String) async throws {
        let film = Self.film(witness, control)
        try await CacheFixture.run { fixture in
            try await Self.holdPart(fixture, film)
            let before = fixture.origin.log.bodyBytesWritten
            // One that opens after the end of the transfer has to fetch anew.
            let gate = OriginGate()
            fixture.origin.serve("/film", film, OriginScript(.wait(for: gate, after: 500_000)))
            try await fixture.withCache(Self.patient) { cache in
                let request = try fixture.request("/film")
                let first = try await cache.reader(for: request, options: Self.options)
                #expect(
                    try await firstDifference(first.bytes(at: 0, count: 1000), film.bytes(0..<1000))
                        == nil
                )
                var others: [CacheReader] = []
                for _ in 0..<4 {
                    others.append(try await cache.reader(for: request, options: Self.options))
                }
                gate.open()
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for reader in others {
                        group.addTask { try await reader.all() == film.allBytes }
                    }
                    for try await isRight in group { #expect(isRight) }
                }
                #expect(try await firstDifference(first.all(), film.allBytes) == nil)
            }
            let written = fixture.origin.log.bodyBytesWritten - before
            #expect(written < 2 * Self.length, "\(written)")
        }
    }

    @Test("A transfer that ends while a reader looks what there is is not made once more")
    func endingMeanwhile() async throws {
        let film = Self.film(.youngDate, "max-age=0")
        try await CacheFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: 500_000)))
            let request = try fixture.request("/film")
            let look = PausedLook()
            try await fixture.withCache { configuration in
                Self.patient(&configuration)
                configuration.logger = look.logger
            } _: { cache in
                let first = try await cache.reader(for: request, options: Self.options)
                #expect(
                    try await firstDifference(first.bytes(at: 0, count: 1000), film.bytes(0..<1000))
                        == nil
                )
                var opening = request
                opening.range = .bounded(0..<1 << 20)
                opening.scope = ReaderScope(range: nil, options: Self.options)
                let lookup = cache.responder.lookup(opening)
                let executor = IOExecutor(threads: 1)
                look.begin()
                async let answer = Task(executorPreference: executor) {
                    try await lookup.perform()
                }.value
                // It has looked once, and waits; the transfer ends meanwhile.
                await look.waitUntilPaused()
                gate.open()
                let all = try await first.all()
                #expect(firstDifference(all, film.allBytes) == nil)
                while !cache.engine.transfers.queue.snapshot().transfers.isEmpty {
                    await Task.yield()
                }
                look.end()
                guard case .incomplete(let remainder) = try await answer else {
                    Issue.record("what is stale is no answer")
                    return
                }
                guard case .validate = remainder.task else {
                    Issue.record("it would be fetched once more")
                    return
                }
            }
        }
    }

    @Test("A transfer that is cut and cannot be continued fails honestly and asks no more")
    func cuts() async throws {
        let film = Self.film(.nothing, "max-age=600")
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film, .first(1, .cut(after: Self.part)))
            try await fixture.withCache(Self.patient) { cache in
                let reader = try await cache.reader(
                    for: fixture.request("/film"),
                    options: Self.options
                )
                let error = await #expect(throws: CacheError.self) {
                    _ = try await reader.all()
                }
                #expect(error?.code == .representationChanged)
                #expect(fixture.origin.log.exchanges.count <= 2)
                let later = try await cache.reader(for: reader.request, options: Self.options)
                #expect(try await firstDifference(later.all(), film.allBytes) == nil)
                #expect(fixture.origin.log.exchanges.count <= 3)
            }
        }
    }

    @Test("A cut is continued where the origin proves the same", arguments: Witness.allCases)
    func provenCuts(_ witness: Witness) async throws {
        guard witness.isStrong else { return }
        let film = Self.film(witness, "max-age=600")
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film, .first(1, .cut(after: Self.part)))
            try await fixture.withCache(Self.patient) { cache in
                let reader = try await cache.reader(
                    for: fixture.request("/film"),
                    options: Self.options
                )
                #expect(try await firstDifference(reader.all(), film.allBytes) == nil, "\(witness)")
            }
            let asked = fixture.origin.log.exchanges.map { "\($0.fields) \($0.outcome)" }
            #expect(asked.count == 2, "\(asked)")
        }
    }

    @Test("So is one of bytes that are not stored, each given once", arguments: [true, false])
    func cutsOfWhatIsNotStored(_ isForbidden: Bool) async throws {
        let film = Self.film(.strongTag, isForbidden ? "no-store" : "max-age=600")
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film, .first(1, .cut(after: Self.part)))
            let disk = InMemoryFileSystem()
            if !isForbidden { disk.fail(.write, with: .noSpace, times: .max, skipping: 9) }
            let cache = try MediaCache(fixture.configuration(), fileSystem: disk)
            let result: Result<Data, any Error>
            do {
                result = .success(try await cache.data(for: fixture.request("/film")))
            } catch {
                result = .failure(error)
            }
            await cache.shutdown()
            #expect(try firstDifference(result.get(), film.allBytes) == nil)
        }
    }

    @Test("A body without a validator says nothing about ranges of other bodies")
    func otherBodies() async throws {
        var film = Self.film(.nothing, "max-age=600")
        film.acceptsRanges = true
        let other = OriginResource.generated(length: Self.length, cacheControl: "max-age=600")
        try await CacheFixture.run { fixture in
            let script = OriginScript.first(2, .cut(after: Self.part))
            fixture.origin.serve("/film", film, script)
            fixture.origin.serve("/other", other)
            try await fixture.withCache(Self.patient) { cache in
                let reader = try await cache.reader(
                    for: fixture.request("/film"),
                    options: Self.options
                )
                // However that ends.
                _ = try? await reader.all()
                let request = try fixture.request("/other")
                let far = try await cache.reader(for: request, at: 5 << 20, options: Self.options)
                let bytes = try await far.bytes(at: 5 << 20, count: 1000)
                #expect(firstDifference(bytes, other.bytes(5 << 20..<Int64(5 << 20 + 1000))) == nil)
            }
            #expect(fixture.origin.log.bodyBytesWritten(for: "/other") <= 262_144)
        }
    }
}
