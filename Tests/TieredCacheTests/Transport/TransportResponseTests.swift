#if HTTPClient
import HTTPTypes
import Synchronization
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What comes in, and where it is cut.
@Suite("Transport: responses", .tags(.realTime), .timeLimit(.minutes(10)))
struct TransportResponseTests {
    /// What a whole exchange with a peer that answers with `response` ends in.
    private func outcome(
        of response: String,
        method: HTTPRequest.Method = .get,
        thenReset: Bool = false
    ) async throws -> Result<String, TransportError> {
        try await TransportCase.withTransport { transport in
            let peer = RawPeer { connection in
                guard connection.readHead() != nil else { return }
                connection.write(response)
                if thenReset { connection.reset() }
            }
            do throws(TransportError) {
                let response = try await transport.send(
                    TransportCase.request(peer.authority, method: method)
                )
                return .success(
                    String(decoding: try await TransportCase.collect(response.body), as: UTF8.self)
                )
            } catch {
                return .failure(error)
            }
        }
    }

    @Test("Interim responses are handed to a request that wants them, before the head")
    func interimResponses() async throws {
        let peer = RawPeer { connection in
            while let head = connection.readHead() {
                guard !head.lowercased().contains("tieredcache-") else { return }
                connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
                connection.write("HTTP/1.1 102 Processing\r\n\r\n")
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await TransportCase.withTransport { transport in
            let seen = Mutex<[HTTPResponse]>([])
            var request = TransportCase.request(peer.authority)
            request.onInterim = { interim in seen.withLock { $0.append(interim) } }
            let first = try await transport.send(request)
            #expect(seen.withLock { $0 }.map(\.status.code) == [103, 102])
            let link = try #require(HTTPField.Name("Link"))
            #expect(seen.withLock { $0.first }?.headerFields[link] == "</a.css>")
            #expect(first.head.status == .ok)
            #expect(
                try await firstDifference(TransportCase.collect(first.body), Array("ok".utf8))
                    == nil
            )
            // The next request of the connection wants none.
            let second = try await transport.send(TransportCase.request(peer.authority))
            #expect(
                try await firstDifference(TransportCase.collect(second.body), Array("ok".utf8))
                    == nil
            )
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
        try await TransportCase.withTransport { transport in
            let response = try await transport.send(TransportCase.request(peer.authority))
            #expect(response.head.status == .found)
            #expect(response.head.headerFields[.location] == "/b")
            #expect(response.head.headerFields[values: HTTPField.Name("X-A")!] == ["1", "2"])
            #expect(
                try await firstDifference(TransportCase.collect(response.body), Array("abc".utf8))
                    == nil
            )
            #expect(peer.connections == 1)
        }
    }

    @Test("The bytes of an address that is not UTF-8 are not lost", arguments: [1, 7, 1000])
    func addressInLatin1(step: Int) async throws {
        let hints = Array("HTTP/1.1 103 Early Hints\r\nLink: </\u{e9}>\r\n\r\n".utf8)
        let line = Array("HTTP/1.1 302 Found\r\nX-Location: /\u{e9}\r\nlocation:\t/caf".utf8)
        let bytes = hints + line + [0xE9] + Array(".mp4 \r\nContent-Length: 0\r\n\r\n".utf8)
        let peer = RawPeer { connection in
            while connection.readHead() != nil {
                for start in stride(from: 0, to: bytes.count, by: step) {
                    connection.write(Array(bytes[start..<min(start + step, bytes.count)]))
                    if step < 1000 { connection.waitUntilTaken() }
                }
            }
        }
        try await TransportCase.withTransport { transport in
            // The second one over the same connection.
            for _ in 0..<2 {
                let response = try await transport.send(TransportCase.request(peer.authority))
                #expect(response.head.headerFields[.location] == "/caf%E9.mp4")
                _ = try await TransportCase.collect(response.body)
            }
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
            "HTTP/1.1 000 Nothing\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 099 Nothing\r\n\r\n",
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

    enum Ending: CaseIterable { case close, reset }

    @Test(
        "What arrived before the connection was cut is delivered, read or not",
        arguments: [1, 300_000, 1_500_000],
        Ending.allCases
    )
    func cut(count: Int, ending: Ending) async throws {
        // A reset discards what the peer's kernel has not sent, so all must fit in between.
        let count = ending == .reset ? min(count, 300_000) : count
        let sent = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        try await expectDelivery(of: sent, ending) { connection in
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(count + 1)\r\n\r\n")
            connection.write(sent)
        }
    }

    @Test("So are all chunks of a chunked body, many to a packet", arguments: Ending.allCases)
    func cutChunks(ending: Ending) async throws {
        let sent = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        try await expectDelivery(of: sent, ending) { connection in
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for start in stride(from: 0, to: sent.count, by: 100) {
                connection.write(Array("64\r\n".utf8) + sent[start..<start + 100] + [13, 10])
            }
        }
    }

    /// Nothing is pulled before the peer is gone.
    private func expectDelivery(
        of sent: [UInt8],
        _ ending: Ending,
        _ answer: @escaping @Sendable (RawPeer.Connection) -> Void
    ) async throws {
        let (closed, close) = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            answer(connection)
            switch ending {
            case .close:
                connection.endOutput()
                close.finish()
                connection.waitForClose()
            case .reset:
                connection.waitUntilTaken()
                connection.reset()
                close.finish()
            }
        }
        try await TransportCase.withTransport { transport in
            let response = try await transport.send(TransportCase.request(peer.authority))
            for await _ in closed {}
            var received: [UInt8] = []
            let error = await #expect(throws: TransportError.self) {
                while let chunk = try await response.body.next() {
                    chunk.withUnsafeBytes { received.append(contentsOf: $0) }
                }
            }
            #expect(error?.kind == .closedEarly)
            #expect(received == sent)
        }
    }

    @Test("A response is complete, whatever the peer has not waited for of the request")
    func earlyResponse() async throws {
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            _ = connection.read(count: 5)
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        try await TransportCase.withTransport { transport in
            let isFirst = Mutex(true)
            let rest = OriginGate()
            var request = TransportCase.request(peer.authority, method: .post)
            request.upload = UploadBody(length: nil) {
                let isFirst = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                guard !isFirst else { return BodyChunk(Array("first".utf8)) }
                await rest.wait()
                return nil
            }
            let response = try await transport.send(request)
            #expect(
                try await firstDifference(TransportCase.collect(response.body), Array("ok".utf8))
                    == nil
            )
            rest.open()
        }
    }

    @Test("The peer is told apart by the address that the exchange goes out from")
    func localAddress() async throws {
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
        }
        try await TransportCase.withTransport { transport in
            let response = try await transport.send(TransportCase.request(peer.authority))
            #expect(response.localAddress == "127.0.0.1")
        }
    }
}
#endif
