import FoundationEssentials
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Origins that choose what to answer by the language of a player, the origin of its page, or
/// whether it asks for a range.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerNegotiationTests {
    /// What a player's first request brings.
    private static let length = 200_000

    /// Bytes that tell by which choice of the origin they were sent.
    private static func body(_ choice: String, _ length: Int = length) -> [UInt8] {
        let seed = Int(choice.utf8.first ?? 0)
        return (0..<length).map { UInt8(truncatingIfNeeded: ($0 / 251) &+ $0 &* seed) }
    }

    private struct Choice {
        var name: String
        var fields: [String] = []
        var length = PlayerNegotiationTests.length
        var isAnswered = true
        /// Opened before the response is sent.
        var gate: ThreadGate?
    }

    private struct Fixture {
        let proxy: ProxyFixture
        let origin: RawOrigin

        var cache: MediaCache { proxy.cache }
        var requests: Int { origin.requests.count }

        func ask(_ fields: String...) async throws -> RawResponse {
            let port = proxy.proxy.port
            let url = try #require(URL(string: "\(origin.url)/a.mp4"))
            let target = try proxy.proxy.url(for: url).absoluteString
                .dropFirst("http://127.0.0.1:\(port)".count)
            return try await onThread {
                let connection = try RawConnection(port: port)
                let lines = ["GET \(target) HTTP/1.1", "Host: 127.0.0.1:\(port)"] + fields
                try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
                return try connection.receiveResponse()
            }
        }

        func waitForSharing() async {
            while cache.statistics.downloadsShared == 0 { await Task.yield() }
        }
    }

    /// Runs with an origin that answers a request with the film that `choose` names.
    private func run(
        _ choose: @escaping @Sendable (RawRequest) -> Choice,
        _ body: (Fixture) async throws -> Void
    ) async throws {
        let origin = try RawOrigin { connection, request in
            let choice = choose(request)
            choice.gate?.wait()
            guard choice.isAnswered else { return false }
            let bytes = Self.body(choice.name, choice.length)
            let range = request["range"]?.dropFirst("bytes=".count).split(separator: "-") ?? []
            let first = range.first.flatMap { Int($0) } ?? 0
            let last = range.dropFirst().first.flatMap { Int($0) } ?? bytes.count
            let end = min(bytes.count, last + 1)
            let head =
                [
                    "HTTP/1.1 206 Partial Content", "Cache-Control: max-age=3600",
                    "Content-Type: video/mp4",
                    "Content-Range: bytes \(first)-\(end - 1)/\(bytes.count)",
                    "Content-Length: \(end - first)",
                ] + choice.fields
            try connection.send(head.joined(separator: "\r\n") + "\r\n\r\n")
            try connection.send(Array(bytes[first..<end]))
            return true
        }
        try await ProxyFixture.run { proxy in
            try await body(Fixture(proxy: proxy, origin: origin))
        }
        await origin.stop()
    }

    private static func byLanguage(_ request: RawRequest) -> Choice {
        let name = request["accept-language"] ?? "none"
        return Choice(name: name, fields: ["ETag: \"\(name)\"", "Vary: Accept-Language"])
    }

    private func expect(_ answer: RawResponse, is choice: String) {
        #expect(answer.status == 200, "\(choice)")
        #expect(firstDifference(answer.body, Self.body(choice)) == nil, "\(choice)")
    }

    @Test("Players of two languages get two bodies where the origin has two, by one request each")
    func languages() async throws {
        try await run(Self.byLanguage) { fixture in
            for round in 1...3 {
                for (number, language) in ["none", "de", "fr"].enumerated() {
                    let field = language == "none" ? "X: y" : "Accept-Language: \(language)"
                    expect(try await fixture.ask(field), is: language)
                    #expect(fixture.requests == (round == 1 ? number + 1 : 3))
                }
            }
        }
    }

    @Test("Players of two languages that come at once get their own bodies")
    func languagesAtOnce() async throws {
        let gate = ThreadGate()
        try await run { request in
            var choice = Self.byLanguage(request)
            choice.gate = gate
            return choice
        } _: { fixture in
            async let german = fixture.ask("Accept-Language: de")
            async let french = fixture.ask("Accept-Language: fr")
            await fixture.waitForSharing()
            gate.open()
            expect(try await german, is: "de")
            expect(try await french, is: "fr")
            #expect(fixture.requests == 2)
        }
    }

    @Test("Where nothing varies by them, language and page split nothing: one request, one body")
    func notVarying() async throws {
        try await run { _ in
            Choice(name: "film", fields: ["ETag: \"a\""])
        } _: { fixture in
            for fields in [
                "Accept-Language: de\r\nOrigin: http://a", "Accept-Language: fr",
                "Origin: http://b", "X: y",
            ] {
                expect(try await fixture.ask(fields), is: "film")
                #expect(fixture.requests == 1, "\(fields)")
            }
            #expect(try await fixture.cache.entries().count == 1)
        }
    }

    @Test("Nor at once")
    func notVaryingAtOnce() async throws {
        let gate = ThreadGate()
        try await run { _ in
            Choice(name: "film", fields: ["ETag: \"a\""], gate: gate)
        } _: { fixture in
            async let german = fixture.ask("Accept-Language: de", "Origin: http://a")
            async let plain = fixture.ask("X: y")
            await fixture.waitForSharing()
            gate.open()
            expect(try await german, is: "film")
            expect(try await plain, is: "film")
            // A page that joined what was asked for without one does not know what it may have.
            #expect(fixture.requests <= 2)
            #expect(try await fixture.cache.entries().count == 1)
        }
    }

    /// As many origins are set up: they name pages only where there is one.
    private static func byPage(_ request: RawRequest) -> Choice {
        guard let page = request["origin"] else {
            return Choice(name: "film", fields: ["ETag: \"a\""])
        }
        let allowed = "Access-Control-Allow-Origin: \(page)"
        return Choice(name: "film", fields: ["ETag: \"a\"", allowed, "Vary: Origin"])
    }

    @Test("A page is told that it may read a film, whoever has played it before")
    func pages() async throws {
        try await run(Self.byPage) { fixture in
            for round in 1...3 {
                for (number, page) in [nil, "http://a", "http://b"].enumerated() {
                    // Twice, as a hit that is at hand is answered elsewhere.
                    for _ in 1...2 {
                        let field = page.map { "Origin: \($0)" } ?? "X: y"
                        let answer = try await fixture.ask(field)
                        expect(answer, is: "film")
                        if page != nil { #expect(answer["access-control-allow-origin"] == page) }
                        #expect(fixture.requests == (round == 1 ? number + 1 : 3))
                    }
                }
            }
        }
    }

    @Test("A page that comes while another player's first request is under way is told as well")
    func pageMeanwhile() async throws {
        let gate = ThreadGate()
        try await run { request in
            var choice = Self.byPage(request)
            choice.gate = request["origin"] == nil ? gate : nil
            return choice
        } _: { fixture in
            async let plain = fixture.ask("X: y")
            while fixture.requests == 0 { await Task.yield() }
            async let page = fixture.ask("Origin: http://a")
            await fixture.waitForSharing()
            gate.open()
            expect(try await plain, is: "film")
            let answer = try await page
            expect(answer, is: "film")
            #expect(answer["access-control-allow-origin"] == "http://a")
        }
    }

    @Test("An origin that answers ranges alone, and has no validator, is played as by the player")
    func rangesAlone() async throws {
        let length = 1_500_000
        let bytes = Self.body("film", length)
        try await run { request in
            let isAnswered = request.method == "GET" && request["range"] != nil
            return Choice(name: "film", length: length, isAnswered: isAnswered)
        } _: { fixture in
            for (range, first) in [("0-", 0), ("1000000-", 1_000_000), ("0-", 0)] {
                let answer = try await fixture.ask("Range: bytes=\(range)")
                #expect(answer.status == 206, "\(range)")
                #expect(answer["content-range"] == "bytes \(first)-\(length - 1)/\(length)")
                #expect(firstDifference(answer.body, Array(bytes[first...])) == nil, "\(range)")
            }
            // What it sent as all of a film is stored as that.
            #expect(fixture.requests == 2)
        }
    }
}
