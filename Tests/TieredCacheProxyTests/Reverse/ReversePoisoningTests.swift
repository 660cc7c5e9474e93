import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// What a client puts into its own request never becomes another client's response.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReversePoisoningTests {
    /// An origin with responses that say what it saw of one field, by which they vary.
    private func withVarying(
        _ name: String,
        isShared: Bool,
        _ body: (ReverseFixture) async throws -> Void
    ) async throws {
        try await ReverseFixture.run {
            $0.configuration.isShared = isShared
        } origin: { connection, request in
            let seen = request.fields.filter { $0.name == name.lowercased() }.map(\.value)
            try connection.answer("\(seen)", "Vary: \(name)", "Cache-Control: max-age=600")
            return true
        } _: {
            try await body($0)
        }
    }

    @Test(
        "A field that ends at the proxy selects nothing",
        arguments: [
            ("Accept-Language", "de"), ("Origin", "https://a.example"), ("Cookie", "a=b"),
            ("X-Tenant", "alpha"),
        ],
        [true, false]
    )
    func connectionOptions(_ field: (name: String, value: String), isShared: Bool) async throws {
        try await withVarying(field.name, isShared: isShared) { fixture in
            let line = "\(field.name): \(field.value)"
            let attack = try await fixture.ask("/a", line, "Connection: \(field.name)")
            #expect(attack.text == "[]")
            #expect(try await fixture.ask("/a", line).text == "[\"\(field.value)\"]")
            #expect(try await fixture.ask("/a", line).text == "[\"\(field.value)\"]")
            #expect(try await fixture.ask("/a").text == "[]")
            #expect(fixture.origin.requests.count == 2)
        }
    }

    @Test(
        "Values that an origin may tell apart are not the same",
        arguments: [
            ("Origin", "https://victim.example,", "https://victim.example"),
            ("X-Tenant", "alpha ,, ", "alpha"), ("X-Tenant", "alpha, beta", "alpha,beta"),
            ("User-Agent", "a,,b", "a,b"), ("Range-Unit", ",x", "x"),
        ]
    )
    func onlyListsAreLists(name: String, attack: String, victim: String) async throws {
        try await withVarying(name, isShared: true) { fixture in
            let first = try await fixture.ask("/a", "\(name): \(attack)")
            let second = try await fixture.ask("/a", "\(name): \(victim)")
            #expect(second.text == "[\"\(victim)\"]")
            #expect(first.text != second.text)
        }
    }

    @Test("Two lines are not the one that looks like both")
    func linesAreApart() async throws {
        try await withVarying("X-Tenant", isShared: true) { fixture in
            _ = try await fixture.ask("/a", "X-Tenant: alpha", "X-Tenant: beta")
            let other = try await fixture.ask("/a", "X-Tenant: alpha, beta")
            #expect(other.text == "[\"alpha, beta\"]")
            #expect(fixture.origin.requests.count == 2)
        }
    }

    @Test(
        "An error that a client's condition, range or expectation may have caused is not kept",
        arguments: [
            ("If-Match: \"nope\"", "412 Precondition Failed"),
            ("If-Unmodified-Since: Mon, 01 Jan 1990 00:00:00 GMT", "412 Precondition Failed"),
            ("If-None-Match: \"x\"", "500 Internal Server Error"),
            ("Range: bytes=99999-", "416 Range Not Satisfiable"),
            ("Range: bytes=-0", "416 Range Not Satisfiable"),
            ("Range: bytes=0-1,3-4", "416 Range Not Satisfiable"),
            ("Range: bytes=0-1", "400 Bad Request"), ("Range: lines=1-2", "403 Forbidden"),
            ("X-Long: 1", "431 Request Header Fields Too Large"),
            ("X-Slow: 1", "408 Request Timeout"), ("X-Many: 1", "429 Too Many Requests"),
            ("X-Expect: 1", "417 Expectation Failed"), ("X-Big: 1", "413 Content Too Large"),
        ]
    )
    func errorsOfConditions(_ line: String, _ status: String) async throws {
        let name = String(line.prefix { $0 != ":" }).lowercased()
        try await ReverseFixture.run { _ in
        } origin: { connection, request in
            let isAttack = request[name] != nil
            let fields = ["Cache-Control: public, max-age=600", "ETag: \"a\""]
            let words = isAttack ? status : "200 OK"
            let lines = ["HTTP/1.1 \(words)"] + fields + ["Content-Length: 4"]
            try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\nbody")
            return true
        } _: { fixture in
            let attack = try await fixture.ask("/a", line)
            #expect(attack.status == Int(status.prefix(3)))
            let next = try await fixture.ask("/a")
            #expect(next.status == 200 && next.text == "body")
        }
    }
}
