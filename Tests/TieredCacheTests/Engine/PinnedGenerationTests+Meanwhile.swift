import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

// What is found, asked for and changed while a new generation comes.
extension PinnedGenerationTests {
    @Test("What is fresh may be used while the new one comes; a reload gets what the origin has")
    func insisting() async throws {
        try await Self.run("max-age=600") { fixture, request, film in
            var changed = film
            changed.version = 2
            let gate = OriginGate()
            fixture.origin.serve("/film", changed, .first(1, .wait(for: gate, after: 1_000_000)))
            var reload = request
            reload.policy = .reload
            var strict = request
            strict.fields[.cacheControl] = "max-age=0"
            let (first, second) = (reload, strict)
            try await fixture.withCache { cache in
                let reading = try await cache.response(for: first)
                let start = try #require(try await reading.body.source.next())
                #expect(try await firstDifference(cache.data(for: request), film.allBytes) == nil)
                let other = try await cache.response(for: second)
                gate.open()
                let rest = try await reading.body.collect()
                #expect(firstDifference(start + rest, changed.allBytes) == nil)
                #expect(try await firstDifference(other.read().bytes, changed.allBytes) == nil)
                try await Self.expect(2, cache, request, film)
            }
            try await Self.expect(2, fixture, film)
        }
    }

    @Test("Requests that may not use the old one share the new one, in one transfer")
    func joined() async throws {
        try await Self.run { fixture, request, film in
            var changed = film
            changed.version = 2
            changed.fields[.cacheControl] = "max-age=600"
            let gate = OriginGate()
            fixture.origin.serve("/film", changed, .first(1, .wait(for: gate, after: 1_000_000)))
            let before = fixture.origin.log.exchanges.count
            try await fixture.withCache { cache in
                let reading = try await cache.response(for: request)
                let start = try #require(try await reading.body.source.next())
                let other = try await cache.response(for: request)
                var fromCache = request
                fromCache.policy = .cacheElseLoad
                #expect(
                    try await firstDifference(
                        cache.response(for: fromCache).read().bytes,
                        film.allBytes
                    ) == nil
                )
                gate.open()
                #expect(
                    try await firstDifference(start + reading.body.collect(), changed.allBytes)
                        == nil
                )
                #expect(try await firstDifference(other.read().bytes, changed.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count - before == 1)
            try await Self.expect(2, fixture, film)
        }
    }

    @Test(
        "A pin that is taken away or set while the new one comes counts for that",
        arguments: 0..<3
    )
    func pins(_ kind: Int) async throws {
        try await Self.run { fixture, request, film in
            var changed = film
            changed.version = 2
            let gate = OriginGate()
            fixture.origin.serve("/film", changed, .first(1, .wait(for: gate, after: 1_000_000)))
            try await fixture.withCache { cache in
                let reading = try await cache.response(for: request)
                let start = try #require(try await reading.body.source.next())
                if kind < 2 { #expect(try await cache.setPinned(false, for: request)) }
                if kind == 1 { #expect(try await cache.setPinned(true, for: request)) }
                if kind == 2 { #expect(try await cache.remove(request)) }
                gate.open()
                #expect(
                    try await firstDifference(start + reading.body.collect(), changed.allBytes)
                        == nil
                )
            }
            if kind == 1 { return try await Self.expect(2, fixture, film) }
            try await fixture.withCache { cache in
                let entry = try await cache.entry(for: request)
                #expect(entry?.isPinned == (kind == 0 ? false : nil))
                #expect(entry?.isComplete == (kind == 0 ? true : nil))
            }
        }
    }
}
