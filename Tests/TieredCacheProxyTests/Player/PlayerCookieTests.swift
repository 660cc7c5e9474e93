import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheProxy

/// Cookies of a playlist, which each player keeps for itself.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerCookieTests {
    /// A player, with the cookies that it was given.
    private struct Player {
        let fixture: ProxyFixture
        var cookies: [String: String] = [:]
        var fields: [String] = []

        /// Asks as RFC 6265 has it: all cookies are for the whole proxy.
        mutating func ask(_ path: String, _ more: String = "X: y") async throws -> RawResponse {
            let pairs = cookies.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            let line = pairs.isEmpty ? "X: y" : "Cookie: " + pairs.joined(separator: "; ")
            let answer = try await fixture.ask(path, line, more)
            for (name, value) in answer.fields where name.lowercased() == "set-cookie" {
                let parts = value.split(separator: "; ")
                let pair = parts[0].split(separator: "=", maxSplits: 1).map(String.init)
                cookies[pair[0]] = parts.contains("Max-Age=0") ? nil : pair[1]
                let base = fixture.base.dropFirst("http://127.0.0.1:\(fixture.proxy.port)".count)
                #expect(parts.contains("Path=\(base)") && !value.lowercased().contains("domain="))
            }
            return answer
        }
    }

    private static func serve(
        _ fixture: ProxyFixture,
        _ segments: String = "1.ts",
        cookie: String,
        control: String = "max-age=60"
    ) {
        let list = OriginResource.text(
            "#EXTM3U\n\(segments)\n#EXT-X-ENDLIST\n",
            contentType: "application/vnd.apple.mpegurl",
            cacheControl: control
        )
        let setting = OriginBehaviour.faithful.with { $0.overrides[.setCookie] = cookie }
        fixture.origin.serve("/v/list.m3u8", list, OriginScript(setting))
        for path in ["/v/1.ts", "/v/2.ts", "/w/1.ts"] {
            fixture.origin.serve(path, .generated(length: 1000, cacheControl: "no-store"))
        }
    }

    private static func sent(_ fixture: ProxyFixture, _ path: String) -> [String?] {
        fixture.origin.log.exchanges(for: path).map { exchange in
            let fields = exchange.fields[values: .cookie]
            #expect(fields.count <= 1, "one field with all cookies (RFC 6265 §5.4)")
            return fields.first
        }
        // A body that is not stored may be asked for in two parts.
        .reduce(into: []) { if $0.isEmpty || $0.last != $1 { $0.append($1) } }
    }

    @Test("What a playlist sets goes with its segments, where it is for them, until it ends")
    func segments() async throws {
        try await ProxyFixture.run { fixture in
            Self.serve(fixture, cookie: "k=1=2; Max-Age=60", control: "no-cache")
            var player = Player(fixture: fixture)
            #expect(try await player.ask("/v/list.m3u8").status == 200)
            #expect(player.cookies.count == 1)
            for path in ["/v/1.ts", "/w/1.ts"] {
                #expect(try await player.ask(path).status == 200)
            }
            #expect(Self.sent(fixture, "/v/1.ts") == ["k=1=2"])
            #expect(Self.sent(fixture, "/w/1.ts") == [nil])
            Self.serve(fixture, "2.ts", cookie: "k=; Max-Age=0")
            _ = try await player.ask("/v/list.m3u8")
            _ = try await player.ask("/v/2.ts")
            #expect(player.cookies.isEmpty && Self.sent(fixture, "/v/2.ts") == [nil])
        }
    }

    @Test("No player has another one's, be the list stored, confirmed or asked for at once")
    func players() async throws {
        try await ProxyFixture.run { fixture in
            var players: [Player] = []
            for number in 0..<3 {
                let control = number == 1 ? "no-cache" : "max-age=60"
                Self.serve(fixture, cookie: "k=\(number)", control: control)
                var player = Player(fixture: fixture)
                #expect(try await player.ask("/v/list.m3u8").status == 200)
                // The same list again is a hit, or confirmed, and sets nothing else.
                _ = try await player.ask("/v/list.m3u8")
                players.append(player)
            }
            for number in 0..<3 { _ = try await players[number].ask("/v/1.ts") }
            #expect(Self.sent(fixture, "/v/1.ts") == ["k=0", "k=1", "k=2"])
            var stranger = Player(fixture: fixture)
            _ = try await stranger.ask("/v/1.ts")
            #expect(Self.sent(fixture, "/v/1.ts").last == .some(nil))
        }
    }

    @Test("Of a browser only those go that the proxy has set; of other players their own as well")
    func browsers() async throws {
        try await ProxyFixture.run { fixture in
            Self.serve(fixture, cookie: "k=1; Path=/")
            var player = Player(fixture: fixture)
            _ = try await player.ask("/v/list.m3u8")
            player.cookies["other"] = "2"
            player.cookies["tieredcache-0000000000000000-aw"] = "3"
            _ = try await player.ask("/v/1.ts", "Sec-Fetch-Dest: video")
            #expect(Self.sent(fixture, "/v/1.ts") == ["k=1"])
            _ = try await player.ask("/v/2.ts")
            let own = "other=2; tieredcache-0000000000000000-aw=3"
            #expect(Self.sent(fixture, "/v/2.ts") == ["\(own); k=1"])
        }
    }
}
