import Foundation
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// What the origin made for one client of the reverse proxy reaches no other.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseSharingTests {
    private static let old = "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT"

    /// Answers with the cookie of the request, and `fields`.
    private func run(
        isShared: Bool,
        status: String = "200 OK",
        _ fields: [String],
        _ body: (ReverseFixture) async throws -> Void
    ) async throws {
        try await ReverseFixture.run {
            $0.configuration.isShared = isShared
        } origin: { connection, request in
            let content = "for \(request["cookie"] ?? "anybody")"
            let lines = ["HTTP/1.1 \(status)"] + fields + ["Content-Length: \(content.utf8.count)"]
            try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + content)
            return true
        } _: {
            try await body($0)
        }
    }

    @Test(
        "No lifetime is guessed for an answer that sets a cookie, or to a request that has one",
        arguments: [
            ("200 OK", ["Set-Cookie: session=S"], "Cookie: s=victim"),
            ("200 OK", [], "Cookie: s=victim"),
            ("200 OK", ["Set-Cookie: session=S"], "Accept: */*"),
            ("404 Not Found", ["Set-Cookie: session=S"], "Accept: */*"),
            ("404 Not Found", [], "Cookie: s=victim"),
            ("200 OK", ["Set-Cookie: session=S", "Cache-Control: public"], "Cookie: s=victim"),
        ] as [(String, [String], String)],
        [true, false]
    )
    func nothingIsGuessed(_ answer: (String, [String], String), isShared: Bool) async throws {
        let (status, fields, asked) = answer
        try await run(isShared: isShared, status: status, fields + [Self.old]) { fixture in
            _ = try await fixture.ask("/account/x.css", asked)
            let other = try await fixture.ask("/account/x.css")
            #expect(other.text == "for anybody")
            #expect(fixture.origin.requests.count == 2)
        }
    }

    @Test(
        "A shared cache hands a cookie to the client it was set for, and never from what it holds"
    )
    func cookiesAreHandedOnce() async throws {
        let fields = ["Set-Cookie: session=S", "Set-Cookie: b=2", "Cache-Control: max-age=600"]
        try await run(isShared: true, fields) { fixture in
            let first = try await fixture.ask("/a")
            let cookies = first.fields.filter { $0.name == "set-cookie" }.map(\.value)
            #expect(cookies == ["session=S", "b=2"])
            for target in ["/a", "/a"] {
                let second = try await fixture.ask(target)
                #expect(second["cache-status"]?.contains("hit") == true)
                #expect(second["set-cookie"] == nil)
            }
            #expect(try await fixture.ask("/a", "Range: bytes=0-1")["set-cookie"] == nil)
            #expect(try await fixture.ask("/a", method: "HEAD")["set-cookie"] == nil)
            #expect(fixture.origin.requests.count == 1)
        }
    }

    @Test("In a private cache what is private answers the same cookie alone")
    func privateAnswersAreApart() async throws {
        try await run(isShared: false, ["Cache-Control: private, max-age=600"]) { fixture in
            let asked = ["Cookie: s=victim", "Cookie: s=other", "Accept: */*"]
            for (number, line) in (asked + asked).enumerated() {
                let answer = try await fixture.ask("/a", line)
                let client = line.hasPrefix("Cookie") ? String(line.dropFirst(8)) : "anybody"
                #expect(answer.text == "for \(client)")
                #expect(fixture.origin.requests.count == min(number + 1, 3))
            }
        }
    }

    @Test("Only what was posted is invalidated by its answer, whatever that says it is")
    func postsReplaceNothing() async throws {
        let posted = "HTTP/1.1 200 OK\r\nContent-Location: /a\r\nCache-Control: max-age=600\r\n"
        try await ReverseFixture.run { _ in
        } origin: { connection, request in
            if request.method == "POST" {
                _ = try connection.receiveBody(of: request)
                try connection.send(posted + "Content-Length: 6\r\n\r\nposted")
            } else {
                try connection.answer("got", "Cache-Control: max-age=600")
            }
            return true
        } _: { fixture in
            let before = try await fixture.ask("/a")
            let posted = try await fixture.ask("/a", method: "POST", body: "x")
            let after = try await fixture.ask("/a")
            #expect([before, posted, after].map(\.text) == ["got", "posted", "got"])
            #expect(fixture.origin.requests.map(\.method) == ["GET", "POST", "GET"])
        }
    }

    @Test("What selects a variant is on disk as a digest alone")
    func selectingFieldsAreDigested() async throws {
        try await run(
            isShared: false,
            ["Vary: X-Api-Key, Accept-Language", "Cache-Control: max-age=600"]
        ) { fixture in
            let secrets = ["X-Api-Key: APIKEYSECRET", "Accept-Language: xx-langsecret"]
            _ = try await fixture.ask("/a", secrets[0], secrets[1])
            let hit = try await fixture.ask("/a", secrets[0], secrets[1])
            #expect(hit["cache-status"]?.contains("hit") == true)
            #expect(fixture.origin.requests.count == 1)
            let root = URL(fileURLWithPath: fixture.files.path.string)
            let files = try #require(
                FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
            )
            var records = 0
            for case let file as URL in files where !file.hasDirectoryPath {
                let bytes = [UInt8](try Data(contentsOf: file))
                records += file.pathExtension == "record" ? 1 : 0
                for secret in ["APIKEYSECRET", "langsecret"] {
                    #expect(bytes.firstRange(of: Array(secret.utf8)) == nil, "\(file.path)")
                }
            }
            #expect(records == 1)
        }
    }

    @Test("Two that ask at once share no answer that could not be used again, nor what one was set")
    func joinedRequestsAreApart() async throws {
        for control in ["max-age=600", "max-age=0", "no-cache"] {
            let gate = ThreadGate()
            let answered = Guarded(0)
            try await ReverseFixture.run {
                $0.configuration.isShared = true
            } origin: { connection, _ in
                gate.wait()
                let number = answered.withLock { answered in
                    answered += 1
                    return answered
                }
                let fields = ["Cache-Control: \(control)", "ETag: \"\(number)\""]
                try connection.answer("\(number)", "Set-Cookie: s=\(number)", fields[0], fields[1])
                return true
            } _: { fixture in
                async let first = fixture.ask("/a")
                while fixture.origin.requests.isEmpty { await Task.yield() }
                async let second = fixture.ask("/a")
                while fixture.cache.statistics.downloadsShared == 0 { await Task.yield() }
                gate.open()
                let answers = try await [first, second]
                let cookies = answers.compactMap { $0["set-cookie"] }
                let isReusable = control == "max-age=600"
                #expect(Set(cookies).count == cookies.count, "\(control)")
                #expect(cookies.count == (isReusable ? 1 : 2), "\(control)")
                #expect(Set(answers.map(\.text)).count == (isReusable ? 1 : 2), "\(control)")
            }
        }
    }
}
