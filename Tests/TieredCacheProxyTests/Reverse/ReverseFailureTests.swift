import HTTPCaching
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// What becomes of a request when the origin fails, seen from a client's socket.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseFailureTests {
    private static let ok = "HTTP/1.1 200 OK\r\n"

    /// Responses that are no HTTP, or that two parsers might read in two ways.
    static let unusable: [String] = [
        "hello\r\n\r\n", "HTTP/2.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 1000 High\r\n\r\n",
        ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        ok + "Content-Length: 3, 4\r\n\r\nabcd", ok + "Content-Length: -3\r\n\r\nabc",
        ok + "Content-Length: +3\r\n\r\nabc", ok + "Content-Length: 0x3\r\n\r\nabc",
        ok + "Content-Length: 99999999999999999999999\r\n\r\nabc",
        ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ok + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        ok + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        ok + "A b: c\r\nContent-Length: 0\r\n\r\n", ok + "A: b\0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ]

    @Test(arguments: unusable)
    func whatIsNotHTTPIs502(answer: String) async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.send(answer)
            connection.finish()
            return false
        } _: { fixture in
            let answer1 = try await fixture.ask("/a")
            #expect(answer1.status == 502)
            #expect(
                answer1["cache-status"] == "TieredCache; fwd=uri-miss; detail=origin-failed"
            )
            let answer2 = try await fixture.ask("/a", method: "POST", body: "x")
            #expect(answer2.status == 502)
            #expect(answer2["cache-status"] == "TieredCache; fwd=method; detail=origin-failed")
            // Another attempt would have brought the same.
            #expect(fixture.origin.requests.count == 2)
        }
    }

    /// Responses that are not quite HTTP, and can be read in one way alone (docs/transport.md).
    static let odd: [String] = [
        ok + "Content-Length : 3\r\n\r\nabc", ok + "Content-Length: 3, 3\r\n\r\nabc",
        ok + "Content-Length: 3\r\nX-A: a\r\n b\r\n\r\nabc", "ICY 200 OK\r\n\r\nabc",
        "HTTP/1.1 200\nContent-Length: 3\n\nabc",
    ]

    @Test(arguments: odd)
    func whatIsNotQuiteHTTPIsPassedOn(answer: String) async throws {
        try await ReverseFixture.run { connection, request in
            _ = try connection.receiveBody(of: request)
            try connection.send(answer)
            connection.finish()
            return false
        } _: { fixture in
            for method in ["GET", "POST"] {
                let passed = try await fixture.ask("/\(method)", method: method)
                #expect(passed.status == 200 && passed.text == "abc")
                #expect(passed["x-a"] == nil || passed["x-a"] == "a b")
            }
        }
    }

    enum Ending: CaseIterable {
        case finish, reset
    }

    @Test(arguments: Ending.allCases)
    func anEndBeforeTheHeadIs502(ending: Ending) async throws {
        try await ReverseFixture.run { connection, _ in
            if ending == .reset { connection.reset() }
            return false
        } _: { fixture in
            let answer = try await fixture.ask("/a")
            #expect(answer.status == 502 && answer["content-length"] != nil)
            let answer3 = try await fixture.ask("/a", method: "POST")
            #expect(answer3.status == 502)
            // A POST must not be done twice.
            #expect(fixture.origin.requests.filter { $0.method == "POST" }.count == 1)
        }
    }

    @Test func anOriginThatRefusesConnectionsIs502() async throws {
        // It keeps the port, so that no other program can listen there.
        let listener = try RawListener(backlog: nil)
        try await ReverseFixture.run {
            $0.originURL = "http://127.0.0.1:\(listener.port)"
            $0.configuration.retries = 1
        } origin: { _, _ in
            false
        } _: { fixture in
            let read = try await fixture.ask("/a")
            #expect(read.status == 502)
            let posted = try await fixture.ask("/a", method: "POST", body: "x")
            #expect(posted.status == 502)
        }
    }

    @Test func anOriginWithoutTLSIs502() async throws {
        let listener = try RawListener()
        let serving = Task {
            await onOwnThread {
                while let connection = listener.accept() {
                    // That the proxy has left already is as good.
                    _ = Result { try connection.send("HTTP/1.1 400 Bad Request\r\n\r\n") }
                    connection.finish()
                }
            }
        }
        try await ReverseFixture.run {
            $0.originURL = "https://127.0.0.1:\(listener.port)"
        } origin: { _, _ in
            false
        } _: { fixture in
            let answer6 = try await fixture.ask("/a")
            #expect(answer6.status == 502)
        }
        listener.stop()
        await serving.value
    }

    @Test(arguments: ["GET", "POST"])
    func anOriginThatSaysNothingIs504(method: String) async throws {
        let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
        let hasAsked = OriginGate()
        try await ReverseFixture.run {
            $0.configuration.timeSource = time
            $0.configuration.timeout = .seconds(30)
            $0.configuration.keepsHistory = false
        } origin: { connection, _ in
            hasAsked.open()
            // Until the proxy has had enough of it.
            _ = try connection.receiveAll()
            return false
        } _: { fixture in
            async let answer = fixture.ask("/a", method: method)
            await hasAsked.wait()
            // What watches over the silence may begin a little later than the request.
            let driver = Task {
                while !Task.isCancelled {
                    time.advance(by: .seconds(30))
                    await Task.yield()
                }
            }
            defer { driver.cancel() }
            let answer7 = try await answer
            #expect(answer7.status == 504)
            let reason = method == "GET" ? "uri-miss" : "method"
            #expect(answer7["cache-status"] == "TieredCache; fwd=\(reason); detail=timeout")
            #expect(fixture.origin.requests.count == 1)
        }
    }

    @Test func aConnectionThatTakesTooLongIs504() async throws {
        // The first connection fills the only place of a listener that accepts no connection.
        let listener = try SaturatedListener()
        try await ReverseFixture.run {
            $0.originURL = "http://127.0.0.1:\(listener.port)"
            $0.configuration.connectTimeout = .milliseconds(100)
            $0.configuration.retries = 1
        } origin: { _, _ in
            false
        } _: { fixture in
            let answer8 = try await fixture.ask("/a")
            #expect(answer8.status == 504)
        }
    }

    // MARK: After the head

    static let cutBodies = [
        "Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n7\r\nx",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0x1\r\nd\r\n0\r\n\r\n",
    ]

    @Test(arguments: cutBodies, ["GET", "POST"])
    func aCutBodyNeverLooksWhole(body: String, method: String) async throws {
        try await ReverseFixture.run {
            $0.configuration.retries = 1
        } origin: { connection, _ in
            try connection.send(Self.ok + "Cache-Control: no-store\r\n" + body)
            connection.finish()
            return false
        } _: { fixture in
            let request = "\(method) /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
            let (text, _) = try await fixture.exchange(request)
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") || text.hasPrefix("HTTP/1.1 502 "))
            #expect(!text.hasSuffix("\r\n0\r\n\r\n"))
            if text.hasPrefix("HTTP/1.1 200"), body.hasPrefix("Content-Length") {
                #expect(text.contains("\r\nContent-Length: 10\r\n"))
            }
        }
    }

    @Test func aCutBodyWithoutLengthIsAResetForHTTP10() async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.send(Self.ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            connection.finish()
            return false
        } _: { fixture in
            let (_, isReset) = try await fixture.exchange("GET /a HTTP/1.0\r\n\r\n")
            #expect(isReset)
        }
    }

    @Test func aBodyThatEndsWithItsConnectionIsWhole() async throws {
        try await ReverseFixture.run { connection, request in
            _ = try connection.receiveBody(of: request)
            try connection.send(Self.ok + "\r\nabc")
            connection.finish()
            return false
        } _: { fixture in
            let answer9 = try await fixture.ask("/a")
            #expect(answer9.text == "abc")
            let answer10 = try await fixture.ask("/a", method: "POST", body: "x")
            #expect(answer10.text == "abc")
        }
    }

    /// Only a coding that would have to be undone makes a response useless (RFC 9112 §6.3).
    @Test func aCodingThatNobodyKnowsIsReadToTheEndOfItsConnection() async throws {
        try await ReverseFixture.run { connection, request in
            _ = try connection.receiveBody(of: request)
            try connection.send(Self.ok + "Transfer-Encoding: qwertz\r\n\r\nabc")
            connection.finish()
            return false
        } _: { fixture in
            for method in ["GET", "POST"] {
                let answer = try await fixture.ask("/a", method: method)
                #expect(answer.status == 200 && answer.text == "abc")
                #expect(answer["transfer-encoding"] != "qwertz")
            }
        }
    }

    // MARK: Asking again

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "LOCK"])
    func aRequestThatTheOriginMayHaveActedOnIsNotRepeated(method: String) async throws {
        try await ReverseFixture.run { connection, request in
            _ = try connection.receiveBody(of: request)
            guard request.target == "/first" else { return false }
            try connection.answer("ok")
            return true
        } _: { fixture in
            let answer11 = try await fixture.ask("/first", method: method, body: "x")
            #expect(answer11.status == 200)
            let answer12 = try await fixture.ask("/second", method: method, body: "x")
            #expect(answer12.status == 502)
            #expect(fixture.origin.requests.map(\.target) == ["/first", "/second"])
        }
    }

    @Test func aGetIsRepeatedWhenItsConnectionEndsWithoutAByte() async throws {
        let asked = Guarded(0)
        try await ReverseFixture.run { connection, request in
            let number = asked.withLock { count in
                count += 1
                return count
            }
            // Over the first one's connection, if the client's is on the same event loop.
            guard number != 2 else { return false }
            try connection.answer("\(number)", "Cache-Control: no-store")
            return true
        } _: { fixture in
            let answer13 = try await fixture.ask("/a")
            #expect(answer13.text == "1")
            let answer14 = try await fixture.ask("/a")
            #expect(answer14.text == "3")
            #expect(fixture.origin.requests.count == 3)
        }
    }

    // MARK: Stale

    struct StaleCase: CustomTestStringConvertible, Sendable {
        let control: String
        let isShared: Bool
        /// The responses while the origin says 503, and while it is gone.
        let expected: (Int, Int)

        var testDescription: String { "\(control), \(isShared ? "shared" : "private")" }
    }

    static let staleCases: [StaleCase] = [
        StaleCase(control: "max-age=0", isShared: false, expected: (200, 200)),
        StaleCase(control: "max-age=0", isShared: true, expected: (200, 200)),
        StaleCase(control: "max-age=0, stale-if-error=60", isShared: true, expected: (200, 200)),
        StaleCase(control: "max-age=0, stale-if-error=0", isShared: true, expected: (503, 200)),
        StaleCase(control: "max-age=0, must-revalidate", isShared: false, expected: (503, 502)),
        StaleCase(control: "max-age=0, proxy-revalidate", isShared: false, expected: (200, 200)),
        StaleCase(control: "max-age=0, proxy-revalidate", isShared: true, expected: (503, 502)),
        StaleCase(control: "s-maxage=0, max-age=0", isShared: false, expected: (200, 200)),
        StaleCase(control: "s-maxage=0, max-age=0", isShared: true, expected: (503, 502)),
        StaleCase(control: "no-cache", isShared: false, expected: (503, 502)),
    ]

    @Test(arguments: staleCases)
    func whatIsStoredStandsInWhereTheRulesAllow(example: StaleCase) async throws {
        let asked = Guarded(0)
        try await ReverseFixture.run {
            $0.configuration.isShared = example.isShared
        } origin: { connection, _ in
            let number = asked.withLock { count in
                count += 1
                return count
            }
            switch number {
            case 1:
                try connection.answer("held", "Cache-Control: \(example.control)", "ETag: \"a\"")
            case 2: try connection.answer("no", status: "503 Service Unavailable")
            default: return false
            }
            return true
        } _: { fixture in
            let answer15 = try await fixture.ask("/a")
            #expect(answer15.text == "held")
            for expected in [example.expected.0, example.expected.1] {
                let answer = try await fixture.ask("/a")
                #expect(answer.status == expected)
                guard expected == 200 else {
                    #expect(answer["cache-status"]?.hasPrefix("TieredCache; fwd=stale") == true)
                    continue
                }
                // Marked, so that the client can tell (RFC 9211).
                #expect(answer.text == "held" && answer["age"] != nil)
                #expect(answer["cache-status"]?.contains("detail=stale") == true)
            }
        }
    }
}
