import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A film on a scripted origin, of which the first two blocks are stored when a row's response
/// comes.
struct RowFixture {
    static let length: Int64 = 400_000
    /// Two blocks.
    static let stored: Int64 = 131_072

    /// How a download ended, and what the origin saw.
    struct Outcome {
        let data: Data?
        let error: CacheError?
        /// Bytes of the entry that are stored at the end; nil where there is none.
        let stored: Int64?
        let exchanges: [OriginExchange]

        /// The requests from the row's on.
        var ranges: [String?] { exchanges.map { $0.fields[.range] } }
    }

    var film = OriginResource.generated(length: Self.length, cacheControl: "max-age=3600")

    /// Fetches the film whole; the first responses are those of the row.
    func fetch(_ row: OriginBehaviour...) async throws -> Outcome {
        try await run(row, holdsPart: false)
    }

    /// Fetches the rest of the film; the first responses are those of the row.
    func resume(
        _ row: OriginBehaviour...,
        change: @escaping @Sendable (inout OriginResource) -> Void = { _ in }
    ) async throws -> Outcome {
        try await run(row, holdsPart: true, change: change)
    }

    private func run(
        _ row: [OriginBehaviour],
        holdsPart: Bool,
        change: @escaping @Sendable (inout OriginResource) -> Void = { _ in }
    ) async throws -> Outcome {
        var outcome: Outcome?
        try await CacheFixture.run { fixture in
            var script = OriginScript()
            if holdsPart { script = script.then(1, .faithful) }
            for behaviour in row { script = script.then(1, behaviour) }
            fixture.origin.serve("/film", film, script)
            let request = try fixture.request("/film")
            outcome = try await fixture.withCache { cache in
                if holdsPart {
                    var part = request
                    part.range = .bounded(0..<Self.stored)
                    _ = try await cache.data(for: part)
                    fixture.origin.update("/film", with: change)
                }
                return try await Self.outcome(of: request, cache, fixture.origin)
            }
        }
        return try #require(outcome)
    }

    private static func outcome(
        of request: CacheRequest,
        _ cache: MediaCache,
        _ origin: ScriptedOrigin
    ) async throws -> Outcome {
        var result: Result<Data, CacheError>
        do throws(CacheError) {
            result = .success(try await cache.data(for: request))
        } catch {
            result = .failure(error)
        }
        let stored = try await cache.entry(for: request)?.storedBytes
        let isPart = origin.log.exchanges.first?.fields[.range] != nil
        let exchanges = Array(origin.log.exchanges.dropFirst(isPart ? 1 : 0))
        switch result {
        case .success(let data):
            return Outcome(data: data, error: nil, stored: stored, exchanges: exchanges)
        case .failure(let error):
            return Outcome(data: nil, error: error, stored: stored, exchanges: exchanges)
        }
    }

    /// A 206 as given, with the film's bytes of `range` as its body, and then the end of the
    /// connection.
    func part(
        _ range: Range<Int64>,
        tag: String? = nil,
        _ fields: String...
    ) -> OriginBehaviour {
        let tag = tag ?? film.entityTagValue ?? ""
        let head =
            "HTTP/1.1 206 Partial Content\r\nETag: \(tag)\r\n"
            + fields.map { "\($0)\r\n" }.joined() + "\r\n"
        let body = film.generatedBody?.bytes(in: range) ?? []
        return .faithful.with { $0.response = .raw(Array(head.utf8) + body) }
    }

    /// The film as it is after a change at the origin.
    var changed: OriginResource {
        var film = film
        film.version = 2
        return film
    }

    /// A head as given, without a body.
    func head(_ lines: String...) -> OriginBehaviour {
        .raw(lines.map { "\($0)\r\n" }.joined() + "Content-Length: 0\r\n\r\n")
    }
}

extension RowFixture.Outcome {
    /// The film arrived, and after the row's response came so many further requests.
    func expectFilm(
        _ film: OriginResource,
        requests: Int,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(
            firstDifference(data, film.allBytes) == nil,
            "\(String(describing: error))",
            sourceLocation: location
        )
        #expect(exchanges.count == requests, "\(ranges)", sourceLocation: location)
        #expect(stored == RowFixture.length, sourceLocation: location)
    }

    /// After the row's response all of the changed film was asked for.
    ///
    /// The reader has bytes of the old one, and leaves: what it meets is for the next one, which
    /// may find a part of it stored and ask for the rest.
    func expectChange(
        to film: OriginResource,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(
            firstDifference(data, film.allBytes) == nil,
            "\(String(describing: error))",
            sourceLocation: location
        )
        #expect(stored == RowFixture.length, sourceLocation: location)
        #expect(
            ranges.prefix(2) == ["bytes=131072-399999", nil],
            "\(ranges)",
            sourceLocation: location
        )
    }

    /// After the row's response all of it was asked for, without a range.
    func expectRestart(
        _ film: OriginResource,
        _ location: SourceLocation = #_sourceLocation
    ) {
        expectFilm(film, requests: 2, location)
        #expect(ranges == ["bytes=131072-399999", nil], sourceLocation: location)
    }
}
