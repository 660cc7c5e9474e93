#if HTTPClient
import HTTPTypes
import Synchronization
import SystemPackage
import Testing

@testable import TieredCache

@Suite("Transport on AsyncHTTPClient", .timeLimit(.minutes(10)))
struct AsyncHTTPClientTransportTests {
    private static func request(
        _ authority: String,
        path: String = "/",
        method: HTTPRequest.Method = .get,
        fields: HTTPFields = [:],
        body: [UInt8]? = nil,
        connectTimeout: Duration = .seconds(10)
    ) -> TransportRequest {
        TransportRequest(
            head: HTTPRequest(
                method: method,
                scheme: "http",
                authority: authority,
                path: path,
                headerFields: fields
            ),
            body: body,
            connectTimeout: connectTimeout
        )
    }

    private func withTransport<Value>(
        _ body: (AsyncHTTPClientTransport) async throws -> Value
    ) async throws -> Value {
        let transport = AsyncHTTPClientTransport()
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(transport))
        } catch {
            result = .failure(error)
        }
        await transport.shutdown()
        return try result.get()
    }

    private func collect(_ body: any TransportBody) async throws(TransportError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try await body.next() {
            #expect((1...(1 << 20)).contains(chunk.count))
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
        }
        return bytes
    }

    /// What a whole exchange with a peer that answers with `response` ends in.
    private func outcome(
        of response: String,
        method: HTTPRequest.Method = .get,
        thenReset: Bool = false
    ) async throws -> Result<String, TransportError> {
        try await withTransport { transport in
            let peer = RawPeer { connection in
                guard connection.readHead() != nil else { return }
                connection.write(response)
                if thenReset { connection.reset() }
            }
            do throws(TransportError) {
                let response = try await transport.send(
                    Self.request(peer.authority, method: method)
                )
                return .success(String(decoding: try await collect(response.body), as: UTF8.self))
            } catch {
                return .failure(error)
            }
        }
    }

    @Test("The request goes out as given: target, authority, fields, nothing added")
    func requestAsGiven() async throws {
        let seen = Mutex("")
        let peer = RawPeer { connection in
            seen.withLock { $0 = connection.readHead() ?? "" }
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
        }
        try await withTransport { transport in
            let target = "/a[1]%2F%zz//..;b@c:%e4?x[]=%&y|"
            let response = try await transport.send(
                Self.request(peer.authority, path: target, fields: [.range: "bytes=5-"])
            )
            #expect(response.head.status == .noContent)
            #expect(try await response.body.next() == nil)
            let lines = seen.withLock { $0 }.split(separator: "\r\n")
            #expect(lines.first == "GET \(target) HTTP/1.1")
            #expect(
                Set(lines.dropFirst().map { $0.lowercased() })
                    == ["range: bytes=5-", "host: \(peer.authority)"]
            )
        }
    }

    @Test("A Host field of the caller replaces the one made from the authority")
    func hostOfCaller() async throws {
        let seen = Mutex("")
        let peer = RawPeer { connection in
            seen.withLock { $0 = connection.readHead() ?? "" }
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
        }
        try await withTransport { transport in
            let name = try #require(HTTPField.Name("Host"))
            _ = try await transport.send(
                Self.request(peer.authority, fields: [name: "example.com"])
            )
            #expect(seen.withLock { $0 }.lowercased().contains("host: example.com\r\n"))
            #expect(!seen.withLock { $0 }.contains("127.0.0.1"))
        }
    }

    @Test("A request body is sent with its length")
    func requestBody() async throws {
        let seen = Mutex("")
        let peer = RawPeer { connection in
            let head = connection.readHead() ?? ""
            let body = connection.read(count: 5)
            seen.withLock { $0 = head + body }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        try await withTransport { transport in
            let response = try await transport.send(
                Self.request(peer.authority, method: .post, body: Array("a=b&c".utf8))
            )
            #expect(try await collect(response.body) == Array("ok".utf8))
            let text = seen.withLock { $0 }
            #expect(text.hasPrefix("POST / HTTP/1.1\r\n"))
            #expect(text.lowercased().contains("content-length: 5\r\n"))
            #expect(text.hasSuffix("\r\n\r\na=b&c"))
        }
    }

    @Test("A streamed request body goes out in chunks, or with the length it has")
    func streamedRequestBody() async throws {
        for length in [nil, 10] as [Int64?] {
            let seen = Mutex("")
            let peer = RawPeer { connection in
                let head = connection.readHead() ?? ""
                let isChunked = head.lowercased().contains("transfer-encoding: chunked\r\n")
                // "5\r\n", five bytes and "\r\n", twice, and then "0\r\n\r\n".
                let body = connection.read(count: isChunked ? 25 : 10)
                seen.withLock { $0 = head.lowercased() + body }
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
            try await withTransport { transport in
                let parts = Mutex(["first", "later"])
                var request = Self.request(peer.authority, method: .post)
                request.upload = UploadBody(length: length) {
                    parts.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                        .map { BodyChunk(Array($0.utf8)) }
                }
                let response = try await transport.send(request)
                #expect(try await collect(response.body) == Array("ok".utf8))
                let text = seen.withLock { $0 }
                #expect(text.contains("content-length: 10\r\n") == (length == 10))
                #expect(
                    text.hasSuffix(
                        length == nil ? "5\r\nfirst\r\n5\r\nlater\r\n0\r\n\r\n" : "firstlater"
                    )
                )
            }
        }
    }

    @Test("Interim responses are handed to who wants them, before the head")
    func interimResponses() async throws {
        let peer = RawPeer { connection in
            while let head = connection.readHead() {
                guard !head.lowercased().contains("tieredcache-interim") else { return }
                connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
                connection.write("HTTP/1.1 102 Processing\r\n\r\n")
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await withTransport { transport in
            let seen = Mutex<[HTTPResponse]>([])
            var request = Self.request(peer.authority)
            request.onInterim = { interim in seen.withLock { $0.append(interim) } }
            let first = try await transport.send(request)
            #expect(seen.withLock { $0 }.map(\.status.code) == [103, 102])
            let link = try #require(HTTPField.Name("Link"))
            #expect(seen.withLock { $0.first }?.headerFields[link] == "</a.css>")
            #expect(first.head.status == .ok)
            #expect(try await collect(first.body) == Array("ok".utf8))
            // The next request of the connection wants none.
            let second = try await transport.send(Self.request(peer.authority))
            #expect(try await collect(second.body) == Array("ok".utf8))
            #expect(seen.withLock { $0.count } == 2)
        }
    }

    @Test("Interim responses are skipped, redirects and codings are left alone")
    func headAsReceived() async throws {
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            connection.write(
                "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Encoding: gzip\r\n"
                    + "X-A: 1\r\nx-a: 2\r\nContent-Length: 3\r\n\r\nabc"
            )
            connection.waitForClose()
        }
        try await withTransport { transport in
            let response = try await transport.send(Self.request(peer.authority))
            #expect(response.head.status == .found)
            #expect(response.head.headerFields[.location] == "/b")
            #expect(response.head.headerFields[values: HTTPField.Name("X-A")!] == ["1", "2"])
            #expect(try await collect(response.body) == Array("abc".utf8))
            #expect(peer.connections == 1)
        }
    }

    @Test(
        "A complete body ends with nil",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                "hello"
            ),
            ("HTTP/1.1 200 OK\r\n\r\nhello", "hello"),
            ("HTTP/1.0 200 OK\r\n\r\nhello", "hello"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more", "hello"),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", ""),
        ]
    )
    func completeBody(response: String, body: String) async throws {
        #expect(try await outcome(of: response) == .success(body))
    }

    @Test("A HEAD response has no body whatever its length says")
    func headMethod() async throws {
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
        #expect(try await outcome(of: response, method: .head) == .success(""))
    }

    @Test(
        "A body cut short is closedEarly",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "",
        ]
    )
    func cutShort(response: String) async throws {
        for thenReset in [false, true] {
            let result = try await outcome(of: response, thenReset: thenReset)
            guard case .failure(let error) = result else {
                Issue.record("\(response) ended as \(result)")
                continue
            }
            #expect(error.kind == .closedEarly, "\(error)")
        }
    }

    @Test(
        "What is not HTTP is malformedResponse",
        arguments: [
            "SSH-2.0-OpenSSH_9.2\r\n", "garbage garbage garbage\r\n\r\n",
            "HTTP/1.1 abc OK\r\n\r\n", "\u{0}\u{1}\u{2}\u{3}\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello",
            "HTTP/1.1 200 OK\r\nBad Name\u{1}: x\r\n\r\n",
        ]
    )
    func garbage(response: String) async throws {
        let result = try await outcome(of: response)
        guard case .failure(let error) = result else {
            Issue.record("\(response) ended as \(result)")
            return
        }
        #expect(error.kind == .malformedResponse, "\(error)")
    }

    @Test("A refused connection fails as connect")
    func refused() async throws {
        try await withTransport { transport in
            for host in ["127.0.0.1", "localhost"] {
                let error = await #expect(throws: TransportError.self) {
                    try await transport.send(Self.request("\(host):\(RawPeer.closedPort())"))
                }
                #expect(error?.kind == .connect, "\(String(describing: error))")
            }
        }
    }

    @Test("A name that does not resolve fails as nameResolution")
    func unresolvable() async throws {
        try await withTransport { transport in
            let error = await #expect(throws: TransportError.self) {
                try await transport.send(Self.request("does-not-exist.invalid"))
            }
            #expect(error?.kind == .nameResolution, "\(String(describing: error))")
        }
    }

    @Test(
        "A request that would break its framing is invalidRequest",
        arguments: [
            ("127.0.0.1:1", "/a b"), ("127.0.0.1:1", "/#f"),
            ("127.0.0.1:1", "x"), ("127.0.0.1:1", ""), ("127.0.0.1:1", "/\u{E4}"),
            ("user:pass@127.0.0.1:1", "/"), ("", "/"), ("a b", "/"), ("[::1", "/"), ("h/x", "/"),
            ("127.0.0.1:99999", "/"),
        ]
    )
    func invalidRequest(authority: String, path: String) async throws {
        try await withTransport { transport in
            let error = await #expect(throws: TransportError.self) {
                try await transport.send(Self.request(authority, path: path))
            }
            #expect(error?.kind == .invalidRequest, "\(String(describing: error))")
        }
    }

    @Test("What must not be sent twice does not go over a connection that was idle")
    func unsafeRequestsGetFreshConnections() async throws {
        let connections = Mutex(0)
        let peer = RawPeer { connection in
            connections.withLock { $0 += 1 }
            // As an origin that has just lost its patience: closed after the first answer.
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        try await withTransport { transport in
            let get = try await transport.send(Self.request(peer.authority))
            #expect(try await collect(get.body) == Array("ok".utf8))
            let post = try await transport.send(
                Self.request(peer.authority, method: .post, body: [])
            )
            #expect(try await collect(post.body) == Array("ok".utf8))
            #expect(connections.withLock { $0 } == 2)
        }
    }

    @Test("Connections are kept alive")
    func keepAlive() async throws {
        let peer = RawPeer { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await withTransport { transport in
            for _ in 0..<5 {
                let response = try await transport.send(Self.request(peer.authority))
                #expect(try await collect(response.body) == Array("ok".utf8))
            }
            #expect(peer.connections == 1)
        }
    }

    @Test("What is not pulled stays with the peer")
    func backPressure() async throws {
        let total = 64 << 20
        let signal = AsyncStream<Void>.makeStream()
        let piece = [UInt8](repeating: 7, count: 64 << 10)
        let counter = Counter()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            while counter.value < total, connection.write(piece) {
                counter.add(piece.count)
                if counter.value == 1 << 20 { signal.continuation.yield() }
            }
        }
        try await withTransport { transport in
            let response = try await transport.send(Self.request(peer.authority))
            // Nobody pulls: the peer runs ahead until the buffers between us are full.
            for await _ in signal.stream { break }
            var received = 0
            var worstLead = 0
            while let chunk = try await response.body.next() {
                received += chunk.count
                worstLead = max(worstLead, counter.value - received)
            }
            #expect(received == total)
            // The kernel's buffers on loopback hold some MiB on either side; ours hold < 1 MiB.
            #expect(worstLead < 24 << 20)
        }
    }

    @Test(
        "What arrived before the connection was cut is delivered, read or not",
        arguments: [1, 300_000, 1_500_000]
    )
    func cut(count: Int) async throws {
        let sent = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let (closed, close) = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(count + 1)\r\n\r\n")
            connection.write(sent)
            connection.endOutput()
            close.finish()
            connection.waitForClose()
        }
        try await withTransport { transport in
            let response = try await transport.send(Self.request(peer.authority))
            for await _ in closed {}
            var received: [UInt8] = []
            await #expect(throws: TransportError.self) {
                while let chunk = try await response.body.next() {
                    chunk.withUnsafeBytes { received.append(contentsOf: $0) }
                }
            }
            #expect(received == sent)
        }
    }

    @Test("Cancelling the body while a pull waits ends it and closes the connection")
    func cancelBody() async throws {
        let closed = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            connection.waitForClose()
            closed.continuation.yield()
        }
        try await withTransport { transport in
            let body = try await transport.send(Self.request(peer.authority)).body
            #expect(try await body.next()?.count == 5)
            let next = Task { try await body.next()?.count }
            body.cancel()
            body.cancel()
            let error = await #expect(throws: TransportError.self) { try await next.value }
            #expect(error?.kind == .cancelled)
            for await _ in closed.stream { break }
        }
    }

    @Test("Dropping the body closes the connection")
    func dropBody() async throws {
        let closed = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            connection.waitForClose()
            closed.continuation.yield()
        }
        try await withTransport { transport in
            _ = try await transport.send(Self.request(peer.authority))
            for await _ in closed.stream { break }
        }
    }

    @Test("Cancelling the task before the head, and before the pull, throws cancelled")
    func cancelTask() async throws {
        let arrived = AsyncStream<Void>.makeStream()
        let closed = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            arrived.continuation.yield()
            connection.waitForClose()
            closed.continuation.yield()
        }
        try await withTransport { transport in
            let task = Task { try await transport.send(Self.request(peer.authority)).head }
            for await _ in arrived.stream { break }
            task.cancel()
            let error = await #expect(throws: TransportError.self) { try await task.value }
            #expect(error?.kind == .cancelled)
            for await _ in closed.stream { break }
        }
    }

    @Test("A task cancelled from the start makes no request")
    func cancelledFromStart() async throws {
        try await withTransport { transport in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await transport.send(Self.request("127.0.0.1:\(RawPeer.closedPort())"))
                    .head
            }
            let error = await #expect(throws: TransportError.self) { try await task.value }
            #expect(error?.kind == .cancelled)
        }
    }

    @Test("After shutdown nothing is sent, and exchanges under way fail")
    func shutdown() async throws {
        let arrived = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            arrived.continuation.yield()
            connection.waitForClose()
        }
        let transport = AsyncHTTPClientTransport()
        let task = Task { try await transport.send(Self.request(peer.authority)).head }
        for await _ in arrived.stream { break }
        await transport.shutdown()
        let first = await #expect(throws: TransportError.self) { try await task.value }
        #expect(first?.kind == .shutDown)
        let second = await #expect(throws: TransportError.self) {
            try await transport.send(Self.request(peer.authority))
        }
        #expect(second?.kind == .shutDown)
    }

    @Test("A trust root that cannot be read fails as tls")
    func missingTrustRoot() async throws {
        let peer = RawPeer { $0.waitForClose() }
        let transport = AsyncHTTPClientTransport(additionalTrustRoots: ["/nonexistent/ca.pem"])
        var request = Self.request(peer.authority)
        request.head.scheme = "https"
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(request)
        }
        #expect(error?.kind == .tls, "\(String(describing: error))")
        await transport.shutdown()
    }

    @Test("A peer that does not speak TLS fails as tls")
    func notTLS() async throws {
        let peer = RawPeer { connection in
            connection.write("HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.waitForClose()
        }
        try await withTransport { transport in
            var request = Self.request(peer.authority)
            request.head.scheme = "https"
            let error = await #expect(throws: TransportError.self) {
                try await transport.send(request)
            }
            #expect(error?.kind == .tls, "\(String(describing: error))")
        }
    }
}

/// A count that two threads share.
private final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }

    func add(_ step: Int) { count.add(step, ordering: .sequentiallyConsistent) }
}
#endif
