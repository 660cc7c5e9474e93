import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// What of a message reaches the other side, seen from a client's and an origin's socket.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseForwardingTests {
    @Test(arguments: [
        "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND",
        "M-SEARCH", "QUERY", "get", "FooBar", "X", "!#$%&'*+-.^_`|~",
    ])
    func everyMethodIsForwarded(method: String) async throws {
        try await ReverseFixture.run { connection, request in
            try connection.answer(request.method == "HEAD" ? "" : "ok")
            return true
        } _: { fixture in
            let answer1 = try await fixture.ask("/a?b", method: method)
            #expect(answer1.status == 200)
            let request = try #require(fixture.origin.requests.first)
            #expect(request.method == method && request.target == "/a?b")
        }
    }

    @Test(arguments: [
        "/", "/a%2Fb/../c//d;x=1?q=%00&r='", "/?", "/a?b?c=/d", "/%E4?%e4", "/:@!$&'()*+,;=~-._",
    ])
    func targetsStayAsTheyAre(target: String) async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.answer("ok")
            return true
        } _: { fixture in
            let answer2 = try await fixture.ask(target)
            #expect(answer2.status == 200)
            let (text, _) = try await fixture.exchange(
                "GET http://other.example\(target)&x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            #expect(text.hasPrefix("HTTP/1.1 200 "))
            #expect(fixture.origin.requests.map(\.target) == [target, "\(target)&x"])
        }
    }

    @Test func fieldsOfAConnectionEndThere() async throws {
        let own = [
            "Connection: X-Own, close", "X-Own: 1", "Keep-Alive: timeout=5", "TE: trailers",
            "Proxy-Connection: x", "Trailer: X", "Upgrade: h2c",
        ]
        try await ReverseFixture.run { connection, _ in
            try connection.answer(
                "ok",
                "Connection: X-Own, keep-alive",
                "X-Own: 1",
                "Keep-Alive: timeout=5",
                "Proxy-Authenticate: Basic",
                "Proxy-Connection: x",
                "Trailer: X",
                "Upgrade: h2c",
                "X-Kept: a",
                "X-Kept: b",
                "Set-Cookie: a=1",
                "Set-Cookie: b=2",
                "Via: 1.0 before"
            )
            return true
        } _: { fixture in
            let fields = own + ["Proxy-Authorization: x", "X-Kept: a", "X-Kept: b", "Via: 1.0 b"]
            let (text, _) = try await fixture.exchange(
                "GET /a HTTP/1.1\r\nHost: a\r\n" + fields.joined(separator: "\r\n") + "\r\n\r\n"
            )
            let answer = try RawResponse(head: text)
            let request = try #require(fixture.origin.requests.first)
            for name in [
                "x-own", "keep-alive", "te", "proxy-connection", "trailer", "upgrade",
                "proxy-authorization", "proxy-authenticate",
            ] {
                #expect(answer[name] == nil && request[name] == nil, "\(name)")
            }
            #expect(answer.fields.filter { $0.name == "x-kept" }.map(\.value) == ["a", "b"])
            #expect(request.fields.filter { $0.name == "x-kept" }.map(\.value) == ["a", "b"])
            #expect(answer.fields.filter { $0.name == "set-cookie" }.count == 2)
            #expect(answer["via"] == "1.0 before, 1.1 tieredcache")
            #expect(request["via"]?.hasPrefix("1.0 b, 1.1 tieredcache-") == true)
            #expect(answer["connection"] == "close" && answer["date"] != nil)
            #expect(fixture.origin.url.hasSuffix(request["host"] ?? "-"))
        }
    }

    @Test func maxForwardsIsCountedDownAndEndsHere() async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.answer("ok")
            return true
        } _: { fixture in
            _ = try await fixture.ask("/a", "Max-Forwards: 3", method: "OPTIONS")
            #expect(fixture.origin.requests.map { $0["max-forwards"] } == ["2"])
            let options = try await fixture.ask("/a", "Max-Forwards: 0", method: "OPTIONS")
            #expect(options.status == 200 && options.body.isEmpty)
            let trace = try await fixture.ask(
                "/a",
                "Max-Forwards: 0",
                "X-Shown: 1",
                "Cookie: secret",
                "Authorization: secret",
                method: "TRACE"
            )
            #expect(trace.status == 200 && trace["content-type"] == "message/http")
            #expect(trace.text.hasPrefix("TRACE /a HTTP/1.1\r\n"))
            #expect(trace.text.contains("X-Shown: 1\r\n") && !trace.text.contains("secret"))
            let (server, _) = try await fixture.exchange(
                "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            #expect(server.hasPrefix("HTTP/1.1 200 "))
            #expect(fixture.origin.requests.count == 1)
        }
    }

    @Test func tunnelsAndOddExpectationsAreRefused() async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.answer("ok")
            return true
        } _: { fixture in
            let (tunnel, _) = try await fixture.exchange(
                "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"
            )
            let answer = try RawResponse(head: tunnel)
            #expect(answer.status == 405 && answer["allow"]?.contains("GET") == true)
            let answer3 = try await fixture.ask("/a", "Expect: magic")
            #expect(answer3.status == 417)
            #expect(fixture.origin.requests.isEmpty)
        }
    }

    @Test func headIsAnsweredWithoutBody() async throws {
        try await ReverseFixture.run { connection, request in
            let body = request.method == "HEAD" ? "" : "hello"
            try connection.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: max-age=60\r\n\r\n\(body)"
            )
            return true
        } _: { fixture in
            for _ in 0..<2 {
                let (text, _) = try await fixture.exchange(
                    "HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                )
                #expect(text.hasSuffix("\r\n\r\n") && text.contains("\r\nContent-Length: 5\r\n"))
                let answer4 = try await fixture.ask("/a")
                #expect(answer4.text == "hello")
            }
            #expect(fixture.origin.requests.map(\.method) == ["HEAD", "GET"])
        }
    }

    @Test func trailersAreDropped() async throws {
        try await ReverseFixture.run { connection, request in
            let body = try connection.receiveBody(of: request)
            try connection.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n"
                    + "\r\n\(String(body.count, radix: 16));x=\"y\"\r\n"
                    + String(decoding: body, as: UTF8.self) + "\r\n0\r\nX-Trailer: 1\r\n\r\n"
            )
            return true
        } _: { fixture in
            let (text, _) = try await fixture.exchange(
                "POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
                    + "\r\n3;a=b\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"
            )
            #expect(text.hasSuffix("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "\(text)")
        }
    }

    @Test func http10ClientsGetABodyThatEndsWithItsConnection() async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.send(
                "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            )
            return true
        } _: { fixture in
            let (text, isReset) = try await fixture.exchange("GET /a HTTP/1.0\r\n\r\n")
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.hasSuffix("\r\n\r\nabc"))
            #expect(!isReset && !text.contains("Transfer-Encoding"))
            let via = try #require(fixture.origin.requests.first?["via"])
            #expect(via.hasPrefix("1.0 tieredcache-"))
        }
    }

    @Test func pipelinedRequestsAreAnsweredInOrderOverKeptConnections() async throws {
        try await ReverseFixture.run { connection, request in
            try connection.answer(request.target, "Cache-Control: no-store")
            return true
        } _: { fixture in
            let targets = (0..<20).map { "/\($0)" }
            let requests = targets.map { "GET \($0) HTTP/1.1\r\nHost: a\r\n\r\n" }
            let port = fixture.proxy.port
            let bodies = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(requests.joined())
                return try targets.map { _ in try connection.receiveResponse().text }
            }
            #expect(bodies == targets)
            // The next request may come before the last one's connection is back; mostly it does
            // not.
            #expect(Set(fixture.origin.requests.map(\.connection)).count <= targets.count / 2)
        }
    }

    @Test func interimAnswersComeBeforeTheAnswer() async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.send(
                "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n"
                    + "Connection: X-Own\r\nX-Own: 1\r\n\r\n"
            )
            try connection.answer("ok", "Cache-Control: max-age=60")
            return true
        } _: { fixture in
            let port = fixture.proxy.port
            let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
            let (answers, stored) = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(request)
                let answers = try (0..<3).map { _ in try connection.receiveResponse() }
                try connection.send(request)
                return (answers, try connection.receiveResponse())
            }
            #expect(answers.map(\.status) == [102, 103, 200])
            #expect(answers[1]["link"] == "</x>" && answers[1]["x-own"] == nil)
            // Interim responses are no part of what is stored.
            #expect(stored.status == 200 && stored["link"] == nil && stored.text == "ok")
            #expect(fixture.origin.requests.count == 1)
        }
    }

    @Test func contentOfAGetMakesItsAnswerItsOwn() async throws {
        try await ReverseFixture.run { connection, request in
            let body = try connection.receiveBody(of: request)
            try connection.answer(
                String(decoding: body, as: UTF8.self),
                "Cache-Control: max-age=60"
            )
            return true
        } _: { fixture in
            for body in ["a", "b", nil, "c"] {
                let answer5 = try await fixture.ask("/a", body: body)
                #expect(answer5.text == body ?? "")
            }
            let answer6 = try await fixture.ask("/a")
            #expect(answer6.text == "")
            #expect(fixture.origin.requests.count == 4)
        }
    }
}
