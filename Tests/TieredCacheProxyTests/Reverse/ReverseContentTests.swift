import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// What an origin that breaks the rules does with requests and responses of others.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseContentTests {
    /// An origin that takes the content of a request for the next one, as some do with GET.
    private static func withoutContent(
        _ connection: RawConnection,
        _ request: RawRequest
    ) throws
        -> Bool
    {
        try connection.answer(
            request.method == "HEAD" ? "" : "page \(request.target)",
            "Cache-Control: max-age=600"
        )
        return true
    }

    @Test(
        "Content that the origin leaves unread is not the beginning of another client's request",
        arguments: ["GET", "HEAD"]
    )
    func contentOfSafeRequests(_ method: String) async throws {
        try await ReverseFixture.run {
            try Self.withoutContent($0, $1)
        } _: { fixture in
            let evil = "GET /EVIL HTTP/1.1\r\nX-Ignore: "
            let evilResponse = try await fixture.ask("/a", method: method, body: evil)
            #expect(evilResponse.status == 200)
            for _ in 0..<2 {
                let answer = try await fixture.ask("/victim")
                #expect(answer.text == "page /victim")
            }
            let requests = fixture.origin.requests
            #expect(requests.map(\.target) == ["/a", "/victim"])
            #expect(requests.first?["connection"] == "close")
            #expect(Set(requests.map(\.connection)).count == 2)
        }
    }

    @Test("An origin that sends interim responses without end is given up")
    func endlessInterims() async throws {
        let count = 1000
        try await ReverseFixture.run { connection, _ in
            let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
            for _ in 0..<count { try connection.send(hint) }
            try connection.answer("ok")
            return true
        } _: { fixture in
            let port = fixture.proxy.port
            let statuses = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
                var statuses: [Int] = []
                while statuses.last.map({ $0 < 200 }) ?? true {
                    statuses.append(try connection.receiveResponse().status)
                }
                return statuses
            }
            #expect(statuses.last == 502)
            #expect(statuses.count <= 65)
        }
    }

    @Test("An upload that takes longer than the origin may be silent goes on while bytes move")
    func slowUpload() async throws {
        let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
        let received = AsyncStream<Void>.makeStream()
        try await ReverseFixture.run {
            $0.configuration.timeSource = time
            $0.configuration.timeout = .seconds(30)
            // Its sleeper would be one of those that this test waits for.
            $0.configuration.keepsHistory = false
        } origin: { connection, _ in
            for _ in 0..<12 {
                guard try connection.receive(exactly: 1).count == 1 else { return false }
                received.continuation.yield()
            }
            try connection.answer("all of it")
            return true
        } _: { fixture in
            let port = fixture.proxy.port
            let client = try await onThread { Handover(try RawConnection(port: port)) }
            try await onThread {
                try client.connection.send(
                    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n"
                )
            }
            var arrivals = received.stream.makeAsyncIterator()
            for index in 0..<12 {
                if index > 0 {
                    // What watches over the origin's silence. It may have looked at the clock
                    // before the last advance and at the upload after it, and then sleeps longer
                    // than the timeout. It sleeps as long as a byte is missing.
                    await time.waitForSleeper(within: .seconds(60))
                    // Less than half of the timeout: the origin may have a byte before it is noted
                    // that the byte was written.
                    time.advance(by: .seconds(8))
                }
                try await onThread { try client.connection.send("x") }
                await arrivals.next()
            }
            let answer = try await onThread { try client.connection.receiveResponse() }
            #expect(answer.status == 200 && answer.text == "all of it", "\(answer)")
        }
    }

    /// Takes a connection from one thread to another, which is the only one to use it then.
    private struct Handover: @unchecked Sendable {
        let connection: RawConnection

        init(_ connection: RawConnection) { self.connection = connection }
    }
}
