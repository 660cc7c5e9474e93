import FoundationEssentials
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Answers with what it was asked: `METHOD TARGET`, a newline, and the body.
///
/// `/immediate` is answered on the event loop, `/chunked` without a length, `/unread` without
/// reading the body, `/cut` is cut after one piece, `/wait` when the gate opens.
private struct EchoResponder: Responder {
    let gate = OriginGate()
    /// Opens when a task waits for ``gate``.
    let visited = OriginGate()

    func immediateResponse(to request: ServerRequest) -> PendingResponse? {
        guard request.target == "/immediate" else { return nil }
        let body = Data("\(request.head.method) \(request.target)\n".utf8)
        return PendingResponse(
            head: ResponseHead(status: 200, framing: .length(Int64(body.count))),
            bytes: .memory(body),
            range: 0..<Int64(body.count),
            // What is in memory never has to be waited for.
            goOn: { _, _ in Issue.record("the answer was not given at once") }
        )
    }

    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async {
        do {
            // That is answered at once, or the test sees that it was not.
            guard request.target != "/immediate" else { return }
            if request.target == "/wait" {
                visited.open()
                await gate.wait()
            }
            var bytes = ByteBuffer(string: "\(request.head.method) \(request.target)\n")
            while request.target != "/unread", var part = try await body.next() {
                bytes.writeBuffer(&part)
            }
            let isChunked = request.target == "/chunked"
            let length = Int64(bytes.readableBytes) + (request.target == "/cut" ? 1 : 0)
            try await writer.start(
                ResponseHead(status: 200, framing: isChunked ? .unknown : .length(length))
            )
            while let piece = bytes.readSlice(length: min(bytes.readableBytes, 1000)),
                piece.readableBytes > 0
            {
                try await writer.write(piece)
            }
            guard request.target != "/cut" else { return }
            try await writer.finish()
        } catch {
            // The client left: the test sees what it got.
        }
    }
}

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct HTTPServerTests {
    private func withServer(
        _ change: (inout ServerLimits) -> Void = { _ in },
        _ body: (HTTPServer, EchoResponder) async throws -> Void
    ) async throws {
        var limits = ServerLimits()
        change(&limits)
        let responder = EchoResponder()
        let server = try await HTTPServer.start(
            at: .port(0),
            responder: responder,
            limits: limits,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        do {
            try await body(server, responder)
        } catch {
            responder.gate.open()
            await server.stop()
            throw error
        }
        responder.gate.open()
        await server.stop()
    }

    @Test func connectionsAreKeptForManyRequests() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                for index in 0..<20 {
                    let target = index.isMultiple(of: 3) ? "/immediate" : "/\(index)"
                    try connection.send("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
                    let answer = try connection.receiveResponse()
                    #expect(answer.status == 200)
                    #expect(answer.reason == "OK")
                    #expect(answer.text == "GET \(target)\n")
                    #expect(answer["connection"] == nil)
                    #expect(answer["date"] != nil)
                }
            }
        }
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                var text = ""
                for index in 0..<200 {
                    switch index % 4 {
                    case 0: text += "GET /immediate HTTP/1.1\r\nHost: a\r\n\r\n"
                    case 1: text += "GET /\(index) HTTP/1.1\r\nHost: a\r\n\r\n"
                    case 2:
                        text += "POST /\(index) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                    default:
                        text +=
                            "POST /chunked HTTP/1.1\r\nHost: a\r\n"
                            + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n"
                    }
                }
                try connection.send(text)
                for index in 0..<200 {
                    let answer = try connection.receiveResponse()
                    switch index % 4 {
                    case 0: #expect(answer.text == "GET /immediate\n")
                    case 1: #expect(answer.text == "GET /\(index)\n")
                    case 2: #expect(answer.text == "POST /\(index)\nabc")
                    default: #expect(answer.text == "POST /chunked\nabc")
                    }
                }
            }
        }
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "close"),
        ("GET / HTTP/1.0\r\n\r\n", "close"),
        ("GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "close"),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "close"),
    ])
    func connectionsEndWhereTheyMust(request: String, connection: String) async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let socket = try RawConnection(port: port)
                try socket.send(request)
                let answer = try RawResponse(head: try socket.receiveHead())
                #expect(answer["connection"] == connection)
                // To the end of the connection, not to a timeout.
                #expect(String(decoding: try socket.receiveAll(), as: UTF8.self).hasPrefix("GET /"))
            }
        }
    }

    @Test func http10MayKeepItsConnection() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                for _ in 0..<2 {
                    try connection.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                    let answer = try connection.receiveResponse()
                    #expect(answer["connection"] == "keep-alive")
                    #expect(answer.text == "GET /\n")
                }
            }
        }
    }

    @Test func headHasNoBody() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                for target in ["/a", "/immediate", "/chunked"] {
                    try connection.send("HEAD \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
                    let answer = try connection.receiveResponse(toHead: true)
                    #expect(answer.status == 200)
                    if target == "/a" { #expect(answer["content-length"] == "8") }
                }
                try connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(try connection.receiveResponse().text == "GET /\n")
            }
        }
    }

    @Test func bodiesAreAskedForWhereTheClientWaits() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let head =
                    "HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
                let connection = try RawConnection(port: port)
                try connection.send("POST /a " + head)
                #expect(try connection.receiveHead() == "HTTP/1.1 100 Continue\r\n\r\n")
                try connection.send("abcde")
                #expect(try connection.receiveResponse().text == "POST /a\nabcde")
                // A client that does not want the body does not ask for it, and ends the connection.
                try connection.send("POST /unread " + head)
                let answer = try connection.receiveResponse()
                #expect(answer.text == "POST /unread\n")
                #expect(answer["connection"] == "close")
                #expect(try connection.receiveAll().isEmpty)
            }
        }
    }

    @Test func largeBodiesGoBothWays() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                let body = String(repeating: "0123456789abcdef", count: 40_000)
                let head =
                    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
                try connection.send(head + body)
                #expect(try connection.receiveResponse().text == "POST /a\n" + body)
            }
        }
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
    ])
    func oddRequestsGet400AndTheEnd(request: String) async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                // What comes behind must not be taken for a request of its own.
                let behind = "GET /behind HTTP/1.1\r\nHost: a\r\n\r\n"
                try connection.send("GET /before HTTP/1.1\r\nHost: a\r\n\r\n" + request + behind)
                #expect(try connection.receiveResponse().text == "GET /before\n")
                let answer = try connection.receiveResponse()
                #expect(answer.status == 400, "\(request.debugDescription)")
                #expect(answer["connection"] == "close")
                #expect(try connection.receiveAll().isEmpty)
            }
        }
    }

    @Test func whatTheParserRefusesIsAnsweredWhileTheClientSends() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                let piece = [UInt8](repeating: 0, count: 1 << 20)
                try connection.send(
                    "POST / HTTP/1.1\r\nHost: a\r\nX: b\0\r\nContent-Length: \(32 << 20)\r\n\r\n"
                )
                for _ in 0..<32 { try connection.send(piece) }
                #expect(try connection.receiveResponse().status == 400)
            }
        }
    }

    @Test func brokenChunksEndAnAnswerThatWaitsForThem() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(
                    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX"
                )
                #expect(try connection.receiveResponse().status == 400)
                #expect(try connection.receiveAll().isEmpty)
            }
        }
    }

    @Test func cutAnswersAreSeenAsCut() async throws {
        try await withServer { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n")
                let head = try RawResponse(head: try connection.receiveHead())
                let length = try #require(head["content-length"].flatMap { Int($0) })
                #expect(try connection.receive(exactly: length).count == length - 1)
            }
        }
    }

    @Test func slowHeadsTimeOut() async throws {
        try await withServer {
            $0.headTimeout = .milliseconds(100)
        } _: { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send("GET / HTTP/1.1\r\nHost: ")
                #expect(try connection.receiveResponse().status == 408)
                #expect(try connection.receiveAll().isEmpty)
            }
        }
    }

    @Test func slowBodiesTimeOut() async throws {
        try await withServer {
            $0.bodyTimeout = .milliseconds(100)
        } _: { server, _ in
            let port = server.port
            try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
                #expect(try connection.receiveResponse().status == 408)
                #expect(try connection.receiveAll().isEmpty)
            }
        }
    }

    @Test func idleConnectionsAreClosed() async throws {
        try await withServer {
            $0.idleTimeout = .milliseconds(100)
        } _: { server, _ in
            let port = server.port
            try await onThread {
                let unused = try RawConnection(port: port)
                #expect(try unused.receiveAll().isEmpty)
                let used = try #require(try Self.answeredConnection(port))
                #expect(try used.receiveAll().isEmpty)
            }
        }
    }

    /// A connection whose request has been answered; nil if none is.
    ///
    /// On a busy machine the server may take one for idle before its request comes.
    private static func answeredConnection(_ port: Int) throws -> RawConnection? {
        for _ in 0..<50 {
            let connection = try RawConnection(port: port)
            var head = ""
            do throws(RawConnection.Failure) {
                try connection.send("GET /immediate HTTP/1.1\r\nHost: a\r\n\r\n")
                head = try connection.receiveHead()
            } catch {
                continue  // Closed before the request came.
            }
            guard !head.isEmpty else { continue }
            let answer = try RawResponse(head: head)
            #expect(answer.status == 200)
            let length = try #require(answer["content-length"].flatMap { Int($0) })
            #expect(try connection.receive(exactly: length).count == length)
            return connection
        }
        return nil
    }

    @Test func stoppingLetsAnswersEndAndClosesTheRest() async throws {
        try await withServer {
            $0.stopTimeout = .seconds(60)
        } _: { server, responder in
            let port = server.port
            let connected = OriginGate()
            let idle = Task {
                try await onThread {
                    let connection = try RawConnection(port: port)
                    connected.open()
                    return try connection.receiveAll()
                }
            }
            await connected.wait()
            let answer = Task {
                try await onThread {
                    let busy = try RawConnection(port: port)
                    try busy.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
                    return try busy.receiveResponse()
                }
            }
            await responder.visited.wait()
            let stopping = Task { await server.stop() }
            let rest = try await idle.value
            #expect(rest.isEmpty)
            responder.gate.open()
            let text = try await answer.value.text
            #expect(text == "GET /wait\n")
            await stopping.value
        }
    }
}
